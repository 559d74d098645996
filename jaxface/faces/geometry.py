"""Crop, resize, flip and grey: the plain geometry of an image, grey `[h, w]` or colour `[h, w, 3]`."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import checks
from jaxface.faces import pixels, separable

__all__ = ["crop", "flip", "resize", "to_gray"]

RESIZE_METHODS = {
    "area": separable.area_weights,
    "linear": separable.linear_weights,
    "lanczos": separable.lanczos_weights,
}

# Rec. 601 luma of gamma-encoded red, green and blue.
LUMA = (0.299, 0.587, 0.114)


def crop(image: jax.Array, *, top: int, left: int, height: int, width: int) -> jax.Array:
    """The window `[height, width]` whose first pixel is (top, left); it must lie inside the image."""
    pixels.require(image)
    checks.at_least("top", top, 0)
    checks.at_least("left", left, 0)
    checks.at_least("height", height, 1)
    checks.at_least("width", width, 1)
    rows, columns = np.shape(image)[:2]
    if top + height > rows or left + width > columns:
        raise ValueError(
            f"crop must lie inside the image of {rows} x {columns} pixels; got rows {top} to {top + height} "
            f"and columns {left} to {left + width}. Reduce height or width, or resize the image first."
        )
    return jnp.asarray(image)[top : top + height, left : left + width]


def resize(image: jax.Array, *, height: int, width: int, method: str) -> jax.Array:
    """The image at `[height, width]`, antialiased: Y = L X R' with the weights of `method` along each axis.

    `area` is the exact mean over each new pixel at any ratio, `linear` a triangle, `lanczos` has three lobes and may
    overshoot [0, 1]. Pixel centres lie at half integers, so the outer edges of the two images coincide.
    """
    pixels.require(image)
    checks.at_least("height", height, 1)
    checks.at_least("width", width, 1)
    checks.one_of("method", method, RESIZE_METHODS)
    weights = RESIZE_METHODS[method]
    rows, columns = np.shape(image)[:2]
    return separable.apply(weights(rows, height), image, weights(columns, width))


def flip(image: jax.Array) -> jax.Array:
    """The mirror image: left and right change places."""
    pixels.require(image)
    return jnp.flip(image, axis=1)


def to_gray(image: jax.Array) -> jax.Array:
    """Rec. 601 luma, .299 R + .587 G + .114 B, `[h, w, 3]` to `[h, w]`; a grey image is returned as it is."""
    pixels.require(image)
    image = jnp.asarray(image)
    if image.ndim == 2:
        return image
    red, green, blue = LUMA
    return red * image[..., 0] + green * image[..., 1] + blue * image[..., 2]
