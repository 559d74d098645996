"""The best rows of a gallery for each probe, without a matrix of scores `[g, q]`.

A gallery is an array, a NumPy array or memory map, of float16 too, which is read a part at a time, or an array whose
rows are sharded over devices. `score(params, rows [t, d], probes [p, d])` gives scores `[t, p]`, the larger the more
alike: `joint_bayes.score_projections`, or a cosine. The score is a static argument: pass a module-level function.

Among equal scores the lower row comes first. A score of NaN or -inf leaves its row out: a row with NaN is never among
the best, and a probe with NaN has rows -1 and scores NaN.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import blocks, checks, gallery_parts, search_tiles
from jaxface.core.program import program
from jaxface.core.search_tiles import GROUP, Counted, Part, Question, Ranked, Score

__all__ = ["Best", "first_min", "top_k"]

_PROBES = 1024  # a block of probes
_MOST_GROUPS = 1024  # beyond, all scores of a few probes are kept instead
_MOST_SORTED = 16_384  # rows
_KEPT = 2**24  # scores of a few probes


class Best(NamedTuple):
    """The best rows of each probe, the best first; where there are fewer, rows are -1 and scores -inf."""

    rows: Any  # int32 [q, k]
    scores: Any  # [q, k]


State = tuple[Ranked, Counted | None]  # of a block of probes


class Task(NamedTuple):
    """What is searched."""

    score: Score
    params: Any
    gallery: Any  # [g, d]
    people: np.ndarray | None  # int32 [g]
    num_best: int

    @property
    def num_rows(self) -> int:
        return int(self.gallery.shape[0])


@program
def first_min(values: jax.Array) -> jax.Array:
    """Index of the smallest entry over the last axis, the first among equals, as int32.

    A minimum and a comparison vectorise; `argmin` over rows does not and is ten times slower on a CPU.
    """
    size = values.shape[-1]
    is_least = values == values.min(axis=-1, keepdims=True)
    places = jnp.where(is_least, jnp.arange(size, dtype=jnp.int32), size)
    return jnp.minimum(places.min(axis=-1), size - 1)


def top_k(score: Score, params: Any, gallery: Any, probes: Any, *, num_best: int, gallery_ids: Any = None) -> Best:
    """The `num_best` rows of gallery `[g, d]` with the largest scores for each probe `[q, d]`.

    `gallery_ids`: who the rows show `[g]`; then the best row of each person counts, and people are listed once.

    The result is in NumPy arrays. Inside a transformation, and without `gallery_ids`, the gallery may be a tracer and
    the result is in JAX arrays. Rows whose scores differ by rounding only may change places.
    """
    check(gallery, probes, num_best)
    if not all(checks.is_concrete(leaf) for leaf in jax.tree.leaves((params, gallery, probes))):
        if gallery_ids is not None:
            raise ValueError("gallery_ids cannot be used inside jit, vmap or grad. Call top_k outside of them.")
        return _of_array(score, params, jnp.asarray(gallery), jnp.asarray(probes), num_best=num_best)
    people = None if gallery_ids is None else people_of("gallery_ids", gallery_ids, gallery)
    if people is not None and np.unique(people).size == people.size:
        people = None  # rows are people
    task = Task(score, params, gallery, people, num_best)
    probes = np.asarray(probes)
    num_groups = num_best if people is None else 2 * num_best
    return settled(task, probes, num_groups, _once(task, probes, num_groups))


def check(gallery: Any, probes: Any, num_best: int) -> None:
    sizes = checks.shapes(gallery=(gallery, "g d"), probes=(probes, "q d"))
    checks.at_least("rows of gallery", sizes["g"], 1)
    checks.at_least("number of probes", sizes["q"], 1)
    checks.at_least("num_best", num_best, 1)
    checks.floating(probes=probes)
    if getattr(gallery, "dtype", None) != np.float16:
        checks.floating(gallery=gallery)


def people_of(name: str, ids: Any, x: Any) -> np.ndarray:
    checks.shapes(**{name: (ids, str(x.shape[0]))})
    return np.asarray(checks.dense_labels(name, np.asarray(ids), np.iinfo(np.int32).max))


def questions_of(probes: np.ndarray, ids: np.ndarray | None = None, mates: np.ndarray | None = None) -> list[Question]:
    """Blocks of one size, the last one filled with zeros."""
    size = -(-len(probes) // blocks.num_blocks(len(probes), _PROBES))

    def split(x: np.ndarray | None, filling: float) -> list[Any]:
        if x is None:
            return [None] * blocks.num_blocks(len(probes), size)
        missing = -len(x) % size
        padded = np.concatenate([x, np.full((missing, *x.shape[1:]), filling, x.dtype)])
        return [jnp.asarray(block) for block in padded.reshape(-1, size, *x.shape[1:])]

    return [Question(*each) for each in zip(split(probes, 0), split(ids, -1), split(mates, np.nan), strict=True)]


def joined(parts: list[Any], num_probes: int) -> np.ndarray:
    """One array of what was found for the blocks of probes, without the padding."""
    return np.concatenate([np.asarray(part) for part in parts])[:num_probes]


def folded(task: Task, questions: list[Question], num_groups: int, *, is_ragged: bool = False) -> list[State]:
    """The state of each block of probes after all rows, which are read once."""
    states: list[State] = [
        (
            search_tiles.no_groups(question, num_groups),
            None if question.mates is None else search_tiles.nobody(question),
        )
        for question in questions
    ]
    for part in gallery_parts.parts(task.gallery):
        people = None
        if questions[0].mates is not None and task.people is not None:
            own = task.people[part.first : part.first + part.size]
            people = np.pad(own, (0, part.x.shape[0] - len(own)))
        device = next(iter(part.x.devices()))
        for i, question in enumerate(questions):
            placed = jax.device_put((task.params, people, question, states[i]), device)
            states[i] = search_tiles.fold(task.score, placed[0], part, *placed[1:], is_ragged=is_ragged)
        if not isinstance(task.gallery, jax.Array):
            jax.block_until_ready(states)  # or parts would be read faster than they are used
    return jax.device_put(states, jax.devices()[0]) if isinstance(task.gallery, jax.Array) else states


class Found(NamedTuple):
    """The best so far, and whether rows left out could still change it."""

    best: Best
    is_settled: np.ndarray  # [q]


def settled(task: Task, probes: np.ndarray, num_groups: int, found: Found) -> Best:
    """The best of each probe. Where several rows of a person crowd out the people after them, more groups are kept."""
    best = Best(*(np.array(part) for part in found.best))
    left = np.flatnonzero(~found.is_settled)
    while left.size:
        num_groups *= 4
        again = _once(task, probes[left], num_groups)
        best.rows[left], best.scores[left] = again.best
        left = left[~again.is_settled]
    missing = [(0, 0), (0, task.num_best - best.rows.shape[1])]
    rows, scores = np.pad(best.rows, missing, constant_values=-1), np.pad(best.scores, missing, constant_values=-np.inf)
    scores[np.isnan(probes).any(axis=1)] = np.nan
    return Best(rows, scores)


def _once(task: Task, probes: np.ndarray, num_groups: int) -> Found:
    """The best by so many groups, or by all scores where the groups would be most of the gallery."""
    if _is_small(task.num_rows, task.gallery.shape[1], num_groups) or num_groups > _MOST_GROUPS:
        return _directly(task, probes)
    questions = questions_of(probes)
    return from_groups(task, questions, folded(task, questions, num_groups), len(probes))


def _is_small(num_rows: int, dim: int, num_groups: int) -> bool:
    """Whether sorting all scores is quicker than scoring the rows of so many groups again; measured on a CPU."""
    return num_rows <= max(GROUP * num_groups, min(_MOST_SORTED, 8 * dim * num_groups))


def _directly(task: Task, probes: np.ndarray) -> Found:
    """All scores of a few probes at a time."""
    size = max(1, min(_PROBES, _KEPT // task.num_rows))
    found = []
    for start in range(0, len(probes), size):
        block = jnp.asarray(np.resize(probes[start : start + size], (min(size, len(probes)), probes.shape[1])))
        scores = [
            np.asarray(_all_scores(task.score, task.params, part.x, block))[: part.size]
            for part in gallery_parts.parts(task.gallery)
        ]
        every = np.concatenate(scores).T
        rows = np.broadcast_to(np.arange(task.num_rows, dtype=np.int32), every.shape)
        people = None if task.people is None else task.people[rows]
        found.append(_best(every, rows, people, num_best=min(task.num_best, task.num_rows)))
    best = Best(*(joined(list(side), len(probes)) for side in zip(*found, strict=True)))
    return Found(best, np.ones(len(probes), bool))


def from_groups(task: Task, questions: list[Question], states: list[State], num_probes: int) -> Found:
    """The best rows among those of the groups that were kept, scored again."""
    k = min(task.num_best, task.num_rows)
    num_people = k if task.people is None else min(k, np.unique(task.people).size)
    found, settled = [], []
    for question, (ranked, _) in zip(questions, states, strict=True):
        rows = np.asarray(search_tiles.rows_of(ranked.groups, task.num_rows))
        size = search_tiles.probes_at_once(rows.shape[1], question.x.shape[1])
        for start in range(0, len(rows), size):
            # The last block begins early enough to be full, as in `blocks.fold_rows`.
            few = slice(max(0, min(start, len(rows) - size)), None)
            few = slice(few.start, few.start + size)
            x = gallery_parts.rows_at(task.gallery, rows[few])
            people = None if task.people is None else task.people[rows[few]]
            again = _again(task.score, task.params, x, rows[few], question.x[few], people, num_best=k)
            found.append(Best(*(np.asarray(side)[start - few.start :] for side in again)))
        settled.append(ranked.maxima[:, -1])
    best = Best(*(joined(list(side), num_probes) for side in zip(*found, strict=True)))
    outside = joined(settled, num_probes)  # no row left out has a larger score
    is_settled = np.isneginf(outside) | (best.scores[:, num_people - 1] > outside)
    return Found(best, is_settled if task.people is not None else np.ones(num_probes, bool))


@partial(jax.jit, static_argnames="score")
def _all_scores(score: Score, params: Any, rows: jax.Array, probes: jax.Array) -> jax.Array:
    return search_tiles.scores_of(score, params, rows, probes)


@partial(jax.jit, static_argnames=("score", "num_best"))
def _again(
    score: Score, params: Any, x: jax.Array, rows: jax.Array, probes: jax.Array, people: Any, *, num_best: int
) -> Best:
    scores = search_tiles.scores_again(score, params, x, rows, probes)
    return _best(scores, rows, people, num_best=num_best)


@partial(jax.jit, static_argnames="num_best")
def _best(scores: jax.Array, rows: jax.Array, people: jax.Array | None, *, num_best: int) -> Best:
    """The best of rows `[p, c]` in ascending order by scores `[p, c]`; one of each of `people` `[p, c]`."""
    if people is None:
        return Best(*search_tiles.best_rows(scores, rows, num_best))
    return Best(*search_tiles.best_people(scores, rows, people, num_best))


@partial(jax.jit, static_argnames=("score", "num_best"))
def _of_array(score: Score, params: Any, gallery: jax.Array, probes: jax.Array, *, num_best: int) -> Best:
    """The best rows inside a transformation."""
    g, k = gallery.shape[0], min(num_best, gallery.shape[0])

    def of_block(x: jax.Array) -> Best:
        if _is_small(g, gallery.shape[1], k):
            scores = search_tiles.scores_of(score, params, gallery, x).T
            rows = jnp.broadcast_to(jnp.arange(g, dtype=jnp.int32), scores.shape)
            return _best(scores, rows, None, num_best=k)
        question = Question(x)
        part = Part(gallery, jnp.asarray(0, jnp.int32), jnp.asarray(g, jnp.int32))
        state = search_tiles.no_groups(question, k), None
        ranked, _ = search_tiles.fold(score, params, part, None, question, state)
        rows = search_tiles.rows_of(ranked.groups, g)

        def again(each: tuple[jax.Array, jax.Array]) -> Best:
            own, probe = each
            found = _again(score, params, gallery[own][None], own[None], probe[None], None, num_best=k)
            return Best(found.rows[0], found.scores[0])

        size = search_tiles.probes_at_once(rows.shape[1], x.shape[1])
        return Best(*jax.lax.map(again, (rows, x), batch_size=min(size, x.shape[0])))

    q = probes.shape[0]
    if q <= _PROBES:
        best = of_block(probes)
    else:
        mapped = jax.lax.map(of_block, blocks.split(probes, _PROBES))
        best = Best(*(leaf.reshape(-1, k)[:q] for leaf in mapped))
    missing = [(0, 0), (0, num_best - k)]
    rows, scores = (jnp.pad(x, missing, constant_values=v) for x, v in zip(best, (-1, -jnp.inf), strict=True))
    return Best(rows, jnp.where(jnp.isnan(probes).any(axis=1)[:, None], jnp.nan, scores))
