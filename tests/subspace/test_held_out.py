from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxface.linalg import gram
from jaxface.subspace import held_out, kernel_np_per, rca
from tests.reference import subspace_reference as reference
from tests.subspace import draws
from tests.tolerances import assert_close

# Eight small integers: their mean is exact, and so are the distances that decide a tie.
Z = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=8, max_size=8)
GROUPS = st.lists(st.integers(0, 3), min_size=8, max_size=8)


@settings(deadline=None, max_examples=30)
@given(Z, GROUPS)
def test_error_equals_the_loop_with_ties_against_us(z, groups):
    z, groups = np.array(z, float), np.array(groups, np.int32)
    if len(set(groups.tolist())) > 1 and np.bincount(groups).max() > 1:
        assert_close(held_out.group_error(z, groups), reference.group_error(z, groups))


def test_error_of_perfect_coinciding_and_broken_coordinates():
    groups = np.array([0, 0, 1, 1, 2], np.int32)
    apart = np.array([[0.0], [1], [10], [11], [20]])
    for z, expected in [(apart, 0.0), (np.zeros((5, 1)), 1.0), (np.where(apart == 20, np.nan, apart), np.nan)]:
        np.testing.assert_equal(float(held_out.group_error(z, groups)), expected)


def test_every_group_is_held_out_once_and_whole(rng):
    _, groups = draws.grouped(rng, (3, 1, 4, 2, 2, 5, 1))
    parts = held_out.folds(groups, num_folds=3, rng=rng)
    assert sorted(np.concatenate([part.test_rows for part in parts])) == list(range(18))
    for part in parts:
        assert sorted([*part.train_rows, *part.test_rows]) == list(range(18))
        assert not set(groups[part.train_rows]) & set(groups[part.test_rows])
        for rows, ids in [(part.train_rows, part.train_groups), (part.test_rows, part.test_groups)]:
            assert ids.dtype == np.int32
            assert set(ids) == set(range(len(set(groups[rows]))))
            assert len(set(zip(ids.tolist(), groups[rows].tolist(), strict=True))) == len(set(ids))


def test_folds_are_drawn(rng):
    groups = np.repeat(np.arange(20), 2)
    drawn = [held_out.folds(groups, num_folds=4, rng=np.random.default_rng(seed))[0].test_rows for seed in (0, 0, 1)]
    assert drawn[0].tolist() == drawn[1].tolist()
    assert drawn[0].tolist() != drawn[2].tolist()


def test_all_bandwidths_in_one_call_equal_the_loop(rng):
    x, groups = draws.grouped(rng, (2,) * 12, d=10)
    bandwidths = [4.0, 8.0, 1e12]
    found = held_out.errors(
        kernel_np_per.fit,
        gram.gaussian(bandwidth=jnp.array(bandwidths)),
        x,
        groups,
        num_folds=3,
        rng=np.random.default_rng(0),
    )
    for bandwidth, error in zip(bandwidths[:2], found[:2], strict=True):
        losses = []
        for part in held_out.folds(groups, num_folds=3, rng=np.random.default_rng(0)):
            kernel = gram.gaussian(bandwidth=bandwidth)
            fitted, _ = kernel_np_per.fit(kernel, x[part.train_rows], part.train_groups, num_groups=8)
            losses.append(reference.group_error(draws.mapped(fitted, x[part.test_rows]), part.test_groups))
        assert_close(error, np.mean(losses))
    assert found[2] == np.inf  # the Gram matrix is singular to rounding


def test_prefers_what_suppresses_the_variation_within_groups(rng):
    """Strong nuisance along ten directions that all people share: little ridge finds it, much leaves it."""
    nuisance = 20 * rng.normal(size=(10, 60))
    groups = np.repeat(np.arange(20, dtype=np.int32), 3)
    x = rng.normal(size=(20, 60))[groups] + 0.1 * rng.normal(size=(60, 60)) + rng.normal(size=(60, 10)) @ nuisance

    def fit(ridge, x, groups, *, num_groups):
        return rca.fit(x, groups, num_groups=num_groups, ridge=ridge)

    choose = partial(held_out.errors, fit, x=x, groups=groups, num_folds=4, rng=rng)
    small, large = choose(jnp.array([1e-4, 1e4]))
    assert small < 0.1
    assert large > 0.5


def test_scores_in_the_place_of_distances(rng):
    """Minus the squared distance orders images as distances do; a score of its own turns the choice around."""
    x, groups = draws.grouped(rng, (2,) * 12, d=10)
    fit = partial(held_out.errors, kernel_np_per.fit, gram.gaussian(bandwidth=jnp.array([4.0, 8.0])), x, groups)

    def nearness(fitted, gallery, probes):
        del fitted
        return -draws.squared(gallery, probes)

    def strangeness(fitted, gallery, probes):
        return -nearness(fitted, gallery, probes)

    plain, same, other = (
        fit(num_folds=3, rng=np.random.default_rng(0), score=score) for score in (None, nearness, strangeness)
    )
    assert_close(same, plain)
    assert (other > plain).all()


def test_messages(rng):
    groups = np.arange(6) // 2
    with pytest.raises(ValueError, match="num_folds must be at least 2; got 1"):
        held_out.folds(groups, num_folds=1, rng=rng)
    with pytest.raises(
        ValueError, match=r"num_folds must be at most 1 \(two groups must be held out together\); got 2"
    ):
        held_out.folds(groups, num_folds=2, rng=rng)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.repeat(np.arange(-1, 4), 4), r"groups must be in \[0, 20\); got values from -1 to 3"),
        (np.array([0, 0, 2, 2, 3, 3, 5, 5]), r"groups must use every id in \[0, 6\); got 4 of them"),
        (np.zeros(0, np.int32), "the number of rows must be at least 1; got 0"),
        (np.array(["a", "b"]), "groups must be an array of numbers"),
    ],
)
def test_groups_that_no_fit_would_take(groups, message, rng):
    with pytest.raises(ValueError, match=message):
        held_out.folds(groups, num_folds=2, rng=rng)
