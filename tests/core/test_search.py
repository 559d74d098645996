"""The best rows of a gallery against a dense sort; several devices are in `test_mesh.py`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import joint_bayes
from jaxface.core import gallery_parts, search
from jaxface.linalg import distances
from tests.tolerances import assert_close

G, Q, D, K = 700, 9, 5, 4


def inner(params, a, b):
    return a @ b.T


def cosine(params, a, b):
    return distances.cosine_matrix(a, b)


def nearness(params, a, b):
    return -distances.squared_distance_matrix(a, b)


def whole_numbers(rng, n):
    """Rows with exact products, of which many are equal."""
    return rng.integers(-2, 3, (n, D)).astype(np.float32)


def sorted_rows(scores, people=None):
    """All rows in falling order, or the best row of each person; the lower row among equals."""
    order = np.argsort(-scores, axis=1, kind="stable")
    if people is None:
        return order
    return np.array([row[np.sort(np.unique(people[row], return_index=True)[1])] for row in order])


def test_first_min_takes_the_first_of_ties_and_survives_nan():
    values = jnp.array([[3.0, 1.0, 1.0], [2.0, 2.0, 2.0], [jnp.nan, 1.0, 2.0]])
    index = search.first_min(values)
    assert index.dtype == jnp.int32
    assert index[:2].tolist() == [1, 0]
    assert 0 <= int(index[2]) < 3
    for changed in (jax.jit, jax.vmap):
        assert changed(search.first_min)(values).tolist() == index.tolist()


def test_ties_go_to_the_lower_row_wherever_the_gallery_lies(rng, tmp_path):
    gallery, probes = whole_numbers(rng, G), whole_numbers(rng, Q)
    expected = sorted_rows(probes @ gallery.T)[:, :K]
    np.save(tmp_path / "gallery.npy", gallery.astype(np.float16))
    on_disk = np.load(tmp_path / "gallery.npy", mmap_mode="r")
    for where in (gallery, jnp.asarray(gallery), on_disk):
        best = search.top_k(inner, None, where, probes, num_best=K)
        np.testing.assert_array_equal(best.rows, expected)
        np.testing.assert_array_equal(best.scores, np.take_along_axis(probes @ gallery.T, expected, axis=1))
    traced = jax.jit(lambda g, p: search.top_k(inner, None, g, p, num_best=K))(gallery, probes)
    np.testing.assert_array_equal(traced.rows, expected)


def test_a_gallery_read_in_parts_and_probes_in_blocks(rng, monkeypatch):
    monkeypatch.setattr(gallery_parts, "ROWS_READ", 320)
    monkeypatch.setattr(search, "_PROBES", 6)
    gallery, probes = whole_numbers(rng, G), whole_numbers(rng, Q)
    best = search.top_k(inner, None, gallery, probes, num_best=K)
    np.testing.assert_array_equal(best.rows, sorted_rows(probes @ gallery.T)[:, :K])


@pytest.mark.parametrize("rows_of_a_person", [1, 3, 200])
def test_people_are_listed_once_by_their_best_row(rows_of_a_person, rng):
    """With 200 rows a person the groups that are kept first hold one person only."""
    gallery, probes = whole_numbers(rng, G), whole_numbers(rng, Q)
    people = rng.permutation(np.arange(G) // rows_of_a_person)
    expected = sorted_rows(probes @ gallery.T, people)[:, :K]
    best = search.top_k(inner, None, gallery, probes, num_best=K, gallery_ids=people)
    np.testing.assert_array_equal(best.rows, expected)


def test_one_person_in_front_of_all_others(rng):
    gallery, probes = whole_numbers(rng, G), np.ones((Q, D), np.float32)
    gallery[:600] = 5
    people = np.append(np.zeros(600, int), np.arange(1, 101))
    best = search.top_k(inner, None, gallery, probes, num_best=K, gallery_ids=people)
    np.testing.assert_array_equal(best.rows, sorted_rows(probes @ gallery.T, people)[:, :K])


@pytest.mark.parametrize("name", ["cosine", "distance", "ratio"])
def test_scores_equal_a_dense_sort(name, rng):
    gallery, probes = rng.normal(size=(G, D)), rng.normal(size=(Q, D))
    basis = joint_bayes.ScoringBasis(mean=np.zeros(D), vectors=np.eye(D), values=np.arange(5.0, 0.0, -1))
    score, params = {
        "cosine": (cosine, None),
        "distance": (nearness, None),
        "ratio": (joint_bayes.score_projections, basis),
    }[name]
    best = search.top_k(score, params, gallery, probes, num_best=K)
    if name == "cosine":
        lengths = np.linalg.norm(probes, axis=1)[:, None] * np.linalg.norm(gallery, axis=1)
        dense = probes @ gallery.T / lengths
    elif name == "distance":
        dense = -((probes[:, None] - gallery) ** 2).sum(axis=2)
    else:
        dense = np.array([[joint_bayes.set_llr(basis, p, 1.0, g, 1.0) for g in gallery[:3]] for p in probes[:2]])
        np.testing.assert_allclose(np.asarray(score(params, gallery[:3], probes[:2])).T, dense, rtol=1e-6)
        dense = np.asarray(score(params, gallery, probes)).T
    expected = sorted_rows(dense)[:, :K]
    np.testing.assert_array_equal(best.rows, expected)
    assert_close(best.scores, np.take_along_axis(dense, expected, axis=1))


def test_nan_leaves_out_its_row_and_its_probe_only(rng):
    gallery, probes = whole_numbers(rng, G), whole_numbers(rng, Q)
    scores = probes @ gallery.T
    best_row = scores[0].argmax()
    gallery[best_row, 2], probes[3, 1] = np.nan, np.nan
    scores[:, best_row] = -np.inf
    found = search.top_k(inner, None, gallery, probes, num_best=K)
    others = np.arange(Q) != 3
    np.testing.assert_array_equal(found.rows[others], sorted_rows(scores)[others, :K])
    assert found.rows[3].tolist() == [-1] * K
    assert np.isnan(found.scores[3]).all()
    assert not np.isnan(found.scores[others]).any()


@pytest.mark.parametrize("people", [None, [7, 5, 7]])
def test_more_than_the_gallery_has(people):
    gallery, probes = np.array([[1.0], [3.0], [2.0]]), np.array([[1.0], [-1.0]])
    best = search.top_k(inner, None, gallery, probes, num_best=5, gallery_ids=people)
    expected = [[1, 2, 0], [0, 2, 1]] if people is None else [[1, 2, -1], [0, 1, -1]]
    assert best.rows.tolist() == [[*row, -1, -1] for row in expected]
    assert np.isneginf(best.scores[best.rows < 0]).all()
    one = search.top_k(inner, None, gallery[:1], probes, num_best=5)
    assert one.rows.tolist() == [[0, -1, -1, -1, -1]] * 2
    traced = jax.jit(lambda g, p: search.top_k(inner, None, g, p, num_best=5))(gallery, probes)
    assert traced.rows[:, 3:].tolist() == [[-1, -1]] * 2


def test_what_it_refuses():
    gallery, probes = np.zeros((3, 2)), np.zeros((2, 2))
    with pytest.raises(ValueError, match=r"probes must have shape \[q, d\] with d = 2"):
        search.top_k(inner, None, gallery, np.zeros((2, 3)), num_best=1)
    with pytest.raises(ValueError, match="rows of gallery must be at least 1"):
        search.top_k(inner, None, gallery[:0], probes, num_best=1)
    with pytest.raises(ValueError, match="num_best must be at least 1; got 0"):
        search.top_k(inner, None, gallery, probes, num_best=0)
    with pytest.raises(ValueError, match="gallery must be a floating point array"):
        search.top_k(inner, None, gallery.astype(int), probes, num_best=1)
    with pytest.raises(ValueError, match=r"gallery_ids must have shape \[3\]"):
        search.top_k(inner, None, gallery, probes, num_best=1, gallery_ids=[0])
    with pytest.raises(ValueError, match="gallery_ids cannot be used inside jit"):
        jax.jit(lambda g: search.top_k(inner, None, g, probes, num_best=1, gallery_ids=[0, 1, 1]))(gallery)
