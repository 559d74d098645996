import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core import pair_counts
from tests.tolerances import assert_close


def inner(params, a, b):
    return params * a @ b.T


def whole_numbers(rng, n):
    """Rows whose products are exact: the least genuine score is an edge, and rounding must not decide its bin."""
    return rng.integers(-9, 10, (n, 5)).astype(float)


def reference(scores, same, edges):
    """Counts by comparing every score with every edge."""
    place = (scores[:, None] >= edges[None, :]).sum(1)
    bins = len(edges) + 1
    return np.bincount(place[same], minlength=bins), np.bincount(place[~same], minlength=bins)


@pytest.mark.parametrize("block_size", [4, 7, 64])
def test_all_pairs_equal_a_plain_count_for_every_tile(block_size, rng):
    x, ids = whole_numbers(rng, 30), rng.integers(0, 6, 30)
    found = pair_counts.count_all_pairs(inner, jnp.asarray(2.0), x, ids, num_bins=16, block_size=block_size)
    i, j = np.triu_indices(30, 1)
    genuine, impostor = reference(2 * (x[i] * x[j]).sum(1), ids[i] == ids[j], found.edges)
    np.testing.assert_array_equal(found.genuine, genuine)
    np.testing.assert_array_equal(found.impostor, impostor)
    assert found.genuine[0] == found.genuine[-1] == 0  # the edges span the genuine scores
    assert found.genuine[1] >= 1
    assert found.genuine[-2] >= 1


@pytest.mark.parametrize(("block_size", "g", "q"), [(4, 11, 17), (4, 12, 20), (64, 11, 17)])
def test_cross_pairs_equal_a_plain_count(block_size, g, q, rng):
    gallery, probes = whole_numbers(rng, g), whole_numbers(rng, q)
    # Few people are on both sides, so that whole tiles, the padded ones too, are impostors.
    gallery_ids, probe_ids = rng.integers(0, 4, g), rng.integers(3, 8, q)
    found = pair_counts.count_cross(
        inner, jnp.asarray(1.0), gallery, gallery_ids, probes, probe_ids, num_bins=16, block_size=block_size
    )
    same = (gallery_ids[:, None] == probe_ids).ravel()
    genuine, impostor = reference((gallery @ probes.T).ravel(), same, found.edges)
    np.testing.assert_array_equal(found.genuine, genuine)
    np.testing.assert_array_equal(found.impostor, impostor)


def test_parts_with_one_span_add_to_the_whole(rng):
    x, ids = rng.normal(size=(20, 3)), np.arange(20) // 2
    options = {"num_bins": 8, "span": (-1.0, 1.0), "block_size": 8}
    one = jnp.asarray(1.0)
    whole = pair_counts.count_all_pairs(inner, one, x, ids, **options)
    parts = [
        pair_counts.count_all_pairs(inner, one, x[:8], ids[:8], **options),
        pair_counts.count_all_pairs(inner, one, x[8:], ids[8:], **options),
        pair_counts.count_cross(inner, one, x[:8], ids[:8], x[8:], ids[8:], **options),
    ]
    merged = pair_counts.merge(pair_counts.merge(parts[0], parts[1]), parts[2])
    assert_close(merged, whole)


def test_counts_move_to_the_host_before_they_overflow(rng, monkeypatch):
    x, ids = rng.normal(size=(40, 3)), np.arange(40) // 4
    whole = pair_counts.count_all_pairs(inner, jnp.asarray(1.0), x, ids, block_size=4, num_bins=8)
    monkeypatch.setattr(pair_counts, "_SCORES_A_CALL", 7 * 4**2)
    assert_close(pair_counts.count_all_pairs(inner, jnp.asarray(1.0), x, ids, block_size=4, num_bins=8), whole)
    assert whole.genuine.dtype == np.int64


def test_one_genuine_score_only():
    x = np.array([[1.0], [1.0], [3.0]])
    found = pair_counts.count_all_pairs(inner, jnp.asarray(1.0), x, np.array([0, 0, 1]), num_bins=4)
    assert found.genuine.sum() == found.genuine[1] == 1
    assert found.impostor[-1] == 2


def plain_cosine(params, a, b):
    """Without a guard against rows of zeros."""
    length = [jnp.sqrt((x * x).sum(axis=1)) for x in (a, b)]
    return params * (a @ b.T) / (length[0][:, None] * length[1][None, :])


@pytest.mark.parametrize("row", [0, 9, 20])
@pytest.mark.parametrize("span", [None, (-1.0, 1.0)])
def test_scores_that_are_nan_are_refused(row, span, rng):
    """One row of zeros, of a person with others or without, in a full block or alone in the last one."""
    x, ids = rng.normal(size=(21, 3)), np.append(np.arange(20) // 2, 99)
    x[row] = 0
    one = jnp.asarray(1.0)
    with pytest.raises(ValueError, match="score must give numbers; some scores are NaN"):
        pair_counts.count_all_pairs(plain_cosine, one, x, ids, span=span, block_size=4)
    with pytest.raises(ValueError, match="some scores are NaN"):
        pair_counts.count_cross(plain_cosine, one, x[::2], ids[::2], x, ids, span=span, block_size=4)
    clean = np.delete(x, row, axis=0), np.delete(ids, row)
    assert pair_counts.count_all_pairs(plain_cosine, one, *clean, span=span, block_size=4).genuine.sum() >= 9


@pytest.mark.parametrize("block_size", [1, 4, 64])
def test_rows_of_one_image_are_not_compared(block_size, rng):
    gallery, probes = whole_numbers(rng, 11), whole_numbers(rng, 17)
    images = np.arange(11), np.concatenate([np.arange(11)[::-1], np.array([0, 0, 5, 20, 21, 22])])
    identity = rng.integers(0, 4, 30)
    ids = [identity[each] for each in images]
    counts = pair_counts.count_cross(
        inner,
        jnp.asarray(1.0),
        gallery,
        ids[0],
        probes,
        ids[1],
        images=images,
        num_bins=16,
        span=(-400.0, 400.0),
        block_size=block_size,
    )
    compared = images[0][:, None] != images[1][None, :]
    same = (ids[0][:, None] == ids[1])[compared]
    genuine, impostor = reference((gallery @ probes.T)[compared], same, counts.edges)
    np.testing.assert_array_equal(counts.genuine, genuine)
    np.testing.assert_array_equal(counts.impostor, impostor)
    assert counts.genuine.sum() + counts.impostor.sum() == 11 * 17 - 14


@pytest.mark.parametrize("row", [0, 5, 10])
@pytest.mark.parametrize("block_size", [1, 4])
def test_scores_of_an_image_with_itself_may_be_nan_and_others_may_not(row, block_size, rng):
    x, ids = np.append(np.arange(1.0, 11.0), 1.0)[:, None], np.arange(11) // 2
    options = {"images": (np.arange(11), np.arange(11)), "span": (0.0, 12.0), "block_size": block_size}
    counts = pair_counts.count_cross(
        inverse_distance,
        None,
        x[:10],
        ids[:10],
        x[:10],
        ids[:10],
        num_bins=4,
        **{**options, "images": (np.arange(10), np.arange(10))},
    )
    assert counts.genuine.sum() + counts.impostor.sum() == 90
    x[row] = 0
    with pytest.raises(ValueError, match="some scores are NaN"):
        pair_counts.count_cross(plain_cosine, jnp.asarray(1.0), x, ids, x, ids, num_bins=4, **options)


def inverse_distance(params, a, b):
    """NaN for a row against itself."""
    difference = a[:, None, 0] - b[None, :, 0]
    return jnp.abs(difference / difference**2)


def common_bits(params, a, b):
    return (a.astype(jnp.int32)[:, None, :] == b.astype(jnp.int32)[None, :, :]).sum(axis=2)


def test_scores_may_be_whole_numbers(rng):
    x, ids = rng.integers(0, 2, (12, 9)).astype(float), np.arange(12) // 3
    found = pair_counts.count_all_pairs(common_bits, None, x, ids, num_bins=10, span=(-0.5, 9.5), block_size=4)
    i, j = np.triu_indices(12, 1)
    genuine, impostor = reference((x[i] == x[j]).sum(1), ids[i] == ids[j], found.edges)
    np.testing.assert_array_equal(found.genuine, genuine)
    np.testing.assert_array_equal(found.impostor, impostor)


def logarithm(params, a, b):
    return jnp.log(jnp.maximum(params * a @ b.T, 0))


def test_errors(rng):
    x = rng.normal(size=(4, 2))
    one = jnp.asarray(1.0)
    with pytest.raises(ValueError, match=r"span must be finite and increasing; got \(-inf,"):
        pair_counts.count_all_pairs(logarithm, one, np.array([[1.0, 0], [0, 1], [1, 1], [1, 1]]), np.zeros(4, int))
    with pytest.raises(ValueError, match="rows of x must be at least 1; got 0"):
        pair_counts.count_all_pairs(inner, one, x[:0], np.zeros(0, int))
    with pytest.raises(ValueError, match="rows of probes must be at least 1; got 0"):
        pair_counts.count_cross(inner, one, x, np.zeros(4, int), x[:0], np.zeros(0, int))
    with pytest.raises(ValueError, match="no genuine pair: every identity has one row only"):
        pair_counts.count_all_pairs(inner, one, x, np.arange(4))
    for wrong in (np.array([0, -1, 0, 1]), np.array([0, 1, 0, 2**32])):  # the last would be 0 in int32
        with pytest.raises(ValueError, match=r"ids must be in \[0, 2147483647\); got values from"):
            pair_counts.count_all_pairs(inner, one, x, wrong)
    with pytest.raises(ValueError, match="ids must be dense integers; got dtype float64"):
        pair_counts.count_all_pairs(inner, one, x, np.array([0.2, 0.7, 1.0, 1.0]))
    with pytest.raises(ValueError, match="span must be finite and increasing"):
        pair_counts.count_all_pairs(inner, one, x, np.zeros(4, int), span=(1.0, 1.0))
    with pytest.raises(ValueError, match=r"ids must have shape \[n\] with n = 4"):
        pair_counts.count_all_pairs(inner, one, x, np.zeros(3, int))
    ids, numbers = np.zeros(4, int), np.arange(4)
    with pytest.raises(ValueError, match=r"images\[1\] must have shape \[n\] with n = 4"):
        pair_counts.count_cross(inner, one, x, ids, x, ids, images=(numbers, numbers[:3]))
    with pytest.raises(ValueError, match="images must have one identity each; some image has two"):
        pair_counts.count_cross(inner, one, x, ids, x, ids + 1, images=(numbers, numbers))
    a = pair_counts.count_all_pairs(inner, one, x, np.zeros(4, int), span=(0.0, 1.0))
    b = pair_counts.count_all_pairs(inner, one, x, np.zeros(4, int), span=(0.0, 2.0))
    with pytest.raises(ValueError, match="must share their edges"):
        pair_counts.merge(a, b)
