"""Eigenfaces: principal components by thin SVD of the centred samples, or from sums over more than fit in memory."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo, machine
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.linalg import class_stats, krylov, nullspace, scaling, scatter, spectral
from jaxface.linalg.class_stats import Stats
from jaxface.subspace.linear_map import LinearMap

__all__ = ["fit", "fit_randomized", "from_moments", "principal_axes"]


class Principal(NamedTuple):
    """Principal axes with their variances; axes beyond the rank are zero."""

    mean: jax.Array  # [d]
    axes: jax.Array  # [d, r], orthonormal
    variances: jax.Array  # [r], eigenvalues of S_t / n, descending
    rank: jax.Array  # int32 []


def principal_axes(x: ArrayLike, *, num_components: int) -> Principal:
    """The leading eigenvectors of `S_t / n` of x `[n, d]`, without forming S_t; gradients are stopped."""
    principal, power = _in_own_unit(x, num_components)
    return principal._replace(variances=scaling.shifted(principal.variances, 2 * power))


def fit(x: ArrayLike, *, num_components: int, whiten: bool = False) -> tuple[LinearMap, FitInfo]:
    """Eigenfaces of x `[n, d]`: the first `num_components` principal axes, at most min(n - 1, d).

    With `whiten`, the outputs have unit variance on the training set. Axes beyond the numerical rank are zero and
    the status says RANK_DEFICIENT. The result has stopped gradients.
    """
    _most_components(x, num_components)
    return _fit(jnp.asarray(x), num_components=num_components, whiten=whiten)


@partial(jax.jit, static_argnames=("num_components", "whiten"))
def _fit(x: jax.Array, *, num_components: int, whiten: bool) -> tuple[LinearMap, FitInfo]:
    return _map(*_in_own_unit(x, num_components), whiten)


def _in_own_unit(x: ArrayLike, num_components: int) -> tuple[Principal, jax.Array]:
    """`principal_axes` with variances in units of `4^power`, in which no square leaves the range, and the power."""
    n = checks.shapes(x=(x, "n d"))["n"]
    x = jax.lax.stop_gradient(jnp.asarray(x))
    power = scaling.exponent(x)
    x = scaling.shifted(x, -power)
    svd = spectral.thin_svd(scatter.total_factor(x))
    rank = nullspace.numerical_rank(svd.values, rtol=nullspace.default_rtol(x))
    keep = jnp.arange(num_components) < rank
    axes = jnp.where(keep[None, :], svd.right[:num_components].T, 0)
    variances = jnp.where(keep, svd.values[:num_components] ** 2 / n, 0)
    return Principal(scaling.shifted(x.mean(axis=0), power), axes, variances, rank), power


def fit_randomized(
    key: jax.Array, x: ArrayLike, *, num_components: int, whiten: bool = False, num_passes: int = 4, extra: int = 32
) -> tuple[LinearMap, FitInfo]:
    """Eigenfaces of many images of many pixels: the same axes by block power iteration on random directions.

    Each of `num_passes` multiplies `num_components + extra` directions by the centred x `[n, d]` and back. The cost is
    that of these GEMMs, and x is neither copied nor squared. The leading axes are exact to rounding if the spectrum
    falls; the last few are mixed with their neighbours. The rank is at most the number of directions.
    """
    checks.typed_key(key)
    checks.at_least("num_passes", num_passes, 1)
    checks.at_least("extra", extra, 0)
    width = min(num_components + extra, _most_components(x, num_components))
    settings = {"num_components": num_components, "whiten": whiten, "num_passes": num_passes, "width": width}
    return _fit_randomized(key, jnp.asarray(x), **settings)


@partial(jax.jit, static_argnames=("num_components", "whiten", "num_passes", "width"))
def _fit_randomized(
    key: jax.Array, x: jax.Array, *, num_components: int, whiten: bool, num_passes: int, width: int
) -> tuple[LinearMap, FitInfo]:
    n, d = x.shape
    mean, power = x.mean(axis=0), scaling.exponent(x)

    def forward(directions: jax.Array) -> jax.Array:
        return scaling.shifted(x @ directions - (mean @ directions)[None, :], -power)

    def backward(samples: jax.Array) -> jax.Array:
        return scaling.shifted(x.T @ samples - jnp.outer(mean, samples.sum(axis=0)), -power)

    start = jax.random.normal(key, (d, width), x.dtype)
    directions = krylov.leading_subspace(forward, backward, start, num_passes=num_passes)
    svd = spectral.thin_svd(forward(directions))
    rank = nullspace.numerical_rank(svd.values, rtol=nullspace.default_rtol(x))
    keep = jnp.arange(num_components) < rank
    axes = jnp.where(keep[None, :], spectral.fix_signs(directions @ svd.right.T)[:, :num_components], 0)
    variances = jnp.where(keep, svd.values[:num_components] ** 2 / n, 0)
    return _map(jax.lax.stop_gradient(Principal(mean, axes, variances, rank)), power, whiten)


def from_moments(stats: Stats, *, num_components: int, whiten: bool = False) -> tuple[LinearMap, FitInfo]:
    """`fit` from sums over images, for many more images than dimensions d: the classes play no part.

    The sums have the square of the condition number of the images. Variances of less than d eps times the largest,
    or times the squared distance from the shift to the mean, are rounding: their axes are zero, do not count for the
    rank, and give RANK_DEFICIENT.
    """
    checks.shapes(sum=(stats.sum, "c d"), second_moment=(stats.second_moment, "d d"), shift=(stats.shift, "d"))
    most = stats.shift.shape[0]
    checks.at_least("num_components", num_components, 1)
    checks.at_most("num_components", num_components, most, f"images of {most} dimensions")
    return _from_moments(stats, num_components=num_components, whiten=whiten)


@partial(jax.jit, static_argnames=("num_components", "whiten"))
def _from_moments(stats: Stats, *, num_components: int, whiten: bool) -> tuple[LinearMap, FitInfo]:
    return _map(*axes_of_moments(stats, num_components), whiten)


def axes_of_moments(stats: Stats, num_components: int) -> tuple[Principal, jax.Array]:
    """The leading eigenvectors of `S_t / N` with variances in units of `4^power`, and the power."""
    images = class_stats.total(jax.lax.stop_gradient(stats))
    number, d = jnp.maximum(images.number, 1), len(images.mean)
    power = scaling.exponent(jnp.sqrt(jnp.diagonal(images.scatter) / number))
    values, vectors = spectral.eigh(scaling.shifted(images.scatter / number, -2 * power))
    away = scaling.shifted(images.mean - jax.lax.stop_gradient(stats.shift), -power)
    rounding = d * machine.eps(values.dtype) * (values[0] + away @ away)
    rank = jnp.minimum((values > rounding).sum(), jnp.maximum(images.number - 1, 0)).astype(jnp.int32)
    keep = (jnp.arange(num_components) < rank) | jnp.isnan(values[:num_components])
    axes = jnp.where(keep[None, :], vectors[:, :num_components], 0)
    return Principal(images.mean, axes, jnp.where(keep, values[:num_components], 0), rank), power


def _most_components(x: ArrayLike, num_components: int) -> int:
    """min(n - 1, d), after checks of x `[n, d]` and of `num_components`."""
    n, d = checks.samples(x=(x, "n d")).values()
    checks.at_least("number of samples", n, 2)
    checks.at_least("num_components", num_components, 1)
    most = min(n - 1, d)
    checks.at_most("num_components", num_components, most, f"{n} centred samples of {d} dimensions")
    return most


def _map(principal: Principal, power: jax.Array, whiten: bool) -> tuple[LinearMap, FitInfo]:
    """The map of axes with variances in units of `4^power`."""
    num_components = principal.axes.shape[1]
    basis = principal.axes
    if whiten:
        scale = jnp.where(principal.variances > 0, principal.variances, 1) ** -0.5
        basis = scaling.shifted(basis * scale[None, :], -power)
    # NON_FINITE outranks the rest: NaN has no rank.
    status = fitinfo.diagnose((principal.rank < num_components, Status.RANK_DEFICIENT))
    status = fitinfo.or_non_finite(status, (principal.mean, basis))
    info = fitinfo.closed_form(dtype=principal.axes.dtype, status=status, rank=principal.rank)
    return LinearMap(mean=principal.mean, basis=basis), info
