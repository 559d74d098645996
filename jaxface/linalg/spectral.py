"""Eigenvalues, singular values and the simultaneous diagonalisation of a pair, in a fixed order with fixed signs.

Everything here is returned with stopped gradients: see the room's docstring for why.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxface.core import checks, guards
from jaxface.linalg import psd, triangular

__all__ = ["PairBasis", "diagonalize_pair", "eigh", "fix_signs", "thin_svd"]


class ThinSVD(NamedTuple):
    """`X = left diag(values) right`, r = min(n, d), values descending."""

    left: jax.Array  # [n, r]
    values: jax.Array  # [r]
    right: jax.Array  # [r, d]


class PairBasis(NamedTuple):
    """V with `V' B V = I` and `V' A V = diag(values)`, values descending, and `V^-1 = Q' L'`."""

    values: jax.Array  # [d]
    vectors: jax.Array  # [d, d], V
    inverse: jax.Array  # [d, d], V^-1
    log_det: jax.Array  # [], log |B|


def fix_signs(vectors: jax.Array) -> jax.Array:
    """Turns each column of `[d, r]` so that its entry of largest magnitude is positive."""
    return vectors * _signs(vectors)[None, :]


def _signs(vectors: jax.Array) -> jax.Array:
    """+-1 `[r]` by the sign of the largest entry of each column; without an argmax, which is slow on a CPU."""
    return jnp.where(vectors.max(axis=0) < -vectors.min(axis=0), -1, 1).astype(vectors.dtype)


def eigh(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Eigenvalues `[d]` descending and eigenvectors `[d, d]` of a symmetric matrix; gradients are stopped."""
    guards.assert_rank(a, 2)
    checks.floating(a=a)
    a = jax.lax.stop_gradient(a)
    # LAPACK may find numbers in a matrix with NaN.
    a = jnp.where(jnp.isfinite(a).all(), a, jnp.nan)
    values, vectors = jnp.linalg.eigh(psd.symmetrize(a))
    return values[::-1], fix_signs(vectors[:, ::-1])


def thin_svd(x: jax.Array) -> ThinSVD:
    """Thin SVD of `[n, d]`; the signs are fixed by the right vectors; gradients are stopped."""
    guards.assert_rank(x, 2)
    checks.floating(x=x)
    left, values, right = jnp.linalg.svd(jax.lax.stop_gradient(x), full_matrices=False)
    signs = _signs(right.T)
    return ThinSVD(left * signs[None, :], values, right * signs[:, None])


def diagonalize_pair(a: jax.Array, b: jax.Array) -> PairBasis:
    """Solves `A v = l B v` for symmetric A and positive definite B by whitening with `B = L L'`.

    With `L^-1 A L^-T = Q diag(l) Q'`: `V = L^-T Q` and `V^-1 = Q' L'`. The inverse comes from the Cholesky factor and
    not from `V' B`: in float32 at condition number 1e5 `V^-1 V` is then off I by 1e-5 and not by 5e-4.
    """
    guards.assert_equal_shape([a, b])
    checks.floating(a=a, b=b)
    lower = psd.cholesky(jax.lax.stop_gradient(b))
    values, rotation = eigh(triangular.whiten(lower, jax.lax.stop_gradient(a)))
    vectors = triangular.solve_transposed(lower, rotation)
    log_det = 2 * jnp.log(jnp.diagonal(lower)).sum()
    return PairBasis(values, vectors, (lower @ rotation).T, log_det)
