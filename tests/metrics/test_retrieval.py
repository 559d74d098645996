import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.metrics import average_precision_score

from jaxface.metrics import retrieval as r
from tests.metrics.people import levels
from tests.reference import metrics_reference as ref
from tests.tolerances import assert_close


@st.composite
def matrices(draw):
    gallery = draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=5))
    queries = draw(st.lists(st.sampled_from(gallery), min_size=1, max_size=3))
    cells = st.lists(levels, min_size=len(gallery) * len(queries), max_size=len(gallery) * len(queries))
    return np.array(draw(cells)).reshape(len(gallery), len(queries)), np.array(gallery), np.array(queries)


def test_by_hand():
    scores = np.array([[0.9, 0.1], [0.8, 0.5], [0.7, 0.5], [0.6, 0.2]])
    gallery, queries = [0, 1, 0, 1], [0, 1]
    found = r.retrieval_at_k(scores, gallery, queries, k=4)
    # Query 0 lists 0 1 0 1; query 1 lists {1, 0} tied, then 1, 0.
    assert_close(found.number, np.array([(1 + 0.5) / 2, (1 + 1) / 2, (2 + 2) / 2, 2.0]))
    assert_close(found.share, found.number / np.array([1, 2, 3, 4]))
    expected = ((1 + 2 / 3) / 2 + (1 / 2 + 2 / 3) / 2) / 2
    assert r.mean_average_precision(scores, gallery, queries) == pytest.approx(expected)


@settings(deadline=None)
@given(matrices())
def test_against_every_order_of_the_ties(case):
    scores, gallery, queries = case
    k = gallery.size
    hits = r.hits_at_k(scores, gallery, queries, k=k)
    precision = r.average_precision(scores, gallery, queries)
    for q, name in enumerate(queries):
        column, correct = scores[:, q].tolist(), (gallery == name).tolist()
        assert_close(hits[q], np.array([ref.expected_hits(column, correct, j) for j in range(1, k + 1)]))
        assert_close(precision[q], ref.average_precision(column, correct))


def test_average_precision_equals_scikit_learn(rng):
    gallery, queries = rng.integers(0, 6, 80), np.arange(6)
    scores = np.round(rng.normal(size=(80, 6)) + (gallery[:, None] == queries), 1)
    expected = [average_precision_score(gallery == q, scores[:, q]) for q in queries]
    assert_close(r.average_precision(scores, gallery, queries), np.array(expected))
    assert_close(r.mean_average_precision(scores, gallery, queries), np.mean(expected))


def test_no_query_stands_in_its_own_list(rng):
    ids = np.array([0, 1, 0, 1, 1, 0])
    scores = rng.normal(size=(6, 6))
    scores[np.arange(6), np.arange(6)] = 100.0
    hits = r.hits_at_k(scores, ids, ids, k=5, same_set=True)
    precision = r.average_precision(scores, ids, ids, same_set=True)
    for q in range(6):
        others = [i for i in range(6) if i != q]
        single = r.hits_at_k(scores[others][:, [q]], ids[others], ids[[q]], k=5)
        assert_close(hits[q], single[0])
        assert_close(precision[q], average_precision_score(ids[others] == ids[q], scores[others, q]))
    assert r.retrieval_at_k(scores, ids, ids, k=1).number[0] == 1.0  # with itself in the list


def test_ranked_neighbours_agree_with_scores(rng):
    gallery, queries = rng.integers(0, 4, 30), rng.integers(0, 4, 9)
    scores = rng.normal(size=(30, 9))
    neighbors = gallery[np.argsort(-scores, axis=0)].T
    from_scores = r.retrieval_at_k(scores, gallery, queries, k=15)
    from_ids = r.ranked_retrieval_at_k(neighbors, queries, k=15)
    assert_close(from_ids, from_scores)


def test_what_retrieval_refuses():
    scores = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match="k must be at most 3"):
        r.retrieval_at_k(scores, [0, 1, 0], [0, 1], k=4)
    with pytest.raises(ValueError, match="k must be at most 2"):
        r.retrieval_at_k(np.eye(3), [0, 1, 0], [0, 1, 0], k=3, same_set=True)
    with pytest.raises(ValueError, match="k must be at least 1"):
        r.retrieval_at_k(scores, [0, 1, 0], [0, 1], k=0)
    with pytest.raises(ValueError, match="gallery_ids and query_ids must be equal"):
        r.retrieval_at_k(np.eye(3), [0, 1, 0], [0, 0, 1], k=1, same_set=True)
    with pytest.raises(ValueError, match="1 of 3 queries have none, the first at index 1"):
        r.mean_average_precision(np.eye(3), [0, 1, 0], [0, 1, 0], same_set=True)
    with pytest.raises(ValueError, match="k must be at most 2"):
        r.ranked_retrieval_at_k([[0, 1]], [0], k=3)
    with pytest.raises(ValueError, match="the number of queries must be at least 1"):
        r.ranked_retrieval_at_k(np.zeros((0, 3)), [], k=1)
