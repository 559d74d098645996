"""A composition of image steps that can be saved: from a face to the vector that a model was trained on.

A pipeline has no arrays. Its steps are a static tuple of (name, ((argument, value), ...)). Every argument of a step is
in it, also the defaults, so that a saved pipeline keeps its meaning when a default changes.
"""

import functools
import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import blocks, checks
from jaxface.core.pytree import params, static
from jaxface.faces import STEPS, pixels

__all__ = ["ImagePipeline", "build", "encode", "encode_batch"]

Step = tuple[str, tuple[tuple[str, Any], ...]]


@params
class ImagePipeline:
    """Steps from an image to a vector; all static, so equal pipelines share one compiled program."""

    steps: tuple[Step, ...] = static()


def build(steps: Iterable[Sequence[Any]]) -> ImagePipeline:
    """A pipeline from `[(name, {argument: value}), ...]`, as a config holds it.

    Names are those of `jaxface.faces.STEPS`; values are numbers, strings, booleans, None or lists of them.
    """
    return ImagePipeline(steps=tuple(_bound_step(index, step) for index, step in enumerate(steps)))


def encode(pipeline: ImagePipeline, image: ArrayLike) -> jax.Array:
    """The vector `[d]` of one image: the output of the last step, or the image itself, flattened."""
    pixels.require(image)
    value = jnp.asarray(image)
    for index, (name, arguments) in enumerate(pipeline.steps):
        try:
            value = STEPS[name](value, **dict(arguments))
        except ValueError as error:
            raise ValueError(f"step {index} ({name!r}) of the pipeline: {error}") from error
    return value.ravel()


def encode_batch(pipeline: ImagePipeline, images: ArrayLike, *, block_size: int = 32) -> jax.Array:
    """Vectors `[n, d]` of images `[n, h, w]` or `[n, h, w, 3]` with at most `block_size` of them in flight.

    One program for each pipeline and shape of `images`. Blocks of 16 to 64 faces keep the intermediate images
    in the cache of a CPU.
    """
    checks.at_least("block_size", block_size, 1)
    if np.ndim(images) not in (3, 4):
        raise ValueError(f"images must have shape [n, h, w] or [n, h, w, 3]; got shape {np.shape(images)}.")
    pixels.require_floating(images, "images")
    return _encode_batch(pipeline, jnp.asarray(images), block_size=block_size)


@functools.partial(jax.jit, static_argnames=("block_size",))
def _encode_batch(pipeline: ImagePipeline, images: jax.Array, *, block_size: int) -> jax.Array:
    return blocks.map_rows(functools.partial(encode, pipeline), images, block_size=block_size)


def _bound_step(index: int, step: Sequence[Any]) -> Step:
    """One step with its arguments checked, completed by the defaults and in the function's order."""
    if len(step) != 2 or not isinstance(step[0], str) or not isinstance(step[1], Mapping):
        raise ValueError(f"step {index} must be (name, {{argument: value}}); got {step!r}. Use {{}} for no arguments.")
    name, chosen = step
    where = f"step {index} ({name!r})"
    checks.one_of(f"name of step {index}", name, STEPS)
    _, *options = inspect.signature(STEPS[name]).parameters.values()
    known = [option.name for option in options]
    if chosen and not known:
        raise ValueError(f"{where} takes no arguments; got {sorted(chosen)}. Use {{}}.")
    for argument in chosen:
        checks.one_of(f"argument of {where}", argument, known)
    missing = [option.name for option in options if option.default is option.empty and option.name not in chosen]
    if missing:
        raise ValueError(f"{where} must be given {', '.join(missing)}; got {sorted(chosen)}.")
    values = {option.name: chosen.get(option.name, option.default) for option in options}
    return name, tuple((argument, _frozen(f"{where}, {argument}", value)) for argument, value in values.items())


def _frozen(where: str, value: Any) -> Any:
    """Lists as tuples, for static fields must be hashable; refuses values that JSON cannot hold."""
    if isinstance(value, list | tuple):
        return tuple(_frozen(where, item) for item in value)
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, bool | int | float | str | None) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise ValueError(
            f"{where} must be a finite number, a string, a boolean, None or a list of them; got {value!r}."
        )
    return value
