"""Who fits, calibrates and tests: people dealt into folds, people whom files list, or the people of a trial list.

Dealt, everybody tests once, with all pairs of a fold. Listed, there is one side for each person, and the pairs are all
of the listed test people, or those of the trials.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from ml_collections import ConfigDict

from experiments.common.inputs import Vectors
from jaxface.core import messages
from jaxface.data import name_lists, pairs, splits, trials
from jaxface.data.pairs import Pairs
from jaxface.data.splits import Split

FIT, CALIBRATE, TEST, UNUSED = range(4)
_LISTED = 5  # names in a message


class Sides(NamedTuple):
    """The rows that fit, calibrate and test, and the pairs of test rows that are scored."""

    split: Split
    rows: np.ndarray  # [r], rows that are scored
    trial: Pairs  # [p], of positions in `rows`


def is_listed(config: ConfigDict) -> bool:
    """Whether files say who does what, instead of folds."""
    return config.trials is not None or any(file is not None for file in config.people.values())


def deal(config: ConfigDict, vectors: Vectors) -> list[Sides]:
    """The sides of every fold, or the one that the files list."""
    if not is_listed(config):
        drawn = [
            splits.of_parts(part[vectors.ids], train=FIT, held_out=CALIBRATE, test=TEST)
            for part in folds(config, len(vectors.names))
        ]
        return [_all_pairs(config, vectors, split) for split in drawn]
    named = None if config.trials is None else _of_trials(config, vectors)
    tested = () if named is None else np.unique(vectors.ids[named.rows])
    part = listed(config, vectors.names, tested=tested)[vectors.ids]
    split = splits.of_parts(part, train=FIT, held_out=CALIBRATE, test=TEST)
    return [
        _all_pairs(config, vectors, split) if named is None else named._replace(split=split._replace(test=named.rows))
    ]


def folds(config: ConfigDict, number: int) -> list[np.ndarray]:
    """Who does what in every fold, a part for each person `[c]`; those with one photo fit, and give impostors."""
    others = number - -(-number // config.num_folds)
    num_calibrate = round(config.share_calibrate * others)
    if min(number // config.num_folds, num_calibrate, others - num_calibrate) < 2:
        raise ValueError(
            f"the {number} people of this set cannot fit, calibrate and test with two people or more each: in "
            f"{config.num_folds} folds {number // config.num_folds} test, {num_calibrate} calibrate and "
            f"{others - num_calibrate} fit. Bring more people, or change config.num_folds and config.share_calibrate."
        )
    rng = np.random.default_rng((config.seed, 1))
    drawn = []
    for fold in np.array_split(rng.permutation(number), config.num_folds):
        part = np.full(number, FIT, np.int32)
        part[fold] = TEST
        part[rng.choice(np.flatnonzero(part == FIT), num_calibrate, replace=False)] = CALIBRATE
        drawn.append(part)
    return drawn


def listed(config: ConfigDict, names: Sequence[str | int], *, tested: Iterable[int] = ()) -> np.ndarray:
    """Who does what by the lists of `config.people`, a part for each person `[c]`; `tested` people test in any case.

    Of the people whom no list names, a share calibrates where there is no list for it, and the others fit where there
    is none. With a list of both they are not used.
    """
    given = {
        side: set(name_lists.load(file, names).tolist()) for side, file in config.people.items() if file is not None
    }
    if (by_trials := set(tested)) or "test" not in given:
        given["test"] = given.get("test", set()) | by_trials
    if not given["test"]:
        raise ValueError("people who test are missing: name a file with --config.people.test or --config.trials.")
    _refuse_two_sides(given, names)
    part = np.full(len(names), UNUSED, np.int32)
    for side, number in (("fit", FIT), ("calibrate", CALIBRATE), ("test", TEST)):
        part[sorted(given.get(side, ()))] = number
    free = np.flatnonzero(part == UNUSED)
    if "calibrate" not in given:
        rng = np.random.default_rng((config.seed, 1))
        number = round(config.share_calibrate * (len(free) + len(given.get("fit", ()))))
        part[rng.choice(free, min(number, len(free)), replace=False)] = CALIBRATE
    if "fit" not in given:
        part[part == UNUSED] = FIT
    counts = np.bincount(part, minlength=4)
    if counts[:3].min() < 2:
        raise ValueError(
            f"two people or more must fit, calibrate and test; {counts[FIT]}, {counts[CALIBRATE]} and {counts[TEST]} "
            "do. List fewer people on the other sides, or bring more."
        )
    return part


def in_words(config: ConfigDict, people: Mapping[str, int]) -> str:
    """Who does what, for a report; `people` are the numbers of people who fit, calibrate and test."""
    if not is_listed(config):
        return (
            f"The people are dealt into {config.num_folds} folds; the people of each fold are tested by a verifier of "
            f"others, of whom {100 * config.share_calibrate:g} % calibrate and the rest fit. Nobody is on two sides, "
            "and pairs stay within a fold."
        )
    scored = "the pairs of the trials" if config.trials is not None else "all their pairs"
    return (
        f"{people['fit']:,} people fit, {people['calibrate']:,} calibrate, and {people['test']:,} test with {scored}, "
        "as the files list them. Nobody is on two sides."
    )


def _all_pairs(config: ConfigDict, vectors: Vectors, split: Split) -> Sides:
    rows = split.test[pairs.limited(vectors.ids[split.test], max_rows=config.max_images)]
    return Sides(split, rows, pairs.all_pairs(vectors.ids[rows]))


def _of_trials(config: ConfigDict, vectors: Vectors) -> Sides:
    """The pairs of a trial list as rows of the vectors; its truth must be that of the vectors."""
    if not vectors.files:
        raise ValueError("config.trials names files, and these data have no names of files.")
    found = trials.read(config.trials)
    row_of = {file: row for row, file in enumerate(vectors.files)}
    sides = [_rows(side, row_of, config.trials) for side in (found.first, found.second)]
    if not len(sides[0]):
        raise ValueError(f"{config.trials} holds no pairs of files.")
    is_same = vectors.ids[sides[0]] == vectors.ids[sides[1]]
    if found.is_same is not None and (wrong := np.flatnonzero(found.is_same != is_same)).size:
        k = int(wrong[0])
        raise ValueError(
            f"{config.trials} contradicts the people of the vectors in {wrong.size} of {len(is_same)} pairs; the first "
            f"is {messages.printable(found.first[k])!r} and {messages.printable(found.second[k])!r}."
        )
    rows, place = np.unique(np.concatenate(sides), return_inverse=True)
    first, second = place.astype(np.int32).reshape(2, -1)
    return Sides(Split(rows, rows), rows, Pairs(first, second, is_same))


def _rows(files: Sequence[str], row_of: Mapping[str, int], source: str) -> np.ndarray:
    missing = [file for file in files if file not in row_of]
    if missing:
        raise ValueError(
            f"{source} names {len(missing)} files that the vectors do not have, the first "
            f"{messages.printable(missing[0])!r}.{messages.did_you_mean(missing[0], row_of)}"
        )
    return np.array([row_of[file] for file in files], np.int64)


def _refuse_two_sides(given: Mapping[str, set[int]], names: Sequence[str | int]) -> None:
    sides = list(given)
    for k, left in enumerate(sides):
        for right in sides[k + 1 :]:
            if both := sorted(str(names[person]) for person in given[left] & given[right]):
                more = f" and {len(both) - _LISTED} more" if len(both) > _LISTED else ""
                raise ValueError(
                    f"nobody may be on two sides: {', '.join(map(repr, both[:_LISTED]))}{more} "
                    f"{'is' if len(both) == 1 else 'are'} to {left} and to {right}. Take them off one list."
                )
