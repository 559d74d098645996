"""Scores of a gallery tile by tile, on the device: what `search` runs over all rows.

The best rows are found in two steps. The first keeps the largest score of each group of `GROUP` rows, and of these the
largest `m`: the k best rows lie in the k best groups. The second scores the rows of these groups again.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxface.core import blocks

__all__ = []

Score = Callable[[Any, jax.Array, jax.Array], jax.Array]  # (params, rows [t, d], probes [p, d]) -> [t, p]

GROUP = 64  # rows
TILE = 1024  # rows; a tile of 1,024 x 1,024 scores stays in a cache of the CPU
_PIECE = 64 * TILE  # rows whose groups are ranked at once
_AGAIN = 2**23  # numbers of the rows that are scored again at a time
_SHIFT = 2**15  # more than the rows of a tile: two counts share an int32


class Part(NamedTuple):
    """Rows of a gallery that follow `first` others; those from `size` on are padding."""

    x: jax.Array  # [n, d]
    first: jax.Array | int
    size: jax.Array | int


class Ranked(NamedTuple):
    """Groups with the largest scores so far, the best first; ties go to the lower group."""

    maxima: jax.Array  # [p, m]
    groups: jax.Array  # int32 [p, m], the first row of each


class Counted(NamedTuple):
    """People above and level with the mate so far, without the person of the last row."""

    higher: jax.Array  # int32 [p]
    tied: jax.Array  # int32 [p]
    last: jax.Array  # [p], the best score of the person of the last row
    person: jax.Array  # int32 [], the person of the last row; -1 before the first


class Question(NamedTuple):
    """Probes and, where people above the mate are counted, who they show and the scores of their mates."""

    x: jax.Array  # [p, d]
    ids: jax.Array | None = None  # int32 [p]
    mates: jax.Array | None = None  # [p]


def tile_rows(num_rows: int) -> int:
    """Rows of a tile, whole groups, in a part of so many rows."""
    return min(TILE, GROUP * blocks.num_blocks(num_rows, GROUP))


def no_groups(question: Question, num_groups: int) -> Ranked:
    """Before the first row."""
    shape = (question.x.shape[0], num_groups)
    return Ranked(jnp.full(shape, -jnp.inf, question.x.dtype), jnp.zeros(shape, jnp.int32))


def nobody(question: Question) -> Counted:
    """Before the first row."""
    none = jnp.zeros(question.x.shape[0], jnp.int32)
    return Counted(none, none, jnp.full(none.shape, -jnp.inf, question.x.dtype), jnp.asarray(-1, jnp.int32))


def scores_of(score: Score, params: Any, rows: jax.Array, probes: jax.Array) -> jax.Array:
    """Scores `[t, p]` in the type of the probes; NaN becomes -inf."""
    scores = score(params, rows.astype(probes.dtype), probes).astype(probes.dtype)
    return jnp.where(scores > -jnp.inf, scores, -jnp.inf)


@partial(jax.jit, static_argnames=("score", "is_ragged"))
def fold(
    score: Score,
    params: Any,
    part: Part,
    ids: jax.Array | None,
    question: Question,
    state: tuple[Ranked, Counted | None],
    *,
    is_ragged: bool = False,
) -> tuple[Ranked, Counted | None]:
    """The state after the rows of a part, whose people `ids` `[n]` are needed for counts only.

    `is_ragged`: some person has several rows, which then stand together.
    """
    n = part.x.shape[0]
    size = tile_rows(n)
    piece = min(_PIECE, size * blocks.num_blocks(n, size))

    def of_tile(counted: Counted | None, at: jax.Array) -> tuple[Counted | None, jax.Array]:
        place = at + jnp.arange(size, dtype=jnp.int32)
        taken = jnp.minimum(place, part.size - 1)
        scores = scores_of(score, params, part.x[taken], question.x)
        scores = jnp.where((place < part.size)[:, None], scores, -jnp.inf)
        if counted is not None and ids is not None:
            count = _count_people if is_ragged else _count_rows
            counted = count(counted, scores, ids[taken], question)
        return counted, scores.reshape(size // GROUP, GROUP, -1).max(axis=1)

    def of_piece(state: tuple[Ranked, Counted | None], start: jax.Array) -> tuple[tuple[Ranked, Counted | None], None]:
        ranked, counted = state
        tiles = start + jnp.arange(0, piece, size, dtype=jnp.int32)
        counted, maxima = jax.lax.scan(of_tile, counted, tiles)
        groups = part.first + start + jnp.arange(0, piece, GROUP, dtype=jnp.int32)
        maxima = maxima.reshape(piece // GROUP, -1).T
        return (_with_groups(ranked, maxima, groups), counted), None

    return jax.lax.scan(of_piece, state, jnp.arange(0, n, piece, dtype=jnp.int32))[0]


def _with_groups(ranked: Ranked, maxima: jax.Array, groups: jax.Array) -> Ranked:
    """The best of the groups so far and of later ones with maxima `[p, b]`."""
    together = jnp.concatenate([ranked.maxima, maxima], axis=1)
    largest, place = jax.lax.top_k(together, ranked.groups.shape[1])
    every = jnp.concatenate([ranked.groups, jnp.broadcast_to(groups, maxima.shape)], axis=1)
    return Ranked(largest, jnp.take_along_axis(every, place, axis=1))


def _count_rows(counted: Counted, scores: jax.Array, people: jax.Array, question: Question) -> Counted:
    """Counts rows: everybody has one."""
    higher, tied = _compared(scores, people, question)
    return counted._replace(higher=counted.higher + higher, tied=counted.tied + tied)


def _count_people(counted: Counted, scores: jax.Array, people: jax.Array, question: Question) -> Counted:
    """Counts people by their best rows; the last one of the tile may go on in the next."""
    size = people.shape[0]
    before = jnp.concatenate([counted.person[None], people])
    places = jnp.cumsum(before[1:] != before[:-1], dtype=jnp.int32)  # 0: the person who came in
    best = jax.ops.segment_max(scores, places, size + 1, indices_are_sorted=True)
    best = best.at[0].max(counted.last)
    of_best = jnp.full(size + 1, -1, jnp.int32).at[places].set(people).at[0].set(counted.person)
    last = places[-1]
    is_done = jnp.arange(size + 1, dtype=jnp.int32) < last
    higher, tied = _compared(best, jnp.where(is_done, of_best, -1), question)
    return Counted(counted.higher + higher, counted.tied + tied, best[last], people[-1])


def last_person(counted: Counted, question: Question) -> tuple[jax.Array, jax.Array]:
    """Counts `[p]` of people above and level with the mate, when all rows have been seen."""
    higher, tied = _compared(counted.last[None], counted.person[None], question)
    return counted.higher + higher, counted.tied + tied


def _compared(scores: jax.Array, people: jax.Array, question: Question) -> tuple[jax.Array, jax.Array]:
    """How many of the scores `[t, p]` of other people are above and level with the mates; -1 is nobody.

    One sum counts both, for two sums would compute the scores of a tile twice: those above in the lower half of its
    bits, those above or level in the upper half.
    """
    assert question.ids is not None
    assert question.mates is not None
    is_other = (people[:, None] != question.ids[None, :]) & (people >= 0)[:, None]
    assert scores.shape[0] < _SHIFT
    mates = question.mates[None, :]
    counts = (scores > mates).astype(jnp.int32) + _SHIFT * (scores >= mates).astype(jnp.int32)
    total = jnp.where(is_other, counts, 0).sum(axis=0, dtype=jnp.int32)
    higher, not_lower = total % _SHIFT, total // _SHIFT
    return higher, not_lower - higher


@partial(jax.jit, static_argnames="score")
def mate_scores(
    score: Score, params: Any, rows: jax.Array, people: jax.Array, question: Question, best: jax.Array
) -> jax.Array:
    """The larger of `best` `[p]` and the best score of the probe's own person among rows `[t, d]`.

    Tiles have the shape of those in `fold`, so that a product is rounded the same way in both.
    """
    assert question.ids is not None
    scores = scores_of(score, params, rows, question.x)
    is_own = people[:, None] == question.ids[None, :]
    return jnp.maximum(best, jnp.where(is_own, scores, -jnp.inf).max(axis=0))


def rows_of(groups: jax.Array, num_rows: int) -> jax.Array:
    """Rows `[p, m * GROUP]` of groups `[p, m]`, in ascending order and each once; -1 in the place of others."""
    starts = jnp.sort(groups, axis=1)
    beyond = jnp.full((groups.shape[0], 1), num_rows, jnp.int32)
    following = jnp.concatenate([starts[:, 1:], beyond], axis=1)  # the last group of a part may reach into the next
    rows = starts[:, :, None] + jnp.arange(GROUP, dtype=jnp.int32)[None, None, :]
    is_mine = rows < jnp.minimum(following, num_rows)[:, :, None]
    return jnp.where(is_mine, rows, -1).reshape(groups.shape[0], -1)


def probes_at_once(num_rows: int, dim: int) -> int:
    """How many probes are scored again together, with `num_rows` rows each."""
    return max(1, min(64, _AGAIN // max(1, num_rows * dim)))


def scores_again(score: Score, params: Any, x: jax.Array, rows: jax.Array, probes: jax.Array) -> jax.Array:
    """Scores `[p, c]` of the vectors `x` `[p, c, d]` of `rows` `[p, c]`, others for each probe `[p, d]`."""
    scores = jax.vmap(lambda own, probe: scores_of(score, params, own, probe[None])[:, 0])(x, probes)
    return jnp.where(rows >= 0, scores, -jnp.inf)


def best_rows(scores: jax.Array, rows: jax.Array, num_best: int) -> tuple[jax.Array, jax.Array]:
    """The best of rows `[p, c]` in ascending order, and their scores `[p, k]`; -1 for a score of -inf."""
    scores, place = jax.lax.top_k(scores, num_best)
    return jnp.where(scores > -jnp.inf, jnp.take_along_axis(rows, place, axis=1), -1), scores


def best_people(scores: jax.Array, rows: jax.Array, people: jax.Array, num_best: int) -> tuple[jax.Array, jax.Array]:
    """As `best_rows`, with the best row of each person only; who they show is `people` `[p, c]`."""

    def take(scores: jax.Array, _: None) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        best, place = jax.lax.top_k(scores, 1)
        row = jnp.where(best > -jnp.inf, jnp.take_along_axis(rows, place, axis=1), -1)
        is_taken = people == jnp.take_along_axis(people, place, axis=1)
        return jnp.where(is_taken, -jnp.inf, scores), (row[:, 0], best[:, 0])

    _, (row, best) = jax.lax.scan(take, scores, length=num_best)
    return row.T, best.T
