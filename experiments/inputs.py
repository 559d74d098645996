"""From a config to faces and vectors."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from ml_collections import ConfigDict

from jaxface import data
from jaxface.data import LabelledImages
from jaxface.faces import pipeline
from jaxface.runtime import select

BLOCK = 32  # images in flight


def load_faces(config: ConfigDict) -> LabelledImages:
    """The labelled faces that `config.data` names."""
    loader: Callable[..., LabelledImages] = select.one("config.data.loader", config.loader, data.LOADERS)
    return loader(config.root, **select.arguments(config.options, loader))


def encode(images: jax.Array, steps: tuple) -> jax.Array:
    """Vectors `[n, d]` of images by the image steps of a config."""
    return pipeline.encode_batch(pipeline.build(steps), jnp.asarray(images), block_size=BLOCK)


def working_dtype() -> jnp.dtype:
    """float64 where the launcher switched it on, else float32."""
    return jnp.zeros(()).dtype
