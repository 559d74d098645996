"""Linear maps of rows and columns, Y = L X R', and the matrices that resample one axis.

The matrices are NumPy float64, made once while a function is traced. Resizing, pooling into cells and block transforms
are then two small matrix products, exact for every ratio of sizes.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import checks

__all__ = []


def apply(left: jax.typing.ArrayLike, image: jax.Array, right: jax.typing.ArrayLike) -> jax.Array:
    """Y = L X R' of `[h, w, ...]` with L `[a, h]` and R `[b, w]`: `[a, b, ...]` in the image's dtype."""
    dtype = jnp.result_type(image)
    left, right = jnp.asarray(left, dtype), jnp.asarray(right, dtype)
    return jnp.einsum("ah,hw...,bw->ab...", left, image, right, precision=jax.lax.Precision.HIGHEST)


def area_weights(size: int, new_size: int) -> np.ndarray:
    """Mean over the new pixel's own interval, `[new_size, size]`: w_ij = |[i s, (i + 1) s] ∩ [j, j + 1]| / s.

    With s = size / new_size. Fractional pixels count by their part, so the mean of the signal is kept exactly.
    """
    _check_sizes(size, new_size)
    scale = size / new_size
    start = np.arange(new_size)[:, None] * scale
    pixel = np.arange(size)[None, :]
    overlap = np.minimum(start + scale, pixel + 1) - np.maximum(start, pixel)
    return np.clip(overlap, 0.0, None) / scale


def linear_weights(size: int, new_size: int) -> np.ndarray:
    """Linear interpolation, `[new_size, size]`; the triangle widens with the ratio when the axis shrinks."""
    return _kernel_weights(size, new_size, lambda t: np.clip(1.0 - np.abs(t), 0.0, None))


def lanczos_weights(size: int, new_size: int) -> np.ndarray:
    """Lanczos with three lobes, k(t) = sinc(t) sinc(t / 3) for |t| < 3, widened when the axis shrinks.

    The sharpest of the three; beside strong edges it may overshoot [0, 1] a little.
    """
    return _kernel_weights(size, new_size, lambda t: np.where(np.abs(t) < 3.0, np.sinc(t) * np.sinc(t / 3.0), 0.0))


def _kernel_weights(size: int, new_size: int, kernel: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Rows k((j - c_i) / max(s, 1)) around the centre c_i = (i + 1/2) s - 1/2, each divided by its sum.

    Dividing by the sum over the pixels that exist keeps constant images constant up to the border.
    """
    _check_sizes(size, new_size)
    scale = size / new_size
    center = (np.arange(new_size)[:, None] + 0.5) * scale - 0.5
    weights = kernel((np.arange(size)[None, :] - center) / max(scale, 1.0))
    return weights / weights.sum(axis=1, keepdims=True)


def _check_sizes(size: int, new_size: int) -> None:
    checks.at_least("size", size, 1)
    checks.at_least("new_size", new_size, 1)
