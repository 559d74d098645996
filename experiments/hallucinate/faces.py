"""Faces as rows, people in folds, and the pixels that are seen."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from ml_collections import ConfigDict

from jaxface.core import checks
from jaxface.data import LabeledImages, splits


class Faces(NamedTuple):
    """Images as rows."""

    x: np.ndarray  # float32 [n, d], in [0, 1]
    ids: np.ndarray  # int32 [n]
    shape: tuple[int, int]


class FoldFaces(NamedTuple):
    """Faces to learn from, those among them that choose settings, and faces of people seen by nobody."""

    train: np.ndarray  # float32 [n, d]
    train_ids: np.ndarray
    is_tuning: np.ndarray  # bool [n]
    test: np.ndarray  # float32 [q, d]
    test_ids: np.ndarray
    shape: tuple[int, int]


def select(config: ConfigDict, faces: LabeledImages) -> Faces:
    """The first `max_images` images of everybody."""
    order = np.argsort(faces.ids, kind="stable")
    sizes = np.bincount(faces.ids)
    place = np.empty_like(order)
    place[order] = np.arange(order.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rows = np.flatnonzero(place < config.max_images)
    images = np.asarray(faces.images, np.float32)[rows]
    checks.shapes(images=(images, "n h w"))
    return Faces(images.reshape(len(images), -1), faces.ids[rows], (images.shape[1], images.shape[2]))


def folds(config: ConfigDict, faces: Faces) -> Iterator[FoldFaces]:
    """`num_folds` folds of people; each of the first `num_tests` of them is tested by models of all others."""
    rng = np.random.default_rng(config.seed)
    checks.at_most("config.num_tests", config.num_tests, config.num_folds, "config.num_folds")
    (part,) = splits.identity_folds(faces.ids, num_folds=config.num_folds, rng=rng)
    for fold in range(config.num_tests):
        train, test = np.flatnonzero(part != fold), np.flatnonzero(part == fold)
        people = np.unique(faces.ids[train])
        num_tuning = max(1, round(config.tuning_part * people.size))
        tuning = rng.choice(people, num_tuning, replace=False)
        is_tuning = np.isin(faces.ids[train], tuning)
        yield FoldFaces(faces.x[train], faces.ids[train], is_tuning, faces.x[test], faces.ids[test], faces.shape)


def rectangle(shape: tuple[int, int], box: tuple[int, int, int, int]) -> np.ndarray:
    """A mask `[h w]` that shows the rows `box[0]:box[1]` and the columns `box[2]:box[3]`."""
    top, bottom, left, right = box
    if not (0 <= top < bottom <= shape[0] and 0 <= left < right <= shape[1]):
        raise ValueError(
            f"config.visible must be (top, bottom, left, right) inside images of {shape[0]} x {shape[1]}; got {box}."
        )
    mask = np.zeros(shape, bool)
    mask[top:bottom, left:right] = True
    return mask.ravel()
