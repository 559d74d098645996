"""Fisherfaces: linear discriminant analysis after PCA, from thin factors of the two scatters, or from sums."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo, machine
from jaxface.core.fitinfo import FitInfo
from jaxface.linalg import class_stats, discriminant, nullspace, scaling, scatter, spectral
from jaxface.linalg.class_stats import Stats
from jaxface.subspace import pca, rca
from jaxface.subspace.linear_map import LinearMap

__all__ = ["fit", "from_stats"]


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


def from_stats(
    stats: Stats, *, num_components: int, pca_components: int | None = None, ridge: jax.Array | float = 0.0
) -> tuple[LinearMap, FitInfo]:
    """`fit` from the sums over images of each class, for many more images than dimensions d.

    Empty classes do not count, and `pca_components` defaults to d. The sums have the square of the condition number of
    the images, and S_w is a difference: variances within classes of less than p eps times the largest variance of all
    images are rounding, and give RANK_DEFICIENT without a ridge.
    """
    c, d = checks.shapes(count=(stats.count, "c"), sum=(stats.sum, "c d"), moment=(stats.second_moment, "d d")).values()
    checks.at_least("num_components", num_components, 1)
    checks.at_most("num_components", num_components, c - 1, "the rank of the between-class scatter")
    checks.between("ridge", ridge, 0.0, jnp.inf, closed_high=False)
    width = d if pca_components is None else pca_components
    checks.at_least("pca_components", width, num_components)
    checks.at_most("pca_components", width, d, f"images of {d} dimensions")
    if checks.is_concrete(stats.count):
        count = np.asarray(stats.count)
        classes = int((count > 0).sum())
        checks.at_least("number of classes with images", classes, num_components + 1, "one more than num_components")
        freedom = int(np.asarray(class_stats.images_of(stats)).sum()) - classes
        checks.at_least("number of images minus classes", freedom, 1, "a class needs two images")
    return _from_stats(stats, ridge, num_components=num_components, pca_components=width)


@partial(jax.jit, static_argnames=("num_components", "pca_components"))
def _from_stats(
    stats: Stats, ridge: jax.Array | float, *, num_components: int, pca_components: int
) -> tuple[LinearMap, FitInfo]:
    stats = jax.lax.stop_gradient(stats)
    ridge = jnp.asarray(ridge, stats.sum.dtype)
    principal, power = pca.axes_of_moments(stats, pca_components)
    number, num_classes = stats.count.sum(), (stats.count > 0).sum()
    # In units of 4^power, a covariance each: of images of a class, and between classes.
    freedom = jnp.maximum(class_stats.images_of(stats).sum() - num_classes, 1)
    total = jnp.diag(principal.variances) * (number / freedom)
    in_axes = principal.axes.T @ class_stats.within_scatter(stats) @ principal.axes
    within = scaling.shifted(in_axes / freedom, -2 * power)
    whitener = discriminant.covariance_whitening(within, total.max(), ridge)
    values, vectors = spectral.eigh(whitener.basis.T @ (total - within) @ whitener.basis)
    rounding = pca_components * machine.eps(values.dtype) * (values[0] + 1)
    keep = (jnp.arange(pca_components) < num_classes - 1) & (values > rounding) | jnp.isnan(values)
    directions = whitener.basis @ jnp.where(keep[None, :], vectors, 0)[:, :num_components]
    fitted = LinearMap(mean=principal.mean, basis=scaling.shifted(principal.axes @ directions, -power))
    status = rca.diagnosis(fitted.basis, whitener.rank, pca_components, ridge)
    status = fitinfo.or_non_finite(status, (stats, fitted))
    jitter = scaling.shifted(whitener.jitter, 2 * power)
    return fitted, fitinfo.closed_form(dtype=stats.sum.dtype, status=status, rank=whitener.rank, jitter=jitter)
