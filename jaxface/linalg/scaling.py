"""Powers of two that bring numbers into the middle of their type's range, and take results back.

Squares and fourth powers of float32 leave its range from 1e-10 and 1e9 on. Where a method commutes with a change of
unit, it runs in a unit of its own: a power of two changes no digit, and numbers of ordinary size stay as they are.

The functions are programs of their own: outside of others they are one instead of ten, and inside they are traced once.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.core.program import program

__all__ = ["ORDINARY", "exponent", "row_exponents", "shifted", "squarable_exponent"]

ORDINARY = 16  # numbers from 2^-16 to 2^16 have squares and fourth powers far from the ends of float32
SQUARABLE = 48  # sums of squares of numbers from 2^-48 to 2^48 are inside the range of float32


def as_floating(x: ArrayLike) -> jax.Array:
    """Integers as floating point numbers: the bytes of an image would wrap around when squared or summed.

    float16 and bfloat16 are refused, as everywhere.
    """
    x = jnp.asarray(x)
    if jnp.issubdtype(x.dtype, jnp.integer) or x.dtype == bool:
        return x.astype(jnp.promote_types(x.dtype, jnp.float32))
    checks.floating(x=x)
    return x


@program
def exponent(*arrays: jax.Array, reach: ArrayLike = ORDINARY) -> jax.Array:
    """The binary exponent int32 `[]` of the largest finite magnitude; 0 where that lies within `2^-reach` to `2^reach`.

    Also 0 for arrays of zeros. NaN and infinity do not count: they are the same in any unit.
    """
    dtype = jnp.result_type(*arrays)
    arrays = jax.lax.stop_gradient(arrays)
    sizes = [jnp.max(jnp.abs(a), initial=0, where=jnp.isfinite(a)).astype(dtype) for a in arrays]
    return _beyond(jnp.stack(sizes).max(), reach)


def squarable_exponent(*arrays: jax.Array) -> jax.Array:
    """The exponent that leaves room for squares: 0 where they fit, else the one that takes the largest number to 2^48.

    Squares of small numbers beside a large one so survive as far as the type allows.
    """
    power = exponent(*arrays, reach=SQUARABLE)
    return jnp.where(power == 0, 0, power - SQUARABLE)


@program
def row_exponents(x: jax.Array, *, reach: ArrayLike = SQUARABLE) -> jax.Array:
    """`exponent` of each row of `[..., d]` on its own, `[..., 1]`; 0 for rows with NaN or infinity."""
    size = jnp.max(jnp.abs(jax.lax.stop_gradient(x)), axis=-1, keepdims=True, initial=0)
    return _beyond(jnp.where(jnp.isfinite(size), size, 0), reach)


@program
def shifted(x: jax.Array, power: jax.Array) -> jax.Array:
    """`x 2^power`, exact inside the range of the type; zero or infinite beyond.

    Powers below twice the least exponent of the type, -252 in float32, give zero.
    """
    bias = jnp.finfo(x.dtype).maxexp - 1
    # In two halves, for the result may be at the other end of the range; a half below the least exponent is 0.
    biased = jnp.minimum(jnp.maximum(power + 2 * bias, 0), 4 * bias).astype(_integers(x.dtype))
    half = biased >> 1
    return x * _power_of_two(half, x.dtype) * _power_of_two(biased - half, x.dtype)


def _beyond(size: jax.Array, reach: ArrayLike) -> jax.Array:
    info = jnp.finfo(size.dtype)
    bits = jax.lax.bitcast_convert_type(size, _integers(size.dtype))
    power = ((bits >> info.nmant) - (info.maxexp - 2)).astype(jnp.int32)  # as `frexp`, in a tenth of the operations
    return jnp.where((size > 0) & (jnp.abs(power) > reach), power, 0)


def _power_of_two(biased: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """The power of two with this biased exponent, assembled from bits: `ldexp` compiles to forty operations."""
    return jax.lax.bitcast_convert_type(biased << jnp.finfo(dtype).nmant, dtype)


def _integers(dtype: jnp.dtype) -> type:
    """The integers that have the size of a floating point type."""
    return jnp.int64 if jnp.finfo(dtype).bits == 64 else jnp.int32
