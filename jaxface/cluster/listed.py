"""`agglomerative` for many items: clusters merge, and items move, along lists of neighbours alone.

The gains are not a matrix here: memory and work grow with n times the length of a list. In every round the
lists of clusters follow from those of their items, so the partition is a local maximum among the merges and moves that
the lists name. With every other item on every list the result is that of `agglomerative`.

A gain is a difference of evidences plus the part of the prior, `gain(a, b) = g(a + b) - g(a) - g(b) + prior`. So `fit`
takes g instead of a gain function: `functools.partial(joint_bayes.set_evidence, basis)` for log-likelihood ratios of
sets. The loop is NumPy on the host.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike

from jaxface.cluster import ascent, gains
from jaxface.cluster.ascent import Best, Partition, Steps
from jaxface.cluster.gains import Items
from jaxface.cluster.partition_priors import Prior
from jaxface.core import checks, search
from jaxface.core.fitinfo import FitInfo

__all__ = ["Evidence", "fit", "nearest"]

Score = Callable[[Any, Any, Any], Any]  # of `core.search`: (params, rows [t, r], probes [p, r]) -> [t, p]
Evidence = Callable[[Any, Any], Any]  # sums [p, r] and weights [p] of sets -> [p]

_BLOCKS = (32_768, 2048, 128)  # sets at a time


class _Problem(NamedTuple):
    items: Items
    pairs: np.ndarray  # int64 [2, p], items on each other's lists, in both orders
    evidence: Evidence
    prior: Prior
    apart: np.ndarray  # int [p, 2], items that may not be in one cluster


class _Sets(NamedTuple):
    """Sets and their evidences."""

    items: Items
    own: np.ndarray  # [n]


class _Edges(NamedTuple):
    """Pairs of clusters, the lower one first, in ascending order."""

    low: np.ndarray  # int64 [e]
    high: np.ndarray
    value: np.ndarray  # [e], gains; -inf for clusters that must stay apart


class _Moves(NamedTuple):
    """Items and clusters that they may join, in ascending order."""

    item: np.ndarray  # int64 [e]
    cluster: np.ndarray
    value: np.ndarray  # [e]
    stay: np.ndarray  # [n]


def nearest(score: Score, params: Any, x: ArrayLike, *, num_neighbors: int) -> np.ndarray:
    """The lists `[n, k]` of the `num_neighbors` other rows of x `[n, r]` with the largest scores, by `core.search`.

    `score(params, rows, probes)` is that of `search.top_k`, such as `joint_bayes.score_projections` of single images.
    For sets of images give their means. No matrix of scores is kept.
    """
    number = checks.shapes(x=(x, "n r"))["n"]
    checks.at_least("num_neighbors", num_neighbors, 1)
    checks.at_most("num_neighbors", num_neighbors, number - 1, "the number of other items")
    rows = np.asarray(search.top_k(score, params, x, x, num_best=num_neighbors + 1).rows)
    # An item need not be the best of its own list: among equal scores the lower row comes first.
    is_other = rows != np.arange(number)[:, None]
    order = np.argsort(~is_other, axis=1, kind="stable")
    return np.take_along_axis(rows, order, axis=1)[:, :num_neighbors]


def fit(
    items: Items,
    lists: ArrayLike,
    *,
    evidence: Evidence,
    prior: Prior,
    cannot_link: ArrayLike | None = None,
    num_sweeps: int = 100,
) -> tuple[Partition, FitInfo]:
    """`agglomerative.fit` along lists of neighbours `[n, k]`, of `nearest`, -1 for an empty place; on the host.

    evidence  g: log density of a set of one person, less that with mu = 0; `g(sums [p, r], weights [p])` `[p]`

    Two items are neighbours if one of them is on the list of the other.
    """
    checks.at_least("num_sweeps", num_sweeps, 0)
    number = checks.shapes(sum=(items.sum, "n r"), weight=(items.weight, "n"), lists=(lists, "n k"))["n"]
    checks.at_least("the number of items", number, 1)
    checked = np.asarray(checks.dense_labels("lists", np.asarray(lists), number, padding=True), np.int64)
    rows = np.repeat(np.arange(number), checked.shape[1])
    both = np.stack([rows, checked.ravel()])[:, checked.ravel() >= 0]
    pairs = np.concatenate([both, both[::-1]], axis=1)
    problem = _Problem(items, pairs, evidence, prior, ascent.checked_pairs(cannot_link, number))
    return ascent.ascend(partial(_merged, problem), partial(_moved, problem), items, num_sweeps=num_sweeps)


def _evidences(problem: _Problem, sums: np.ndarray, weights: np.ndarray) -> np.ndarray:
    found = np.empty(len(weights), sums.dtype)
    for places, size in gains.cut(np.arange(len(weights)), _BLOCKS):
        at = gains.padded(places, size)
        found[places] = np.asarray(problem.evidence(sums[at], weights[at]))[: len(places)]
    if not (np.isfinite(found)).all():
        raise ValueError("evidence must give finite numbers; got NaN or infinity. Check the model for NaN.")
    return found


def _sets(problem: _Problem, labels: np.ndarray) -> _Sets:
    each = gains.grouped(problem.items, labels)
    return _Sets(each, _evidences(problem, each.sum, each.weight))


def _gains(problem: _Problem, first: _Sets, one: np.ndarray, second: _Sets, other: np.ndarray) -> np.ndarray:
    """Gains `[p]` of merging the first sets `one` `[p]` with the second sets `other` `[p]`."""
    found = np.empty(len(one), first.own.dtype)
    for places, _ in gains.cut(np.arange(len(one)), _BLOCKS[:1]):  # the sums of all pairs at once are too many
        a, b = gains.take(first.items, one[places]), gains.take(second.items, other[places])
        both = _evidences(problem, a.sum + b.sum, a.weight + b.weight)
        alone = first.own[one[places]] + second.own[other[places]]
        found[places] = both - alone + problem.prior.of_sizes(a.size, b.size)
    return found


def _merged(problem: _Problem, labels: np.ndarray) -> Steps:
    """Rounds of merges of clusters that are each other's best on the lists."""
    sets, rises = _sets(problem, labels), list[float]()
    low, high = labels[problem.pairs]
    edges = _edges(problem, labels, sets, _Edges(low, high, np.full(len(low), np.nan)))
    while True:
        number = len(sets.own)
        best, value = _best_of_rows(
            np.concatenate([edges.low, edges.high]),
            np.concatenate([edges.high, edges.low]),
            np.concatenate([edges.value, edges.value]),
            number,
        )
        left, into = ascent.merges(problem.prior, best, value)
        if not left.size:
            return Steps(labels, rises)
        rises.append(ascent.rise_of_merges(problem.prior, value[left], number))
        is_kept = into == np.arange(number)
        index = (np.cumsum(is_kept) - 1)[into]
        labels, is_new = index[labels], np.zeros(int(is_kept.sum()), bool)
        is_new[index[left]] = True
        sets = _Sets(gains.grouped(problem.items, labels), sets.own[is_kept])
        new = gains.take(sets.items, is_new)
        sets.own[is_new] = _evidences(problem, new.sum, new.weight)
        low, high = index[edges.low], index[edges.high]
        known = np.where(is_new[low] | is_new[high], np.nan, edges.value)
        edges = _edges(problem, labels, sets, _Edges(low, high, known))


def _edges(problem: _Problem, labels: np.ndarray, sets: _Sets, given: _Edges) -> _Edges:
    """The given pairs, each once and in order, with gains where they are NaN."""
    number = len(sets.own)
    low, high = np.minimum(given.low, given.high), np.maximum(given.low, given.high)
    keys, place = np.unique((low * number + high)[low < high], return_index=True)
    low, high, value = keys // number, keys % number, given.value[low < high][place]
    missing = np.isnan(value)
    value[missing] = _gains(problem, sets, low[missing], sets, high[missing])
    apart = np.sort(labels[problem.apart], axis=1)
    value[np.isin(keys, apart[:, 0] * number + apart[:, 1])] = -np.inf
    return _Edges(low, high, value)


def _best_of_rows(row: np.ndarray, column: np.ndarray, value: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
    """The column with the largest value in each of `number` rows, the lowest among equals, and the value.

    Itself and -inf for a row without columns.
    """
    best, largest = np.arange(number), np.full(number, -np.inf)
    order = np.lexsort((column, row))
    row, column, value = row[order], column[order], value[order]
    if len(row):
        starts = np.flatnonzero(np.diff(row, prepend=-1))
        top = np.maximum.reduceat(value, starts)
        is_top = value == np.repeat(top, np.diff(np.append(starts, len(row))))
        first = np.minimum.reduceat(np.where(is_top, column, number), starts)
        best[row[starts]], largest[row[starts]] = first, top
    return best, largest


def _moved(problem: _Problem, labels: np.ndarray, num_sweeps: int) -> tuple[Steps, bool]:
    """Sweeps of moves of single items along the lists, and whether none is left."""
    rises: list[float] = []
    if num_sweeps == 0:
        return Steps(labels, rises), False
    alone = _sets(problem, np.arange(len(labels)))
    none = np.zeros(0, np.int64)
    moves = _moves(problem, labels, alone, _Moves(none, none, np.zeros(0), np.zeros(len(labels))), np.full(1, -1))
    for _ in range(num_sweeps):
        best, value = _best_of_rows(moves.item, moves.cluster, moves.value, len(labels))
        best = np.where(np.isfinite(value), best, 0)
        raw, gained = ascent.sweep(problem.prior, labels, Best(best, value, moves.stay), problem.items.sum.dtype)
        if gained == 0:
            return Steps(labels, rises), True
        rises.append(gained)
        of_raw, labels = _changed(labels, raw)
        moves = _moves(problem, labels, alone, moves, of_raw)
    return Steps(labels, rises), False


def _changed(before: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cluster before of each cluster that a sweep left as it was, -1 for the others; and dense labels."""
    is_moved = before != raw
    is_changed = np.zeros(raw.max() + 1, bool)
    is_changed[before[is_moved]] = is_changed[raw[is_moved]] = True
    labels = ascent.by_first_items(raw)
    of_raw = raw[np.unique(labels, return_index=True)[1]]
    return np.where(is_changed[of_raw], -1, of_raw), labels


def _moves(problem: _Problem, labels: np.ndarray, alone: _Sets, known: _Moves, of_raw: np.ndarray) -> _Moves:
    """Gains of the moves on the lists; those of clusters that are as before, `of_raw` `[K]`, are taken from `known`."""
    clusters = _sets(problem, labels)
    number, before = len(clusters.own), int(known.cluster.max(initial=0)) + 1
    of_raw = np.broadcast_to(of_raw, number)
    rows, others = problem.pairs[0], labels[problem.pairs[1]]
    keys = np.unique((rows * number + others)[others != labels[rows]])
    item, cluster = keys // number, keys % number
    value = np.full(len(keys), np.nan)
    old = known.item * before + known.cluster
    wanted = item * before + of_raw[cluster]
    at = np.minimum(np.searchsorted(old, wanted), max(len(old) - 1, 0))
    if len(old):
        is_known = (of_raw[cluster] >= 0) & (of_raw[cluster] < before) & (old[at] == wanted)
        value[is_known] = known.value[at[is_known]]
    missing = np.isnan(value)
    value[missing] = _gains(problem, alone, item[missing], clusters, cluster[missing])
    apart = np.concatenate([problem.apart, problem.apart[:, ::-1]])
    value[np.isin(keys, apart[:, 0] * number + labels[apart[:, 1]])] = -np.inf
    is_new = (of_raw < 0)[labels]
    stay = np.where(is_new, 0.0, known.stay)
    rest_of = np.flatnonzero(is_new & (np.bincount(labels)[labels] > 1))
    own, whole = gains.take(problem.items, rest_of), gains.take(clusters.items, labels[rest_of])
    weight = np.maximum(whole.weight - own.weight, 0)
    rest = _evidences(problem, whole.sum - own.sum, weight)
    sizes = problem.prior.of_sizes(own.size, whole.size - own.size)
    stay[rest_of] = clusters.own[labels[rest_of]] - alone.own[rest_of] - rest + sizes
    return _Moves(item, cluster, value, stay)
