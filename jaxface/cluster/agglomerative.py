"""Clusters by the log posterior of partitions: rounds of merges, then moves of single items, while the posterior rises.

    log p(X | partition) + log prior = constant + the sum of the gains of the merges that lead to it

A gain is the log-likelihood ratio of "one cluster" against "two" and the prior's part (`partition_priors`). In a round,
two clusters merge if each is the best partner of the other and their gain is positive. These pairs are disjoint, so
their gains add, and the posterior never falls. Gains may rise after a merge, so each prior needs a run of its own:
there is no tree to cut at several thresholds. The result is a local maximum: neither a merge nor the move of one item
to another cluster, or to one of its own, raises the posterior.

NumPy on the host around a gain function on the device (`gains`): the number of clusters shrinks from round to round.
Memory is that of n^2 gains, work that of n^2 gains a few times over; `listed` takes more items.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from jax.typing import ArrayLike

from jaxface.cluster import ascent, gains
from jaxface.cluster.ascent import Best, Partition, Steps
from jaxface.cluster.gains import Gain, Items
from jaxface.cluster.partition_priors import Prior
from jaxface.core import checks
from jaxface.core.fitinfo import FitInfo

__all__ = ["MOST", "fit", "rise"]

MOST = 20_000  # items: 1.6 GB of gains in float32, and a copy in every round


class _Problem(NamedTuple):
    items: Items
    gain: Gain
    prior: Prior
    apart: np.ndarray  # int [p, 2], items that may not be in one cluster

    def table(self, rows: Items, columns: Items) -> np.ndarray:
        return gains.table(self.gain, self.prior, rows, columns)


def fit(
    items: Items, *, gain: Gain, prior: Prior, cannot_link: ArrayLike | None = None, num_sweeps: int = 100
) -> tuple[Partition, FitInfo]:
    """Clusters of items (`gains.items`) by merges and moves; on the host.

    gain         log-likelihood ratios of sets, as `gains` says: `partial(joint_bayes.set_llr_matrix, basis)`
    prior        of `partition_priors`; the result depends on it more than on the search
    cannot_link  pairs `[p, 2]` of items that may not be in one cluster
    num_sweeps   most sweeps of moves, 0 for merges alone; MAX_ITERS if moves are left

    The trace of the report has a value for each round of merges and each sweep of moves. Among equal gains the pair
    with the lowest items comes first; without ties the order of the items changes nothing.
    """
    checks.at_least("num_sweeps", num_sweeps, 0)
    problem = _checked(items, gain, prior, cannot_link)
    return ascent.ascend(partial(_merged, problem), partial(_moved, problem), problem.items, num_sweeps=num_sweeps)


def rise(items: Items, labels: ArrayLike, *, gain: Gain, prior: Prior) -> float:
    """Log posterior of a partition of the items, labels `[n]`, in nats over that of all items apart; on the host."""
    _checked(items, gain, prior, None)
    checks.shapes(weight=(items.weight, "n"), labels=(labels, "n"))
    place = ascent.by_first_items(checks.fits_int32("labels", np.asarray(labels)))
    clusters, total = items, 0.0
    while True:
        # The first and second, third and fourth, ... part of every cluster become one.
        order = np.argsort(place, kind="stable")
        starts = np.flatnonzero(np.diff(place[order], prepend=-1))
        rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
        second = np.flatnonzero(rank % 2)
        if not second.size:
            return total
        left, right = order[second - 1], order[second]
        total += float(gains.along(gain, prior, gains.take(clusters, left), gains.take(clusters, right)).sum())
        total += ascent.of_numbers(prior, len(place), len(left))
        into = np.arange(len(place))
        into[right] = left
        merged = ascent.by_first_items(into)
        clusters, place = gains.grouped(clusters, merged), place[np.unique(merged, return_index=True)[1]]


def _checked(items: Items, gain: Gain, prior: Prior, cannot_link: ArrayLike | None) -> _Problem:
    n = checks.shapes(sum=(items.sum, "n r"), weight=(items.weight, "n"), size=(items.size, "n"))["n"]
    checks.at_least("the number of items", n, 1)
    checks.at_most("the number of items", n, MOST, "their gains are a matrix; listed.fit takes more")
    return _Problem(items, gain, prior, ascent.checked_pairs(cannot_link, n))


def _merged(problem: _Problem, labels: np.ndarray) -> Steps:
    """Rounds of merges of clusters that are each other's best."""
    clusters = gains.grouped(problem.items, labels)
    found = gains.symmetric(problem.gain, problem.prior, clusters)
    _forbid(found, labels[problem.apart])
    rises: list[float] = []
    while True:
        number = len(found)
        best, every = found.argmax(axis=1), np.arange(number)
        value = found[every, best]
        left, into = ascent.merges(problem.prior, best, value)
        if not left.size:
            return Steps(labels, rises)
        rises.append(ascent.rise_of_merges(problem.prior, value[left], number))
        is_kept = into == every
        index = np.cumsum(is_kept) - 1
        labels, rows = index[into[labels]], index[left]
        clusters = gains.grouped(problem.items, labels)
        found = found[np.ix_(is_kept, is_kept)]
        gains.mirror(found, rows, problem.table(gains.take(clusters, rows), clusters))
        _forbid(found, labels[problem.apart])


def _forbid(found: np.ndarray, pairs: np.ndarray) -> None:
    found[pairs[:, 0], pairs[:, 1]] = -np.inf
    found[pairs[:, 1], pairs[:, 0]] = -np.inf


class _Moves(NamedTuple):
    """Gains of items and clusters."""

    into: np.ndarray  # [n, K], of an item and a cluster without it; -inf for its own and for a forbidden one
    stay: np.ndarray  # [n], of an item and the rest of its cluster; 0 for an item alone


def _moved(problem: _Problem, labels: np.ndarray, num_sweeps: int) -> tuple[Steps, bool]:
    """Sweeps of moves of single items, and whether none is left."""
    rises: list[float] = []
    if num_sweeps == 0:
        return Steps(labels, rises), False
    number = labels.max() + 1
    empty = _Moves(np.empty((len(labels), number), problem.items.sum.dtype), np.zeros(len(labels)))
    moves = _filled(problem, labels, empty, np.ones(number, bool))
    for _ in range(num_sweeps):
        raw, gained = ascent.sweep(problem.prior, labels, _best(moves), moves.into.dtype)
        if gained == 0:
            return Steps(labels, rises), True
        rises.append(gained)
        moves, labels = _after(problem, labels, raw, moves)
    return Steps(labels, rises), False


def _best(moves: _Moves) -> Best:
    best = moves.into.argmax(axis=1)
    return Best(best, moves.into[np.arange(len(best)), best], moves.stay)


def _after(problem: _Problem, before: np.ndarray, raw: np.ndarray, moves: _Moves) -> tuple[_Moves, np.ndarray]:
    """The gains and dense labels after a sweep; only clusters that it changed are computed again."""
    is_moved = before != raw
    is_changed = np.zeros(raw.max() + 1, bool)
    is_changed[before[is_moved]] = is_changed[raw[is_moved]] = True
    labels = ascent.by_first_items(raw)
    of_raw = raw[np.unique(labels, return_index=True)[1]]
    is_new = is_changed[of_raw]
    into = np.empty((len(labels), len(of_raw)), moves.into.dtype)
    into[:, ~is_new] = moves.into[:, of_raw[~is_new]]
    return _filled(problem, labels, _Moves(into, moves.stay), is_new), labels


def _filled(problem: _Problem, labels: np.ndarray, moves: _Moves, is_new: np.ndarray) -> _Moves:
    """The gains with those of new clusters."""
    items, clusters = problem.items, gains.grouped(problem.items, labels)
    into, stay = moves.into, np.where(is_new[labels], 0.0, moves.stay)
    into[:, is_new] = problem.table(items, gains.take(clusters, is_new))
    into[np.arange(len(labels)), labels] = -np.inf
    for one, other in (problem.apart.T, problem.apart.T[::-1]):
        into[one, labels[other]] = -np.inf
    rows = np.flatnonzero(is_new[labels] & (np.bincount(labels)[labels] > 1))
    own, whole = gains.take(items, rows), gains.take(clusters, labels[rows])
    weight = np.maximum(whole.weight - own.weight, 0)  # rounding may leave less than nothing of a weight of 0
    rest = Items(whole.sum - own.sum, weight, whole.size - own.size)
    stay[rows] = gains.along(problem.gain, problem.prior, own, rest)
    return _Moves(into, stay)
