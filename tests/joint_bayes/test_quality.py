"""Bins of quality: their statistics are those of any weights; the exponent and free weights are found again."""

from functools import partial

import jax
import numpy as np
import pytest

from jaxface import metrics
from jaxface.core.fitinfo import Status
from jaxface.joint_bayes import JointBayes, ScoringBasis, collect, init, quality, set_llr
from jaxface.joint_bayes.quality import WeightedModel, ecm_step, noise_of_bins
from tests import by_numpy
from tests.joint_bayes import draws
from tests.reference import quality_reference as reference
from tests.tolerances import assert_close

PEOPLE, N, D, BINS = 200, 800, 3, 3
TRUTH = np.array([0.2, 1.0, 4.0])


@pytest.fixture(scope="module")
def made():
    """Images of a known model, in bins of known weights."""
    rng = np.random.default_rng(0)
    ids, bins = np.repeat(np.arange(PEOPLE, dtype=np.int32), N // PEOPLE), rng.integers(0, BINS, size=N)
    identity, noise = draws.spd(rng) + np.eye(D), draws.spd(rng)
    eps = rng.multivariate_normal(np.zeros(D), noise, N) / np.sqrt(TRUTH[bins])[:, None]
    return rng.multivariate_normal(np.zeros(D), identity, PEOPLE)[ids] + eps, ids, bins


@pytest.fixture(scope="module")
def stats(made):
    x, ids, bins = made
    return quality.collect_bins(x, ids, bins, num_people=PEOPLE, num_bins=BINS, shift=np.full(D, 0.3))


def test_bins_hold_equal_numbers_of_images(rng):
    u = rng.permutation(np.arange(40.0))
    edges = quality.bin_edges(u, num_bins=4)
    bins = quality.bins_of(u, edges)
    assert bins.dtype == np.int32
    np.testing.assert_array_equal(np.bincount(bins), [10, 10, 10, 10])
    assert (np.diff(u[np.argsort(bins, kind="stable")].reshape(4, 10).mean(axis=1)) > 0).all()
    np.testing.assert_allclose(quality.bin_means(u, bins, num_bins=4), [4.5, 14.5, 24.5, 34.5])
    np.testing.assert_array_equal(quality.bins_of(np.array([-1e9, edges[0], 1e9]), edges), [0, 1, 3])
    tied = quality.bins_of(np.ones(8), quality.bin_edges(np.ones(8), num_bins=4))
    assert len(set(tied)) == 1  # equal qualities are in one bin
    np.testing.assert_array_equal(quality.bin_means(np.ones(8), tied, num_bins=4), np.ones(4))


@pytest.mark.parametrize("weights", [TRUTH, [0.0, 1.0, 3.0], [1.0, 1.0, 1.0]], ids=["all", "one left out", "ones"])
def test_statistics_of_bins_are_those_of_any_weights(weights, made, stats):
    x, ids, bins = made
    weights = np.asarray(weights)
    direct = collect(x, ids, num_people=PEOPLE, shift=np.full(D, 0.3), weights=weights[bins])
    assert_close(quality.weighted(stats, weights), direct, factor=10)


def test_bins_of_weighted_images(made):
    """The weight of a bin multiplies those of its images."""
    x, ids, bins = made
    own = np.where(np.arange(N) % 5 == 0, 0.0, 0.5)
    parts = [
        collect(x, np.where(bins == b, ids, -1), num_people=PEOPLE, shift=np.zeros(D), weights=own) for b in range(BINS)
    ]
    found = quality.weighted(jax.tree.map(lambda *leaves: np.stack(leaves), *parts), TRUTH)
    assert_close(found, collect(x, ids, num_people=PEOPLE, shift=np.zeros(D), weights=own * TRUTH[bins]), factor=10)


def test_an_ecm_step_is_that_of_dense_gaussians(rng):
    """R_b by conditioning, image by image, then (1 / K) sum q R, then n d / tr; the product is one up to the scale."""
    model = draws.joint_bayes(rng)
    people = draws.people(rng, model)
    x, ids = draws.stacked(people)
    bins, weights = rng.integers(0, BINS, size=len(x)), np.array([0.5, 1.0, 3.0])
    mean = np.asarray(model.mean)
    expected = np.zeros((BINS, D, D))
    for i, images in enumerate(people):
        of_person = bins[ids == i]
        mu, cov = reference.posterior(model, images, reference.by_weights(weights[of_person]))
        for image, b in zip(images, of_person, strict=True):
            expected[b] += np.outer(image - mean - mu, image - mean - mu) + cov
    stats = quality.collect_bins(x, ids, bins, num_people=len(people), num_bins=BINS, shift=mean)
    assert_close(noise_of_bins(model, weights, stats), expected, factor=10)
    found, value, _ = ecm_step(WeightedModel(model, weights), stats, floor=1e-6)
    by_person = np.split(weights[bins], np.cumsum(draws.COUNTS)[:-1])
    assert_close(value, reference.log_likelihood(model, people, by_person), factor=10)
    number = np.bincount(bins, minlength=BINS)
    noise = np.einsum("b,bde->de", weights, expected) / len(x)
    free = number * D / np.trace(np.linalg.solve(noise, expected), axis1=1, axis2=2)
    unit = np.exp(number @ np.log(free) / len(x))
    assert_close((found.weights, found.model.noise_cov), (free / unit, noise / unit), factor=100)


def test_free_weights_are_found_again(stats):
    start = init(quality.weighted(stats, np.ones(BINS)))
    (model, weights), info = quality.fit_weights(stats, start, num_iters=60)
    assert int(info.status) == Status.OK
    assert (np.diff(info.objective) > -1e-9).all()
    np.testing.assert_allclose(weights / weights[1], TRUTH / TRUTH[1], rtol=0.25)
    number = np.asarray(stats.count.sum(axis=1))
    assert_close(number @ np.log(weights), 0.0, factor=10)
    assert_close(model.mean, start.mean)


def test_an_empty_bin_and_a_fit_that_cannot_be(stats):
    """The empty bin keeps the weight 1 and changes nothing for the others."""
    emptied = jax.tree.map(lambda leaf: leaf.at[0].set(0), stats._replace(shift=stats.shift - stats.shift))
    emptied = emptied._replace(shift=stats.shift)
    start = init(quality.weighted(emptied, np.ones(BINS)))
    fitted, info = quality.fit_weights(emptied, start, num_iters=60)
    assert int(info.status) == Status.OK
    assert float(fitted.weights[0]) == 1
    assert float(fitted.weights[2] / fitted.weights[1]) > 2
    flat = stats._replace(
        sum=stats.sum.at[:, :, 2].set(0), second_moment=stats.second_moment.at[:, 2].set(0).at[:, :, 2].set(0)
    )
    flat = flat._replace(shift=flat.shift.at[:, 2].set(0))
    assert int(quality.fit_weights(flat, start, num_iters=60)[1].status) == Status.RANK_DEFICIENT


def test_held_out_people_choose_the_exponent(made):
    x, ids, bins = made
    parts = [np.where((ids % 2 == part), ids, -1) for part in (0, 1)]
    train, held = (
        quality.collect_bins(x, p, bins, num_people=PEOPLE, num_bins=BINS, shift=np.full(D, 0.3)) for p in parts
    )
    alphas = np.array([0.0, 0.5, 1.0, 1.5])
    candidates = quality.exponents(train, np.log(TRUTH), alphas)
    assert_close(candidates[0], np.ones(BINS))
    assert_close(np.diff(np.log(candidates), axis=1), np.outer(alphas, np.diff(np.log(TRUTH))))
    number = np.asarray(train.count.sum(axis=1))
    assert_close(np.log(candidates) @ number, np.zeros(4), factor=10)
    choice, info = quality.fit_candidates(train, held, candidates, num_iters=5)
    assert int(choice.chosen) == 2
    assert_close(choice.weights, candidates[2])
    assert (info.status == Status.OK).all()
    odd = [x[ids == person] for person in range(1, PEOPLE, 2)]
    weights = [np.asarray(choice.weights)[bins[ids == person]] for person in range(1, PEOPLE, 2)]
    assert_close(choice.values[2], reference.log_likelihood(choice.model, odd, weights), factor=100)


def test_rounded_weights_lie_on_levels(rng):
    weights = np.append(np.exp(rng.uniform(np.log(0.1), np.log(10), size=199)), 0.0)
    found = np.asarray(quality.rounded(weights, num_levels=32))
    assert len(np.unique(found)) <= 33
    assert found[-1] == 0
    step = np.log(weights[:-1].max() / weights[:-1].min()) / 31
    assert np.abs(np.log(found[:-1] / weights[:-1])).max() <= step / 2 * (1 + 1e-9)
    np.testing.assert_allclose([found[:-1].min(), found.max()], [weights[:-1].min(), weights.max()], rtol=1e-12)
    for same in (np.full(200, 3.0), np.zeros(200)):
        np.testing.assert_allclose(quality.rounded(same), same, rtol=1e-12)


def test_how_much_rounded_weights_change_ratios(rng):
    """Images of different people, 20 directions, weights over two decades: the share of the ratios that changes."""
    n, values = 2000, rng.gamma(1.0, size=20)
    q = np.exp(rng.uniform(np.log(0.1), np.log(10), size=(2, n)))
    z = rng.normal(size=(2, n, 20)) * np.sqrt(values + 1 / q[:, :, None])
    sums, basis = q[:, :, None] * z, ScoringBasis(mean=np.zeros(20), vectors=np.eye(20), values=values)

    def ratios(first, second):
        scaled = [sums[0] * (first / q[0])[:, None], first, sums[1] * (second / q[1])[:, None], second]
        return by_numpy.evaluate(jax.vmap(partial(set_llr, basis)), *scaled)

    exact = ratios(*q)
    for num_levels, share_of_one, share_of_both in ((32, 0.03, 0.043), (64, 0.014, 0.021)):
        first, second = (np.asarray(quality.rounded(each, num_levels=num_levels)) for each in q)
        for found, share in ((ratios(q[0], second), share_of_one), (ratios(first, second), share_of_both)):
            assert np.sqrt(((found - exact) ** 2).mean() / (exact**2).mean()) == pytest.approx(share, rel=0.15)


def test_what_right_and_wrong_weights_are_worth(rng):
    """Pairs whose noise has a log-normal scale: the true weights are best, their inverse is worse than none."""
    n, same = 4000, np.arange(4000) < 2000
    q = np.exp(-1.2 * rng.normal(size=(2, n)))
    mu = rng.normal(size=(2, n, 20))
    mu[1, same] = mu[0, same]
    z = mu + rng.normal(size=(2, n, 20)) / np.sqrt(q)[:, :, None]
    basis = ScoringBasis(mean=np.zeros(20), vectors=np.eye(20), values=np.ones(20))

    def measured(weights):
        sets = weights[0][:, None] * z[0], weights[0], weights[1][:, None] * z[1], weights[1]
        found = by_numpy.evaluate(jax.vmap(partial(set_llr, basis)), *sets)
        return metrics.eer(metrics.roc(found, same)), metrics.cllr(found, same)

    right, root, square, inverse = (measured(q**power) for power in (1.0, 0.5, 2.0, -1.0))
    none = measured(np.full((2, n), np.exp(-0.72)))  # the mean noise of all
    assert right[0] < min(root[0], square[0], none[0] - 0.04)
    assert inverse[0] > none[0]
    assert right[1] < min(root[1], square[1], 0.6 * none[1])


BIN_OF = np.arange(9) % 3
ONE_PERSON = {"num_people": 1, "num_bins": 2, "shift": np.zeros(1)}


def test_errors(stats):
    ones, u = np.ones(BINS), np.arange(9.0)
    model = JointBayes(mean=np.zeros(2), identity_cov=np.eye(2), noise_cov=np.eye(2))
    for call, message in (
        (lambda: quality.bin_edges(u, num_bins=1), "num_bins must be at least 2; got 1"),
        (lambda: quality.bin_edges(u, num_bins=10), r"number of qualities must be at least 10 \(one for each bin\)"),
        (lambda: quality.bin_edges(np.append(u, np.nan)), "quality must be finite; 1 of 10 values are NaN"),
        (lambda: quality.bins_of(u, u[::-1]), "edges must not fall; bin_edges gives such edges"),
        (lambda: quality.bins_of(np.append(u, np.nan), u), "quality must be finite; 1 of 10 values are NaN"),
        (lambda: quality.bin_means(u, 1 + BIN_OF, num_bins=3), r"bins must be in \[0, 3\); got values from 1 to 3"),
        (lambda: quality.bin_means(u[:-1], BIN_OF, num_bins=3), r"bins must have shape \[n\] with n = 8"),
        (lambda: quality.weighted(stats, ones[:2]), r"weights must have shape \[b\] with b = 3; got shape \(2,\)"),
        (lambda: quality.weighted(stats, -ones), r"weights must lie in \[0, inf\); got 3 values outside"),
        (lambda: quality.exponents(stats, ones, np.array([np.inf])), "alphas must be finite"),
        (lambda: quality.rounded(ones, num_levels=1), "num_levels must be at least 2; got 1"),
        (lambda: quality.rounded(np.ones(3, int)), "weights must be a floating point array; got dtype int64"),
        (lambda: quality.fit_weights(stats, model, num_iters=1), r"mean must have shape \[d\] with d = 3; got shape"),
        (lambda: quality.collect_bins(u[:, None], 0 * BIN_OF, BIN_OF, **ONE_PERSON), r"bins must be in \[0, 2\); got"),
        (lambda: quality.fit_candidates(stats, stats, ones, num_iters=1), r"candidates must have shape \[p, b\]"),
        (lambda: quality.fit_candidates(stats, stats, -ones[None], num_iters=1), r"candidates must lie in \[0, inf\)"),
        (lambda: quality.fit_candidates(stats, stats, ones[None], num_iters=1, floor=0.0), "floor must lie in"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()
