"""Hallucination: a whole face from some of its pixels, most of all from the eye region.

Every method is fitted on whole faces x `[n, d]` and a mask `[d]` of the pixels that will be seen, any subset. The model
makes an image `[d]` of the visible pixels `[v]`. Pixels are in [0, 1], and every method subtracts the mean face first.

    model, info = fit_ridge(faces, mask, ridge=0.01)
    image = reconstruct(model, face[mask])
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, fitinfo
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.program import program
from jaxface.linalg import scaling

__all__ = ["Hallucinator", "fit_for_psnr", "reconstruct", "reconstruct_matrix", "with_visible"]

BLOCK_SIZE = 256


Reconstruction = Callable[[jax.Array], jax.Array]  # visible pixels [v] -> image [d]


class Hallucinator(Protocol):
    """A fitted method; its parameters are a `params` dataclass."""

    @property
    def mean(self) -> jax.Array:
        """The mean face `[d]`."""

    @property
    def visible(self) -> jax.Array:
        """Where the visible pixels are in the image, int32 `[v]`, ascending."""

    def prepare(self) -> Reconstruction:
        """The reconstruction of one image, after computing all that depends on the model alone."""


def reconstruct(model: Hallucinator, pixels: ArrayLike) -> jax.Array:
    """The whole face `[d]` of the visible pixels `[v]`, in the order of the image; not clipped to [0, 1].

    If a visible pixel is NaN, all pixels of the face are NaN. Every call prepares the model again: for many images use
    `reconstruct_matrix`.
    """
    checks.shapes(visible=(model.visible, "v"), pixels=(pixels, "v"))
    checks.floating(pixels=pixels)
    return _reconstruct(model, jnp.asarray(pixels))


@program
def _reconstruct(model: Hallucinator, pixels: jax.Array) -> jax.Array:
    return _known(model)(pixels)


def reconstruct_matrix(model: Hallucinator, pixels: ArrayLike, *, block_size: int = BLOCK_SIZE) -> jax.Array:
    """Faces `[n, d]` of the visible pixels `[n, v]` of n images, `block_size` at a time; a row with NaN becomes NaN."""
    checks.shapes(visible=(model.visible, "v"), pixels=(pixels, "n v"))
    checks.floating(pixels=pixels)
    checks.at_least("block_size", block_size, 1)
    return _reconstruct_matrix(model, jnp.asarray(pixels), block_size=block_size)


@partial(jax.jit, static_argnames="block_size")
def _reconstruct_matrix(model: Hallucinator, pixels: jax.Array, *, block_size: int) -> jax.Array:
    return blocks.map_rows(_known(model), pixels, block_size=block_size)


def _known(model: Hallucinator) -> Reconstruction:
    """The reconstruction, NaN in all pixels if any visible pixel is NaN, for every method."""
    image = model.prepare()
    return lambda pixels: jnp.where(jnp.isnan(pixels).any(), jnp.nan, image(pixels))


def with_visible(model: Hallucinator, image: ArrayLike, pixels: ArrayLike) -> jax.Array:
    """The image `[d]` with its visible pixels `[v]` put back."""
    checks.shapes(mean=(model.mean, "d"), image=(image, "d"), visible=(model.visible, "v"), pixels=(pixels, "v"))
    checks.floating(image=image, pixels=pixels)
    if checks.is_concrete(model.visible) and np.asarray(model.visible).max() >= np.shape(image)[0]:
        raise ValueError("model must see pixels; this one sees a measurement: use hallucination.with_measurement.")
    return jnp.asarray(image).at[model.visible].set(pixels)


def fit_for_psnr(
    fit: Callable[..., tuple[Any, FitInfo]], x: ArrayLike, mask: ArrayLike, *, num_rounds: int, floor: float = 0.1
) -> tuple[Any, FitInfo]:
    """A regression for the mean PSNR: repeats `fit(x, mask, sample_weights=w)` with `w_i = 1 / (e_i + c)`.

    The mean PSNR is the mean of `-10 log10 e_i`, with e_i the mean squared error of a face. The rounds descend
    `sum_i log(e_i + c)` with c = `floor` times the median error, so that faces which no model explains count little.
    `fit` is any fit with `sample_weights`, its other arguments fixed by `functools.partial`. On the host. The status is
    the worst of all rounds, the rest of the report is that of the last round.
    """
    checks.at_least("num_rounds", num_rounds, 1)
    checks.positive("floor", floor)
    model, info = fit(x, mask)
    status = info.status
    pixels = jnp.asarray(x)[:, model.visible]
    power = scaling.exponent(jnp.asarray(x))
    for _ in range(num_rounds):
        residual = scaling.shifted(reconstruct_matrix(model, pixels) - x, -power)
        errors = (residual**2).mean(axis=1)
        scale = jnp.median(errors)
        weights = 1 / (errors + floor * jnp.where(scale > 0, scale, 1))
        if not jnp.isfinite(weights).all():
            status = fitinfo.worst(status, Status.NON_FINITE)
            break
        model, info = fit(x, mask, sample_weights=weights)
        status = fitinfo.worst(status, info.status)
    return model, info._replace(status=status)


def checked(x: ArrayLike, mask: ArrayLike) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Faces about their mean `[n, d]`, the mean `[d]`, and where the visible pixels are `[v]`.

    The mask must be concrete: the number of visible pixels decides every shape.
    """
    checks.samples(x=(x, "n d"), beside={"mask": (mask, "d")})
    checks.at_least("number of faces", np.shape(x)[0], 2)
    if not checks.is_concrete(mask):
        raise ValueError("mask must be known outside jit and vmap; close over it instead of passing it in.")
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError(f"mask must be boolean, True where a pixel is visible; got dtype {mask.dtype}.")
    if not mask.any():
        raise ValueError("mask must show at least one pixel; all of them are hidden.")
    x = jax.lax.stop_gradient(jnp.asarray(x))
    mean = x.mean(axis=0)
    return x - mean[None, :], mean, jnp.asarray(np.flatnonzero(mask), jnp.int32)


def checked_weights(sample_weights: ArrayLike | None, x: jax.Array) -> jax.Array:
    """Weights `[n]` of the faces x `[n, d]`, scaled to mean 1; all 1 when left out."""
    if sample_weights is None:
        return jnp.ones(x.shape[0], x.dtype)
    checks.shapes(x=(x, "n d"), sample_weights=(sample_weights, "n"))
    checks.between("sample_weights", sample_weights, 0.0, float("inf"), closed_high=False)
    weights = jnp.asarray(sample_weights, x.dtype)
    checks.positive("mean of sample_weights", weights.mean())
    return weights / weights.mean()
