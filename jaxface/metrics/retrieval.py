"""Retrieval: how many of the K nearest images are right, and average precision.

Score matrices are `[g, q]`: gallery rows, query columns. With `same_set` the gallery is the query set itself
and no query is in its own list. Tied scores move together: the top K then holds the expected number over
all orders of the ties, and average precision is taken at the end of each tie.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import arguments
from jaxface.metrics.arguments import Array, Index, Mask

__all__ = ["average_precision", "mean_average_precision", "ranked_retrieval_at_k", "retrieval_at_k"]


class Retrieved(NamedTuple):
    """Means over the queries for K = 1, 2, ..., k."""

    number: Array  # [k] correct images in the top K
    share: Array  # [k] number / K


class _Ties(NamedTuple):
    """The ranked lists of all queries cut into runs of equal score."""

    query: Index  # [u] query of the run
    size: Index  # [u]
    last: Index  # [u] position of its last image in the list, from 1
    correct: Array  # [u] images of the query's person in it


def retrieval_at_k(
    scores: npt.ArrayLike,
    gallery_ids: npt.ArrayLike,
    query_ids: npt.ArrayLike,
    *,
    k: int,
    same_set: bool = False,
) -> Retrieved:
    """Average number and share of correct images in the top K, for every K up to `k`."""
    return _averaged(hits_at_k(scores, gallery_ids, query_ids, k=k, same_set=same_set))


def hits_at_k(
    scores: npt.ArrayLike,
    gallery_ids: npt.ArrayLike,
    query_ids: npt.ArrayLike,
    *,
    k: int,
    same_set: bool = False,
) -> Array:
    """Number of correct images `[q, k]` in the top 1, 2, ..., k of each query (expected, where ties cross K)."""
    lists, correct = _lists(scores, gallery_ids, query_ids, same_set)
    _enough(k, lists.shape[1])
    ties = _ties(lists, correct)
    expected = np.repeat(ties.correct / ties.size, ties.size).reshape(lists.shape)
    return np.cumsum(expected[:, :k], axis=1)


def ranked_retrieval_at_k(neighbor_ids: npt.ArrayLike, query_ids: npt.ArrayLike, *, k: int) -> Retrieved:
    """The same from identities of neighbours `[q, n]`, the nearest first, without the query itself."""
    sizes = checks.shapes(query_ids=(query_ids, "q"), neighbor_ids=(neighbor_ids, "q n"))
    checks.at_least("the number of queries", sizes["q"], 1)
    _enough(k, sizes["n"])
    neighbors, queries = (
        arguments.identities(name, ids) for name, ids in (("neighbor_ids", neighbor_ids), ("query_ids", query_ids))
    )
    correct = neighbors[:, :k] == queries[:, None]
    return _averaged(np.cumsum(correct, axis=1).astype(np.float64))


def mean_average_precision(
    scores: npt.ArrayLike, gallery_ids: npt.ArrayLike, query_ids: npt.ArrayLike, *, same_set: bool = False
) -> float:
    """Mean over queries of the average precision, sum over ties of (recall gained) x (precision at its end)."""
    return float(average_precision(scores, gallery_ids, query_ids, same_set=same_set).mean())


def average_precision(
    scores: npt.ArrayLike, gallery_ids: npt.ArrayLike, query_ids: npt.ArrayLike, *, same_set: bool = False
) -> Array:
    """Average precision `[q]` of each query; every query needs at least one correct image in its list."""
    lists, correct = _lists(scores, gallery_ids, query_ids, same_set)
    total = np.count_nonzero(correct, axis=1)
    if not total.all():
        raise ValueError(
            f"query_ids must each have another image to find; {int((total == 0).sum())} of {total.size} queries "
            f"have none, the first at index {int(np.argmin(total))}. Drop those queries."
        )
    ties = _ties(lists, correct)
    before_query = np.concatenate([[0], np.cumsum(total)[:-1]])
    retrieved = np.cumsum(ties.correct) - before_query[ties.query]
    return np.bincount(ties.query, weights=ties.correct * retrieved / ties.last) / total


def _lists(
    scores: npt.ArrayLike, gallery_ids: npt.ArrayLike, query_ids: npt.ArrayLike, same_set: bool
) -> tuple[npt.NDArray[Any], Mask]:
    """Scores `[q, n]` by query and which of them show the query's person; no query is in its own list."""
    matrix, gallery, queries = arguments.score_matrix(scores, gallery_ids, query_ids, probes="query")
    correct = queries[:, None] == gallery
    if not same_set:
        return matrix.T, correct
    if not np.array_equal(gallery, queries):
        raise ValueError("gallery_ids and query_ids must be equal, in the same order, when same_set is True.")
    others = ~np.eye(queries.size, dtype=bool)
    shape = (queries.size, queries.size - 1)
    return matrix.T[others].reshape(shape), correct[others].reshape(shape)


def _ties(lists: npt.NDArray[Any], correct: Mask) -> _Ties:
    """Sorts every list, best first, and counts the correct images in each run of equal scores."""
    length = lists.shape[1]
    order = np.argsort(lists, axis=1)[:, ::-1]
    falling = np.take_along_axis(lists, order, axis=1)
    new = np.ones(lists.shape, bool)
    new[:, 1:] = falling[:, 1:] != falling[:, :-1]
    starts = np.flatnonzero(new)
    size = np.diff(np.append(starts, new.size))
    ranked = np.take_along_axis(correct, order, axis=1).ravel()
    return _Ties(
        query=starts // length,
        size=size,
        last=starts % length + size,
        correct=np.add.reduceat(ranked.astype(np.float64), starts),
    )


def _averaged(hits: Array) -> Retrieved:
    number = hits.mean(axis=0)
    return Retrieved(number=number, share=number / np.arange(1, number.size + 1))


def _enough(k: int, length: int) -> None:
    checks.at_least("k", k, 1)
    checks.at_most("k", k, length, "the images in each list")
