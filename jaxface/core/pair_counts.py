"""Counting the scores of all pairs on the device: curves of 256 million comparisons without keeping one of them.

Scores are made tile by tile and fall straight into bins, so the memory is two histograms and one tile. Rows are sorted
by identity first: genuine pairs then live in few tiles near the diagonal, which gives the range of the genuine scores
at little cost. That range is where a ROC changes: below it every genuine pair is accepted, above it none.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import checks

__all__ = ["ScoreCounts", "count_all_pairs", "count_cross", "merge"]

Score = Callable[[Any, jax.Array, jax.Array], jax.Array]  # (params, a [t, d], b [t, d]) -> [t, t]

TILE = 512  # 1 MB of float32 scores: they stay in a cache of the CPU until they are counted
_LANES = 4
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


class _Rows(NamedTuple):
    """Rows sorted by identity and padded to whole tiles; padding has the identity -1."""

    x: jax.Array  # [b * tile, d]
    ids: jax.Array  # int32 [b * tile]
    first: np.ndarray  # [b], identity at the head of each tile
    last: np.ndarray  # [b], identity at its end


def count_all_pairs(
    score: Score,
    params: Any,
    x: Any,
    ids: Any,
    *,
    num_bins: int = 4096,
    span: tuple[float, float] | None = None,
    tile: int = TILE,
) -> ScoreCounts:
    """Counts every unordered pair of different rows of x `[n, d]`, genuine when their `ids` `[n]` agree.

    `score(params, a, b)` gives a symmetric matrix of scores; it is a static argument, so pass a module-level function.
    `span` fixes the outer edges, for counts that are to be added; by default it is the range of the genuine scores.
    """
    _check(x, ids, "x", "ids", num_bins, tile)
    rows = _sorted_rows(x, ids, tile)
    blocks = len(rows.first)
    pairs = np.array([(i, j) for i in range(blocks) for j in range(i, blocks)], np.int32)
    return _count(score, params, rows, rows, pairs, num_bins, span, tile, once=True)


def count_cross(
    score: Score,
    params: Any,
    gallery: Any,
    gallery_ids: Any,
    probes: Any,
    probe_ids: Any,
    *,
    num_bins: int = 4096,
    span: tuple[float, float] | None = None,
    tile: int = TILE,
) -> ScoreCounts:
    """Counts every pair of a gallery row `[g, d]` and a probe row `[q, d]`; see `count_all_pairs`."""
    _check(gallery, gallery_ids, "gallery", "gallery_ids", num_bins, tile)
    _check(probes, probe_ids, "probes", "probe_ids", num_bins, tile)
    left, right = _sorted_rows(gallery, gallery_ids, tile), _sorted_rows(probes, probe_ids, tile)
    pairs = np.array([(i, j) for i in range(len(left.first)) for j in range(len(right.first))], np.int32)
    return _count(score, params, left, right, pairs, num_bins, span, tile, once=False)


def merge(a: ScoreCounts, b: ScoreCounts) -> ScoreCounts:
    """Counts of two disjoint sets of pairs together; the edges must be the same."""
    if not np.array_equal(a.edges, b.edges):
        raise ValueError("counts must share their edges to be merged; give both the same `span` and `num_bins`.")
    return ScoreCounts(a.edges, a.genuine + b.genuine, a.impostor + b.impostor)


def _check(x: Any, ids: Any, x_name: str, ids_name: str, num_bins: int, tile: int) -> None:
    checks.at_least(f"rows of {x_name}", checks.shapes(**{x_name: (x, "n d"), ids_name: (ids, "n")})["n"], 1)
    checks.finite(**{x_name: x})
    checks.at_least("num_bins", num_bins, 1)
    checks.at_least("tile", tile, 1)
    checks.dense_labels(ids_name, np.asarray(ids), np.iinfo(np.int32).max)


def _sorted_rows(x: Any, ids: Any, tile: int) -> _Rows:
    ids = np.asarray(ids)
    order = np.argsort(ids, kind="stable")
    missing = -len(ids) % tile
    padded = np.concatenate([ids[order], np.full(missing, -1)]).astype(np.int32)
    heads = padded.reshape(-1, tile)
    rows = jnp.pad(jnp.asarray(x)[order], ((0, missing), (0, 0)))
    return _Rows(rows, jnp.asarray(padded), heads[:, 0], heads.max(axis=1))


def _count(
    score: Score,
    params: Any,
    left: _Rows,
    right: _Rows,
    pairs: np.ndarray,
    num_bins: int,
    span: tuple[float, float] | None,
    tile: int,
    *,
    once: bool,
) -> ScoreCounts:
    arrays = (params, left.x, left.ids, right.x, right.ids)
    i, j = pairs.T
    touching = (left.first[i] <= right.last[j]) & (right.first[j] <= left.last[i])
    # Each row is in a tile that is looked at, for one that makes NaN makes it with everybody: with itself in a tile on
    # the diagonal, unless it is alone in the last.
    elsewhere = (i == 0) & (j == j.max()) if once else (i == 0) | (j == 0)
    low, high, is_number = _genuine_range(score, *arrays, pairs[touching | elsewhere], tile=tile, once=once)
    if not is_number:
        raise ValueError("score must give numbers; some scores are NaN, as a cosine of a row of zeros is.")
    if span is None:
        low, high = float(low), float(high)
        if not low <= high:
            raise ValueError(
                "no genuine pair: every identity has one row only, so there is no range of genuine scores."
            )
        # The largest genuine score falls into the last bin, not beyond it.
        span = (low, high + max(high - low, abs(high), 1e-30) * 1e-6)
    if not (span[0] < span[1] and np.isfinite(span).all()):
        raise ValueError(f"span must be finite and increasing; got {span}. Scores that are infinite need a span.")
    total = np.zeros((2, num_bins + 2), np.int64)
    edges = jnp.asarray(span)
    x64 = bool(jax.config.read("jax_enable_x64"))

    def count(part: np.ndarray) -> np.ndarray:
        with jax.enable_x64(x64):  # a setting of a thread
            counts = _tile_counts(score, *arrays, part, edges, num_bins=num_bins, tile=tile, once=once)
            return np.asarray(counts, np.int64)

    # XLA runs the body of a loop on one core of a CPU, so each core gets calls of its own, all of one length.
    workers = min(os.cpu_count() or 1, len(pairs))
    size = min(max(1, _SCORES_A_CALL // tile**2), -(-len(pairs) // workers))
    padded = np.concatenate([pairs, np.full((-len(pairs) % size, 2), -1, np.int32)])
    with ThreadPoolExecutor(workers) as pool:
        for counts in pool.map(count, padded.reshape(-1, size, 2)):
            total += counts
    return ScoreCounts(np.linspace(*span, num_bins + 1), genuine=total[1], impostor=total[0])


def _tile(x: jax.Array, index: jax.Array, tile: int) -> jax.Array:
    return jax.lax.dynamic_slice_in_dim(x, index * tile, tile)


def _scores(score: Score, params: Any, left: jax.Array, right: jax.Array, pair: jax.Array, tile: int) -> jax.Array:
    """Scores `[t, t]` of a tile; whole numbers become floating ones."""
    scores = score(params, _tile(left, pair[0], tile), _tile(right, pair[1], tile))
    return scores if jnp.issubdtype(scores.dtype, jnp.floating) else scores.astype(jnp.float32)


def _scored(
    score: Score, arrays: tuple[Any, ...], pair: jax.Array, tile: int, once: bool
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Scores `[t, t]` of a tile, which of them are genuine, and which count at all."""
    params, left, left_ids, right, right_ids = arrays
    scores = _scores(score, params, left, right, pair, tile)
    row_ids, column_ids = _tile(left_ids, pair[0], tile), _tile(right_ids, pair[1], tile)
    counted = (row_ids >= 0)[:, None] & (column_ids >= 0)[None, :] & (pair[0] >= 0)  # a pair of -1 is padding
    if once:
        place = jnp.arange(tile, dtype=jnp.int32)
        counted &= (pair[0] * tile + place)[:, None] < (pair[1] * tile + place)[None, :]
    return scores, row_ids[:, None] == column_ids[None, :], counted


@partial(jax.jit, static_argnames=("score", "tile", "once"))
def _genuine_range(score: Score, *arrays: Any, tile: int, once: bool) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The least and the largest genuine score in some tiles, and whether no row there makes NaN."""
    *rows, pairs = arrays

    def body(extremes: Any, pair: jax.Array) -> tuple[Any, None]:
        scores, same, counted = _scored(score, tuple(rows), pair, tile, once)
        genuine = same & counted
        low = jnp.where(genuine, scores, jnp.inf).min()
        high = jnp.where(genuine, scores, -jnp.inf).max()
        # One row and one column: a row of x that makes NaN makes it with the first of the other side too.
        lost = (jnp.isnan(scores[0]) & counted[0]) | (jnp.isnan(scores[:, 0]) & counted[:, 0])
        is_number = ~lost.any()
        return (jnp.minimum(extremes[0], low), jnp.maximum(extremes[1], high), extremes[2] & is_number), None

    dtype = jax.eval_shape(lambda pair: _scored(score, tuple(rows), pair, tile, once)[0], pairs[0]).dtype
    start = (jnp.asarray(jnp.inf, dtype), jnp.asarray(-jnp.inf, dtype), jnp.asarray(True))
    return jax.lax.scan(body, start, pairs)[0]


@partial(jax.jit, static_argnames=("score", "num_bins", "tile", "once"))
def _tile_counts(score: Score, *arrays: Any, num_bins: int, tile: int, once: bool) -> jax.Array:
    params, left, left_ids, right, right_ids, pairs, span = arrays
    rows = (params, left, left_ids, right, right_ids)
    width = num_bins + 2
    # Most impostor scores fall into one bin, below the genuine ones. Neighbours count in lanes of their own, for a
    # processor waits when it adds to the same place twice in a row.
    lane = (jnp.arange(tile, dtype=jnp.int32) % _LANES) * (2 * width + 1)

    def bins_of(scores: jax.Array) -> jax.Array:
        low, high = span.astype(scores.dtype)
        place = jnp.floor((scores - low) * (num_bins / (high - low)))
        return jnp.clip(place, -1, num_bins).astype(jnp.int32) + 1

    def mixed(pair: jax.Array) -> jax.Array:
        scores, same, counted = _scored(score, rows, pair, tile, once)
        return jnp.where(counted, bins_of(scores) + width * same, 2 * width) + lane[None, :]

    def impostors(pair: jax.Array) -> jax.Array:
        return bins_of(_scores(score, params, left, right, pair, tile)) + lane[None, :]

    def body(total: jax.Array, pair: jax.Array) -> tuple[jax.Array, None]:
        row_ids, column_ids = _tile(left_ids, pair[0], tile), _tile(right_ids, pair[1], tile)
        apart = (row_ids.max() < column_ids.min()) | (column_ids.max() < row_ids.min())
        apart &= (jnp.minimum(row_ids.min(), column_ids.min()) >= 0) & (pair[0] >= 0)
        # Two branches skip the masks of most tiles, and make XLA compute a tile of bins before it counts them: fused
        # into the counting they would be made one at a time, without vector instructions.
        bins = jax.lax.cond(apart, impostors, mixed, pair)
        return total.at[bins.ravel()].add(1, mode="promise_in_bounds"), None

    total = jax.lax.scan(body, jnp.zeros(_LANES * (2 * width + 1), jnp.int32), pairs)[0]
    return total.reshape(_LANES, 2 * width + 1)[:, :-1].sum(axis=0).reshape(2, width)
