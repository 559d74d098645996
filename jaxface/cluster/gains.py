"""Gains of merges in blocks, so that one matrix product computes a block.

A gain function takes sets as sums and weights, `gain(sum_a [a, r], weight_a [a], sum_b [b, r], weight_b [b])`, and
gives `[a, b]`: the log-likelihood ratio of "one person" against "two people" of each pair of sets, such as
`functools.partial(joint_bayes.set_llr_matrix, basis)`. It is called on blocks of few different shapes, padded with
copies of their last set; all second sets of a block have one weight.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jax.typing import ArrayLike

from jaxface.cluster.partition_priors import Prior
from jaxface.core import checks

__all__ = ["Gain", "Items", "items"]

Gain = Callable[[Any, Any, Any, Any], Any]  # sums and weights of first and second sets -> [a, b]

_BLOCKS = (1024, 128, 16)  # sets of a block
_SMALL_BLOCKS = (16,)  # of pairs, where only the diagonal of a block is used


class Items(NamedTuple):
    """What is clustered: images, or groups of images that must stay together."""

    sum: np.ndarray  # [n, r], of the (weighted) projections
    weight: np.ndarray  # [n], number of images or sum of their weights, for the gain
    size: np.ndarray  # int64 [n], number of images, for the prior


def items(sum: ArrayLike, weight: ArrayLike | None = None, size: ArrayLike | None = None) -> Items:
    """Items from sums `[n, r]`, weights `[n]` and sizes `[n]`, as of `joint_bayes.set_sums`.

    `size` defaults to `weight`, which must then be whole numbers; `weight` defaults to 1, a single image.
    """
    length = checks.samples(sum=(sum, "n r"))["n"]
    total = np.asarray(sum)
    weight = np.ones(length) if weight is None else weight
    checks.shapes(sum=(sum, "n r"), weight=(weight, "n"))
    weights = checks.real("weight", weight).astype(total.dtype)
    checks.between("weight", weights, 0.0, np.inf, closed_high=False)
    sizes = checks.real("size", weights if size is None else size)
    checks.shapes(sum=(sum, "n r"), size=(sizes, "n"))
    if (sizes < 1).any() or (sizes != np.round(sizes)).any():
        raise ValueError(
            f"size must be whole numbers from 1 on; got values from {sizes.min()} to {sizes.max()}. Where weights are "
            "not numbers of images, give the number of images of each item as size."
        )
    return Items(total, weights, sizes.astype(np.int64))


def take(each: Items, rows: Any) -> Items:
    """Some of the items."""
    return Items(*(field[rows] for field in each))


def grouped(each: Items, labels: np.ndarray) -> Items:
    """The clusters of dense labels `[n]` as items, each with at least one."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    return Items(*(np.add.reduceat(field[order], starts, axis=0) for field in each))


def table(gain: Gain, prior: Prior, rows: Items, columns: Items) -> np.ndarray:
    """Gains `[a, b]` of merging rows and columns, with the sizes' part of the prior."""
    found = np.empty((len(rows.weight), len(columns.weight)), rows.sum.dtype)
    for right, width in _of_one_weight(columns.weight, _BLOCKS):
        for left, height in cut(np.arange(len(rows.weight)), _BLOCKS):
            part = _block(gain, take(rows, padded(left, height)), take(columns, padded(right, width)))
            part = part[: len(left), : len(right)]
            found[left[0] : left[-1] + 1, right] = part + prior.of_sizes(
                rows.size[left][:, None], columns.size[right][None, :]
            )
    return found


def symmetric(gain: Gain, prior: Prior, each: Items) -> np.ndarray:
    """Gains `[n, n]` of all pairs of items, each computed once; -inf on the diagonal."""
    n, size = len(each.weight), _BLOCKS[0]
    found = np.empty((n, n), each.sum.dtype)
    for start in range(0, n, size):
        rows = np.arange(start, min(start + size, n))
        strip = table(gain, prior, take(each, rows), take(each, slice(start, n)))
        mirror(found, rows, np.concatenate([np.empty((len(rows), start), strip.dtype), strip], axis=1), first=start)
    return found


def mirror(found: np.ndarray, rows: np.ndarray, strip: np.ndarray, *, first: int = 0) -> None:
    """Writes gains `[len(rows), n]` of ascending rows into a symmetric table, as rows and as columns from `first` on.

    Two of the rows have the gain of the lower one as a row: the other way round it may differ by rounding.
    """
    own = np.triu(strip[:, rows], 1)
    strip[:, rows] = own + own.T
    strip[np.arange(len(rows)), rows] = -np.inf
    found[rows, first:] = strip[:, first:]
    found[first:, rows] = strip[:, first:].T


def along(gain: Gain, prior: Prior, first: Items, second: Items) -> np.ndarray:
    """Gains `[p]` of merging each first item with the second at the same place."""
    found = np.empty(len(first.weight), first.sum.dtype)
    for places, size in _of_one_weight(second.weight, _SMALL_BLOCKS):
        at = padded(places, size)
        found[places] = np.diagonal(_block(gain, take(first, at), take(second, at)))[: len(places)]
    return found + prior.of_sizes(first.size, second.size)


def _block(gain: Gain, left: Items, right: Items) -> np.ndarray:
    part = np.asarray(gain(left.sum, left.weight, right.sum, right.weight))
    if part.shape != (len(left.weight), len(right.weight)):
        raise ValueError(
            f"gain must give one number for each pair of sets, {(len(left.weight), len(right.weight))}; got shape "
            f"{part.shape}."
        )
    if not (part < np.inf).all():  # false for NaN too
        raise ValueError(
            "gain must give numbers below infinity; got NaN or infinity. Check the model for NaN, and the sums for a "
            "unit with squares that are too large."
        )
    return part


def _of_one_weight(weight: np.ndarray, sizes: tuple[int, ...]) -> Iterator[tuple[np.ndarray, int]]:
    """Places of equal weights, cut into blocks."""
    order = np.argsort(weight, kind="stable")
    starts = np.flatnonzero(np.diff(weight[order])) + 1
    for places in np.split(order, starts):
        yield from cut(places, sizes)


def cut(places: np.ndarray, sizes: tuple[int, ...]) -> Iterator[tuple[np.ndarray, int]]:
    """Parts of the places, each with the size that it is padded to: at most twice its own, or the smallest."""
    start = 0
    while start < len(places):
        left = len(places) - start
        size = next((each for each in sizes if 2 * left > each), sizes[-1])
        yield places[start : start + size], size
        start += size


def padded(places: np.ndarray, size: int) -> np.ndarray:
    """The places and copies of the last one, `size` in all."""
    return np.concatenate([places, np.full(size - len(places), places[-1])])
