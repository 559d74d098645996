"""Fits of images with weights: the unit, PX-EM, priors, the moment start, and what determines a model."""

import jax
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.joint_bayes import (
    JointBayes,
    collect,
    fit,
    fit_low_rank,
    fit_path,
    init,
    leave_one_out,
    log_likelihood,
    penalized_objective,
    posterior,
)
from jaxface.linalg.class_stats import within_covariance
from tests.joint_bayes import draws
from tests.joint_bayes.test_counts import PEOPLE, drawn, stats_of, weights_of
from tests.reference import joint_bayes_reference as unweighted_reference
from tests.reference import quality_reference as reference
from tests.tolerances import assert_close


def test_the_unit_of_the_weights_is_that_of_the_noise(rng):
    """(c q, c T_eps) is the same model: the same likelihood, and the same fit in the other unit."""
    model, people, weights = drawn(rng)
    scaled_model = JointBayes(mean=model.mean, identity_cov=model.identity_cov, noise_cov=50 * model.noise_cov)
    stats, scaled = stats_of(people, weights), stats_of(people, [50 * q for q in weights])
    assert_close(log_likelihood(scaled_model, scaled), log_likelihood(model, stats), factor=10)
    (one, info), (other, info_scaled) = (fit(s, draws.start(s), num_iters=draws.NUM_ITERS) for s in (stats, scaled))
    assert_close((other.identity_cov, other.noise_cov), (one.identity_cov, 50 * one.noise_cov), factor=100)
    assert_close(info_scaled.objective, info.objective, factor=100)
    assert int(info.status) == Status.OK
    assert (np.diff(info.objective) > -1e-9).all()


def test_px_em_rises_faster_and_its_low_rank_form_of_full_rank_is_the_same(rng):
    _, people, weights = drawn(rng)
    stats = stats_of(people, weights)
    start = draws.start(stats)
    slow, _ = fit(stats, start, num_iters=draws.NUM_ITERS)
    fast, info = fit(stats, start, num_iters=draws.NUM_ITERS, e_step=posterior.expanded)
    assert (np.diff(info.objective) > -1e-9).all()
    assert reference.log_likelihood(fast, people, weights) > reference.log_likelihood(slow, people, weights)
    low, info_low = fit_low_rank(stats, start, rank=3, num_iters=draws.NUM_ITERS)
    np.testing.assert_allclose(low.noise_cov, fast.noise_cov, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(info_low.objective[5], info.objective[5], rtol=1e-9)


def test_the_prior_counts_images_and_not_weights(rng):
    model, people, weights = drawn(rng)
    prior = draws.joint_bayes(rng)
    stats = stats_of(people, weights)
    n, k = reference.e_step(model, people, weights)[2:]
    divergence = n * unweighted_reference.divergence(prior.identity_cov, model.identity_cov)
    divergence += k * unweighted_reference.divergence(prior.noise_cov, model.noise_cov)
    expected = 0.7 * reference.log_likelihood(model, people, weights) - 0.3 * divergence
    assert_close(penalized_objective(model, stats, prior, 0.3), expected, factor=10)
    path, info = fit_path(stats, model, prior, np.array([0.3, 1.0]), num_iters=6)
    assert_close(info.objective[0, 0], expected, factor=10)
    assert (np.diff(info.objective[0]) > -1e-9).all()
    np.testing.assert_array_equal(path.noise_cov[1], prior.noise_cov)


def test_the_moment_start_is_unbiased(rng):
    """Over 600 sets with the same weights; T_mu is far from zero, so that no eigenvalue is cut off."""
    identity, noise = draws.spd(rng) + 4 * np.eye(3), draws.spd(rng)
    weights = np.concatenate(weights_of(rng, zeros=False))
    ids = np.repeat(np.arange(PEOPLE, dtype=np.int32), draws.COUNTS)
    mu = rng.multivariate_normal(np.zeros(3), identity, size=(600, PEOPLE))[:, ids]
    x = mu + rng.multivariate_normal(np.zeros(3), noise, size=(600, len(ids))) / np.sqrt(weights)[None, :, None]

    @jax.jit
    @jax.vmap
    def start(x):
        stats = collect(x, ids, num_people=PEOPLE, shift=np.zeros(3), weights=weights)
        return init(stats, ridge=1e-9), within_covariance(stats)

    found, within = start(x)
    assert_close(found.mean, np.einsum("n,snd->sd", weights, x) / weights.sum())
    for values, truth in ((found.identity_cov, identity), (found.noise_cov, noise), (within, noise)):
        error = np.asarray(values).mean(axis=0) - truth
        assert np.abs(error / (np.asarray(values).std(axis=0) / np.sqrt(600))).max() < 4


def test_one_image_a_person_is_enough_if_weights_differ():
    """T_mu + T_eps / q for two values of q is two equations; with equal weights it is one."""
    rng = np.random.default_rng(0)
    q = np.where(np.arange(4000) % 2, 10.0, 0.1)
    identity, noise = np.diag([2.0, 1.0]), np.diag([1.0, 0.5])
    x = rng.multivariate_normal(np.zeros(2), identity, 4000)
    x += rng.multivariate_normal(np.zeros(2), noise, 4000) / np.sqrt(q)[:, None]
    several, equal = (
        collect(x, np.arange(4000), num_people=4000, shift=np.zeros(2), weights=each)
        for each in (q, np.full(4000, 0.3))
    )
    model, info = fit(several, init(several), num_iters=200)
    assert int(info.status) == Status.OK
    np.testing.assert_allclose(model.identity_cov, identity, atol=0.04 * 2)
    np.testing.assert_allclose(model.noise_cov, noise, atol=0.06)
    assert int(fit(equal, init(equal), num_iters=200)[1].status) == Status.UNIDENTIFIED


def test_images_of_a_person_without_spread_are_rank_deficient_with_weights_too(rng):
    flat = [np.concatenate([x[:, :2], np.zeros((len(x), 1))], axis=1) for x in drawn(rng)[1]]
    stats = stats_of(flat, weights_of(rng))
    assert int(fit(stats, draws.joint_bayes(rng), num_iters=draws.NUM_ITERS)[1].status) == Status.RANK_DEFICIENT


def test_leave_one_out_takes_weights(rng):
    """Each person left out, dense EM on the others about their weighted mean; with w = 1 it keeps the source."""
    x, ids = rng.normal(size=(12, 3)), np.repeat(np.arange(4, dtype=np.int32), 3)
    prior, q = draws.joint_bayes(rng), np.append(rng.uniform(0.1, 3, size=11), 0)
    prior_weights, expected = np.array([0.5, 1.0]), np.zeros(2)
    for place, w in enumerate(prior_weights):
        for person in range(4):
            own, others = ids == person, [ids == other for other in range(4) if other != person]
            mean = q[~own] @ x[~own] / q[~own].sum()
            model = JointBayes(mean=mean, identity_cov=prior.identity_cov, noise_cov=prior.noise_cov)
            for _ in range(2):
                identity, noise, n, k = reference.e_step(model, [x[o] for o in others], [q[o] for o in others])
                identity, noise = (1 - w) * identity / n, (1 - w) * noise / k
                model = JointBayes(
                    mean=mean, identity_cov=w * prior.identity_cov + identity, noise_cov=w * prior.noise_cov + noise
                )
            expected[place] += reference.log_likelihood(model, [x[own]], [q[own]])
    found, _ = leave_one_out(x, ids, prior, prior_weights, num_people=4, num_iters=2, weights=q)
    assert_close(found, expected)
    with pytest.raises(ValueError, match="weights must lie in"):
        leave_one_out(x, ids, prior, prior_weights, num_people=4, num_iters=2, weights=-q)


def test_large_weights_are_no_directions(rng):
    """Two people with two images in three dimensions: K - n = 2, whatever the weights add up to."""
    _, people, weights = drawn(rng)
    few = [np.full(len(q), 50.0 * (person in (5, 6))) for person, q in enumerate(weights)]
    _, info = fit(stats_of(people, few), draws.joint_bayes(rng), num_iters=draws.NUM_ITERS)
    assert int(info.status) == Status.RANK_DEFICIENT
    small = stats_of(people, [0.01 * q for q in weights])
    _, info = fit(small, draws.start(small), num_iters=draws.NUM_ITERS)
    assert int(info.status) == Status.OK
