"""Every method behind one interface: fit to grouped images with one setting, then transform any image.

A setting is a dict of scalars, so a whole grid of them is one vmapped call. Linear methods get coordinates in the span
of all training images, which changes no distance to one of them; kernels get the images.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments.common import fields
from experiments.weak_labels import joint
from jaxface import joint_bayes
from jaxface.core.fitinfo import FitInfo
from jaxface.linalg import gram
from jaxface.linalg.gram import Kernel
from jaxface.subspace import kernel_np_per, kernel_rca, lda, leading, np_per, pca, rca, transform

Setting = Mapping[str, jax.Array]


class Method(NamedTuple):
    """One way to learn from groups."""

    title: str
    fit: Callable[..., tuple[Any, FitInfo]]  # fit(setting, x [n, d], groups [n], *, num_groups)
    settings: tuple[str, ...] = ()  # what it has to choose: of bandwidth, width, ridge, weight
    is_linear: bool = True
    uses_names: bool = False  # gets people instead of groups
    refit: Callable[..., tuple[Any, FitInfo]] | None = None  # on the host, where `fit` reports a deficient rank
    transform: Callable[[Any, jax.Array], jax.Array] = transform  # (fitted, x [d]) -> coordinates [r]
    # (fitted, gallery [g, r], probes [q, r]) -> [g, q], larger means more alike; None: the nearest one is meant
    score: Callable[[Any, jax.Array, jax.Array], jax.Array] | None = None


def check(config: Any, *, section: str = "") -> None:
    """Refuses unknown methods, and grids that no method can choose from."""
    fields.words(config, "methods", METHODS, section=section)
    fields.counts(config, "num_folds", minimum=2, section=section)
    fields.shares(config, "widths", "weights", above_zero=True, section=section)
    fields.positive(config, "ridges", "bandwidths", section=section)


def grid(method: Method, scale: float, widest: int, config: Any) -> dict[str, np.ndarray]:
    """All combinations of the settings of a method, `[b]` each: bandwidths in units of `scale`, widths of `widest`."""
    values = {
        "bandwidth": scale * np.asarray(config.bandwidths),
        "width": np.unique(np.maximum(1, np.round(widest * np.asarray(config.widths)))),
        "ridge": np.asarray(config.ridges),
        "weight": np.asarray(config.weights),
    }
    chosen = np.meshgrid(*(values[name] for name in method.settings), indexing="ij")
    return {name: axis.ravel() for name, axis in zip(method.settings, chosen, strict=True)}


def _eigenfaces(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    del groups, num_groups
    fitted, info = pca.fit(x, num_components=min(len(x) - 1, x.shape[1]))
    return leading(fitted, setting["width"]), info


def _fisherfaces(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    width = min(len(x) - 1, x.shape[1])
    return lda.fit(
        x, groups, num_classes=num_groups, num_components=num_groups - 1, pca_components=width, ridge=setting["ridge"]
    )


def _rca(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    fitted, info = rca.fit(x, groups, num_groups=num_groups, pca_components=_widest(x, num_groups))
    return leading(fitted, setting["width"]), info


def _ridge_rca(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    return rca.fit(x, groups, num_groups=num_groups, ridge=setting["ridge"])


def _np_per(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    del setting
    return np_per.fit_dual(x, groups, num_groups=num_groups)


def _np_per_of_dependent(setting: Setting, x: Any, groups: Any, *, num_groups: int) -> tuple[Any, FitInfo]:
    del setting
    return np_per.fit_dependent(x, groups, num_groups=num_groups)


def _kernel(setting: Setting) -> Kernel:
    """The Gaussian kernel of a bandwidth, the cosine kernel where a method has none."""
    return gram.gaussian(bandwidth=setting["bandwidth"]) if "bandwidth" in setting else gram.cosine()


def _kernel_rca(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    width = len(x) - num_groups
    fitted, info = kernel_rca.fit(_kernel(setting), x, groups, num_groups=num_groups, pca_components=width)
    return leading(fitted, setting["width"]), info


def _kernel_ridge_rca(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    return kernel_rca.fit_ridge(_kernel(setting), x, groups, num_groups=num_groups, ridge=setting["ridge"])


def _kernel_np_per(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    return kernel_np_per.fit(_kernel(setting), x, groups, num_groups=num_groups)


def _kernel_np_per_rkhs(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    return kernel_np_per.fit(_kernel(setting), x, groups, num_groups=num_groups, rkhs_orthonormal=True)


def _kernel_np_per_of_dependent(setting: Setting, x: Any, groups: Any, *, num_groups: int) -> tuple[Any, FitInfo]:
    return kernel_np_per.fit_dependent(_kernel(setting), x, groups, num_groups=num_groups)


def _kernel_rkhs_of_dependent(setting: Setting, x: Any, groups: Any, *, num_groups: int) -> tuple[Any, FitInfo]:
    return kernel_np_per.fit_dependent(_kernel(setting), x, groups, num_groups=num_groups, rkhs_orthonormal=True)


def _joint_bayes(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    return joint.fit(x, groups, setting["weight"], num_groups=num_groups)


def _np_per_joint(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    return joint.fit_after(np_per.fit_dual, x, groups, setting["weight"], num_groups=num_groups)


def _np_per_joint_of_dependent(setting: Setting, x: Any, groups: Any, *, num_groups: int) -> tuple[Any, FitInfo]:
    return joint.fit_after(np_per.fit_dependent, x, groups, setting["weight"], num_groups=num_groups)


def _widest(x: jax.Array, num_groups: int) -> int:
    """PCA axes in which the scatter within groups has full rank."""
    return min(len(x) - num_groups, x.shape[1])


_KERNEL: dict[str, Any] = {"is_linear": False}
_LIKELIHOODS: dict[str, Any] = {"transform": joint_bayes.project, "score": joint_bayes.score_projections}
METHODS = {
    "eigenfaces": Method("Eigenfaces (no labels)", _eigenfaces, ("width",)),
    "fisherfaces": Method("Fisherfaces, ridge (all names)", _fisherfaces, ("ridge",), uses_names=True),
    "rca": Method("RCA after PCA", _rca, ("width",)),
    "ridge_rca": Method("RCA with a ridge", _ridge_rca, ("ridge",)),
    "np_per": Method("NP-PER", _np_per, refit=_np_per_of_dependent),
    "joint_bayes": Method("Joint Bayes", _joint_bayes, ("weight",), **_LIKELIHOODS),
    "np_per_joint_bayes": Method(
        "NP-PER, then Joint Bayes", _np_per_joint, ("weight",), refit=_np_per_joint_of_dependent, **_LIKELIHOODS
    ),
    "kernel_rca": Method("kernel RCA after PCA", _kernel_rca, ("bandwidth", "width"), **_KERNEL),
    "kernel_ridge_rca": Method("kernel RCA with a ridge", _kernel_ridge_rca, ("bandwidth", "ridge"), **_KERNEL),
    "kernel_np_per": Method(
        "kernel NP-PER", _kernel_np_per, ("bandwidth",), refit=_kernel_np_per_of_dependent, **_KERNEL
    ),
    "kernel_np_per_rkhs": Method(
        "kernel NP-PER, RKHS lengths", _kernel_np_per_rkhs, ("bandwidth",), refit=_kernel_rkhs_of_dependent, **_KERNEL
    ),
    "cosine_rca": Method("kernel RCA after PCA, cosine", _kernel_rca, ("width",), **_KERNEL),
    "cosine_np_per": Method("kernel NP-PER, cosine", _kernel_np_per, refit=_kernel_np_per_of_dependent, **_KERNEL),
    "cosine_np_per_rkhs": Method(
        "kernel NP-PER, cosine, RKHS lengths", _kernel_np_per_rkhs, refit=_kernel_rkhs_of_dependent, **_KERNEL
    ),
}
# Methods whose distances are all: what may be clustered, or searched for the nearest.
OF_DISTANCES = tuple(name for name, method in METHODS.items() if method.score is None)
