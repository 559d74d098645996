"""Fisher's discriminant: whiten the scatter within classes, then turn to the scatter between them.

A whitening basis W has `W' S_w W = I`. With the right singular vectors V of `F_b W`, for a factor F_b of S_b, the same
holds for `W V`, and `(W V)' S_b (W V)` is diagonal with the largest entry first: the columns are the discriminant
directions. With factors no scatter is formed; `covariance_whitening` is for the sums of a stream, which have no factor.
Gradients are stopped.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import machine
from jaxface.linalg import distances, nullspace, spectral

__all__ = ["Whitening", "balanced_whitening", "covariance_whitening", "leading_directions", "whitening"]


class Whitening(NamedTuple):
    """A basis that whitens `S_w / number`."""

    basis: jax.Array  # [p, p]; columns of directions in which S_w vanishes are zero
    rank: jax.Array  # int32 [], of S_w
    jitter: jax.Array  # [], what the ridge added to the diagonal of S_w / number


class BalancedWhitening(NamedTuple):
    """A basis that whitens `S_w + penalty I`, of axes that were brought to one scale."""

    basis: jax.Array  # [k, k]; columns of directions in which S_w vanishes are zero
    rank: jax.Array  # int32 [], of S_w + penalty I
    margin: jax.Array  # [], its least eigenvalue in units of the scale of the axes


def whitening(within: jax.Array, y: jax.Array, number: ArrayLike, ridge: jax.Array | float) -> Whitening:
    """`V diag(s^2 + ridge mean(s^2))^(-1/2)` of the factor `U s V'` of `S_w / number`.

    `within` is the factor `[n, p]` of S_w of the samples y `[n, p]`; singular values within the rounding of y count as
    zero. Without a ridge their directions are dropped.
    """
    within, y, ridge = jax.lax.stop_gradient((within, y, ridge))
    n, p = within.shape
    svd = spectral.thin_svd(jnp.pad(within, ((0, max(0, p - n)), (0, 0))))
    # The longest column is about the largest singular value of y in principal coordinates.
    largest = jnp.maximum(svd.values.max(), jnp.sqrt((y**2).sum(axis=0).max()))
    rank = (svd.values > nullspace.default_rtol(within) * largest).sum().astype(jnp.int32)
    squared = jnp.where(jnp.arange(p) < rank, svd.values**2, 0) / jnp.asarray(number, y.dtype)
    return _scaled_axes(svd.right.T, squared, rank, ridge)


def covariance_whitening(within: jax.Array, largest: jax.Array, ridge: jax.Array | float) -> Whitening:
    """`whitening` by the matrix `S_w / number` `[p, p]` itself, where there is no factor of it.

    `largest` `[]` is the largest eigenvalue of the matrix that S_w was a part of: eigenvalues up to p eps times that
    are rounding and count as zero.
    """
    within, largest, ridge = jax.lax.stop_gradient((within, largest, ridge))
    p = len(within)
    values, vectors = spectral.eigh(within)
    rank = (values > p * machine.eps(within.dtype) * jnp.maximum(largest, values[0])).sum().astype(jnp.int32)
    return _scaled_axes(vectors, jnp.where(jnp.arange(p) < rank, values, 0), rank, ridge)


def _scaled_axes(axes: jax.Array, squared: jax.Array, rank: jax.Array, ridge: jax.Array | float) -> Whitening:
    """Axes `[p, p]` divided by the roots of `squared + ridge mean(squared)`, descending and zero from `rank` on."""
    p = len(squared)
    jitter = ridge * squared.sum() / p
    powers = squared + jitter
    usable = (jnp.arange(p) < rank) | ((jnp.asarray(ridge) > 0) & (powers > 0))
    scale = jnp.where(usable, jnp.where(usable, powers, 1) ** -0.5, 0)
    return Whitening(axes * scale[None, :], rank, jitter)


def balanced_whitening(within: jax.Array, variances: jax.Array, penalty: jax.Array) -> BalancedWhitening:
    """`whitening` of axes whose `variances` `[k]` span many orders, by a factor `[n, k]` of S_w.

    Axes are brought to one scale first, since rounding is relative to the largest. Axes of variance 0 have rows of
    zeros. `penalty` `[]` is added to the diagonal of S_w.
    """
    within, variances, penalty = jax.lax.stop_gradient((within, variances, penalty))
    scale = distances.safe_inverse_sqrt(variances)
    rows = jnp.concatenate([within * scale[None, :], jnp.diag(jnp.sqrt(penalty) * scale)])
    svd = spectral.thin_svd(jnp.linalg.qr(rows, mode="r"))
    rank = nullspace.numerical_rank(svd.values, rtol=nullspace.default_rtol(rows))
    usable = jnp.arange(svd.values.shape[0]) < rank
    inverse = jnp.where(usable, 1 / jnp.where(usable, svd.values, 1), 0)
    return BalancedWhitening(scale[:, None] * svd.right.T * inverse[None, :], rank, svd.values.min() ** 2)


def leading_directions(between: jax.Array, whitener: jax.Array, *, width: int, rtol: float | None = None) -> jax.Array:
    """The `width` leading columns `[p, width]` of `W V`, from a factor `[c, p]` of S_b and a whitening basis W.

    With `rtol`, directions in which the classes differ by less than `rtol` of the largest difference are zero.
    """
    between, whitener = jax.lax.stop_gradient((between, whitener))
    svd = spectral.thin_svd(between @ whitener)
    right = svd.right
    if rtol is not None:
        right = jnp.where((svd.values > rtol * svd.values.max())[:, None], right, 0)
    return whitener @ right[:width].T
