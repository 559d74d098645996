"""PX-EM: a fit of low rank against dense regression and closed forms, and how soon both forms of PX-EM arrive."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status, all_finite
from jaxface.joint_bayes import (
    JointBayes,
    LowRankJointBayes,
    factors,
    fit,
    fit_factors,
    fit_low_rank,
    init_factors,
    leading_factors,
    llr,
    llr_matrix,
    posterior,
    scores,
    to_dense,
)
from jaxface.joint_bayes.stats import by_person, grouped
from tests.joint_bayes import draws
from tests.reference import joint_bayes_reference as reference
from tests.tolerances import assert_close

D, RANK = 4, 2
COUNTS = (1, 2, 3) * 20
NUM_ITERS = 200
# One program for each number of people: inside `jit` every person is a row, whatever the counts.
low_rank = jax.jit(partial(fit_low_rank, rank=RANK, num_iters=NUM_ITERS))
expanded = jax.jit(partial(fit, num_iters=NUM_ITERS, e_step=posterior.expanded))
plain = jax.jit(partial(fit, num_iters=NUM_ITERS))
factored = jax.jit(partial(fit_factors, num_iters=NUM_ITERS))
regressed = jax.jit(partial(fit_factors, num_iters=NUM_ITERS, expand=False))


@jax.jit
def one_step(stats, model):
    """The model after a step of PX-EM, the log-likelihood before, and the ridge."""
    data, state = factors.whitened(stats, model)
    new, objective = factors.update(state, data, floor=1e-6, expand=True)
    half = data.lower @ new.lower
    return data.lower @ new.root, half @ half.T, objective, new.jitter


def problem(rng, counts=COUNTS):
    """People of a model of low rank, their statistics, and a model of low rank with another range."""
    model, other = draws.joint_bayes(rng, D, RANK), draws.joint_bayes(rng, D, RANK)
    groups = draws.people(rng, model, counts)
    start = JointBayes(mean=model.mean, identity_cov=other.identity_cov, noise_cov=other.noise_cov)
    return model, groups, draws.stats(groups, model.mean), start


def full_rank(model):
    return JointBayes(mean=model.mean, identity_cov=jnp.eye(D), noise_cov=jnp.eye(D))


def of_rank(model):
    return leading_factors(model, rank=RANK)


def value(model, groups):
    return reference.log_likelihood(model, groups)


@pytest.mark.parametrize("form", [by_person, grouped])
def test_one_step_is_the_dense_regression(form, rng):
    _, groups, stats, start = problem(rng)
    root, noise_cov, objective, jitter = one_step(form(stats), of_rank(start))
    identity, noise = reference.expanded(start, groups)
    n, k = reference.counts(groups)
    assert_close((root @ root.T, noise_cov), (identity / n, noise / k), factor=0.1)
    assert_close(objective, np.asarray(value(start, groups)), factor=0.1)
    assert float(jitter) == 0


def test_only_px_em_turns_the_range(rng):
    model, groups, stats, start = problem(rng)
    found, info = low_rank(stats, start)
    assert int(info.status) == Status.OK
    assert np.diff(info.objective).min() > -1e-9
    assert np.linalg.matrix_rank(found.identity_cov, tol=1e-9) == RANK
    assert value(found, groups) > value(model, groups)
    assert_close(info.objective[-1], np.asarray(value(found, groups)))  # it has arrived
    stuck, _ = fit(stats, start, num_iters=30)
    outside = np.linalg.eigh(start.identity_cov)[1][:, : D - RANK]
    assert np.abs(stuck.identity_cov @ outside).max() < 1e-12
    assert value(found, groups) - value(stuck, groups) > 10


def test_balanced_people_reach_the_closed_form_of_the_rank(rng):
    model, groups, stats, start = problem(rng, (3,) * len(COUNTS))
    mean = np.asarray(model.mean)
    for rank, (found, _) in ((RANK, low_rank(stats, start)), (None, expanded(stats, full_rank(model)))):
        expected = reference.balanced_ml(groups, mean, rank=rank)
        assert_close((found.identity_cov, found.noise_cov), expected, factor=1e4)


def test_full_rank_is_the_expanded_e_step(rng):
    model, _, stats, _ = problem(rng)
    start = full_rank(model)
    with_factors = fit_low_rank(stats, start, rank=D, num_iters=3)
    assert_close(with_factors, fit(stats, start, num_iters=3, e_step=posterior.expanded), factor=1)


@pytest.mark.parametrize("fitted", [low_rank, expanded])
def test_any_linear_map_of_the_images_maps_the_fit(fitted, rng):
    model, groups, stats, start = problem(rng)
    start = start if fitted is low_rank else full_rank(model)
    a = rng.normal(size=(D, D))
    moved = JointBayes(
        mean=a @ start.mean, identity_cov=a @ start.identity_cov @ a.T, noise_cov=a @ start.noise_cov @ a.T
    )
    found, info = fitted(stats, start)
    mapped, mapped_info = fitted(draws.stats([images @ a.T for images in groups], moved.mean), moved)
    expected = (a @ found.identity_cov @ a.T, a @ found.noise_cov @ a.T)
    assert_close((mapped.identity_cov, mapped.noise_cov), expected, factor=1e4)
    shift = sum(COUNTS) * np.linalg.slogdet(a)[1]
    assert_close(mapped_info.objective + shift, info.objective, factor=1e4)


def test_scores_of_a_low_rank_model_need_no_more_than_its_rank(rng):
    _, _, stats, start = problem(rng)
    model, _ = low_rank(stats, start)
    x = rng.normal(size=(3, D))
    matrix = llr_matrix(scores.diagonalize(model, rank=RANK), x[:1], x[1:])
    expected = np.array([reference.llr(model, x[0], other) for other in x[1:]])
    assert_close(matrix[0], expected, factor=1)
    assert_close(llr(model, x[0], x[1]), expected[0], factor=1)


def test_both_forms_of_em_have_the_same_fixed_points(rng):
    model, groups, stats, _ = problem(rng)
    found, info = expanded(stats, full_rank(model))
    assert np.diff(info.objective).min() > -1e-9
    identity, noise = reference.e_step(found, groups, with_covariance=True)
    n, k = reference.counts(groups)
    assert_close((identity / n, noise / k), (found.identity_cov, found.noise_cov), factor=1e4)


def test_px_em_arrives_many_times_sooner(rng):
    """The likelihood wants eigenvalues of T_mu at zero, which EM approaches like 1 / t."""
    model, _, stats, _ = problem(rng)
    start = full_rank(model)
    slow, fast = (np.asarray(fitted(stats, start)[1].objective) for fitted in (plain, expanded))
    best = fast[-1]
    assert slow.max() < best - 0.01
    for nats in (0.1, 0.01):
        steps, few = (int((trace < best - nats).sum()) for trace in (slow, fast))
        assert few < steps / 5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_statuses_are_those_of_em(dtype, rng):
    model, groups, _, start = problem(rng)
    model, start = jax.tree.map(lambda leaf: leaf.astype(dtype), (model, start))
    alone = [images[:1] for images in groups]
    twins = [np.repeat(images[:1], 3, axis=0) for images in alone]
    for people, expected in (
        (groups, Status.OK),
        (alone, Status.UNIDENTIFIED),
        (twins, Status.RANK_DEFICIENT),
    ):
        stats = draws.stats([images.astype(dtype) for images in people], np.asarray(model.mean))
        for fitted in (low_rank, expanded):
            found, info = fitted(stats, start)
            assert int(info.status) == expected, fitted
            assert all_finite(found)
            assert found.identity_cov.dtype == info.objective.dtype == dtype
            assert (float(info.jitter) > 0) == (expected == Status.RANK_DEFICIENT)
    stats = draws.stats([images.astype(dtype) for images in groups], np.asarray(model.mean))
    _, info = low_rank(jax.tree.map(lambda leaf: leaf * jnp.nan if leaf.ndim == 2 else leaf, stats), start)
    assert int(info.status) == Status.NON_FINITE


def test_a_start_without_identity_stays_without(rng):
    """F = 0 is a saddle: the status is that of the data, and the noise takes everything."""
    _, groups, stats, start = problem(rng)
    start = JointBayes(mean=start.mean, identity_cov=jnp.zeros((D, D)), noise_cov=start.noise_cov)
    found, _ = low_rank(stats, start)
    images = np.concatenate(groups) - np.asarray(start.mean)
    assert_close(found.identity_cov, np.zeros((D, D)))
    assert_close(found.noise_cov, images.T @ images / len(images), factor=10)


def test_both_regressions_of_the_factors_rise_to_one_maximum(rng):
    """chol(K) is parameter expansion: without it the same maximum, later."""
    _, groups, stats, start = problem(rng)
    slow, fast = (fitted(stats, of_rank(start)) for fitted in (regressed, factored))
    for model, info in (slow, fast):
        assert int(info.status) == Status.OK
        assert np.diff(info.objective).min() > -1e-9
        assert_close(info.objective[0], np.asarray(value(to_dense(of_rank(start)), groups)), factor=10)
        assert model.root.shape == (D, RANK)
    best = fast[1].objective[-1]
    late, soon = (int((info.objective < best - 0.1).sum()) for _, info in (slow, fast))
    assert soon < late < NUM_ITERS
    dense = low_rank(stats, start)
    assert_close((to_dense(fast[0]), fast[1]), dense)


def closed_form(rng, rank):
    """People with three images each, their statistics, and the most likely model of a rank."""
    model, groups, stats, _ = problem(rng, (3,) * len(COUNTS))
    identity, noise = reference.balanced_ml(groups, np.asarray(model.mean), rank=rank)
    best = JointBayes(mean=model.mean, identity_cov=jnp.asarray(identity), noise_cov=jnp.asarray(noise))
    return groups, stats, best


@pytest.mark.parametrize("e_step", [posterior.full, posterior.expanded])
def test_the_closed_form_is_a_fixed_point_of_both_forms(e_step, rng):
    """Also where eigenvalues of T_mu are zero; to stay takes no steps, so the tolerance is that of rounding."""
    groups, stats, best = closed_form(rng, None)
    found, info = fit(stats, best, num_iters=1, e_step=e_step)
    assert_close((found.identity_cov, found.noise_cov), (best.identity_cov, best.noise_cov), factor=0.01)
    assert_close(info.objective[0], np.asarray(value(best, groups)), factor=0.01)


def test_the_closed_form_of_a_rank_is_a_fixed_point_and_what_a_fit_arrives_at(rng):
    groups, stats, best = closed_form(rng, RANK)
    root, noise_cov, objective, _ = one_step(by_person(stats), of_rank(best))
    assert_close((root @ root.T, noise_cov), (best.identity_cov, best.noise_cov), factor=0.01)
    top = value(best, groups)
    assert_close(objective, np.asarray(top), factor=0.01)
    other = draws.joint_bayes(rng, D, RANK)
    found, _ = low_rank(stats, JointBayes(mean=best.mean, identity_cov=other.identity_cov, noise_cov=best.noise_cov))
    assert top - 1e-6 < value(found, groups) <= top + 1e-9


def test_a_step_goes_along_with_any_linear_map(rng):
    _, groups, stats, start = problem(rng)
    a = rng.normal(size=(D, D))
    moved = JointBayes(
        mean=a @ start.mean, identity_cov=a @ start.identity_cov @ a.T, noise_cov=a @ start.noise_cov @ a.T
    )
    root, noise_cov, objective, _ = one_step(by_person(stats), of_rank(start))
    there = by_person(draws.stats([images @ a.T for images in groups], moved.mean))
    mapped, mapped_noise, mapped_objective, _ = one_step(there, of_rank(moved))
    assert_close((mapped @ mapped.T, mapped_noise), (a @ root @ root.T @ a.T, a @ noise_cov @ a.T))
    assert_close(mapped_objective + sum(COUNTS) * np.linalg.slogdet(a)[1], objective, factor=0.1)


def test_a_step_without_expansion_is_the_dense_regression(rng):
    """F <- B H^-1: the factors are regressed as with it, and keep the covariance I."""
    _, groups, stats, start = problem(rng)
    found, info = fit_factors(stats, of_rank(start), num_iters=1, expand=False)
    r, _, noise = reference.regression(start, groups)
    expected = (r @ np.asarray(start.identity_cov) @ r.T, noise / sum(COUNTS))
    assert_close((to_dense(found).identity_cov, found.noise_cov), expected, factor=0.1)
    assert_close(info.objective[0], np.asarray(value(start, groups)), factor=0.1)


def test_the_ridge_of_a_step_is_in_the_units_of_the_images(rng):
    """Two factors explain three equal images of a person, so that the noise loses two directions."""
    _, groups, _, start = problem(rng, (1,) * len(COUNTS))
    twins = [np.repeat(images, 3, axis=0) for images in groups]
    sharp = JointBayes(mean=start.mean, identity_cov=start.identity_cov, noise_cov=1e-8 * start.noise_cov)
    _, noise_cov, _, jitter = one_step(by_person(draws.stats(twins, np.asarray(start.mean))), of_rank(sharp))
    identity, noise = reference.expanded(sharp, twins)
    n, k = reference.counts(twins)
    ridge = 1e-6 * np.trace(identity / n + noise / k) / D
    np.testing.assert_allclose(jitter, ridge, rtol=1e-4)
    np.testing.assert_allclose(np.linalg.eigvalsh(noise_cov)[:2], ridge, rtol=0.1)


def test_a_start_of_singular_noise_and_too_few_steps(rng):
    _, _, stats, start = problem(rng)
    thin = of_rank(start)
    flat = LowRankJointBayes(mean=thin.mean, root=thin.root, noise_cov=jnp.diag(jnp.asarray([1.0, 1.0, 1.0, 0.0])))
    assert int(factored(stats, flat)[1].status) == Status.NOT_PSD
    _, info = fit_factors(stats, thin, num_iters=2, tol=1e-15)
    assert (int(info.status), int(info.num_iters)) == (Status.MAX_ITERS, 2)


def test_factors_from_the_moment_start_find_people_beside_strong_noise(rng):
    """Noise with two strong correlated directions: the rank of the truth comes near it, a smaller one does not."""
    d, rank = 8, 3
    axes, f = np.linalg.qr(rng.normal(size=(d, d)))[0][:, :2], rng.normal(size=(d, rank))
    truth = JointBayes(mean=np.zeros(d), identity_cov=f @ f.T, noise_cov=np.eye(d) + 20 * axes @ axes.T)
    seen, new = (draws.people(rng, truth, counts) for counts in ((2, 3) * 100, (2,) * 100))
    stats, of_new = draws.stats(seen, np.zeros(d)), []
    for few in (1, rank):
        found, info = fit_factors(stats, init_factors(stats, rank=few), num_iters=100)
        assert int(info.status) == Status.OK
        of_new.append(value(to_dense(found), new))
    assert value(to_dense(found), seen) > value(truth, seen)
    assert of_new[1] > max(of_new[0] + 20, value(truth, new) - 60)
