"""Checks of images: floating arrays in [0, 1], `[h, w]` grey or `[h, w, 3]` colour.

Every public function of the room checks shape and dtype. The range is a convention and is not checked.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import messages

__all__ = ["require"]


def require(image: Any) -> None:
    """Checks that `image` is float32 or float64, `[h, w]` or `[h, w, 3]`, with at least one pixel."""
    shape = np.shape(image)
    if len(shape) not in (2, 3) or shape[2:] not in ((), (3,)):
        raise ValueError(
            f"image must have shape [h, w] (grey) or [h, w, 3] (colour); got shape {shape}. "
            "Use jax.vmap, or pipeline.encode_batch, for a batch of images."
        )
    if 0 in shape:
        raise ValueError(f"image must have at least one pixel; got shape {shape}.")
    require_floating(image)


def require_floating(image: Any, name: str = "image") -> None:
    """Checks that `image` is an array of float32 or float64."""
    if not hasattr(image, "dtype"):
        raise ValueError(
            f"{name} must be an array; got {messages.describe(image)[:80]}. Convert it with numpy.asarray."
        )
    if image.dtype not in (np.float32, np.float64):
        narrow = jnp.issubdtype(image.dtype, jnp.floating)
        remedy = f"{name}.astype('float32')" if narrow else f"8-bit images with {name}.astype('float32') / 255"
        raise ValueError(f"{name} must be float32 or float64 in [0, 1]; got dtype {image.dtype}. Convert {remedy}.")


def require_gray(image: Any) -> None:
    """Checks that `image` is floating `[h, w]`."""
    require(image)
    if np.ndim(image) != 2:
        raise ValueError(
            f"image must be grey, [h, w]; got shape {np.shape(image)}. Convert it with geometry.to_gray first."
        )


def require_color(image: Any) -> None:
    """Checks that `image` is floating `[h, w, 3]`."""
    require(image)
    if np.ndim(image) != 3:
        raise ValueError(f"image must be colour, [h, w, 3]; got shape {np.shape(image)}.")


def known(image: jax.Array, values: jax.Array) -> jax.Array:
    """The values, or NaN in all of them if a pixel is not finite: a result of the whole image is unknown then."""
    return jnp.where(jnp.isfinite(image).all(), values, jnp.nan)
