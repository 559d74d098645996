"""Clusters by the log posterior of partitions: rounds of merges, then moves of single items, while the posterior rises.

    log p(X | partition) + log prior = constant + the sum of the gains of the merges that lead to it

A gain is the log-likelihood ratio of "one cluster" against "two" and the prior's part (`partition_priors`). In a round,
all pairs that are each other's best merge if their gain is positive: pairs are disjoint, so their gains add, and the
posterior never falls. Gains may rise after a merge, so each prior needs a run of its own: there is no tree to cut at
several thresholds. The result is a local maximum: neither a merge nor the move of one item to another cluster, or to
one of its own, raises the posterior.

NumPy on the host around a gain function on the device (`gains`): the number of clusters shrinks from round to round.
Memory is that of n^2 gains, work that of n^2 gains a few times over.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.cluster import gains
from jaxface.cluster.gains import Gain, Items
from jaxface.cluster.partition_priors import Prior
from jaxface.core import checks, fitinfo, machine
from jaxface.core.fitinfo import FitInfo, Status

__all__ = ["Partition", "fit", "rise"]

_MOST = 20_000  # items: 1.6 GB of gains in float32, and a copy in every round
_ROUNDING = 64  # epsilons of a gain: what a move must gain at least, or rounding could move items for ever


class Partition(NamedTuple):
    """Which items belong together."""

    labels: np.ndarray  # int32 [n]; clusters are numbered by their first items
    num_clusters: int
    rise: float  # of the log posterior, in nats over that of all items apart


class _Problem(NamedTuple):
    items: Items
    gain: Gain
    prior: Prior
    apart: np.ndarray  # int [p, 2], items that may not be in one cluster

    def table(self, rows: Items, columns: Items) -> np.ndarray:
        return gains.table(self.gain, self.prior, rows, columns)

    def number(self, before: int, merges: int) -> np.ndarray:
        """What the number of clusters adds to each of several merges, one after the other."""
        return np.array([self.prior.of_number(before - k) for k in range(merges)])


class _Steps(NamedTuple):
    labels: np.ndarray  # dense, by the order of first items
    rises: list[float]  # of each round or sweep


def fit(
    items: Items, *, gain: Gain, prior: Prior, cannot_link: ArrayLike | None = None, num_sweeps: int = 100
) -> tuple[Partition, FitInfo]:
    """Clusters of items (`gains.items`) by merges and moves; on the host.

    gain         log-likelihood ratios of sets, as `gains` says: `partial(joint_bayes.set_llr_matrix, basis)`
    prior        of `partition_priors`; it matters more than anything else
    cannot_link  pairs `[p, 2]` of items that may not be in one cluster
    num_sweeps   most sweeps of moves, 0 for merges alone; MAX_ITERS if moves are left

    The trace of the report has a value for each round of merges and each sweep of moves. Among equal gains the pair
    with the lowest items comes first; without ties the order of the items changes nothing.
    """
    checks.at_least("num_sweeps", num_sweeps, 0)
    problem = _checked(items, gain, prior, cannot_link)
    labels, rises, sweeps_left, is_settled = np.arange(len(items.weight)), list[float](), num_sweeps, False
    while True:
        merged = _merged(problem, labels)
        labels, rises = merged.labels, rises + merged.rises
        if is_settled and not merged.rises:
            break
        moved, is_settled = _moved(problem, labels, sweeps_left)
        labels, rises, sweeps_left = moved.labels, rises + moved.rises, sweeps_left - len(moved.rises)
        if not moved.rises:
            break
    value = np.concatenate([[0.0], np.cumsum(rises)])
    info = fitinfo.iterative(
        status=Status.OK if is_settled or num_sweeps == 0 else Status.MAX_ITERS,
        num_iters=len(rises),
        objective=jnp.asarray(value[:-1].astype(items.sum.dtype)),
    )
    return Partition(labels.astype(np.int32), int(labels.max()) + 1, float(value[-1])), info


def rise(items: Items, labels: ArrayLike, *, gain: Gain, prior: Prior) -> float:
    """Log posterior of a partition of the items, labels `[n]`, in nats over that of all items apart; on the host."""
    problem = _checked(items, gain, prior, None)
    checks.shapes(weight=(items.weight, "n"), labels=(labels, "n"))
    place = _by_first_items(checks.fits_int32("labels", np.asarray(labels)))
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
        total += float(problem.number(len(place), len(left)).sum())
        into = np.arange(len(place))
        into[right] = left
        merged = _by_first_items(into)
        clusters, place = gains.grouped(clusters, merged), place[np.unique(merged, return_index=True)[1]]


def _checked(items: Items, gain: Gain, prior: Prior, cannot_link: ArrayLike | None) -> _Problem:
    n = checks.shapes(sum=(items.sum, "n r"), weight=(items.weight, "n"), size=(items.size, "n"))["n"]
    checks.at_least("the number of items", n, 1)
    checks.at_most("the number of items", n, _MOST, "their gains are a matrix: group some first, or take a part")
    pairs = np.zeros((0, 2), np.int64) if cannot_link is None else np.asarray(cannot_link)
    checks.shapes(cannot_link=(pairs, "p 2"))
    pairs = checks.dense_labels("cannot_link", pairs, n) if len(pairs) else pairs.astype(np.int64)
    if (same := np.flatnonzero(pairs[:, 0] == pairs[:, 1])).size:
        raise ValueError(
            f"cannot_link must name two different items in each pair; pair {same[0]} is item {pairs[same[0], 0]} "
            "twice. A group of images that must stay together cannot be kept apart."
        )
    return _Problem(items, gain, prior, pairs)


def _by_first_items(labels: np.ndarray) -> np.ndarray:
    """Dense labels in the order in which clusters first occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _merged(problem: _Problem, labels: np.ndarray) -> _Steps:
    """Rounds of merges of clusters that are each other's best."""
    clusters = gains.grouped(problem.items, labels)
    found = gains.symmetric(problem.gain, problem.prior, clusters)
    _forbid(found, labels[problem.apart])
    rises: list[float] = []
    while True:
        number = len(found)
        best, every = found.argmax(axis=1), np.arange(number)
        value = found[every, best]
        is_pair = (best[best] == every) & (every < best) & (value + problem.prior.of_number(number) > 0)
        left = np.flatnonzero(is_pair)
        if not left.size:
            return _Steps(labels, rises)
        rises.append(float((value[left].astype(np.float64) + problem.number(number, len(left))).sum()))
        into = every.copy()
        into[best[left]] = left
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


def _moved(problem: _Problem, labels: np.ndarray, num_sweeps: int) -> tuple[_Steps, bool]:
    """Sweeps of moves of single items, and whether none is left."""
    rises: list[float] = []
    if num_sweeps == 0:
        return _Steps(labels, rises), False
    number = labels.max() + 1
    empty = _Moves(np.empty((len(labels), number), problem.items.sum.dtype), np.zeros(len(labels)))
    moves = _filled(problem, labels, empty, np.ones(number, bool))
    for _ in range(num_sweeps):
        raw, gained = _sweep(problem.prior, labels, moves)
        if gained == 0:
            return _Steps(labels, rises), True
        rises.append(gained)
        moves, labels = _after(problem, labels, raw, moves)
    return _Steps(labels, rises), False


def _after(problem: _Problem, before: np.ndarray, raw: np.ndarray, moves: _Moves) -> tuple[_Moves, np.ndarray]:
    """The gains and dense labels after a sweep; only clusters that it changed are computed again."""
    is_moved = before != raw
    is_changed = np.zeros(raw.max() + 1, bool)
    is_changed[before[is_moved]] = is_changed[raw[is_moved]] = True
    labels = _by_first_items(raw)
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


def _sweep(prior: Prior, labels: np.ndarray, moves: _Moves) -> tuple[np.ndarray, float]:
    """Moves that raise the posterior, the largest rise first, of which no two touch one cluster: their rises add.

    The labels after them, where an item of its own has a new number, and the rise.
    """
    number = moves.into.shape[1]
    best = moves.into.argmax(axis=1)
    value = moves.into[np.arange(len(labels)), best].astype(np.float64)
    is_shared = np.bincount(labels, minlength=number)[labels] > 1
    size = np.where(np.isfinite(value), np.abs(value), 0) + np.abs(moves.stay)
    least = _ROUNDING * machine.eps(moves.into.dtype) * size

    def rise_of(item: Any, before: int) -> Any:
        """Of an item or all: the gain of joining the best cluster, or none, less that of staying."""
        of_number = np.where(is_shared[item], prior.of_number(before + 1), prior.of_number(before))
        return np.maximum(value[item] + of_number, 0) - np.where(is_shared[item], moves.stay[item] + of_number, 0)

    rises = rise_of(slice(None), number)
    raw, is_touched, gained, next_label, now = labels.copy(), np.zeros(number, bool), 0.0, number, number
    order = np.argsort(-rises, kind="stable")
    for item in order[rises[order] > least[order]]:
        each = float(rise_of(item, now))  # the number of clusters may have changed within the sweep
        joins = value[item] + prior.of_number(now + int(is_shared[item])) > 0
        if each <= least[item] or is_touched[labels[item]] or (joins and is_touched[best[item]]):
            continue
        is_touched[labels[item]] = True
        if joins:
            is_touched[best[item]] = True
            raw[item] = best[item]
        else:
            raw[item], next_label = next_label, next_label + 1
        now += int(not joins) - int(not is_shared[item])
        gained += each
    return raw, gained
