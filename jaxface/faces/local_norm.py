"""Zero mean and unit variance around every pixel: removes slow changes of light and of contrast.

Near the border only the part of the window inside the image counts, so no pixel is invented.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import checks
from jaxface.faces import pixels
from jaxface.linalg import scaling

__all__ = ["normalize"]


def normalize(image: jax.Array, *, window: int = 5, floor: float = 1e-3) -> jax.Array:
    """(x - m) / sqrt(max(v, floor * mean(v))), with mean m and variance v of the window around each pixel.

    The output of a x + b with a > 0 is that of x. The floor is relative to the mean variance of all windows of a
    channel; the default, 3 % of the typical local contrast, is about the noise of 8-bit pixels. Areas of one value give
    exactly 0, and a constant image has a finite gradient. The scale depends on all pixels, so NaN in one pixel is NaN
    in its whole channel.
    """
    pixels.require(image)
    checks.at_least("window", window, 1)
    if window % 2 == 0:
        raise ValueError(f"window must be odd, to have a central pixel; got {window}. Use {window + 1}.")
    checks.between("floor", floor, 0.0, 1.0, closed_low=False)
    image = jnp.asarray(image)
    mean, variance = _moments_about_center(scaling.shifted(image, -scaling.exponent(image)), window // 2)
    scale = jnp.maximum(variance, floor * variance.mean(axis=(0, 1), keepdims=True))
    return -mean / jnp.sqrt(jnp.where(scale == 0, jnp.ones_like(scale), scale))


def _moments_about_center(image: jax.Array, reach: int) -> tuple[jax.Array, jax.Array]:
    """Mean of (neighbour - centre) and variance in the window, both `[h, w, ...]`.

    Averages differences to the central pixel instead of pixels. The differences vanish exactly where the image is
    constant, and in bright areas the mean of squares and the square of the mean do not cancel.
    """
    zero = jnp.zeros_like(image)
    mean, square = _average_along(image, zero, zero, reach, axis=0)
    mean, square = _average_along(image, mean, square, reach, axis=1)
    return mean, jnp.maximum(square - mean**2, 0)


def _average_along(
    image: jax.Array, mean: jax.Array, square: jax.Array, reach: int, axis: int
) -> tuple[jax.Array, jax.Array]:
    """Averages the moments of the neighbours within `reach` along one axis, moved to the pixel itself.

    With e = x_j - x_c: E(x - x_c) = E(x - x_j) + e and E(x - x_c)^2 = E(x - x_j)^2 + 2 e E(x - x_j) + e^2.
    """
    size = image.shape[axis]
    position = np.expand_dims(np.arange(size), [other for other in range(image.ndim) if other != axis])
    offsets = range(-min(reach, size - 1), min(reach, size - 1) + 1)
    count = sum(((position + k >= 0) & (position + k < size)).astype(np.int32) for k in offsets)
    total_mean, total_square = jnp.zeros_like(image), jnp.zeros_like(image)
    for k in offsets:
        exists = (position + k >= 0) & (position + k < size)
        step = jnp.roll(image, -k, axis) - image
        there = jnp.roll(mean, -k, axis)
        total_mean += jnp.where(exists, there + step, 0)
        total_square += jnp.where(exists, jnp.roll(square, -k, axis) + step * (2 * there + step), 0)
    share = jnp.asarray(1.0 / count, image.dtype)
    return total_mean * share, total_square * share
