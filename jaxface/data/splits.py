"""Splits of rows: which of them train, choose settings, and test.

    Split              the rows for training, for choosing settings or calibrating, and for testing
    of_parts           the split that numbered parts stand for, or many splits at once
    few_shot           random splits with few training rows of each person and the same test rows for every number

Random parts, int32 `[m, n]` for m draws of n rows, -1 for unused rows:

    identity_disjoint  parts of so many people each; nobody is in two parts
    k_shot             part 0: k rows of each person for training; part 1: the rest for testing
    identity_folds     folds of people, for cross-validation of verification
    image_folds        folds of rows in which each person is spread evenly, for closed-set identification
    rows_in            the rows of a part, `[m, r]`

A part is a number for each row, so ragged data have parts of one shape. Draw i is the same however many are drawn.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxface.core import checks

__all__ = [
    "Split",
    "few_shot",
    "identity_disjoint",
    "identity_folds",
    "image_folds",
    "k_shot",
    "of_parts",
    "rows_in",
]

_NO_ROWS = np.zeros(0, np.int64)


class Split(NamedTuple):
    """Row numbers of one data set, int64 `[r]` each; many splits of equal sizes have a leading axis m.

    Models are fitted to `train`, which is also the gallery of an identification. `held_out` chooses settings or
    calibrates. `test` is scored once: the probes.
    """

    train: np.ndarray
    test: np.ndarray
    held_out: np.ndarray = _NO_ROWS

    @property
    def test_to_train(self) -> float:
        """Test rows for each training row: `metrics.split_interval` corrects for it."""
        return self.test.shape[-1] / self.train.shape[-1]


def of_parts(
    parts: Any,
    *,
    train: int | Collection[int] = 0,
    test: int | Collection[int] = 1,
    held_out: int | Collection[int] = (),
) -> Split:
    """The split that parts `[n]` stand for, or the m splits of `[m, n]`; a field takes one part or several."""
    parts = np.asarray(parts)
    fields = (rows_in(np.atleast_2d(parts), numbers) for numbers in (train, test, held_out))
    return Split(*(rows[0] if parts.ndim == 1 else rows for rows in fields))


def few_shot(
    ids: Any, *, num_train: int, most_train: int, num_held_out: int = 0, seed: int, num_splits: int
) -> list[Split]:
    """Random splits with `num_train` training and `num_held_out` held-out rows of each person; the rest are test rows.

    The training rows of a smaller number are among those of a larger one, up to `most_train`, and the other rows are
    the same for every number: errors of different numbers are of the same probes. Rows of a person stand together.
    """
    checks.at_least("num_train", num_train, 1)
    checks.at_most("num_train", num_train, most_train, "most_train")
    checks.at_least("num_held_out", num_held_out, 0)
    ids = np.asarray(ids)
    parts = k_shot(ids, num_train=most_train + num_held_out, rng=np.random.default_rng(seed), num_splits=num_splits)
    rng = np.random.default_rng((seed, 1))
    drawn = []
    for part in parts:
        rows = np.flatnonzero(part == 0)
        by_person = rows[np.argsort(ids[rows], kind="stable")].reshape(-1, most_train + num_held_out)
        shuffled = rng.permuted(by_person, axis=1)
        train, held_out = shuffled[:, :num_train].ravel(), shuffled[:, most_train:].ravel()
        drawn.append(Split(train, np.flatnonzero(part == 1), held_out))
    return drawn


def identity_disjoint(
    ids: Any, *, num_people: Sequence[int], rng: np.random.Generator, num_splits: int = 1
) -> np.ndarray:
    """Part p receives all rows of `num_people[p]` people drawn at random; people left over are unused.

    `num_people=(16, 4, 20)` gives 16 people to train (part 0), 4 to choose settings (1), 20 to test (2).
    """
    ids, counts = _check(ids, num_splits)
    for part, size in enumerate(num_people):
        checks.at_least(f"num_people[{part}]", size, 1)
    checks.at_most("num_people", sum(num_people), counts.size, "all people there are; ask for fewer in some part")
    part_of_place = np.full(counts.size, -1, np.int32)
    part_of_place[: sum(num_people)] = np.repeat(np.arange(len(num_people)), num_people)
    return _shuffled_people(part_of_place, rng, num_splits)[:, ids]


def k_shot(ids: Any, *, num_train: int, rng: np.random.Generator, num_splits: int = 1) -> np.ndarray:
    """`num_train` rows of each person drawn at random are part 0 (training), the others part 1 (test)."""
    ids, counts = _check(ids, num_splits)
    checks.at_least("num_train", num_train, 1)
    if counts.min() <= num_train:
        few = np.flatnonzero(counts <= num_train)
        raise ValueError(
            f"num_train = {num_train} needs {num_train + 1} rows of each person; {few.size} of {counts.size} people "
            f"have fewer, such as id {few[0]} with {counts[few[0]]}. Ask for fewer, or leave people out "
            "(jaxface.data.people_with)."
        )
    within = np.arange(ids.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return _dealt((within >= num_train).astype(np.int32), ids, rng, num_splits)


def identity_folds(ids: Any, *, num_folds: int, rng: np.random.Generator, num_splits: int = 1) -> np.ndarray:
    """All rows of a person are in one fold; the numbers of people in the folds differ by at most one."""
    ids, counts = _check(ids, num_splits)
    checks.at_least("num_folds", num_folds, 2)
    checks.at_most("num_folds", num_folds, counts.size, "the people there are")
    return _shuffled_people(np.arange(counts.size, dtype=np.int32) % num_folds, rng, num_splits)[:, ids]


def image_folds(ids: Any, *, num_folds: int, rng: np.random.Generator, num_splits: int = 1) -> np.ndarray:
    """Each person is spread over the folds evenly; sizes, overall and for each person, differ by at most one."""
    ids, _ = _check(ids, num_splits)
    checks.at_least("num_folds", num_folds, 2)
    checks.at_most("num_folds", num_folds, ids.size, "the rows there are")
    return _dealt(np.arange(ids.size, dtype=np.int32) % num_folds, ids, rng, num_splits)


def rows_in(parts: Any, number: int | Collection[int]) -> np.ndarray:
    """Rows of the part `number`, or of several parts, ascending: int64 `[m, r]`.

    All draws must have the same number of such rows; for ragged parts use `np.flatnonzero(parts[i] == number)`.
    """
    parts = np.asarray(parts)
    checks.shapes(parts=(parts, "m n"))
    inside = np.isin(parts, [number] if isinstance(number, int | np.integer) else list(number))
    counts = inside.sum(1)
    if np.unique(counts).size != 1:
        raise ValueError(
            f"every split must have the same number of rows in part {number}; got from {counts.min()} to "
            f"{counts.max()}. Take them one split at a time: np.flatnonzero(parts[i] == {number})."
        )
    return np.nonzero(inside)[1].reshape(len(parts), counts[0])


def _check(ids: Any, num_splits: int) -> tuple[np.ndarray, np.ndarray]:
    """Dense ids and the number of rows of each person."""
    ids = np.asarray(ids)
    checks.shapes(ids=(ids, "n"))
    checks.at_least("num_splits", num_splits, 1)
    if ids.size == 0:
        raise ValueError("ids must hold at least one row; got none.")
    ids = checks.dense_labels("ids", ids, ids.size)
    counts = np.bincount(ids)
    if (counts == 0).any():
        raise ValueError(
            f"ids must be dense; id {np.flatnonzero(counts == 0)[0]} of 0 to {counts.size - 1} does not occur. "
            "Make them dense with jaxface.core.labels.dense."
        )
    return ids, counts


def _shuffled_people(part_of_place: np.ndarray, rng: np.random.Generator, num_splits: int) -> np.ndarray:
    """Part of each person `[m, c]`: the parts of c places, handed to people in a random order."""
    place = np.argsort(np.argsort(rng.random((num_splits, part_of_place.size)), axis=1), axis=1)
    return part_of_place[place]


def _dealt(part_of_place: np.ndarray, ids: np.ndarray, rng: np.random.Generator, num_splits: int) -> np.ndarray:
    """Part of each row `[m, n]`: the parts of n places, handed to the rows sorted by person, shuffled within each."""
    noise = rng.random((num_splits, ids.size))
    order = np.lexsort((noise, np.broadcast_to(ids, noise.shape)), axis=-1)
    parts = np.empty((num_splits, ids.size), np.int32)
    np.put_along_axis(parts, order, np.broadcast_to(part_of_place, order.shape), axis=1)
    return parts
