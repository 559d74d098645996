"""Every method behind one interface: fit to grouped images with one setting, then transform any image.

A setting is a dict of scalars, so a whole grid of them is one vmapped call. Linear methods get coordinates in the span
of all training images, which changes no distance to one of them; kernels get the images.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments.common import fields
from jaxface.core.fitinfo import FitInfo
from jaxface.linalg import gram
from jaxface.subspace import kernel_np_per, kernel_rca, lda, leading, np_per, pca, rca

Setting = Mapping[str, jax.Array]


class Method(NamedTuple):
    """One way to learn from groups."""

    title: str
    fit: Callable[..., tuple[Any, FitInfo]]  # fit(setting, x [n, d], groups [n], *, num_groups)
    settings: tuple[str, ...] = ()  # what it has to choose: of bandwidth, width, ridge
    is_linear: bool = True
    uses_names: bool = False  # gets people instead of groups
    refit: Callable[..., tuple[Any, FitInfo]] | None = None  # on the host, where `fit` reports a deficient rank


def check(config: Any, *, section: str = "") -> None:
    """Refuses unknown methods, and grids that no method can choose from."""
    fields.words(config, "methods", METHODS, section=section)
    fields.counts(config, "num_folds", minimum=2, section=section)
    fields.shares(config, "widths", above_zero=True, section=section)
    fields.positive(config, "ridges", "bandwidths", section=section)


def grid(method: Method, scale: float, widest: int, config: Any) -> dict[str, np.ndarray]:
    """All combinations of the settings of a method, `[b]` each: bandwidths in units of `scale`, widths of `widest`."""
    values = {
        "bandwidth": scale * np.asarray(config.bandwidths),
        "width": np.unique(np.maximum(1, np.round(widest * np.asarray(config.widths)))),
        "ridge": np.asarray(config.ridges),
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


def _kernel_rca(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    kernel = gram.gaussian(bandwidth=setting["bandwidth"])
    fitted, info = kernel_rca.fit(kernel, x, groups, num_groups=num_groups, pca_components=len(x) - num_groups)
    return leading(fitted, setting["width"]), info


def _kernel_ridge_rca(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    kernel = gram.gaussian(bandwidth=setting["bandwidth"])
    return kernel_rca.fit_ridge(kernel, x, groups, num_groups=num_groups, ridge=setting["ridge"])


def _kernel_np_per(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    return kernel_np_per.fit(gram.gaussian(bandwidth=setting["bandwidth"]), x, groups, num_groups=num_groups)


def _kernel_np_per_rkhs(setting: Setting, x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[Any, FitInfo]:
    kernel = gram.gaussian(bandwidth=setting["bandwidth"])
    return kernel_np_per.fit(kernel, x, groups, num_groups=num_groups, rkhs_orthonormal=True)


def _kernel_np_per_of_dependent(setting: Setting, x: Any, groups: Any, *, num_groups: int) -> tuple[Any, FitInfo]:
    kernel = gram.gaussian(bandwidth=setting["bandwidth"])
    return kernel_np_per.fit_dependent(kernel, x, groups, num_groups=num_groups)


def _kernel_rkhs_of_dependent(setting: Setting, x: Any, groups: Any, *, num_groups: int) -> tuple[Any, FitInfo]:
    kernel = gram.gaussian(bandwidth=setting["bandwidth"])
    return kernel_np_per.fit_dependent(kernel, x, groups, num_groups=num_groups, rkhs_orthonormal=True)


def _widest(x: jax.Array, num_groups: int) -> int:
    """PCA axes in which the scatter within groups has full rank."""
    return min(len(x) - num_groups, x.shape[1])


METHODS = {
    "eigenfaces": Method("Eigenfaces (no labels)", _eigenfaces, ("width",)),
    "fisherfaces": Method("Fisherfaces, ridge (all names)", _fisherfaces, ("ridge",), uses_names=True),
    "rca": Method("RCA after PCA", _rca, ("width",)),
    "ridge_rca": Method("RCA with a ridge", _ridge_rca, ("ridge",)),
    "np_per": Method("NP-PER", _np_per, refit=_np_per_of_dependent),
    "kernel_rca": Method("kernel RCA after PCA", _kernel_rca, ("bandwidth", "width"), is_linear=False),
    "kernel_ridge_rca": Method("kernel RCA with a ridge", _kernel_ridge_rca, ("bandwidth", "ridge"), is_linear=False),
    "kernel_np_per": Method(
        "kernel NP-PER", _kernel_np_per, ("bandwidth",), is_linear=False, refit=_kernel_np_per_of_dependent
    ),
    "kernel_np_per_rkhs": Method(
        "kernel NP-PER, RKHS lengths",
        _kernel_np_per_rkhs,
        ("bandwidth",),
        is_linear=False,
        refit=_kernel_rkhs_of_dependent,
    ),
}
