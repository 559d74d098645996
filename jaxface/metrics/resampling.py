"""The ROCs of many resamples of the subjects at once, exactly, from one sort.

A resample draws the S subjects S times with replacement: subject s gets a multiplicity w_s ~ Multinomial(S,
1/S). Every draw counts as a person of its own, with that person's images. So

    a genuine pair of subject a              weighs w_a        (each copy of a brings its pair once)
    an impostor pair of subjects a != b      weighs w_a w_b    (each copy of a meets each copy of b)
    pairs between two copies of one subject  are left out      (they show one person, so they are no impostors)

Only the weights change, never the order of the scores. A ROC turns at genuine scores only: impostors between
two neighbouring genuine scores move it horizontally, in whatever order, so they form one group. A resample
then needs the weight of at most 2K + 1 groups for K distinct genuine scores, each a sum of products w_a w_b
over the subject pairs in it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from jaxface.metrics.arguments import Array, Index, Mask

__all__ = []

_MOST_COLUMNS = 32  # resamples in flight
_MOST_ELEMENTS = 1 << 19  # floats of a temporary array with several columns, 4 MB


class Tally(NamedTuple):
    """Pairs of one kind counted by subjects u and by group."""

    first: Index  # [u] subject
    second: Index | None  # [u] the other subject; None for genuine pairs
    features: Array  # [f, u] sums of the pairs' features
    counts: Any  # sparse matrix [groups, u]; group 0 holds the highest scores


class Ranked(NamedTuple):
    """All pairs, ready for any multiplicities of the subjects."""

    genuine: Tally
    impostor: Tally
    num_groups: int


class Weighted(NamedTuple):
    """ROCs and sums of a block of r resamples."""

    far: Array  # [r, groups + 1]
    vr: Array  # [r, groups + 1]
    genuine: Array  # [r] weight of all genuine pairs
    impostor: Array  # [r] weight of all impostor pairs
    genuine_features: Array  # [f, r] weighted sums
    impostor_features: Array  # [f, r]


def rank(scores: Array, is_same: Mask, first: Index, second: Index, features: Array) -> Ranked:
    """Sorts and counts pairs `[p]` of subjects `first`, `second` `[p]` with features `[f, p]`."""
    _, group = np.unique(_position(scores, is_same), return_inverse=True)
    low, high = np.minimum(first, second), np.maximum(first, second)
    genuine, impostor = is_same, ~is_same
    num_groups = int(group.max()) + 1
    return Ranked(
        genuine=_tally(group[genuine], num_groups, low[genuine], None, features[:, genuine]),
        impostor=_tally(group[impostor], num_groups, low[impostor], high[impostor], features[:, impostor]),
        num_groups=num_groups,
    )


def _position(scores: Array, is_same: Mask) -> Index:
    """Where a score stands: 2j + 1 at the j-th highest distinct genuine score, 2j between its neighbours above it."""
    rising = np.unique(scores[is_same])
    not_above = np.searchsorted(rising, scores, side="right")
    tied = rising[np.maximum(not_above - 1, 0)] == scores
    return 2 * (rising.size - not_above) + tied


def _tally(group: Index, num_groups: int, first: Index, second: Index | None, features: Array) -> Tally:
    """Counts the pairs of the same subjects, and of these the pairs of the same group."""
    from scipy import sparse

    base = 1 if second is None else int(second.max()) + 1
    code = first if second is None else first * base + second
    distinct, subjects = np.unique(code, return_inverse=True)
    ones, shape = np.ones(group.size), (num_groups, distinct.size)
    return Tally(
        first=distinct // base,
        second=None if second is None else distinct % base,
        features=np.stack([np.bincount(subjects, weights=row) for row in features]),
        counts=sparse.coo_array((ones, (group, subjects)), shape=shape).tocsr(),  # adds what stands in one place
    )


def multiplicities(
    num_people: int, num_resamples: int, rng: "np.random.Generator", *, block_size: int = _MOST_COLUMNS
) -> Iterator[Array]:
    """Blocks `[r, s]` of subject multiplicities; the draws do not depend on the block size."""
    uniform = np.full(num_people, 1.0 / num_people)
    for start in range(0, num_resamples, block_size):
        size = min(block_size, num_resamples - start)
        yield rng.multinomial(num_people, uniform, size=size).astype(np.float64)


def affordable_block(ranked: Ranked) -> int:
    """How many resamples to hold at once so that memory is bounded, however many scores and subjects there are."""
    longest = max(ranked.num_groups + 1, ranked.genuine.first.size, ranked.impostor.first.size)
    return max(1, min(_MOST_COLUMNS, _MOST_ELEMENTS // longest))


def weigh(ranked: Ranked, multiplicity: Array) -> Weighted:
    """The exact ROCs, totals and feature sums of resamples with multiplicities `[r, s]`.

    The curve of a resample without a genuine or without an impostor pair is NaN.
    """
    weights = np.ascontiguousarray(multiplicity.T)
    vr, genuine_features = _sums(weights, ranked.genuine)
    far, impostor_features = _sums(weights, ranked.impostor)
    total_genuine, total_impostor = vr[:, -1].copy(), far[:, -1].copy()
    with np.errstate(invalid="ignore"):
        vr /= total_genuine[:, None]
        far /= total_impostor[:, None]
    return Weighted(far, vr, total_genuine, total_impostor, genuine_features, impostor_features)


def _sums(weights: Array, tally: Tally) -> tuple[Array, Array]:
    """Cumulative group weights `[r, groups + 1]` from 0 and weighted features `[f, r]`, from subject weights `[s, r]`.

    Weights are whole numbers, so sums up to 2^53 are exact and their order does not matter.
    """
    products = weights[tally.first]
    if tally.second is not None:
        products *= weights[tally.second]
    groups = tally.counts @ products
    cumulative = np.zeros((groups.shape[1], len(groups) + 1))
    np.cumsum(groups.T, axis=1, out=cumulative[:, 1:])
    return cumulative, tally.features @ products
