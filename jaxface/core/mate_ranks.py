"""Who a probe shows, and at which rank his own person stands: the best people and the counts of those above the mate.

Both come from one pass over the scores, and no matrix of them `[g, q]` is kept. Ranks count people: everybody of the
gallery has the best score of their rows. Galleries and scores are those of `search`.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxface.core import gallery_parts, search, search_tiles
from jaxface.core.search_tiles import Score

__all__ = ["Identified", "Ranks", "identify"]


class Ranks(NamedTuple):
    """The mates of the probes, and how many other people of the gallery are above and level with them."""

    mates: np.ndarray  # [q], the best score of the probe's own person; NaN for people who are not in the gallery
    best: np.ndarray  # [q], the best score of anybody
    higher: np.ndarray  # int64 [q], people; -1 where there is no mate
    tied: np.ndarray  # int64 [q]


class Identified(NamedTuple):
    """The best people of each probe and the rank of the mate."""

    best: search.Best
    ranks: Ranks


def identify(
    score: Score, params: Any, gallery: Any, gallery_ids: Any, probes: Any, probe_ids: Any, *, num_best: int = 1
) -> Identified:
    """The `num_best` people of gallery `[g, d]` for each probe `[q, d]`, and the rank of the mate, in one pass.

    `gallery_ids` `[g]`, `probe_ids` `[q]`: integers that name people. The rows of a person must stand together.
    `metrics.cmc_from_counts` and `metrics.open_set_from_counts` take the ranks.
    """
    search.check(gallery, probes, num_best)
    people = search.people_of("gallery_ids", gallery_ids, gallery)
    ids = search.people_of("probe_ids", probe_ids, probes)
    num_people = np.unique(people).size
    if np.count_nonzero(people[1:] != people[:-1]) + 1 > num_people:
        raise ValueError(
            "gallery_ids must have the rows of a person next to each other; those of some person are apart. "
            "Sort the gallery by numpy.argsort(gallery_ids, kind='stable')."
        )
    is_ragged = num_people < people.size
    task, x = search.Task(score, params, gallery, people, num_best), np.asarray(probes)
    questions = search.questions_of(x, ids, _mates(task, x, ids))
    num_groups = 2 * num_best if is_ragged else num_best
    states = search.folded(task, questions, num_groups, is_ragged=is_ragged)
    task = task if is_ragged else task._replace(people=None)  # rows are people
    best = search.settled(task, x, num_groups, search.from_groups(task, questions, states, len(x)))
    mates = search.joined([question.mates for question in questions], len(x))
    counts = [
        search_tiles.last_person(counted, question)
        for (_, counted), question in zip(states, questions, strict=True)
        if counted is not None
    ]
    higher, tied = (search.joined(list(side), len(x)).astype(np.int64) for side in zip(*counts, strict=True))
    higher, tied = np.where(np.isnan(mates), -1, (higher, tied))
    highest = search.joined([ranked.maxima[:, 0] for ranked, _ in states], len(x))
    highest = np.where(np.isnan(x).any(axis=1), np.nan, highest)
    return Identified(best, Ranks(mates, highest, higher, tied))


def _mates(task: search.Task, probes: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """The best score `[q]` of each probe's own person; NaN where the gallery does not hold the person."""
    assert task.people is not None
    names, first, counts = np.unique(task.people, return_index=True, return_counts=True)
    place = np.minimum(np.searchsorted(names, ids), names.size - 1)
    place = np.where(names[place] == ids, place, -1)
    size = search_tiles.tile_rows(min(task.num_rows, gallery_parts.ROWS_READ))
    found = []
    questions = search.questions_of(probes, ids)
    length = questions[0].x.shape[0]
    for i, question in enumerate(questions):
        wanted = np.unique(place[i * length : (i + 1) * length])
        rows = [np.arange(first[j], first[j] + counts[j]) for j in wanted[wanted >= 0]]
        every = np.concatenate([np.zeros(0, np.int64), *rows])
        best = jnp.full(length, -jnp.inf, question.x.dtype)
        for start in range(0, len(every), size):
            of_tile = np.resize(every[start : start + size], size)
            x = jnp.asarray(gallery_parts.rows_at(task.gallery, of_tile))
            best = search_tiles.mate_scores(task.score, task.params, x, task.people[of_tile], question, best)
        found.append(best)
    mates = np.where((place < 0) | np.isnan(probes).any(axis=1), np.nan, search.joined(found, len(probes)))
    if np.isneginf(mates).any():
        raise ValueError(
            f"score must give a number for the mate of each probe; it is NaN or -inf for "
            f"{np.isneginf(mates).sum()} probes, the first at index {np.isneginf(mates).argmax()}. "
            "Remove or repair the rows of these people in the gallery."
        )
    return mates
