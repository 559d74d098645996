"""Symmetric positive definite matrices: Cholesky solves and log-determinants with a relative ridge.

A matrix that is not positive definite gives NaN, as LAPACK does under `jit`; a fit turns that into a status.
"""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular

from jaxface.core import checks


def symmetrize(a: jax.Array) -> jax.Array:
    """`(A + A') / 2` over the last two axes."""
    return (a + jnp.swapaxes(a, -1, -2)) / 2


def add_ridge(a: jax.Array, ridge: jax.Array | float) -> jax.Array:
    """`A + ridge (tr A / d) I` `[d, d]`: a ridge relative to the mean eigenvalue, so no unit can make it vanish."""
    chex.assert_rank(a, 2)
    d = a.shape[0]
    return a + ridge * (jnp.trace(a) / d) * jnp.eye(d, dtype=a.dtype)


def cholesky(a: jax.Array, *, ridge: jax.Array | float = 0.0) -> jax.Array:
    """Lower L `[d, d]` with `L L' = A + ridge (tr A / d) I`; NaN when that is not positive definite."""
    checks.floating(a=a)
    return jnp.linalg.cholesky(add_ridge(symmetrize(a), ridge))


def is_definite(pivots: jax.Array) -> jax.Array:
    """Whether squared pivots, those of Cholesky factors `[d]`, all exceed `d eps` times the largest; False for NaN."""
    squared = pivots**2
    return squared.min() > len(pivots) * float(jnp.finfo(pivots.dtype).eps) * squared.max()


def check_covariance(name: str, cov: jax.Array, *, is_definite: bool) -> None:
    """Refuses covariances `[..., d, d]` on the host: not symmetric, or not positive (semi)definite as they are held."""
    a = np.asarray(cov)
    eps, largest = float(np.finfo(a.dtype).eps), np.abs(a).max(initial=0)
    if np.abs(a - np.swapaxes(a, -1, -2)).max(initial=0) > math.sqrt(eps) * largest:
        raise ValueError(f"{name} must be symmetric.")
    least = float(np.linalg.eigvalsh(a / (largest or 1)).min(initial=math.inf))
    try:
        is_valid = least >= -10 * a.shape[-1] * eps if not is_definite else np.linalg.cholesky(a / (largest or 1)).any()
    except np.linalg.LinAlgError:
        is_valid = False
    if not is_valid:
        kind = "definite" if is_definite else "semidefinite"
        raise ValueError(f"{name} must be positive {kind}; its least eigenvalue is {least * float(largest):.3g}.")


def solve(a: jax.Array, b: jax.Array, *, ridge: jax.Array | float = 0.0) -> jax.Array:
    """`(A + ridge (tr A / d) I)^-1 B` for b `[d]` or `[d, k]`."""
    return cho_solve((cholesky(a, ridge=ridge), True), b)


def log_det(a: jax.Array, *, ridge: jax.Array | float = 0.0) -> jax.Array:
    """`log |A + ridge (tr A / d) I|`, from the diagonal of the Cholesky factor."""
    return 2 * jnp.log(jnp.diagonal(cholesky(a, ridge=ridge))).sum()


def log_density(cov: jax.Array, x: jax.Array) -> jax.Array:
    """`log N(x; 0, C) = -1/2 (d log 2 pi + log|C| + x'C^-1 x)` for x `[d]`."""
    lower = cholesky(cov)
    whitened = solve_triangular(lower, x, lower=True)
    constant = x.shape[0] * math.log(2 * math.pi)
    return -(constant + 2 * jnp.log(jnp.diagonal(lower)).sum() + whitened @ whitened) / 2
