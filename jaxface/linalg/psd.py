"""Symmetric positive definite matrices: Cholesky solves and log-determinants with a relative ridge.

A matrix that is not positive definite gives NaN, as LAPACK does under `jit`; a fit turns that into a status.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from jaxface.core import checks, machine
from jaxface.linalg import triangular

__all__ = [
    "add_ridge",
    "check_covariance",
    "cholesky",
    "exceeds_rounding",
    "is_definite",
    "least_eigenvalue",
    "log_density",
    "log_det",
    "solve",
    "solve_definite",
    "symmetrize",
]


def symmetrize(a: jax.Array) -> jax.Array:
    """`(A + A') / 2` over the last two axes."""
    return (a + jnp.swapaxes(a, -1, -2)) / 2


def add_ridge(a: jax.Array, ridge: jax.Array | float) -> jax.Array:
    """`A + ridge (tr A / d) I` `[d, d]`: a ridge relative to the mean eigenvalue, so no unit can make it vanish."""
    checks.shapes(a=(a, "d d"))
    d = a.shape[0]
    return a + ridge * (jnp.trace(a) / d) * jnp.eye(d, dtype=a.dtype)


def cholesky(a: jax.Array, *, ridge: jax.Array | float = 0.0) -> jax.Array:
    """Lower L `[d, d]` with `L L' = A + ridge (tr A / d) I`; NaN when that is not positive definite."""
    checks.floating(a=a)
    lower = jnp.linalg.cholesky(add_ridge(symmetrize(a), ridge))
    return jnp.where(jnp.isfinite(a).all(), lower, jnp.nan)  # LAPACK stops at a NaN and leaves finite rows before it


def is_definite(lower: jax.Array) -> jax.Array:
    """Whether LL' with all variances scaled to one, from L `[d, d]`, exceeds rounding; False for NaN.

    Judged by the least eigenvalue. In a singular matrix rounding may leave every pivot far larger: where one axis is a
    combination of the others with large coefficients.
    """
    lower = jax.lax.stop_gradient(lower)
    scaled = lower / jnp.linalg.norm(lower, axis=1)[:, None]
    return least_eigenvalue(scaled) > _rounding(len(lower), lower.dtype)


def exceeds_rounding(a: jax.Array, variance: jax.Array) -> jax.Array:
    """Whether A `[d, d]`, its axes scaled so that these variances `[d]` are one, exceeds rounding; False for NaN.

    The variances are the diagonal of A, or those of the larger sums whose difference A is.
    """
    a, scale = jax.lax.stop_gradient((a, jnp.sqrt(variance)))
    return least_eigenvalue(cholesky(a / scale[:, None] / scale[None, :])) > _rounding(len(a), a.dtype)


def _rounding(d: int, dtype: DTypeLike) -> float:
    """How far rounding moves an eigenvalue of a matrix with ones on its diagonal: d independent errors."""
    return 4 * math.sqrt(d) * machine.eps(dtype)


def least_eigenvalue(lower: jax.Array) -> jax.Array:
    """About the least eigenvalue of LL', never below it, from L `[d, d]`: three steps of inverse iteration."""
    found = jnp.cos(jnp.arange(len(lower), dtype=lower.dtype))
    for _ in range(3):
        vector = _to_unit(found)
        found = triangular.solve_product(lower, vector)
    unit = _to_unit(found)  # the square of the inverse of what is below rounding would overflow
    return jnp.linalg.norm(vector) / (jnp.abs(found).max() * jnp.linalg.norm(unit))


def _to_unit(vector: jax.Array) -> jax.Array:
    return vector / jnp.abs(vector).max()


def check_covariance(name: str, cov: jax.Array, *, unit: jax.Array | None = None) -> None:
    """Raises on the host where a covariance `[..., d, d]` is not symmetric, or not positive definite in its own type.

    With `unit`, another covariance of the same model, a semidefinite one passes, up to the rounding of the larger one.
    """
    a = np.asarray(cov)
    eps = machine.eps(a.dtype)
    scale = max(float(np.abs(each).max(initial=0)) for each in (a, 0 * a if unit is None else np.asarray(unit))) or 1.0
    if np.abs(a - np.swapaxes(a, -1, -2)).max(initial=0) > math.sqrt(eps) * scale:
        raise ValueError(f"{name} must be symmetric.")
    least = float(np.linalg.eigvalsh(a / a.dtype.type(scale)).min(initial=math.inf))
    if not (_has_cholesky(a / a.dtype.type(scale)) if unit is None else least >= -10 * a.shape[-1] * eps):
        kind = "definite" if unit is None else "semidefinite"
        raise ValueError(f"{name} must be positive {kind}; its least eigenvalue is {least * scale:.3g}.")


def _has_cholesky(a: np.ndarray) -> bool:
    try:
        np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        return False
    return True


def solve(a: jax.Array, b: jax.Array, *, ridge: jax.Array | float = 0.0) -> jax.Array:
    """`(A + ridge (tr A / d) I)^-1 B` for b `[d]` or `[d, k]`."""
    return triangular.solve_product(cholesky(a, ridge=ridge), b)


def solve_definite(a: jax.Array, b: jax.Array, *, ridge: jax.Array | float = 0.0) -> jax.Array:
    """`solve`, with NaN where the matrix does not exceed rounding, for there the solution is rounding too."""
    lower = cholesky(a, ridge=ridge)
    return jnp.where(is_definite(lower), triangular.solve_product(lower, b), jnp.nan)


def log_det(a: jax.Array, *, ridge: jax.Array | float = 0.0) -> jax.Array:
    """`log |A + ridge (tr A / d) I|`, from the diagonal of the Cholesky factor."""
    return 2 * jnp.log(jnp.diagonal(cholesky(a, ridge=ridge))).sum()


def log_density(cov: jax.Array, x: jax.Array) -> jax.Array:
    """`log N(x; 0, C) = -1/2 (d log 2 pi + log|C| + x'C^-1 x)` for x `[d]`."""
    lower = cholesky(cov)
    whitened = triangular.solve(lower, x)
    constant = x.shape[0] * math.log(2 * math.pi)
    return -(constant + 2 * jnp.log(jnp.diagonal(lower)).sum() + whitened @ whitened) / 2
