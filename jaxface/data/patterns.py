"""Photographs that a generator made: patches of colours with a texture, whose statistics depend on the class.

    Kind    the statistics of a class: its colours and their shares, the scale and direction of its texture
    draw    the image of a kind under a light, with a layout of its own

They stand in for the photographs of a search engine where many classes are wanted. What they share with these: classes
differ in the distribution of colours and textures, not in places; images of a class vary; some images of a class show
something else; and classes crowd the more, the more of them there are. They show no objects.
"""

from typing import NamedTuple

import numpy as np

from jaxface.core import checks
from jaxface.data.datasets import LabeledImages

__all__ = ["Patterns", "patterns"]

_CREDIT = "Pictures made by a generator (jaxface.data.patterns): no photographs"  # for the foot of a report

_COLORS = 3  # of a kind
_NOISE = 0.02  # standard deviation of a pixel


class Kind(NamedTuple):
    """The statistics of a class."""

    colors: np.ndarray  # [3, 3], in [0, 1]
    shares: np.ndarray  # [3], of the area
    frequency: float  # of the texture, in cycles of the shorter side
    angle: float  # of its waves, radians
    strictness: float  # 0 for waves in all directions
    contrast: float  # standard deviation of its grey values


class Patterns(NamedTuple):
    """Made photographs and what they were made from."""

    data: LabeledImages  # images [n, h, w, 3]
    kinds: tuple[Kind, ...]  # [c]
    is_off_topic: np.ndarray  # bool [n], images that show another kind than their class


def patterns(
    rng: np.random.Generator,
    *,
    num_classes: int,
    images_per_class: int,
    size: tuple[int, int] = (64, 64),
    spread: float = 1.0,
    variation: float = 1.0,
    off_topic: float = 0.2,
) -> Patterns:
    """Made photographs `[n, h, w, 3]` of classes named class000, class001, ...

    spread: how far the classes lie apart, 0 for all alike. variation: how much images of a class differ, 0 for layout
    and noise only. off_topic: the share of images that show a kind of their own.
    """
    checks.at_least("num_classes", num_classes, 1)
    checks.at_least("images_per_class", images_per_class, 1)
    checks.at_least("the shorter side of size", min(size), 8)
    checks.between("spread", spread, 0.0, np.inf, closed_high=False)
    checks.between("variation", variation, 0.0, np.inf, closed_high=False)
    checks.between("off_topic", off_topic, 0.0, 1.0)
    kinds = tuple(_kind(rng, spread) for _ in range(num_classes))
    ids = np.repeat(np.arange(num_classes, dtype=np.int32), images_per_class)
    is_off_topic = rng.random(ids.size) < off_topic
    images = np.empty((ids.size, *size, 3), np.float32)
    for row, (person, is_other) in enumerate(zip(ids, is_off_topic, strict=True)):
        kind = _kind(rng, spread) if is_other else kinds[person]
        images[row] = draw(rng, kind, size=size, variation=variation)
    names = tuple(f"class{number:03d}" for number in range(num_classes))
    return Patterns(LabeledImages(images=images, ids=ids, names=names, credit=_CREDIT), kinds, is_off_topic)


def draw(rng: np.random.Generator, kind: Kind, *, size: tuple[int, int], variation: float) -> np.ndarray:
    """An image of a kind `[h, w, 3]`, in [0, 1]."""
    shares = kind.shares * np.exp(0.5 * variation * rng.normal(size=_COLORS))
    colors = kind.colors + 0.06 * variation * rng.normal(size=(_COLORS, 3))
    light = np.exp(0.15 * variation * rng.normal()) * np.exp(0.05 * variation * rng.normal(size=3))
    frequency = kind.frequency * np.exp(0.15 * variation * rng.normal())
    angle = kind.angle + 0.2 * variation * rng.normal()
    layout = _waves(rng, size, frequency=2.0, angle=0.0, strictness=0.0)
    texture = _waves(rng, size, frequency=frequency, angle=angle, strictness=kind.strictness)
    borders = np.quantile(layout, np.cumsum(shares / shares.sum())[:-1])
    image = colors[np.searchsorted(borders, layout)] * light
    grey = kind.contrast * texture + _NOISE * rng.normal(size=size)
    return np.clip(image + grey[:, :, None], 0, 1)


def _kind(rng: np.random.Generator, spread: float) -> Kind:
    colors = 0.45 + 0.2 * spread * rng.normal(size=(_COLORS, 3))
    shares = np.exp(0.6 * spread * rng.normal(size=_COLORS))
    return Kind(
        colors=np.clip(colors, 0.05, 0.95),
        shares=shares / shares.sum(),
        frequency=float(9 * np.exp(0.5 * spread * rng.normal())),
        angle=float(0.7 * spread * rng.normal()),
        strictness=float(2 * rng.random()),
        contrast=float(0.08 * np.exp(0.5 * spread * rng.normal())),
    )


def _waves(
    rng: np.random.Generator, size: tuple[int, int], *, frequency: float, angle: float, strictness: float
) -> np.ndarray:
    """Noise `[h, w]` of zero mean and unit variance whose waves have about one frequency and direction."""
    down, right = np.fft.fftfreq(size[0])[:, None] * min(size), np.fft.rfftfreq(size[1])[None, :] * min(size)
    radius = np.maximum(np.hypot(down, right), 1e-3)
    band = np.exp(-(np.log(radius / frequency) ** 2) / (2 * 0.35**2))
    turned = np.exp(strictness * (np.cos(2 * (np.arctan2(down, right) - angle)) - 1))
    noise = np.fft.rfft2(rng.normal(size=size))
    noise[0, 0] = 0
    field = np.fft.irfft2(noise * band * turned, s=size)
    return field / max(float(field.std()), 1e-12)
