"""What all folds of the study found, as the report reads it."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from experiments.hallucinate.methods import Names, psnr


class Found(NamedTuple):
    """All folds together."""

    shape: tuple[int, int]
    mask: np.ndarray  # bool [d]
    ids: np.ndarray  # [q], who is shown
    fold: np.ndarray  # [q]
    originals: np.ndarray  # [q, d]
    images: Mapping[str, np.ndarray]  # reconstructions [q, d] by name
    names: Names
    settings: Mapping[str, str]  # of all folds, in words
    validity: Mapping[str, Mapping[str, np.ndarray]]  # of methods that invert features, all folds
    counts: Mapping[str, np.ndarray]  # genuine and impostor [2, b + 2]
    scores: Mapping[str, list[np.ndarray]]  # [m, m] of every fold, between the images that are kept
    kept: list[np.ndarray]  # [m], places of these images in every fold
    num_filters: list[int]
    num_train: int
    atoms: Mapping[str, tuple[np.ndarray, np.ndarray]]  # of dictionaries of the first fold: whole, and what is seen

    @property
    def psnr(self) -> dict[str, np.ndarray]:
        """PSNR of every image `[q]` by every method."""
        return {name: psnr(images, self.originals) for name, images in self.images.items()}


class Others(NamedTuple):
    """What the smaller parts of the study found, by name."""

    measured: Mapping[str, np.ndarray]  # other measurements than the eye region
    narrow: Mapping[str, np.ndarray]  # bandwidths
    burden: Mapping[str, np.ndarray]  # of kernel dictionaries
    named: Mapping[str, np.ndarray]  # people, by dictionaries
