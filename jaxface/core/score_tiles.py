"""Scores of two blocks of rows at a time, on the device: what `pair_counts` runs over all tiles."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

__all__ = ["Rows", "tile_counts"]

Score = Callable[[Any, jax.Array, jax.Array], jax.Array]  # (params, a [t, d], b [t, d]) -> [t, t]

_LANES = 4


class Rows(NamedTuple):
    """Rows on the device, sorted by identity and padded to whole tiles; padding has the identity -1."""

    x: jax.Array  # [b * t, d]
    ids: jax.Array  # int32 [b * t]
    images: jax.Array | None  # int32 [b * t]


def _tile(x: jax.Array, index: jax.Array, block_size: int) -> jax.Array:
    return jax.lax.dynamic_slice_in_dim(x, index * block_size, block_size)


def _scores(score: Score, params: Any, left: jax.Array, right: jax.Array, pair: jax.Array, size: int) -> jax.Array:
    """Scores `[t, t]` of a tile; whole numbers become floating ones."""
    scores = score(params, _tile(left, pair[0], size), _tile(right, pair[1], size))
    return scores if jnp.issubdtype(scores.dtype, jnp.floating) else scores.astype(jnp.float32)


def _scored(
    score: Score, params: Any, left: Rows, right: Rows, pair: jax.Array, size: int, once: bool
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Scores `[t, t]` of a tile, which of them are genuine, and which count at all."""
    scores = _scores(score, params, left.x, right.x, pair, size)
    row_ids, column_ids = _tile(left.ids, pair[0], size), _tile(right.ids, pair[1], size)
    counted = (row_ids >= 0)[:, None] & (column_ids >= 0)[None, :] & (pair[0] >= 0)  # a pair of -1 is padding
    if once:
        place = jnp.arange(size, dtype=jnp.int32)
        counted &= (pair[0] * size + place)[:, None] < (pair[1] * size + place)[None, :]
    if left.images is not None and right.images is not None:
        counted &= _tile(left.images, pair[0], size)[:, None] != _tile(right.images, pair[1], size)[None, :]
    return scores, row_ids[:, None] == column_ids[None, :], counted


@partial(jax.jit, static_argnames=("score", "block_size", "once"))
def genuine_range(
    score: Score, params: Any, left: Rows, right: Rows, pairs: jax.Array, *, block_size: int, once: bool
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The least and the largest genuine score in some tiles, and whether all scores that count there are numbers."""

    def body(extremes: Any, pair: jax.Array) -> tuple[Any, None]:
        scores, same, counted = _scored(score, params, left, right, pair, block_size, once)
        genuine = same & counted
        low = jnp.where(genuine, scores, jnp.inf).min()
        high = jnp.where(genuine, scores, -jnp.inf).max()
        is_number = ~(jnp.isnan(scores) & counted).any()
        return (jnp.minimum(extremes[0], low), jnp.maximum(extremes[1], high), extremes[2] & is_number), None

    dtype = jax.eval_shape(lambda pair: _scores(score, params, left.x, right.x, pair, block_size), pairs[0]).dtype
    start = (jnp.asarray(jnp.inf, dtype), jnp.asarray(-jnp.inf, dtype), jnp.asarray(True))
    return jax.lax.scan(body, start, pairs)[0]


@partial(jax.jit, static_argnames=("score", "num_bins", "block_size", "once"))
def tile_counts(
    score: Score,
    params: Any,
    left: Rows,
    right: Rows,
    pairs: jax.Array,
    span: jax.Array,
    *,
    num_bins: int,
    block_size: int,
    once: bool,
) -> jax.Array:
    """Counts `[2, num_bins + 2]` of impostor and genuine scores in some tiles.

    `score`, `params`, `left`, `right`: the score and the rows of both sides. `pairs`: the tiles. `span`: outer edges.
    `num_bins`: bins between them. `block_size`: rows of a tile. `once`: of two rows, count one order only.
    """
    width = num_bins + 2
    # Most impostor scores fall into one bin, below the genuine ones. Neighbours count in lanes of their own, for a
    # processor waits when it adds to the same place twice in a row.
    lane = (jnp.arange(block_size, dtype=jnp.int32) % _LANES) * (2 * width + 1)

    def bins_of(scores: jax.Array) -> jax.Array:
        low, high = span.astype(scores.dtype)
        place = jnp.floor((scores - low) * (num_bins / (high - low)))
        return jnp.clip(place, -1, num_bins).astype(jnp.int32) + 1

    def mixed(pair: jax.Array) -> jax.Array:
        scores, same, counted = _scored(score, params, left, right, pair, block_size, once)
        return jnp.where(counted, bins_of(scores) + width * same, 2 * width) + lane[None, :]

    def impostors(pair: jax.Array) -> jax.Array:
        return bins_of(_scores(score, params, left.x, right.x, pair, block_size)) + lane[None, :]

    def body(total: jax.Array, pair: jax.Array) -> tuple[jax.Array, None]:
        # Two branches skip the masks of most tiles, and make XLA compute a tile of bins before it counts them: fused
        # into the counting they would be made one at a time, without vector instructions.
        bins = jax.lax.cond(_are_impostors(left.ids, right.ids, pair, block_size), impostors, mixed, pair)
        return _add_one_at(total, bins.reshape(-1, 1)), None

    total = jax.lax.scan(body, jnp.zeros(_LANES * (2 * width + 1), jnp.int32), pairs)[0]
    return total.reshape(_LANES, 2 * width + 1)[:, :-1].sum(axis=0).reshape(2, width)


def _add_one_at(total: jax.Array, places: jax.Array) -> jax.Array:
    """Adds 1 at each of the places `[n, 1]`; `total.at[places].add(1)` does the same, but first copies all places."""
    numbers = jax.lax.ScatterDimensionNumbers(
        update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    ones = jnp.ones(len(places), total.dtype)
    return jax.lax.scatter_add(total, places, ones, numbers, mode="promise_in_bounds")


def _are_impostors(left_ids: jax.Array, right_ids: jax.Array, pair: jax.Array, size: int) -> jax.Array:
    """Whether a tile holds pairs of different people only, and no padding."""
    row_ids, column_ids = _tile(left_ids, pair[0], size), _tile(right_ids, pair[1], size)
    apart = (row_ids.max() < column_ids.min()) | (column_ids.max() < row_ids.min())
    return apart & (jnp.minimum(row_ids.min(), column_ids.min()) >= 0) & (pair[0] >= 0)
