"""Weights of images: a precision for each, through statistics, E-step, likelihood, M-step and moment start."""

import functools

import jax
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.data import stream
from jaxface.joint_bayes import (
    add,
    change_basis,
    collect,
    collect_stream,
    fit,
    init,
    log_likelihood,
    merge,
    pool,
    posterior,
    recenter,
    zero,
)
from jaxface.joint_bayes.em import m_step
from jaxface.joint_bayes.stats import by_person, group_by_count, grouped
from tests.joint_bayes import draws
from tests.reference import quality_reference as reference
from tests.tolerances import assert_close

PEOPLE = len(draws.COUNTS)


@functools.partial(jax.jit, static_argnames="num_people")
def collected(x, ids, shift, weights, *, num_people=PEOPLE):
    return collect(x, ids, num_people=num_people, shift=shift, weights=weights)


def weights_of(rng, *, zeros=True):
    """A list of weights for the people of `draws.COUNTS`: two digits of range, and some zeros."""
    weights = [np.exp(rng.normal(size=m)) for m in draws.COUNTS]
    if zeros:
        weights[0][:] = 0  # a person without images
        weights[6][1] = weights[12][2] = 0
    return weights


def padded(groups, weights):
    """Images, ids and weights in the one shape of this module."""
    x, ids = draws.stacked(groups)
    missing = 32 - len(x)
    return (
        np.concatenate([x, np.full((missing, x.shape[1]), 7.0)]),
        np.concatenate([ids, np.full(missing, -1, np.int32)]),
        np.concatenate([*weights, np.full(missing, 3.0)]),
    )


def stats_of(groups, weights, shift=None):
    x, ids, q = padded(groups, weights)
    return collected(x, ids, np.zeros(x.shape[1]) if shift is None else shift, q)


def drawn(rng, rank=None, *, zeros=True):
    model = draws.joint_bayes(rng, rank=rank)
    weights = weights_of(rng, zeros=zeros)
    people = []
    for images, q in zip(draws.people(rng, model), weights, strict=True):
        people.append(
            np.asarray(model.mean) + (images - np.asarray(model.mean)) / np.sqrt(np.where(q > 0, q, 1))[:, None]
        )
    return model, people, weights


@pytest.mark.parametrize("rank", [None, 1])
def test_the_e_step_and_the_likelihood_are_those_of_dense_gaussians(rank, rng):
    """With images of weight 0, people without images, a shift off the mean, and a T_mu that lacks directions."""
    model, people, weights = drawn(rng, rank)
    stats = stats_of(people, weights, rng.normal(size=3))
    identity, noise, n, k = reference.e_step(model, people, weights)
    expected = reference.log_likelihood(model, people, weights)
    for rows in (by_person(stats), group_by_count(stats)):
        moments, value = posterior.full(model, rows)
        assert_close((moments.identity, moments.noise), (identity, noise), factor=10)
        assert (int(moments.num_people), int(moments.num_images)) == (n, k)
        assert_close(value, expected, factor=10)
    assert_close(log_likelihood(model, stats), expected, factor=10)
    fitted = m_step(moments, None, 0.0)
    assert_close((fitted.identity_cov, fitted.noise_cov), (identity / n, noise / k), factor=10)


def test_people_of_equal_sums_of_weights_share_rows(rng):
    """Weights of two values: the sums of many people are equal, and their fewer rows have the dense moments."""
    model, people, _ = drawn(rng)
    weights = [rng.choice([0.25, 0.5], size=m) for m in draws.COUNTS]
    rows = group_by_count(stats_of(people, weights, rng.normal(size=3)))
    assert len(rows.rows) < PEOPLE
    moments, value = posterior.full(model, rows)
    identity, noise, *_ = reference.e_step(model, people, weights)
    assert_close((moments.identity, moments.noise), (identity, noise))
    assert_close(value, reference.log_likelihood(model, people, weights))


def test_weights_of_one_are_no_weights_to_the_last_bit(rng):
    model = draws.joint_bayes(rng)
    people = draws.people(rng, model)
    plain, ones = draws.stats(people, np.zeros(3)), stats_of(people, [np.ones(m) for m in draws.COUNTS])
    for with_ones, without in zip(ones[:4], plain[:4], strict=True):
        np.testing.assert_array_equal(with_ones, without)
    np.testing.assert_array_equal(ones.num_images, plain.count)
    found, expected = (fit(s, model, num_iters=draws.NUM_ITERS) for s in (ones, plain))
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    assert_close(draws.start(ones), draws.start(plain))


def test_a_weight_of_two_is_no_two_images_where_images_are_counted(rng):
    """The same posterior and sums; another likelihood, by a known amount, and another divisor of T_eps."""
    model = draws.joint_bayes(rng)
    people = draws.people(rng, model)
    weights = [rng.integers(1, 4, size=m).astype(float) for m in draws.COUNTS]
    weighted = stats_of(people, weights)
    repeated_people = [np.repeat(x, q.astype(int), axis=0) for x, q in zip(people, weights, strict=True)]
    x, ids = draws.stacked(repeated_people)
    repeated = collect(x, ids, num_people=PEOPLE, shift=np.zeros(3))
    (one, value), (other, of_repeated) = (posterior.full(model, by_person(s)) for s in (weighted, repeated))
    assert_close((one.identity, one.noise), (other.identity, other.noise), factor=10)
    k, log_weight, total = sum(draws.COUNTS), float(weighted.log_weight), sum(q.sum() for q in weights)
    assert int(one.num_images) == k
    assert int(other.num_images) == total > k
    log_det = np.linalg.slogdet(np.asarray(model.noise_cov))[1]
    difference = (3 * log_weight + (total - k) * (3 * np.log(2 * np.pi) + log_det)) / 2
    assert_close(value - of_repeated, difference, factor=100)
    assert_close(m_step(one, None, 0.0).noise_cov * k, m_step(other, None, 0.0).noise_cov * total, factor=10)


def test_a_vanishing_weight_is_no_image_but_for_the_likelihood(rng):
    model, people, weights = drawn(rng, zeros=False)
    for q in (1e-9, 0.0):
        weights[12][2] = q
        stats = stats_of(people, weights)
        value = posterior.full(model, by_person(stats))[1]
        mean, _ = posterior.identity(model, stats.sum[12], stats.count[12])
        if q:
            near, near_value = mean, value
    np.testing.assert_allclose(near, mean, atol=1e-7)
    far = -np.linalg.slogdet(2 * np.pi * np.asarray(model.noise_cov))[1] / 2 + 3 / 2 * np.log(1e-9)
    np.testing.assert_allclose(near_value - value, far, atol=1e-5)


def test_more_different_weights_than_are_worth_a_group(rng):
    """300 people with a weight each: the likelihood is taken in blocks, and its statistics keep a row a person."""
    model, q = draws.joint_bayes(rng, d=2), rng.uniform(0.1, 5, size=300)
    x = rng.normal(size=(300, 2))
    stats = collect(x, np.arange(300), num_people=300, shift=np.zeros(2), weights=q)
    assert len(grouped(stats).rows) == 300
    covs = np.asarray(model.identity_cov) + np.asarray(model.noise_cov) / q[:, None, None]
    away = x - np.asarray(model.mean)
    distances = np.einsum("nd,nde,ne->n", away, np.linalg.inv(covs), away)
    expected = -(distances + np.linalg.slogdet(2 * np.pi * covs)[1]).sum() / 2
    assert_close(log_likelihood(model, stats), expected, factor=10)
    assert_close(posterior.full(model, grouped(stats))[1], expected, factor=10)


def test_weighted_statistics_add(rng):
    """Blocks, also with a person in both; a block without weights counts one each; a stream; other bases."""
    model, people, weights = drawn(rng)
    x, ids, q = padded(people, weights)
    shift = rng.normal(size=3)
    whole = collected(x, ids, shift, q)
    halves = [collected(x, np.where(np.arange(32) % 2 == part, ids, -1).astype(np.int32), shift, q) for part in (0, 1)]
    assert_close(merge(*halves), whole)
    in_steps = zero(shift, num_people=PEOPLE, weighted=True)
    for start in (0, 16):
        in_steps = add(in_steps, x[start : start + 16], ids[start : start + 16], weights=q[start : start + 16])
    assert_close(in_steps, whole)
    source = stream.from_array(x)._replace(ids=ids)
    assert_close(collect_stream(source, num_people=PEOPLE, batch_size=9, shift=shift, weights=q), whole)
    plain, ones = (collected(x, ids, shift, each) for each in (None, np.ones(32)))
    assert plain.num_images is None
    for one, other in ((merge(whole, plain), merge(whole, ones)), (pool(plain, whole), pool(ones, whole))):
        assert_close(one, other)
    assert_close(add(plain, x, ids, weights=q), merge(plain, whole))
    assert_close(add(whole, x, ids), merge(whole, plain))
    moved = change_basis(recenter(whole), np.eye(3), np.zeros(3))
    assert_close(log_likelihood(model, moved), log_likelihood(model, whole), factor=100)
    assert {
        leaf.dtype for leaf in jax.tree.leaves(collected(*(a.astype("f4") for a in (x,)), ids, shift.astype("f4"), q))
    } == {np.dtype("float32")}


def test_the_likelihood_is_differentiable_in_weights(rng):
    """Against differences of the dense likelihood; a row that is left out has the gradient 0."""
    model, people, weights = drawn(rng)
    x, ids, q = padded(people, weights)
    slope = jax.grad(lambda q: log_likelihood(model, collected(x, ids, np.zeros(3), q)))(q)
    assert not slope[(q == 0) | (ids < 0)].any()
    for row in np.flatnonzero((q > 0) & (ids >= 0))[[0, 5, -1]]:
        ends = []
        for step in (1e-5, -1e-5):
            moved = q.copy()
            moved[row] += step
            ends.append(reference.log_likelihood(model, people, np.split(moved[:25], np.cumsum(draws.COUNTS)[:-1])))
        np.testing.assert_allclose(slope[row], (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("e_step", [posterior.full, posterior.expanded])
def test_a_person_without_images_has_no_slope(e_step, rng):
    """Of the likelihood of an E-step by a person's sum of weights; the other slopes are those of differences."""
    model, people, weights = drawn(rng)
    rows = by_person(stats_of(people, weights))

    def likelihood(counts):
        return e_step(model, rows._replace(row_count=counts))[1]

    slope = jax.grad(likelihood)(rows.row_count)
    assert rows.row_count[0] == 0
    assert slope[0] == 0
    for place in (1, 3):
        step = np.zeros(len(slope))
        step[place] = 1e-5
        difference = (likelihood(rows.row_count + step) - likelihood(rows.row_count - step)) / 2e-5
        np.testing.assert_allclose(slope[place], difference, rtol=1e-5, atol=1e-6)


BAD_WEIGHTS = {
    "negative": (-1.0, r"weights must lie in \[0, inf\); got 1 values outside, the first -1.0"),
    "NaN": (np.nan, r"weights must lie in \[0, inf\); got 1 values outside, the first nan"),
    "infinite": (np.inf, r"weights must lie in \[0, inf\); got 1 values outside, the first inf"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_weights_that_are_no_precisions(case, rng):
    value, message = BAD_WEIGHTS[case]
    x, ids, q = padded(*drawn(rng)[1:])
    q[3] = value
    with pytest.raises(ValueError, match=message):
        collect(x, ids, num_people=PEOPLE, shift=np.zeros(3), weights=q)
    with pytest.raises(ValueError, match=message):
        collect_stream(stream.from_array(x)._replace(ids=ids), num_people=PEOPLE, batch_size=9, weights=q)
    stats = collected(x, ids, np.zeros(3), q)
    with pytest.raises(ValueError, match=r"the count of stats must lie in \[0, inf\)"):
        init(stats)


@jax.jit
def fitted_inside(x, ids, q):
    """The status of a fit, and the likelihood of its start."""
    stats = collect(x, ids, num_people=PEOPLE, shift=np.zeros(3), weights=q)
    start = init(stats)
    return fit(stats, start, num_iters=1)[1].status, log_likelihood(start, stats)


def test_under_jit_such_weights_give_nan_and_a_failing_status(rng):
    x, ids, q = padded(*drawn(rng)[1:])
    status, value = fitted_inside(x, ids, q)
    assert int(status) == Status.OK
    assert np.isfinite(value)
    for wrong, _ in BAD_WEIGHTS.values():
        q[3] = wrong
        status, value = fitted_inside(x, ids, q)
        assert int(status) == Status.NON_FINITE
        assert np.isnan(value)


def test_weights_of_another_shape_or_type(rng):
    x, ids, q = padded(*drawn(rng)[1:])
    for weights, message in (
        (q[:-1], r"weights must have shape \[n\] with n = 32; got shape \(31,\)"),
        (q[:, None], r"weights must have shape \[n\]; got shape \(32, 1\)"),
        (q.astype(np.float16), "weights must be a floating point array of 32 or 64 bits"),
    ):
        with pytest.raises(ValueError, match=message):
            collect(x, ids, num_people=PEOPLE, shift=np.zeros(3), weights=weights)
    stats = stats_of(*drawn(rng)[1:])
    with pytest.raises(ValueError, match="the num_images of stats must hold numbers of images"):
        fit(stats._replace(num_images=stats.count), draws.joint_bayes(rng), num_iters=1)
    whole = collect(x, ids, num_people=PEOPLE, shift=np.zeros(3), weights=np.ones(32, int))  # integers are numbers
    assert whole.count.dtype == np.float64
