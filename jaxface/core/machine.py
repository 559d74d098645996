"""Limits of a floating point type, for bounds on rounding and floors against underflow."""

import jax.numpy as jnp
from jax.typing import DTypeLike

__all__ = ["eps", "tiny"]


def eps(dtype: DTypeLike) -> float:
    """The rounding unit: the distance from 1 to the next larger number, 1.2e-7 in float32 and 2.2e-16 in float64."""
    return float(jnp.finfo(dtype).eps)


def tiny(dtype: DTypeLike) -> float:
    """The smallest positive number that keeps all its digits, 1.2e-38 in float32 and 2.2e-308 in float64."""
    return float(jnp.finfo(dtype).tiny)
