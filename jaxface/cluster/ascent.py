"""Merges and moves in turn while the log posterior of a partition rises: what `agglomerative` and `listed` share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from jaxface.cluster.gains import Items
from jaxface.cluster.partition_priors import Prior
from jaxface.core import checks, fitinfo, machine
from jaxface.core.fitinfo import FitInfo, Status

__all__ = ["Partition"]

_ROUNDING = 64  # epsilons of a gain: what a move must gain at least, or rounding could move items for ever


class Partition(NamedTuple):
    """Which items belong together."""

    labels: np.ndarray  # int32 [n]; clusters are numbered by their first items
    num_clusters: int
    rise: float  # of the log posterior, in nats over that of all items apart


class Steps(NamedTuple):
    labels: np.ndarray  # dense, by the order of first items
    rises: list[float]  # of each round or sweep


class Best(NamedTuple):
    """The best move of each item."""

    best: np.ndarray  # int [n], the cluster
    value: np.ndarray  # [n], gain of the item and this cluster; -inf if there is none
    stay: np.ndarray  # [n], gain of the item and the rest of its own cluster; 0 for an item alone


def ascend(
    merge: Callable[[np.ndarray], Steps],
    move: Callable[[np.ndarray, int], tuple[Steps, bool]],
    items: Items,
    *,
    num_sweeps: int,
) -> tuple[Partition, FitInfo]:
    """Rounds of merges and sweeps of moves, in turn, until neither raises the posterior.

    `merge` takes labels, `move` labels and how many sweeps are left, and says whether no move is left.
    """
    labels, rises, sweeps_left, is_settled = np.arange(len(items.weight)), list[float](), num_sweeps, False
    while True:
        merged = merge(labels)
        labels, rises = merged.labels, rises + merged.rises
        if is_settled and not merged.rises:
            break
        moved, is_settled = move(labels, sweeps_left)
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


def of_numbers(prior: Prior, before: int, merges: int) -> float:
    """What the number of clusters adds to several merges, one after the other."""
    return float(sum(prior.of_number(before - k) for k in range(merges)))


def merges(prior: Prior, best: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of clusters that are each other's best partner, where merging raises the posterior.

    best, value: the best partner of each cluster and its gain, `[K]`. Returns the lower cluster of each pair, and into
    which cluster each one goes `[K]`.
    """
    every = np.arange(len(best))
    is_pair = (best[best] == every) & (every < best) & (value + prior.of_number(len(best)) > 0)
    left, into = np.flatnonzero(is_pair), every.copy()
    into[best[left]] = left
    return left, into


def rise_of_merges(prior: Prior, value: np.ndarray, number: int) -> float:
    """Of merges of disjoint pairs with these gains, among `number` clusters."""
    return float(value.astype(np.float64).sum()) + of_numbers(prior, number, len(value))


def checked_pairs(cannot_link: ArrayLike | None, number: int) -> np.ndarray:
    """Pairs `[p, 2]` of items that may not be in one cluster."""
    pairs = np.zeros((0, 2), np.int64) if cannot_link is None else np.asarray(cannot_link)
    checks.shapes(cannot_link=(pairs, "p 2"))
    pairs = checks.dense_labels("cannot_link", pairs, number) if len(pairs) else pairs.astype(np.int64)
    if (same := np.flatnonzero(pairs[:, 0] == pairs[:, 1])).size:
        raise ValueError(
            f"cannot_link must name two different items in each pair; pair {same[0]} is item {pairs[same[0], 0]} "
            "twice. A group of images that must stay together cannot be kept apart."
        )
    return np.asarray(pairs)


def by_first_items(labels: np.ndarray) -> np.ndarray:
    """Dense labels in the order in which clusters first occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def sweep(prior: Prior, labels: np.ndarray, moves: Best, dtype: DTypeLike) -> tuple[np.ndarray, float]:
    """Moves that raise the posterior, the largest rise first, of which no two touch one cluster: their rises add.

    The labels after them, where an item of its own has a new number, and the rise; gains have the type `dtype`.
    """
    number = int(labels.max()) + 1
    best, value = moves.best, moves.value.astype(np.float64)
    is_shared = np.bincount(labels, minlength=number)[labels] > 1
    size = np.where(np.isfinite(value), np.abs(value), 0) + np.abs(moves.stay)
    least = _ROUNDING * machine.eps(dtype) * size

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
