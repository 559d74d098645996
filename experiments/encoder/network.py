"""A small encoder as a pytree of weights: PCA, and beside it one hidden layer that begins with no influence."""

import jax
import jax.numpy as jnp

from jaxface.core.pytree import params
from jaxface.subspace import LinearMap

__all__ = ["Encoder", "encode", "init"]


@params
class Encoder:
    """`P'(x - mean) + B' tanh(H'(x - mean) + c)` of the pixels x of a photo."""

    mean: jax.Array  # [p]
    projection: jax.Array  # [p, r], P
    hidden: jax.Array  # [p, h], H
    offset: jax.Array  # [h], c
    out: jax.Array  # [h, r], B


def init(key: jax.Array, start: LinearMap, *, num_hidden: int) -> Encoder:
    """The encoder that is the given map, with hidden units of random directions and no influence yet."""
    p, r = start.basis.shape
    dtype = start.basis.dtype
    return Encoder(
        mean=start.mean,
        projection=start.basis,
        hidden=jax.random.normal(key, (p, num_hidden), dtype) / jnp.sqrt(p).astype(dtype),
        offset=jnp.zeros(num_hidden, dtype),
        out=jnp.zeros((num_hidden, r), dtype),
    )


def encode(encoder: Encoder, image: jax.Array) -> jax.Array:
    """Coordinates `[r]` of a photo `[h, w]`."""
    x = image.reshape(-1) - encoder.mean
    return x @ encoder.projection + jnp.tanh(x @ encoder.hidden + encoder.offset) @ encoder.out
