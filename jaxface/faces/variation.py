"""Variations of an image that leave the person the same: mirrored, shifted, scaled, brighter or darker.

A variation is a pure function of a key, so the i-th image of a stream can be made again from `fold_in(key, i)`.
Without a rotation, the change of place acts on rows and columns separately: Y = L X R' with two small matrices.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.faces import pixels, separable

__all__ = ["vary"]


def vary(
    key: jax.Array,
    image: jax.Array,
    *,
    flip: bool,
    shift: ArrayLike,
    scale: ArrayLike,
    brightness: ArrayLike,
) -> jax.Array:
    """The image, changed at random but no more than asked for; linear in between pixels, the border repeated outside.

    flip: whether one image in two is mirrored
    shift: pixels by which it moves, at most, along each axis
    scale: share by which it grows or shrinks about its centre, at most
    brightness: share by which its values are raised or lowered, at most; values above 1 become 1
    """
    pixels.require(image)
    checks.typed_key(key)
    _check(shift, scale, brightness)
    image = jnp.asarray(image)
    dtype = image.dtype
    chance, down, right, size, gain = jax.random.uniform(key, (5,), dtype, minval=-1, maxval=1)
    shift, scale, brightness = (jnp.asarray(value, dtype) for value in (shift, scale, brightness))
    zoom = 1 + scale * size
    rows = _weights(image.shape[0], zoom, shift * down)
    columns = _weights(image.shape[1], zoom, shift * right)
    columns = jnp.where(flip & (chance > 0), columns[::-1], columns)
    return jnp.minimum(separable.apply(rows, image, columns) * (1 + brightness * gain), 1)


def _weights(size: int, zoom: jax.Array, shift: jax.Array) -> jax.Array:
    """Linear interpolation `[size, size]` at `c + (i - c - shift) / zoom` for pixel i, c the centre."""
    pixel = jnp.arange(size, dtype=zoom.dtype)
    center = (size - 1) / 2
    place = jnp.clip(center + (pixel - center - shift) / zoom, 0, size - 1)
    return jnp.maximum(1 - jnp.abs(place[:, None] - pixel[None, :]), 0)


def _check(shift: ArrayLike, scale: ArrayLike, brightness: ArrayLike) -> None:
    checks.between("shift", shift, 0.0, float("inf"), closed_high=False)
    checks.between("scale", scale, 0.0, 1.0, closed_high=False)
    checks.between("brightness", brightness, 0.0, 1.0)
