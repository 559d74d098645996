"""Photos that are blurred, shrunk or darkened by a known amount."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from jaxface.faces import geometry

KINDS = ("as it is", "blurred", "shrunk", "dark")


class Amounts(NamedTuple):
    """What happens to each photo."""

    kind: np.ndarray  # int [n], place in KINDS
    level: np.ndarray  # int [n], 1 to config.degrade.num_levels, the strongest; 0 for a photo that stays as it is


def drawn(config: ConfigDict, num_photos: int, rng: np.random.Generator) -> Amounts:
    """A kind and a level for each photo, at random."""
    kind = rng.integers(0, len(KINDS), num_photos)
    level = rng.integers(1, config.degrade.num_levels + 1, num_photos)
    return Amounts(kind, np.where(kind == 0, 0, level))


def cells(config: ConfigDict, amounts: Amounts) -> np.ndarray:
    """The number of each combination of kind and level, `[n]`; 0 for photos as they are."""
    return np.where(amounts.kind == 0, 0, 1 + (amounts.kind - 1) * config.degrade.num_levels + amounts.level - 1)


def cell_names(config: ConfigDict) -> tuple[str, ...]:
    """The combinations in words."""
    levels = range(1, config.degrade.num_levels + 1)
    return (KINDS[0], *(f"{kind}, level {level}" for kind in KINDS[1:] for level in levels))


def degraded(config: ConfigDict, images: np.ndarray, amounts: Amounts, rng: np.random.Generator) -> np.ndarray:
    """Images `[n, h, w]` or `[n, h, w, 3]` in [0, 1], degraded, with the noise of a camera, in steps of 1 / 255."""
    found = np.array(images, np.float32)
    for kind in range(1, len(KINDS)):
        for level in range(1, config.degrade.num_levels + 1):
            rows = np.flatnonzero((amounts.kind == kind) & (amounts.level == level))
            if rows.size:
                found[rows] = _changed(config, found[rows], kind, level / config.degrade.num_levels)
    # In place and in parts: an array of noise of float64 would take twice the memory of all photos.
    for image in found:
        image += rng.standard_normal(image.shape, np.float32) * (config.degrade.noise / 255)
    return np.round(np.clip(found, 0, 1) * 255) / np.float32(255)


def _changed(config: ConfigDict, images: np.ndarray, kind: int, strength: float) -> np.ndarray:
    """One kind of damage at a strength in (0, 1]."""
    height, width = images.shape[1:3]
    if KINDS[kind] == "dark":
        return images * np.float32(config.degrade.dark**strength)
    if KINDS[kind] == "blurred":
        rows, columns = (_blur(side, strength * config.degrade.blur) for side in (height, width))
        return np.einsum("ah,nhw...,bw->nab...", rows, images, columns, optimize=True)
    factor = (config.degrade.height / height) ** strength
    small = max(1, round(factor * height)), max(1, round(factor * width))

    def resized(image: jax.Array) -> jax.Array:
        shrunk = geometry.resize(image, height=small[0], width=small[1], method="area")
        return geometry.resize(shrunk, height=height, width=width, method="linear")

    return np.asarray(jax.vmap(resized)(jnp.asarray(images)))


def _blur(side: int, sigma: float) -> np.ndarray:
    """Gaussian weights `[side, side]` of the pixels around each pixel, divided by their sum."""
    place = np.arange(side)
    weights = np.exp(-((place[:, None] - place[None, :]) ** 2) / (2 * sigma**2))
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
