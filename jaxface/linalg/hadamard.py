"""The Walsh-Hadamard transform as products with small dense factors.

`H_ab = H_a (x) H_b`, so a transform of length `2^k` is a few products with a dense H of at most 64 rows. That keeps
matrix units busy and beats the butterfly, whose log2(d) passes over memory do little arithmetic each.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import checks

__all__ = ["next_power_of_two", "transform"]

_LARGEST_FACTOR_BITS = 6


def next_power_of_two(size: int) -> int:
    """The least power of two that is at least `size`."""
    checks.at_least("size", size, 1)
    return 1 << (int(size) - 1).bit_length()


def matrix(size: int, *, dtype: jnp.dtype | None = None) -> jax.Array:
    """Sylvester's H `[size, size]` with entries +-1: `H[i, j] = (-1)^popcount(i & j)`, `H H = size I`; floating."""
    _check_size(size)
    return jnp.asarray(_signs(size), dtype=float if dtype is None else dtype)


def transform(x: jax.Array) -> jax.Array:
    """`H x` over the last axis of `[..., d]`, d a power of two, unnormalised; symmetric, and its own inverse / d."""
    checks.floating(x=x)
    d = x.shape[-1]
    _check_size(d)
    factors = _factors(d)
    tensor = x.reshape(-1, *factors)
    for axis, size in enumerate(factors, start=1):
        tensor = jnp.moveaxis(jnp.tensordot(tensor, matrix(size, dtype=x.dtype), axes=(axis, 0)), -1, axis)
    return tensor.reshape(x.shape)


def _factors(size: int) -> tuple[int, ...]:
    """Splits `2^k` into as few factors of at most 64 as possible, nearly equal."""
    bits = size.bit_length() - 1
    count = max(1, -(-bits // _LARGEST_FACTOR_BITS))
    return tuple(1 << (bits // count + (i < bits % count)) for i in range(count))


def _signs(size: int) -> np.ndarray:
    index = np.arange(size, dtype=np.int64)
    return 1 - 2 * (np.bitwise_count(index[:, None] & index[None, :]) % 2).astype(np.int8)


def _check_size(size: int) -> None:
    if size < 1 or size & (size - 1):
        raise ValueError(
            f"the length of a Hadamard transform must be a power of two; got {size}. "
            f"Pad with zeros to {next_power_of_two(max(size, 1))}."
        )
