"""Fisherfaces: linear discriminant analysis after PCA, from thin factors of the two scatters."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.core.fitinfo import FitInfo
from jaxface.linalg import discriminant, nullspace, scaling, scatter
from jaxface.subspace import pca, rca
from jaxface.subspace.linear_map import LinearMap

__all__ = ["fit"]


def fit(
    x: ArrayLike,
    labels: ArrayLike,
    *,
    num_classes: int,
    num_components: int,
    pca_components: int | None = None,
    ridge: jax.Array | float = 0.0,
) -> tuple[LinearMap, FitInfo]:
    """Fisherfaces of x `[n, d]`: the r directions that maximise `|W'S_b W| / |W'S_w W|` after PCA.

    The PCA keeps `pca_components` axes (default min(n - c, d), where S_w just has full rank); r is at most c - 1. The
    basis whitens the within-class covariance C, `W'C W = I` with `C = S_w / (n - c)`. `ridge` adds `ridge (tr C / p) I`
    to C in the p PCA axes. Without a ridge a singular S_w gives RANK_DEFICIENT. Where class means coincide the last
    columns are zero. The result has stopped gradients. x may be in any unit that the type can hold.
    """
    sizes = checks.samples(x=(x, "n d"), beside={"labels": (labels, "n")})
    n, d = sizes["n"], sizes["d"]
    checks.at_least("num_classes", num_classes, 2, "discrimination needs two classes")
    labels = checks.dense_labels("labels", labels, num_classes)
    checks.at_least("number of samples minus num_classes", n - num_classes, 1, "some class needs two samples")
    checks.every_label("labels", labels, num_classes)
    checks.at_least("num_components", num_components, 1)
    checks.at_most("num_components", num_components, num_classes - 1, "the rank of the between-class scatter")
    checks.between("ridge", ridge, 0.0, jnp.inf, closed_high=False)
    width = min(n - num_classes, d) if pca_components is None else pca_components
    checks.at_least("pca_components", width, num_components)
    checks.at_most("pca_components", width, min(n - 1, d), f"{n} centred samples of {d} dimensions")
    return _fit(
        jnp.asarray(x),
        jnp.asarray(labels),
        ridge,
        num_classes=num_classes,
        num_components=num_components,
        pca_components=width,
    )


@partial(jax.jit, static_argnames=("num_classes", "num_components", "pca_components"))
def _fit(
    x: jax.Array,
    labels: jax.Array,
    ridge: jax.Array | float,
    *,
    num_classes: int,
    num_components: int,
    pca_components: int,
) -> tuple[LinearMap, FitInfo]:
    ridge, power = jnp.asarray(ridge, x.dtype), scaling.exponent(x)
    x = scaling.shifted(x, -power)
    principal = pca.principal_axes(x, num_components=pca_components)
    y = (x - principal.mean[None, :]) @ principal.axes
    within = scatter.within_factor(y, labels, num_classes=num_classes)
    between = scatter.between_factor(y, labels, num_classes=num_classes)
    whitener = discriminant.whitening(within, y, x.shape[0] - num_classes, ridge)
    # Class means that coincide span fewer directions.
    rtol = nullspace.default_rtol(y)
    directions = discriminant.leading_directions(between, whitener.basis, width=num_components, rtol=rtol)
    basis = principal.axes @ directions
    status = rca.diagnosis(basis, whitener.rank, pca_components, ridge)
    return rca.in_unit(LinearMap(mean=principal.mean, basis=basis), whitener, status, power, x)
