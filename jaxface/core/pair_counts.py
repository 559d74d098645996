"""Counting the scores of all pairs on the device: curves of 256 million comparisons without keeping one of them.

Scores are made tile by tile and fall straight into bins, so the memory is two histograms and one tile. Rows are sorted
by identity first: genuine pairs then live in few tiles near the diagonal, which gives the range of the genuine scores
at little cost. That range is where a ROC changes: below it every genuine pair is accepted, above it none.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import checks, score_tiles
from jaxface.core.score_tiles import Rows, Score

__all__ = ["ScoreCounts", "count_all_pairs", "count_cross", "merge"]

BLOCK_SIZE = 512  # 1 MB of float32 scores: they stay in a cache of the CPU until they are counted
# Counts are int32 on the device and move to int64 on the host before they could overflow.
_SCORES_A_CALL = 2**30


class ScoreCounts(NamedTuple):
    """Histogram of genuine and impostor scores.

    Bin i (1..b) holds `edges[i - 1] <= score < edges[i]`, up to rounding at an edge; bin 0 lies below all edges and bin
    b + 1 at or above the last. Counts of disjoint sets of pairs with the same edges add.
    """

    edges: np.ndarray  # [b + 1]
    genuine: np.ndarray  # int64 [b + 2]
    impostor: np.ndarray  # int64 [b + 2]


class _Tiles(NamedTuple):
    """Rows with the least and the largest identity of each tile, on the host."""

    rows: Rows
    first: np.ndarray  # [b]
    last: np.ndarray  # [b]


class _Task(NamedTuple):
    """What is counted: pairs of tiles, and which of their entries."""

    left: _Tiles
    right: _Tiles
    pairs: np.ndarray  # int32 [p, 2]
    block_size: int
    once: bool  # of two rows of one matrix, one order only


def count_all_pairs(
    score: Score,
    params: Any,
    x: Any,
    ids: Any,
    *,
    num_bins: int = 4096,
    span: tuple[float, float] | None = None,
    block_size: int = BLOCK_SIZE,
) -> ScoreCounts:
    """Counts every unordered pair of different rows of x `[n, d]`, genuine when their `ids` `[n]` agree.

    `score(params, a, b)` gives a symmetric matrix of scores; it is a static argument, so pass a module-level function.
    `span` fixes the outer edges, for counts that are to be added; by default it is the range of the genuine scores.
    A tile has `block_size` rows and columns.
    """
    _check("x", x, "ids", ids)
    tiles = _sorted_tiles(x, ids, None, block_size)
    blocks = len(tiles.first)
    pairs = np.array([(i, j) for i in range(blocks) for j in range(i, blocks)], np.int32)
    return _count(score, params, _Task(tiles, tiles, pairs, block_size, once=True), num_bins, span)


def count_cross(
    score: Score,
    params: Any,
    gallery: Any,
    gallery_ids: Any,
    probes: Any,
    probe_ids: Any,
    *,
    images: tuple[Any, Any] | None = None,
    num_bins: int = 4096,
    span: tuple[float, float] | None = None,
    block_size: int = BLOCK_SIZE,
) -> ScoreCounts:
    """Counts every pair of a gallery row `[g, d]` and a probe row `[q, d]`, genuine when their ids agree.

    `score`, `params`: `score(params, a, b)` gives the scores of rows a against rows b, as in `count_all_pairs`.
    `gallery`, `gallery_ids`, `probes`, `probe_ids`: the rows of both sides and the identities `[g]` and `[q]`.
    `images`: numbers `[g]` and `[q]` of the images that the rows come from; rows of one image are not compared.
    `num_bins`, `span`: bins between the outer edges; by default these are the range of the genuine scores.
    `block_size`: rows and columns of a tile.
    """
    _check("gallery", gallery, "gallery_ids", gallery_ids)
    _check("probes", probes, "probe_ids", probe_ids)
    sides = (None, None) if images is None else _checked_images(images, gallery_ids, probe_ids)
    left = _sorted_tiles(gallery, gallery_ids, sides[0], block_size)
    right = _sorted_tiles(probes, probe_ids, sides[1], block_size)
    pairs = np.array([(i, j) for i in range(len(left.first)) for j in range(len(right.first))], np.int32)
    return _count(score, params, _Task(left, right, pairs, block_size, once=False), num_bins, span)


def merge(a: ScoreCounts, b: ScoreCounts) -> ScoreCounts:
    """Counts of two disjoint sets of pairs together; the edges must be the same."""
    if not np.array_equal(a.edges, b.edges):
        raise ValueError("counts must share their edges to be merged; give both the same `span` and `num_bins`.")
    return ScoreCounts(a.edges, a.genuine + b.genuine, a.impostor + b.impostor)


def _check(x_name: str, x: Any, ids_name: str, ids: Any) -> None:
    checks.at_least(f"rows of {x_name}", checks.shapes(**{x_name: (x, "n d"), ids_name: (ids, "n")})["n"], 1)
    checks.finite(**{x_name: x})
    checks.dense_labels(ids_name, np.asarray(ids), np.iinfo(np.int32).max)


def _checked_images(images: tuple[Any, Any], gallery_ids: Any, probe_ids: Any) -> list[np.ndarray]:
    """Images of both sides as int32, after a check that each belongs to one identity."""
    sides = []
    for name, numbers, ids in (("images[0]", images[0], gallery_ids), ("images[1]", images[1], probe_ids)):
        checks.shapes(ids=(ids, "n"), **{name: (numbers, "n")})
        sides.append(np.asarray(checks.dense_labels(name, np.asarray(numbers), np.iinfo(np.int32).max)))
    every, ids = np.concatenate(sides), np.concatenate([np.asarray(gallery_ids), np.asarray(probe_ids)])
    if len(np.unique(np.stack([every, ids]), axis=1).T) != len(np.unique(every)):
        raise ValueError(
            "images must have one identity each; some image has two. Rows of one image share its identity."
        )
    return sides


def _sorted_tiles(x: Any, ids: Any, images: np.ndarray | None, block_size: int) -> _Tiles:
    checks.at_least("block_size", block_size, 1)
    ids = np.asarray(ids)
    order = np.argsort(ids, kind="stable")
    missing = -len(ids) % block_size

    def padded(numbers: np.ndarray) -> np.ndarray:
        return np.concatenate([numbers[order], np.full(missing, -1)]).astype(np.int32)

    by_tile = padded(ids).reshape(-1, block_size)
    rows = jnp.pad(jnp.asarray(x)[order], ((0, missing), (0, 0)))
    numbers = None if images is None else jnp.asarray(padded(images))
    return _Tiles(Rows(rows, jnp.asarray(padded(ids)), numbers), by_tile[:, 0], by_tile.max(axis=1))


def _count(score: Score, params: Any, task: _Task, num_bins: int, span: tuple[float, float] | None) -> ScoreCounts:
    checks.at_least("num_bins", num_bins, 1)
    arrays = (params, task.left.rows, task.right.rows)
    options = {"block_size": task.block_size, "once": task.once}
    low, high, is_number = score_tiles.genuine_range(score, *arrays, task.pairs[_shows_the_range(task)], **options)
    if not is_number:
        raise ValueError("score must give numbers; some scores are NaN, as a cosine of a row of zeros is.")
    span = _span_of(float(low), float(high)) if span is None else span
    if not (span[0] < span[1] and np.isfinite(span).all()):
        raise ValueError(f"span must be finite and increasing; got {span}. Scores that are infinite need a span.")
    edges = jnp.asarray(span)
    x64 = bool(jax.config.read("jax_enable_x64"))

    def count(part: np.ndarray) -> np.ndarray:
        with jax.enable_x64(x64):  # a setting of a thread
            return np.asarray(
                score_tiles.tile_counts(score, *arrays, part, edges, num_bins=num_bins, **options), np.int64
            )

    total = _sum_over_cores(count, task)
    return ScoreCounts(np.linspace(*span, num_bins + 1), genuine=total[1], impostor=total[0])


def _shows_the_range(task: _Task) -> np.ndarray:
    """Tiles `[p]` that hold all genuine pairs, and every row in some pair that counts.

    A row that yields NaN yields it against every row. So it is enough to visit tiles that together contain every row:
    those on the diagonal and one more for a last row that stands alone. Where a row is not compared with its own image,
    the first and the last tile of the other side do: they are of one identity only if all tiles are.
    """
    left, right, (i, j) = task.left, task.right, task.pairs.T
    touching = (left.first[i] <= right.last[j]) & (right.first[j] <= left.last[i])
    if task.once:
        return touching | ((i == 0) & (j == j.max()))
    at_an_end = (i == 0) | (j == 0)
    if left.rows.images is not None:
        at_an_end |= (i == i.max()) | (j == j.max())
    return touching | at_an_end


def _span_of(low: float, high: float) -> tuple[float, float]:
    """Edges about the genuine scores; the largest falls into the last bin, not beyond it."""
    if not low <= high:
        raise ValueError("no genuine pair: every identity has one row only, so there is no range of genuine scores.")
    return low, high + max(high - low, abs(high), 1e-30) * 1e-6


def _sum_over_cores(count: Callable[[np.ndarray], np.ndarray], task: _Task) -> np.ndarray:
    """The sum of `count` over all pairs of tiles.

    XLA runs the body of a loop on one core of a CPU, so each core gets calls of its own, all of one length.
    """
    workers = min(os.cpu_count() or 1, len(task.pairs))
    size = min(max(1, _SCORES_A_CALL // task.block_size**2), -(-len(task.pairs) // workers))
    padded = np.concatenate([task.pairs, np.full((-len(task.pairs) % size, 2), -1, np.int32)])
    with ThreadPoolExecutor(workers) as pool:
        return sum(pool.map(count, padded.reshape(-1, size, 2)), np.zeros((), np.int64))
