import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxface.ensembles import sampling

KEY = jax.random.key(7)
LABELS = np.repeat(np.arange(4, dtype=np.int32), [3, 5, 3, 4])[[3, 0, 9, 14, 1, 2, 4, 5, 6, 7, 8, 10, 11, 12, 13]]
VARIANCES = np.geomspace(1.0, 1e-7, 30)  # 21 axes above 1e-5

DRAWS = {
    "subspaces": functools.partial(sampling.feature_subspaces, KEY, VARIANCES, num_fixed=4, num_random=6),
    "people": functools.partial(sampling.class_bags, KEY, num_classes=9, bag_size=5),
    "images": functools.partial(sampling.image_bags, KEY, LABELS, num_classes=4, images_per_class=2),
    "bootstrap": functools.partial(sampling.image_bags, KEY, LABELS, num_classes=4, images_per_class=2, bootstrap=True),
    "rows": functools.partial(sampling.bootstrap, KEY, num_rows=12),
    "parameters": functools.partial(sampling.parameter_subsets, KEY, num_candidates=9, subset_size=5),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))
def test_member_i_is_the_same_whatever_the_number_of_members(draw):
    ten, hundred = draw(num_members=10), draw(num_members=100)
    assert ten.dtype == jnp.int32
    np.testing.assert_array_equal(hundred[:10], ten)
    assert len(np.unique(np.asarray(hundred), axis=0)) > 30  # and the members do differ


@pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))
def test_draws_do_not_depend_on_the_precision(draw):
    wide = draw(num_members=5)
    with jax.enable_x64(False):
        narrow = draw(num_members=5)
    np.testing.assert_array_equal(narrow, wide)


def test_subspaces_hold_the_first_axes_and_random_others_above_the_floor():
    axes = np.asarray(DRAWS["subspaces"](num_members=400))
    np.testing.assert_array_equal(axes[:, :4], np.tile(np.arange(4), (400, 1)))
    counts = np.bincount(axes[:, 4:].ravel(), minlength=30)
    np.testing.assert_array_equal(counts > 0, (VARIANCES > 1e-5) & (np.arange(30) >= 4))
    assert all(len(set(row)) == 10 for row in axes)
    # Each of 17 axes is drawn with probability 6 / 17: five standard deviations.
    expected, spread = 400 * 6 / 17, np.sqrt(400 * 6 / 17 * 11 / 17)
    assert np.abs(counts[4:21] - expected).max() < 5 * spread


def test_the_literal_form_draws_from_every_axis_with_variance():
    variances = np.append(VARIANCES, 0.0)
    axes = sampling.feature_subspaces(KEY, variances, num_members=200, num_fixed=0, num_random=10, floor=0.0)
    assert set(np.asarray(axes).ravel()) == set(range(30))


def test_all_axes_and_only_fixed_axes():
    draw = functools.partial(sampling.feature_subspaces, KEY, VARIANCES, num_members=3)
    np.testing.assert_array_equal(draw(num_fixed=5, num_random=0), np.tile(np.arange(5), (3, 1)))
    everything = draw(num_fixed=2, num_random=19)
    np.testing.assert_array_equal(np.sort(everything, axis=1), np.tile(np.arange(21), (3, 1)))


def test_traced_sizes_share_a_width_and_their_axes():
    draw = functools.partial(sampling.feature_subspaces, KEY, VARIANCES, num_members=4, width=12)
    both = jax.vmap(lambda fixed, drawn: draw(num_fixed=fixed, num_random=drawn))
    found = np.asarray(both(jnp.array([2, 2, 0]), jnp.array([10, 3, 25])))
    for sizes, axes in zip(((2, 10), (2, 3), (0, 25)), found, strict=True):
        used = min(sum(sizes), 12)
        np.testing.assert_array_equal((axes >= 0).sum(axis=1), np.full(4, used))
        assert (axes[:, used:] == -1).all()
    np.testing.assert_array_equal(found[1, :, :5], found[0, :, :5])  # fewer axes are the first of more
    np.testing.assert_array_equal(found[0], draw(num_fixed=2, num_random=10))


def test_a_traced_size_above_the_pool_leaves_places_empty():
    draw = functools.partial(sampling.feature_subspaces, KEY, VARIANCES, num_members=2, num_fixed=3, width=30)
    axes = np.asarray(jax.jit(lambda drawn: draw(num_random=drawn))(27))
    np.testing.assert_array_equal((axes >= 0).sum(axis=1), [21, 21])
    assert axes.max() == 20


def test_bags_of_people():
    classes = np.asarray(DRAWS["people"](num_members=300))
    assert (np.diff(classes, axis=1) > 0).all()
    counts = np.bincount(classes.ravel(), minlength=9)
    assert np.abs(counts - 300 * 5 / 9).max() < 5 * np.sqrt(300 * 5 / 9 * 4 / 9)
    weights = sampling.class_weights(classes, np.arange(9, dtype=np.int32)[::-1])
    for drawn, weight in zip(classes, np.asarray(weights), strict=True):
        np.testing.assert_array_equal(np.flatnonzero(weight[::-1]), drawn)


def test_bags_of_images_hold_as_many_of_every_class_none_twice():
    rows = np.asarray(DRAWS["images"](num_members=300))
    np.testing.assert_array_equal(LABELS[rows], np.tile(np.repeat(np.arange(4), 2), (300, 1)))
    assert all(len(set(row)) == 8 for row in rows)
    counts = np.bincount(rows.ravel(), minlength=15)
    share = 2 / np.bincount(LABELS)[LABELS]
    assert (np.abs(counts - 300 * share) < 5 * np.sqrt(300 * share * (1 - share)) + 1e-9).all()
    everything = sampling.image_bags(KEY, LABELS[LABELS == 0], num_members=2, num_classes=1, images_per_class=3)
    np.testing.assert_array_equal(np.sort(everything, axis=1), np.tile(np.arange(3), (2, 1)))


def test_a_bootstrap_repeats_images_but_never_one_alone():
    rows = np.asarray(
        sampling.image_bags(KEY, LABELS, num_members=600, num_classes=4, images_per_class=3, bootstrap=True)
    )
    np.testing.assert_array_equal(LABELS[rows], np.tile(np.repeat(np.arange(4), 3), (600, 1)))
    distinct = np.array([[len(set(images)) for images in row.reshape(4, 3)] for row in rows])
    assert distinct.min() == 2
    # Three draws of three images, not all the same: 18 of 24 outcomes hold one image twice.
    share = (distinct[:, 0] == 2).mean()
    assert abs(share - 18 / 24) < 5 * np.sqrt(18 / 24 * 6 / 24 / 600)
    weights = np.asarray(sampling.row_weights(rows, num_rows=15))
    np.testing.assert_array_equal(weights.sum(axis=1), np.full(600, 12))
    assert weights.max() == 2


def test_a_bootstrap_of_two_images_takes_both():
    labels = np.array([0, 1, 0, 1], np.int32)
    rows = sampling.image_bags(KEY, labels, num_members=50, num_classes=2, images_per_class=2, bootstrap=True)
    np.testing.assert_array_equal(np.sort(rows, axis=1), np.tile([0, 1, 2, 3], (50, 1)))


def test_a_traced_class_of_one_image_does_not_hang():
    draw = functools.partial(sampling.image_bags, KEY, num_members=2, num_classes=2, images_per_class=2, bootstrap=True)
    rows = jax.jit(draw)(jnp.array([0, 1, 1], jnp.int32))
    np.testing.assert_array_equal(rows[:, :2], np.zeros((2, 2)))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(1, 10), st.integers(0, 10))
def test_subspaces_are_sets_of_axes(seed, num_random, num_fixed):
    axes = sampling.feature_subspaces(
        jax.random.key(seed), VARIANCES, num_members=2, num_fixed=num_fixed, num_random=num_random, width=20
    )
    used = np.asarray(axes)[:, : num_fixed + num_random]
    assert (np.asarray(axes)[:, num_fixed + num_random :] == -1).all()
    assert all(len(set(row)) == len(row) for row in used)
    assert used.min() >= 0
    assert used.max() <= 20


def test_known_variances_inside_jit():
    """Closed over they are known, and the check of their number must not trace them."""
    variances, settings = np.arange(20.0, 0, -1), {"num_members": 3, "num_fixed": 2, "num_random": 3}
    plain = sampling.feature_subspaces(jax.random.key(0), variances, **settings)
    for known in (variances, jnp.asarray(variances)):
        drawn = jax.jit(lambda key, known=known: sampling.feature_subspaces(key, known, **settings))(jax.random.key(0))
        np.testing.assert_array_equal(drawn, plain)


def test_a_bootstrap_holds_63_percent_of_the_rows():
    rows = np.asarray(sampling.bootstrap(KEY, num_members=200, num_rows=100))
    assert rows.shape == (200, 100)
    assert set(np.unique(rows)) == set(range(100))
    different = np.array([len(set(row)) for row in rows]) / 100
    # 1 - (1 - 1/100)^100 = .634; the share of one draw has a standard deviation of .031.
    assert abs(different.mean() - (1 - 0.99**100)) < 5 * 0.031 / np.sqrt(200)
    assert sampling.bootstrap(KEY, num_members=3, num_rows=10, bag_size=4).shape == (3, 4)
    with pytest.raises(ValueError, match="bag_size must be at least 1"):
        sampling.bootstrap(KEY, num_members=3, num_rows=10, bag_size=0)
