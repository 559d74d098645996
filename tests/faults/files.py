"""Faults of files: archives, images, texts, MATLAB files, models, and the folder of a run."""

import pathlib
from collections.abc import Callable

import numpy as np

from tests.faults import archives, matlab_files, models, pictures, runs, texts

SUBJECTS = (archives, archives, pictures, texts, models, models, runs, matlab_files)


def draw(rng: np.random.Generator) -> tuple[str, Callable[[pathlib.Path], str]]:
    """A fault of one of the subjects, and what it is."""
    return SUBJECTS[rng.integers(len(SUBJECTS))].draw(rng)
