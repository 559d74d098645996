"""Solves with lower triangular factors, by the primitive of XLA: `jax.scipy.linalg` takes 40 ms to import."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

__all__ = ["inverse", "solve", "solve_product", "solve_transposed", "whiten"]


def solve(lower: ArrayLike, b: ArrayLike) -> jax.Array:
    """`L^-1 B` for b `[d]` or `[d, k]`."""
    return _solve(lower, b)


def solve_transposed(lower: ArrayLike, b: ArrayLike) -> jax.Array:
    """`L'^-1 B` for b `[d]` or `[d, k]`."""
    return _solve(lower, b, transpose_a=True)


def solve_product(lower: ArrayLike, b: ArrayLike) -> jax.Array:
    """`(L L')^-1 B` for b `[d]` or `[d, k]`."""
    return solve_transposed(lower, solve(lower, b))


def inverse(lower: jax.Array) -> jax.Array:
    """`L^-1` `[d, d]`."""
    return solve(lower, jnp.eye(len(lower), dtype=lower.dtype))


def whiten(lower: jax.Array, a: jax.Array) -> jax.Array:
    """`L^-1 A L'^-1` `[d, d]` of a symmetric matrix, up to rounding symmetric."""
    return solve(lower, solve(lower, a).T)


def _solve(lower: ArrayLike, b: ArrayLike, *, transpose_a: bool = False) -> jax.Array:
    dtype = jnp.result_type(lower, b)
    lower, b = jnp.asarray(lower, dtype), jnp.asarray(b, dtype)
    return jax.lax.linalg.triangular_solve(lower, b, left_side=True, lower=True, transpose_a=transpose_a)
