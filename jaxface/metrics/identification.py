"""Identification: who is it? Ranks of the mate in closed sets, and DIR at a false alarm rate in open sets.

Score matrices are `[g, q]`: gallery rows, probe columns. Ranks count people, not images: every person of the
gallery has the best score of their images, so the nearest neighbour rule is rank 1. To match a set with itself, put
-inf on the diagonal, and leave people with one image out of the probes: without a mate they can only err.

For galleries too large for a matrix, `core.mate_ranks.identify` counts the people above and level with the mate of
each probe, and the functions `*_from_counts` turn these counts into the same numbers.
`mate_counts.counts_from_trials` counts in a list of trials.

Ties between the mate and others are broken against the method (`ties="pessimistic"`: a system that gives
every pair the same score earns nothing) or averaged over all orders (`ties="expected"`).
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import arguments, intervals
from jaxface.metrics.arguments import Array, Index
from jaxface.metrics.intervals import Interval

__all__ = [
    "StrangerThreshold",
    "cmc",
    "cmc_from_counts",
    "identification_rate",
    "nearest_neighbor_error",
    "nearest_neighbor_hits",
    "open_set",
    "open_set_from_counts",
    "rank_hits",
    "stranger_threshold",
]


_TIES = ("pessimistic", "expected")


class OpenSet(NamedTuple):
    """Operating points of open-set identification, from 'accept nobody' on."""

    thresholds: Array  # [t] falling from +inf
    far: Array  # [t] share of unknown probes for whom somebody passes; rises from 0 to 1
    dir: Array  # [t] share of known probes whose mate is within the rank and passes; rises from 0


class StrangerThreshold(NamedTuple):
    """A threshold on the best score of a probe, and the share of strangers who pass it."""

    threshold: float
    far: Interval  # exact limits for people drawn at random, as Clopper and Pearson's
    num_people: int


def cmc(
    scores: npt.ArrayLike,
    gallery_ids: npt.ArrayLike,
    probe_ids: npt.ArrayLike,
    *,
    max_rank: int | None = None,
    ties: str = "pessimistic",
) -> Array:
    """Cumulative match characteristic `[k]`: entry r - 1 is the share of probes whose mate is among the best r people.

    Closed set: every probe must have a mate in the gallery. `max_rank` defaults to the number of gallery
    people.
    """
    matrix, gallery, probes = arguments.score_matrix(scores, gallery_ids, probe_ids)
    _, people, higher, tied = _mates(matrix, gallery, probes)
    _check_closed_set(people >= 0)
    return cmc_from_counts(higher, tied, num_people=np.unique(gallery).size, max_rank=max_rank, ties=ties)


def cmc_from_counts(
    higher: npt.ArrayLike,
    tied: npt.ArrayLike,
    *,
    num_people: int,
    max_rank: int | None = None,
    ties: str = "pessimistic",
) -> Array:
    """`cmc` from the numbers of people above and level with the mate of each probe, `[q]` and `[q]`.

    num_people: in the gallery.
    """
    above, level = _checked_counts(higher, tied)
    max_rank = num_people if max_rank is None else max_rank
    checks.at_least("max_rank", max_rank, 1)
    checks.at_most("max_rank", max_rank, num_people, "the number of people in the gallery")
    if (most := int((above + level).max())) >= num_people:
        raise ValueError(f"higher and tied count {most} others for some probe; the gallery has {num_people} people.")
    checks.one_of("ties", ties, _TIES)
    if ties == "pessimistic":
        return np.cumsum(np.bincount(above + level, minlength=max_rank))[:max_rank] / above.size
    # One rank at a time: probes times ranks are too many to keep.
    return np.array([_within_rank(above, level, np.array([rank]), ties).mean() for rank in range(1, max_rank + 1)])


def rank_hits(higher: npt.ArrayLike, tied: npt.ArrayLike, *, rank: int = 1, ties: str = "pessimistic") -> Array:
    """Per probe `[q]`: 1 where the mate is among the best `rank` people, else 0 (between, for expected ties)."""
    checks.at_least("rank", rank, 1)
    return _within_rank(*_checked_counts(higher, tied), np.array([rank]), ties)[:, 0]


def nearest_neighbor_hits(
    scores: npt.ArrayLike, gallery_ids: npt.ArrayLike, probe_ids: npt.ArrayLike, *, ties: str = "pessimistic"
) -> Array:
    """Per probe `[q]`: 1 where the nearest gallery image shows the right person, else 0 (between, for expected ties).

    `bootstrap.mean_interval` of them with the people of the probes is the interval of the error.
    """
    matrix, gallery, probes = arguments.score_matrix(scores, gallery_ids, probe_ids)
    _, people, higher, tied = _mates(matrix, gallery, probes)
    _check_closed_set(people >= 0)
    return rank_hits(higher, tied, ties=ties)


def nearest_neighbor_error(
    scores: npt.ArrayLike, gallery_ids: npt.ArrayLike, probe_ids: npt.ArrayLike, *, ties: str = "pessimistic"
) -> float:
    """Share of probes whose nearest gallery image shows somebody else: 1 - rank-1 accuracy."""
    return float(1.0 - nearest_neighbor_hits(scores, gallery_ids, probe_ids, ties=ties).mean())


def open_set(scores: npt.ArrayLike, gallery_ids: npt.ArrayLike, probe_ids: npt.ArrayLike, *, rank: int = 1) -> OpenSet:
    """Detection and identification: probes whose id is not in the gallery are the unknown people.

    A known probe counts when its mate is within `rank` (ties against it) and scores >= threshold; an unknown
    probe is a false alarm when anybody scores >= threshold.
    """
    checks.at_least("rank", rank, 1)
    matrix, gallery, probes = arguments.score_matrix(scores, gallery_ids, probe_ids)
    best, people, higher, tied = _mates(matrix, gallery, probes)
    known = people >= 0
    mates = np.where(known, best[people, np.arange(people.size)].astype(np.float64), np.nan)
    return open_set_from_counts(mates, best.max(axis=0), np.where(known, higher, -1), tied, rank=rank)


def open_set_from_counts(
    mates: npt.ArrayLike, best: npt.ArrayLike, higher: npt.ArrayLike, tied: npt.ArrayLike, *, rank: int = 1
) -> OpenSet:
    """`open_set` from numbers of each probe `[q]`: the scores of the mate and of the best person, and two counts.

    mates: NaN for people who are not in the gallery; their counts are not read.
    higher, tied: the people above and level with the mate.
    """
    checks.at_least("rank", rank, 1)
    checks.shapes(mates=(mates, "q"), best=(best, "q"), higher=(higher, "q"), tied=(tied, "q"))
    own, highest = arguments.numbers("mates", mates), arguments.numbers("best", best)
    arguments.not_nan(best=highest)
    known = ~np.isnan(own)
    if known.all() or not known.any():
        raise ValueError(
            f"probe_ids must hold people inside and outside the gallery; {int(known.sum())} of {known.size} probes are "
            "inside. Use cmc for a closed set."
        )
    above, level = _checked_counts(np.asarray(higher)[known], np.asarray(tied)[known])
    found = np.sort(own[known][above + level < rank])
    alarms = np.sort(highest[~known])
    thresholds = np.unique(np.concatenate([found, alarms]))[::-1]
    return OpenSet(
        thresholds=np.concatenate([[np.inf], thresholds]),
        far=np.concatenate([[0.0], _num_passing(alarms, thresholds) / alarms.size]),
        dir=np.concatenate([[0.0], _num_passing(found, thresholds) / np.count_nonzero(known)]),
    )


def identification_rate(curve: OpenSet, far: float) -> float:
    """DIR@FAR: the largest identification rate whose false alarm rate is at most `far`; nothing is interpolated."""
    checks.between("far", far, 0.0, 1.0)
    return float(curve.dir[np.searchsorted(curve.far, far, side="right") - 1])


def stranger_threshold(
    best: npt.ArrayLike, people: npt.ArrayLike, *, far: float, level: float = 0.95
) -> StrangerThreshold:
    """The lowest threshold that at most a share `far` of strangers pass, from their best scores `[q]`.

    people: who is shown `[q]`. A person counts once, with the share of his photos that pass.
    level: of the interval for other strangers of the same kind. With k of n people above the threshold its ends are
        quantiles of Beta(k, n - k + 1) and Beta(k + 1, n - k).

    With fewer than 1 / far people the threshold lies above every score, and the interval says how little that proves.
    """
    from scipy import special

    sizes = checks.shapes(best=(best, "q"), people=(people, "q"))
    checks.at_least("the number of strangers", sizes["q"], 1)
    checks.between("far", far, 0.0, 1.0)
    intervals.check_level(level)
    scores = arguments.numbers("best", best)
    arguments.not_nan(best=scores)
    names, index, counts = np.unique(arguments.identities("people", people), return_inverse=True, return_counts=True)
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    passing = np.cumsum(1.0 / counts[index[order]])  # people above or at a score
    last = np.append(np.flatnonzero(falling[1:] != falling[:-1]), falling.size - 1)
    allowed = np.flatnonzero(passing[last] <= far * names.size + 1e-9)
    n, k = names.size, 0.0
    threshold = float(np.nextafter(falling[0], np.inf))
    if allowed.size:
        k, threshold = float(passing[last[allowed[-1]]]), float(falling[last[allowed[-1]]])
    outside = (1.0 - level) / 2.0
    low = 0.0 if k <= 0 else float(special.betaincinv(k, n - k + 1, outside))
    high = 1.0 if k >= n else float(special.betaincinv(k + 1, n - k, 1.0 - outside))
    return StrangerThreshold(threshold, Interval(k / n, low, high), n)


def _mates(matrix: npt.NDArray[Any], gallery: Index, probes: Index) -> tuple[npt.NDArray[Any], Index, Index, Index]:
    """Best scores of the people `[c, q]`, the mate's row (-1: none), and the people above and level with it, `[q]`."""
    order = np.argsort(gallery, kind="stable")
    people, starts = np.unique(gallery[order], return_index=True)
    best = np.maximum.reduceat(matrix[order], starts, axis=0)
    row = np.minimum(np.searchsorted(people, probes), people.size - 1)
    mate = best[row, np.arange(probes.size)]
    higher = np.count_nonzero(best > mate, axis=0)
    tied = np.count_nonzero(best == mate, axis=0) - 1
    return best, np.where(people[row] == probes, row, -1), higher, tied


def _within_rank(higher: Index, tied: Index, ranks: Index, ties: str) -> Array:
    """Probability `[q, k]` that the mate is within each of the ranks `[k]`."""
    checks.one_of("ties", ties, _TIES)
    if ties == "pessimistic":
        return (higher[:, None] + tied[:, None] < ranks).astype(np.float64)
    return np.clip((ranks - higher[:, None]) / (tied[:, None] + 1.0), 0.0, 1.0)


def _checked_counts(higher: npt.ArrayLike, tied: npt.ArrayLike) -> tuple[Index, Index]:
    checks.at_least("the number of probes", checks.shapes(higher=(higher, "q"), tied=(tied, "q"))["q"], 1)
    for name, counts in (("higher", np.asarray(higher)), ("tied", np.asarray(tied))):
        if not np.issubdtype(counts.dtype, np.integer) or (counts < 0).any():
            raise ValueError(
                f"{name} must be whole numbers from 0; got {counts.dtype}, and {int((counts < 0).sum())} below 0, "
                "as probes without a mate have. Drop them, or use open_set_from_counts."
            )
    return np.asarray(higher, np.int64), np.asarray(tied, np.int64)


def _check_closed_set(has_mate: arguments.Mask) -> None:
    if not has_mate.all():
        missing = np.flatnonzero(~has_mate)
        raise ValueError(
            f"probe_ids must all be in gallery_ids; {missing.size} of {has_mate.size} probes have no mate, "
            f"the first at index {missing[0]}. Drop them, or use open_set."
        )


def _num_passing(rising: Array, thresholds: Array) -> Index:
    """How many of the sorted values pass each threshold."""
    return rising.size - np.searchsorted(rising, thresholds, side="left")
