"""Discriminant directions on some axes: by an exact shortcut, and from the samples.

In the principal coordinates of the training set `S_t / n = diag(v)`, also on any subset J of the axes. With the c x |J|
matrix of scaled class means `A = diag(n_c / n)^1/2 M_J diag(v_J)^-1/2 = U s V'`,

    S_b / n = diag(v_J)^1/2 A'A diag(v_J)^1/2      S_w / n = diag(v_J)^1/2 (I - A'A) diag(v_J)^1/2

so `W = diag(v_J)^-1/2 V diag(1 - s^2)^-1/2` whitens S_w / n and diagonalises S_b: no sample is projected again. A ridge
on S_w is added to v. Where S_w is nearly singular, 1 - s^2 has lost its digits and the thin factor of S_w has not.

Axes `[k]` that hold -1 are not used: their rows of W are zero. A `ridge` adds `ridge (tr S_w / k) I` to S_w. Gradients
are stopped, except in `by_cholesky`, which needs no eigenvectors. The caller scales the coordinates so that their
squares stay in the range of the type.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.linalg import discriminant, distances, spectral, triangular
from jaxface.linalg.scatter import ClassMoments

__all__ = []


class Directions(NamedTuple):
    """A basis that whitens S_w / n, and how far it can be trusted."""

    basis: jax.Array  # [k, r], W
    rank: jax.Array  # int32 [], of S_w on the axes; the shortcuts count axes with a variance, or a ridge
    jitter: jax.Array  # [], what the ridge added to the diagonal of S_w / n
    margin: jax.Array  # [], about the least of 1 - s^2; NaN if that has no correct digit


def by_cholesky(moments: ClassMoments, variances: jax.Array, axes: jax.Array, *, ridge: ArrayLike) -> Directions:
    """All k directions, when k < c: `W = diag(v_J)^-1/2 L^-T` with `L L' = I - A'A`.

    They come in no order. No eigenvectors are needed, so it takes about a tenth of the time of `by_means`.
    """
    scale, a, jitter = _scaled_means(moments, variances, axes, ridge)
    eye = jnp.eye(axes.shape[0], dtype=a.dtype)
    inverse = triangular.inverse(jnp.linalg.cholesky(eye - a.T @ a))
    # The largest diagonal entry of (I - A'A)^-1 is at most its largest eigenvalue 1 / (1 - s^2), and not far below.
    margin = 1 / (inverse**2).sum(axis=0).max()
    return Directions(scale[:, None] * inverse.T, (scale > 0).sum(dtype=jnp.int32), jitter, margin)


def by_means(
    moments: ClassMoments, variances: jax.Array, axes: jax.Array, *, ridge: ArrayLike, width: int
) -> Directions:
    """The `width` leading directions: `W = diag(v_J)^-1/2 V diag(1 - s^2)^-1/2`."""
    moments, variances, ridge = jax.lax.stop_gradient((moments, variances, ridge))
    scale, a, jitter = _scaled_means(moments, variances, axes, ridge)
    svd = spectral.thin_svd(a)
    within = (1 - svd.values) * (1 + svd.values)
    basis = scale[:, None] * svd.right[:width].T * (within[:width] ** -0.5)[None, :]
    return Directions(basis, (scale > 0).sum(dtype=jnp.int32), jitter, within.min())


def by_rows(
    y: jax.Array,
    labels: jax.Array,
    sample_weights: jax.Array,
    axes: jax.Array,
    *,
    ridge: ArrayLike,
    num_classes: int,
    width: int,
) -> Directions:
    """The `width` leading directions of rows y `[n, p]` seen `sample_weights` `[n]` times, in any coordinates.

    Two thin SVDs; no scatter is formed. Weights are relative: a common factor changes nothing. Columns of directions in
    which S_w vanishes are zero, and the rank says how many remain.
    """
    y, weights, ridge = jax.lax.stop_gradient((y, sample_weights, ridge))
    x = jnp.where(axes[None, :] >= 0, y[:, axes], 0)
    counts = jax.ops.segment_sum(weights, labels, num_classes)
    means = jax.ops.segment_sum(weights[:, None] * x, labels, num_classes) / jnp.where(counts > 0, counts, 1)[:, None]
    share = counts / counts.sum()
    between = jnp.sqrt(share)[:, None] * (means - (share @ means)[None, :])
    within = jnp.sqrt(weights / counts.sum())[:, None] * (x - means[labels])
    gamma = _ridge_size(ridge, (within**2).sum(), axes)
    variances = (within**2).sum(axis=0) + (between**2).sum(axis=0)
    whitener = discriminant.balanced_whitening(within, variances, gamma)
    basis = discriminant.leading_directions(between, whitener.basis, width=width)
    return Directions(basis, whitener.rank, gamma, whitener.margin)


def _scaled_means(
    moments: ClassMoments, variances: jax.Array, axes: jax.Array, ridge: ArrayLike
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`diag(v_J + gamma)^-1/2` `[k]` and A `[c, k]`, zero on axes without variance, and gamma."""
    share = moments.counts / moments.counts.sum()
    means = moments.mean[:, axes]
    total = jnp.where(axes >= 0, variances[axes], 0)
    between = jnp.where(axes >= 0, share @ means**2, 0)
    gamma = _ridge_size(ridge, total.sum() - between.sum(), axes)
    scale = distances.safe_inverse_sqrt(jnp.where(axes >= 0, total + gamma, 0))
    return scale, jnp.sqrt(share)[:, None] * means * scale[None, :], gamma


def _ridge_size(ridge: ArrayLike, trace: jax.Array, axes: jax.Array) -> jax.Array:
    return jnp.asarray(ridge, trace.dtype) * trace / jnp.maximum(_num_used(axes), 1)


def _num_used(axes: jax.Array) -> jax.Array:
    return (axes >= 0).sum(dtype=jnp.int32)
