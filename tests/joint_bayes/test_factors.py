"""PX-EM: a fit of low rank against dense regression and closed forms, and how soon both forms of PX-EM arrive."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status, all_finite
from jaxface.joint_bayes import (
    JointBayes,
    factors,
    fit,
    fit_factors,
    fit_low_rank,
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
from tests.tolerances import assert_close, largest_angle

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


def span(cov):
    return np.linalg.eigh(cov)[1][:, -RANK:]


@pytest.mark.parametrize("form", [by_person, grouped])
def test_one_step_is_the_dense_regression(form, rng):
    _, groups, stats, start = problem(rng)
    root, noise_cov, objective, jitter = one_step(form(stats), of_rank(start))
    identity, noise = reference.expanded(start, groups)
    n, k = reference.counts(groups)
    assert_close((root @ root.T, noise_cov), (identity / n, noise / k), factor=100)
    assert_close(objective, np.asarray(value(start, groups)), factor=10)
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
    assert largest_angle(span(start.identity_cov), span(stuck.identity_cov)) < 1e-6
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
    assert_close(with_factors, fit(stats, start, num_iters=3, e_step=posterior.expanded), factor=100)


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
    assert_close(matrix[0], expected, factor=100)
    assert_close(llr(model, x[0], x[1]), expected[0], factor=100)


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
