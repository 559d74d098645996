"""Sine, cosine and their inverses, on a CPU in float32 as polynomials: the sine is the bottleneck of a feature map.

On a CPU, XLA's float32 sine takes four times as long as one pass over memory, its inverses ten times; these take one,
with an absolute error below 3e-7 (sine and cosine: for |u| <= 1e4, beyond which the rounding of u alone is worse).
Other types and other devices use the functions of XLA. The coefficients are minimax fits of the absolute error.
"""

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

__all__ = []

Function = Callable[..., jax.Array]

# sin r = r + r^3 p(r^2) on |r| <= pi/2, to 5e-9.
_SINE = (-0.166666571, 0.00833301729, -0.000198066152, 2.60005475e-06)
# arcsin s = s + s^3 p(s^2) on |s| <= 1/2, to 2e-9.
_ARCSINE = (0.166668215, 0.0749307718, 0.0457077875, 0.0231422847, 0.0437630407)
# arctan t = t + t^3 p(t^2) on |t| <= 1, to 8e-9.
_ARCTANGENT = (
    -0.333329871,
    0.199903966,
    -0.141859752,
    0.105739318,
    -0.0736670553,
    0.0411218535,
    -0.0151325325,
    0.00262224365,
)
# pi in three parts; the first two are so short that their products with half-integers below 2^12 are exact.
_PI = (201 / 64, (math.pi - 201 / 64) // 2**-21 * 2**-21, (math.pi - 201 / 64) % 2**-21)


@jax.custom_jvp
def sin(u: jax.Array) -> jax.Array:
    """`sin u`; in float32 never beyond [-1, 1], for any u."""
    return _on_a_cpu(_sin, jnp.sin, u)


@jax.custom_jvp
def cos(u: jax.Array) -> jax.Array:
    """`cos u`; in float32 never beyond [-1, 1], for any u."""
    return _on_a_cpu(_cos, jnp.cos, u)


sin.defjvps(lambda du, _, u: du * cos(u))
cos.defjvps(lambda du, _, u: -du * sin(u))


@jax.custom_jvp
def clipped_arcsin(s: jax.Array) -> jax.Array:
    """`arcsin` of s moved into [-1, 1]; the derivative is 0 at and beyond the ends, where the true one is infinite."""
    s = jnp.clip(s, -1, 1)
    return _on_a_cpu(_arcsin, jnp.arcsin, s)


@jax.custom_jvp
def arctan2(y: jax.Array, x: jax.Array) -> jax.Array:
    """The angle of the point (x, y) in [-pi, pi]; value and derivative 0 at the origin, which has none."""
    angle = _on_a_cpu(_arctan2, jnp.arctan2, y, x)
    return jnp.where((x == 0) & (y == 0), 0, angle)


@clipped_arcsin.defjvp
def _clipped_arcsin_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    (s,), (ds,) = primals, tangents
    inside = jnp.abs(s) < 1
    return clipped_arcsin(s), jnp.where(inside, ds / jnp.sqrt(jnp.where(inside, 1 - s * s, 1)), 0)


@arctan2.defjvp
def _arctan2_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (y, x), (dy, dx) = primals, tangents
    squared = x * x + y * y
    return arctan2(y, x), (x * dy - y * dx) / jnp.where(squared > 0, squared, 1)


def _on_a_cpu(polynomial: Function, of_xla: Function, *args: jax.Array) -> jax.Array:
    """The polynomial in float32 on a CPU, the function of XLA otherwise."""
    if args[0].dtype != jnp.float32:
        return of_xla(*args)
    return jax.lax.platform_dependent(*args, cpu=polynomial, default=of_xla)


def _sin(u: jax.Array) -> jax.Array:
    turns = jnp.round(u * (1 / math.pi))
    return _sine_of_remainder(u, turns, flips=turns)


def _cos(u: jax.Array) -> jax.Array:
    # With u = r + (m + 1/2) pi the cosine is (-1)^(m + 1) sin r: adding a quarter turn to u would cost digits.
    whole = jnp.round(u * (1 / math.pi) - 0.5)
    return _sine_of_remainder(u, whole + 0.5, flips=whole + 1)


def _sine_of_remainder(u: jax.Array, turns: jax.Array, *, flips: jax.Array) -> jax.Array:
    """`(-1)^flips sin(u - turns pi)`, the remainder being within [-pi/2, pi/2]."""
    remainder = u
    for part in _PI:
        remainder = remainder - turns * part
    sine = _odd(_SINE, jnp.clip(remainder, -math.pi / 2, math.pi / 2))
    sign_bit = flips.astype(jnp.int32) << 31
    return jax.lax.bitcast_convert_type(jax.lax.bitcast_convert_type(sine, jnp.int32) ^ sign_bit, u.dtype)


def _arcsin(s: jax.Array) -> jax.Array:
    """Beyond 1/2 by `arcsin s = pi/2 - 2 arcsin sqrt((1 - s) / 2)`."""
    size = jnp.abs(s)
    is_large = size > 0.5
    angle = _odd(_ARCSINE, jnp.where(is_large, jnp.sqrt((1 - size) / 2), size))
    return jnp.copysign(jnp.where(is_large, math.pi / 2 - 2 * angle, angle), s)


def _arctan2(y: jax.Array, x: jax.Array) -> jax.Array:
    high, low = jnp.maximum(jnp.abs(x), jnp.abs(y)), jnp.minimum(jnp.abs(x), jnp.abs(y))
    angle = _odd(_ARCTANGENT, low / jnp.where(high > 0, high, 1))
    angle = jnp.where(jnp.abs(y) > jnp.abs(x), math.pi / 2 - angle, angle)
    return jnp.copysign(jnp.where(x < 0, math.pi - angle, angle), y)


def _odd(coefficients: Sequence[float], x: jax.Array) -> jax.Array:
    """`x + x^3 p(x^2)` by Horner's rule."""
    squared = x * x
    value = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * squared + coefficient
    return x + x * squared * value
