"""Norms, distances and cosines whose gradients are finite at zero, one pair at a time and as one GEMM."""

import jax
import jax.numpy as jnp

from jaxface.core import guards
from jaxface.core.program import program
from jaxface.linalg import scaling

__all__ = [
    "cosine",
    "cosine_matrix",
    "distance",
    "norm",
    "normalize",
    "ordinary_squared_distances",
    "safe_inverse_sqrt",
    "safe_sqrt",
    "squared_distance_matrix",
]


def safe_sqrt(x: jax.Array) -> jax.Array:
    """`sqrt(max(x, 0))` with derivative 0 at 0, where the true one is infinite; NaN stays NaN."""
    is_zero = x <= 0
    return jnp.where(is_zero, 0, jnp.sqrt(jnp.where(is_zero, 1, x)))


def safe_inverse_sqrt(x: jax.Array) -> jax.Array:
    """`x^-1/2` where x is above 0, else 0, with derivative 0 there."""
    return jnp.where(x > 0, jnp.where(x > 0, x, 1) ** -0.5, 0)


@program
def norm(x: jax.Array) -> jax.Array:
    """Euclidean length over the last axis, of integers too, in any unit; gradient 0 at the origin."""
    x = scaling.as_floating(x)
    power = scaling.row_exponents(x)
    return scaling.shifted(_length(scaling.shifted(x, -power)), power)[..., 0]


@program
def normalize(x: jax.Array) -> jax.Array:
    """`x / |x|` over the last axis, in any unit; a zero vector stays zero."""
    x = scaling.as_floating(x)
    x = scaling.shifted(x, -scaling.row_exponents(x))
    length = _length(x)
    return x / jnp.where(length == 0, 1, length)


def distance(x: jax.Array, y: jax.Array) -> jax.Array:
    """`|x - y|` of two vectors `[d]`, in any unit; gradient 0 where they coincide."""
    guards.assert_equal_shape([x, y])
    return norm(scaling.as_floating(x) - scaling.as_floating(y))


def cosine(x: jax.Array, y: jax.Array) -> jax.Array:
    """`x'y / (|x| |y|)` of two vectors `[d]`; 0 when one of them is zero."""
    return normalize(x) @ normalize(y)


@program
def squared_distance_matrix(x: jax.Array, y: jax.Array) -> jax.Array:
    """`|x_i - y_j|^2` `[n, m]` as one GEMM, never negative; a vector with NaN makes NaN of its own distances only.

    Both sides are moved by the mean of y first: distances do not change, and cancellation of large common offsets goes.
    """
    guards.assert_equal(x.shape[1], y.shape[1])
    x, y = _about_the_mean(scaling.as_floating(x), scaling.as_floating(y))
    # Each side has its own power, so that vmap over rows of x does not make a copy of y for each row.
    of_x, of_y = scaling.squarable_exponent(x), scaling.squarable_exponent(y)
    x, y, power = scaling.shifted(x, -of_x), scaling.shifted(y, -of_y), jnp.maximum(of_x, of_y)
    squared = (
        scaling.shifted((x * x).sum(axis=1), 2 * (of_x - power))[:, None]
        + scaling.shifted((y * y).sum(axis=1), 2 * (of_y - power))[None, :]
        - scaling.shifted(2 * x @ y.T, of_x + of_y - 2 * power)
    )
    return scaling.shifted(_not_negative(squared), 2 * power)


def ordinary_squared_distances(x: jax.Array, y: jax.Array) -> jax.Array:
    """`squared_distance_matrix` of numbers whose squares are in range, without scaling."""
    guards.assert_equal(x.shape[1], y.shape[1])
    x, y = _about_the_mean(x, y)
    return _not_negative((x * x).sum(axis=1)[:, None] + (y * y).sum(axis=1)[None, :] - 2 * x @ y.T)


@program
def cosine_matrix(x: jax.Array, y: jax.Array) -> jax.Array:
    """Cosines `[n, m]` of all pairs of rows."""
    return normalize(x) @ normalize(y).T


def _about_the_mean(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Both sides moved by the mean of the finite entries of y."""
    shift = jax.lax.stop_gradient(jnp.where(jnp.isfinite(y), y, 0).mean(axis=0))[None, :]
    return x - shift, y - shift


def _not_negative(squared: jax.Array) -> jax.Array:
    # A maximum would halve the second derivatives where rows coincide.
    return squared + jax.lax.stop_gradient(jnp.maximum(-squared, 0))


def _length(x: jax.Array) -> jax.Array:
    """Lengths `[..., 1]` of rows whose squares are in range."""
    return safe_sqrt((x * x).sum(axis=-1, keepdims=True))
