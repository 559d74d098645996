import functools

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxface.core.fitinfo import Status
from jaxface.ensembles import RULES, fusion
from tests.ensembles import draws
from tests.reference import ensembles_reference as reference
from tests.tolerances import assert_close

NORMALISED = [name for name in RULES if name != "vote"]


def logs(*members):
    """Log posteriors `[m, 1, c]` of one probe."""
    with np.errstate(divide="ignore"):
        return jnp.log(jnp.asarray(members))[:, None, :]


def test_rules_equal_the_loop(rng):
    log_p = draws.posteriors(rng)
    for name in NORMALISED:
        assert_close(np.exp(RULES[name](log_p)), reference.fuse(np.exp(log_p), name), factor=10)
    np.testing.assert_array_equal(fusion.predict(fusion.vote(log_p)), reference.fuse(np.exp(log_p), "vote").argmax(1))


THREE = [[0.6, 0.3, 0.1], [0.1, 0.5, 0.4], [0.5, 0.4, 0.1]]
BY_HAND = {  # of THREE
    "sum": [0.4, 0.4, 0.2],
    "product": np.array([0.030, 0.060, 0.004]) / 0.094,
    "min": [0.1 / 0.5, 0.3 / 0.5, 0.1 / 0.5],
    "max": [0.6 / 1.5, 0.5 / 1.5, 0.4 / 1.5],
    "median": [0.5, 0.4, 0.1],
}


@pytest.mark.parametrize("name", NORMALISED)
def test_by_hand(name):
    assert_close(np.exp(RULES[name](logs(*THREE)))[0], np.asarray(BY_HAND[name]), factor=10)


def test_median_of_an_even_number_is_the_mean_of_the_middle_two():
    found = np.exp(fusion.median(logs([0.8, 0.2], [0.5, 0.5], [0.3, 0.7], [0.1, 0.9])))
    assert_close(found[0], np.array([0.4, 0.6]))


@pytest.mark.parametrize(
    ("members", "winner"),
    [
        ([[0.9, 0.1, 0.0], [0.4, 0.6, 0.0], [0.4, 0.6, 0.0]], 1),  # two votes beat one, though the sum says 0
        ([[0.9, 0.1, 0.0], [0.4, 0.6, 0.0]], 0),  # one vote each: the sum decides
        ([[0.6, 0.4, 0.0], [0.1, 0.9, 0.0]], 1),
        ([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]], 0),  # the sums are equal too: the lowest label
        ([[0.0, 0.25, 0.75], [0.0, 0.75, 0.25]], 1),
        ([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]], 0),  # equal posteriors: a member votes for the lowest label
        ([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.35, 0.2, 0.45]], 0),  # three votes for three: 1.05, 0.9, 1.05
    ],
)
def test_votes_by_hand(members, winner):
    assert int(fusion.predict(fusion.vote(logs(*members)))[0]) == winner


def test_a_sum_never_outweighs_a_vote():
    """Twenty members: 6 votes with certainty against 7 with little and 7 others with none."""
    members = [[1.0, 0.0, 0.0]] * 6 + [[0.33, 0.34, 0.33]] * 7 + [[0.4, 0.1, 0.5]] * 7
    scores = np.asarray(fusion.vote(logs(*members)))[0]
    assert scores[0] < scores[1] < scores[2]  # 7 votes each for the last two, and the sum prefers the third


def test_ties_of_hundreds_of_votes_are_settled_in_float32():
    """200 votes each, and a sum that prefers the second class by 1e-5: less than float32 keeps beside 200."""
    members = np.array([[0.9, 0.1]] * 200 + [[0.09999, 0.90001]] * 200, np.float32)
    assert int(fusion.predict(fusion.vote(jnp.log(members)[:, None]))[0]) == 1


def test_a_class_that_some_member_calls_impossible():
    """Bags with centres of their own people only: the case that centres of all images avoid."""
    members = logs([0.7, 0.3, 0.0], [0.0, 0.6, 0.4])
    expected = {"product": [0, 1, 0], "min": [0, 1, 0], "sum": [0.35, 0.45, 0.2], "max": np.array([7, 6, 4]) / 17}
    for name, value in expected.items():
        assert_close(np.exp(RULES[name](members))[0], np.asarray(value, float))


def test_no_class_is_left():
    nothing = logs([1.0, 0.0], [0.0, 1.0])
    for name in ("product", "min"):
        assert_close(np.exp(RULES[name](nothing))[0], np.array([0.5, 0.5]))
    assert int(fusion.predict(fusion.product(nothing))[0]) == 0


@pytest.mark.parametrize("name", RULES)
def test_nan_in_one_member_is_nan_in_the_answer(name):
    """Of the image it stands at and of no other; no rule may call that image's classes equal."""
    log_p = np.log(np.full((5, 2, 3), 1 / 3))
    log_p[4, 0, 1] = np.nan
    found = np.asarray(RULES[name](jnp.asarray(log_p)))
    assert np.isnan(found[0]).any()
    assert np.isfinite(found[1]).all()


def test_a_product_of_four_hundred_members_does_not_underflow():
    log_p = jnp.tile(jnp.log(jnp.array([[0.2, 0.3, 0.5]], jnp.float32)), (400, 1))[:, None]
    assert np.isfinite(fusion.product(log_p)).all()
    np.testing.assert_allclose(fusion.product(log_p)[0, 0], 400 * np.log(0.2 / 0.5), rtol=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    hnp.arrays(np.float64, (4, 3), elements=st.floats(-30, 30)),
    st.sampled_from(sorted(RULES)),
    st.permutations(range(4)),
    st.permutations(range(3)),
)
def test_the_order_of_members_and_classes_does_not_matter(logits, name, members, classes):
    log_p = np.asarray(fusion.normalize(logits))[:, None]
    fused = np.asarray(RULES[name](log_p))
    assert_close(RULES[name](log_p[members]), fused, factor=100)
    top = np.sort(log_p[:, 0], axis=1)  # logits that differ may tie once normalised
    if name != "vote" or (top[:, -1] > top[:, -2]).all():  # a tied member votes by label
        assert_close(RULES[name](log_p[:, :, classes]), fused[:, classes], factor=100)


def test_one_member_is_its_own_committee(rng):
    log_p = draws.posteriors(rng, (1, 6, 4))
    for name in NORMALISED:
        assert_close(RULES[name](log_p), log_p[0], factor=10)
    np.testing.assert_array_equal(fusion.predict(fusion.vote(log_p)), log_p[0].argmax(axis=1))


def test_weights_of_zero_one_and_equal(rng):
    log_p = draws.posteriors(rng)
    assert_close(fusion.weighted(log_p, np.eye(5)[2]), log_p[2], factor=10)
    assert_close(fusion.weighted(log_p, np.full(5, 0.2)), fusion.sum(log_p), factor=10)
    weights = np.array([0.1, 0.2, 0.3, 0.4, 0.0])
    expected = np.einsum("m,mnc->nc", weights, np.exp(log_p))
    assert_close(np.exp(fusion.weighted(log_p, weights)), expected, factor=10)


def test_learnt_weights_solve_the_problem(rng):
    """At the maximum the mean of P_t / P is 1 for members with weight and at most 1 for the others."""
    log_p = draws.posteriors(rng, (5, 200, 4))
    labels = rng.integers(0, 4, 200).astype(np.int32)
    log_p[1, np.arange(200), labels] += 1.5  # one member knows something
    log_p = np.asarray(fusion.normalize(log_p))
    weights, info = fusion.fit_weights(log_p, labels, num_iters=4000)
    weights = np.asarray(weights)
    assert_close(weights.sum(), 1.0)
    right = np.exp(log_p[:, np.arange(200), labels])
    ratio = (right / (weights @ right)).mean(axis=1)
    assert (ratio < 1 + 1e-4).all()
    np.testing.assert_allclose(ratio[weights > 1e-3], 1, atol=1e-4)
    assert (np.diff(info.objective) > -1e-12).all()
    assert_close(info.objective[0], np.log(right.mean(axis=0)).mean())
    best = np.log(weights @ right).mean()
    for other in np.random.default_rng(0).dirichlet(np.ones(5), 200):
        assert np.log(other @ right).mean() <= best + 1e-9


def test_learnt_weights_find_the_member_that_is_right():
    sure, blind = [0.98, 0.01, 0.01], [1 / 3, 1 / 3, 1 / 3]
    log_p = jnp.concatenate([logs(sure), logs(blind)])
    weights, info = fusion.fit_weights(log_p, np.array([0], np.int32), num_iters=200, tol=1e-9)
    assert int(info.status) == Status.OK
    assert int(info.num_iters) < 200
    np.testing.assert_allclose(weights, [1, 0], atol=1e-3)


def test_an_image_that_nobody_recognises_weighs_nothing():
    both = jnp.concatenate([logs([0.9, 0.1, 0.0], [0.2, 0.8, 0.0])] * 2, axis=1)
    known, _ = fusion.fit_weights(both[:, :1], np.array([0], np.int32), num_iters=400)
    weights, info = fusion.fit_weights(both, np.array([0, 2], np.int32), num_iters=400)
    assert np.isfinite(info.objective).all()
    np.testing.assert_allclose(weights, known, atol=1e-3)
    assert_close(info.objective[0], np.log(0.55))  # the mean over the image that counts, at equal weights
    weights, info = fusion.fit_weights(both[:, 1:], np.array([2], np.int32), num_iters=3)  # no image counts
    assert np.isfinite(info.objective).all()


def test_rules_take_any_axes_between(rng):
    log_p = draws.posteriors(rng, (3, 4, 2))
    for rule in (*RULES.values(), functools.partial(fusion.weighted, member_weights=np.full(3, 1 / 3))):
        assert_close(rule(log_p[:, 1]), rule(log_p)[1], factor=10)
