import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core import histogram
from tests.tolerances import assert_close


def inner(params, a, b):
    return params * a @ b.T


def reference(scores, same, edges):
    """Counts by comparing every score with every edge."""
    place = (scores[:, None] >= edges[None, :]).sum(1)
    bins = len(edges) + 1
    return np.bincount(place[same], minlength=bins), np.bincount(place[~same], minlength=bins)


@pytest.mark.parametrize("tile", [4, 7, 64])
def test_all_pairs_equal_a_plain_count_for_every_tile(tile, rng):
    x, ids = rng.normal(size=(30, 5)), rng.integers(0, 6, 30)
    found = histogram.count_all_pairs(inner, jnp.asarray(2.0), x, ids, num_bins=16, tile=tile)
    i, j = np.triu_indices(30, 1)
    genuine, impostor = reference(2 * (x[i] * x[j]).sum(1), ids[i] == ids[j], found.edges)
    np.testing.assert_array_equal(found.genuine, genuine)
    np.testing.assert_array_equal(found.impostor, impostor)
    assert found.genuine[0] == found.genuine[-1] == 0  # the edges span the genuine scores
    assert found.genuine[1] >= 1
    assert found.genuine[-2] >= 1


@pytest.mark.parametrize("tile", [4, 64])
def test_cross_pairs_equal_a_plain_count(tile, rng):
    gallery, probes = rng.normal(size=(11, 5)), rng.normal(size=(17, 5))
    gallery_ids, probe_ids = rng.integers(0, 6, 11), rng.integers(0, 6, 17)
    found = histogram.count_cross(
        inner, jnp.asarray(1.0), gallery, gallery_ids, probes, probe_ids, num_bins=16, tile=tile
    )
    same = (gallery_ids[:, None] == probe_ids).ravel()
    genuine, impostor = reference((gallery @ probes.T).ravel(), same, found.edges)
    np.testing.assert_array_equal(found.genuine, genuine)
    np.testing.assert_array_equal(found.impostor, impostor)


def test_parts_with_one_span_add_to_the_whole(rng):
    x, ids = rng.normal(size=(20, 3)), np.arange(20) // 2
    options = {"num_bins": 8, "span": (-1.0, 1.0), "tile": 8}
    one = jnp.asarray(1.0)
    whole = histogram.count_all_pairs(inner, one, x, ids, **options)
    parts = [
        histogram.count_all_pairs(inner, one, x[:8], ids[:8], **options),
        histogram.count_all_pairs(inner, one, x[8:], ids[8:], **options),
        histogram.count_cross(inner, one, x[:8], ids[:8], x[8:], ids[8:], **options),
    ]
    merged = histogram.merge(histogram.merge(parts[0], parts[1]), parts[2])
    assert_close(merged, whole)


def test_counts_move_to_the_host_before_they_overflow(rng, monkeypatch):
    x, ids = rng.normal(size=(40, 3)), np.arange(40) // 4
    whole = histogram.count_all_pairs(inner, jnp.asarray(1.0), x, ids, tile=4, num_bins=8)
    monkeypatch.setattr(histogram, "_SCORES_A_CALL", 7 * 4**2)
    assert_close(histogram.count_all_pairs(inner, jnp.asarray(1.0), x, ids, tile=4, num_bins=8), whole)
    assert whole.genuine.dtype == np.int64


def test_one_genuine_score_only():
    x = np.array([[1.0], [1.0], [3.0]])
    found = histogram.count_all_pairs(inner, jnp.asarray(1.0), x, np.array([0, 0, 1]), num_bins=4)
    assert found.genuine.sum() == found.genuine[1] == 1
    assert found.impostor[-1] == 2


def test_errors(rng):
    x = rng.normal(size=(4, 2))
    one = jnp.asarray(1.0)
    with pytest.raises(ValueError, match="no genuine pair: every identity has one row only"):
        histogram.count_all_pairs(inner, one, x, np.arange(4))
    with pytest.raises(ValueError, match="ids must be at least 0; drop rows"):
        histogram.count_all_pairs(inner, one, x, np.array([0, -1, 0, 1]))
    with pytest.raises(ValueError, match="span must be increasing"):
        histogram.count_all_pairs(inner, one, x, np.zeros(4, int), span=(1.0, 1.0))
    with pytest.raises(ValueError, match=r"ids must have shape \[n\] with n = 4"):
        histogram.count_all_pairs(inner, one, x, np.zeros(3, int))
    a = histogram.count_all_pairs(inner, one, x, np.zeros(4, int), span=(0.0, 1.0))
    b = histogram.count_all_pairs(inner, one, x, np.zeros(4, int), span=(0.0, 2.0))
    with pytest.raises(ValueError, match="must share their edges"):
        histogram.merge(a, b)
