"""A simulated change of camera: small, noisy and coarse pictures of the same faces."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.faces import geometry


def other_camera(images: np.ndarray, *, size: int, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Images `[n, h, w]` as a camera of `size` x `size` pixels sees them, with noise of `noise` grey levels of 255.

    The picture is averaged down, gets its noise, is brought back to its size and rounded to 8 bits.
    """
    small = np.asarray(_resized(jnp.asarray(images), size=(size, size), method="area"))
    noisy = small + noise / 255 * rng.normal(size=small.shape)
    back = np.asarray(_resized(jnp.asarray(noisy, images.dtype), size=images.shape[1:3], method="linear"))
    return np.round(back.clip(0, 1) * 255).astype(np.float32) / np.float32(255)


@partial(jax.jit, static_argnames=("size", "method"))
def _resized(images: jax.Array, *, size: tuple[int, int], method: str) -> jax.Array:
    return jax.vmap(partial(geometry.resize, height=size[0], width=size[1], method=method))(images)
