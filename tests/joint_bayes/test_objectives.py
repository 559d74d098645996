"""The likelihood and the functions of the paper against dense Gaussians, and the relations between them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from jaxface.joint_bayes import Stats, log_likelihood, objectives, penalized_objective
from jaxface.joint_bayes.model import JointBayes, constrained, free
from jaxface.joint_bayes.stats import by_person
from tests.joint_bayes import draws
from tests.reference import joint_bayes_reference as reference
from tests.tolerances import assert_close


@pytest.mark.parametrize("rank", [None, 1])
def test_log_likelihood_equals_the_dense_gaussians(rank, rng):
    model = draws.joint_bayes(rng, rank=rank)
    groups = draws.people(rng, model)
    expected = np.asarray(reference.log_likelihood(model, groups))
    jitted = jax.jit(log_likelihood)
    for shift in (np.asarray(model.mean), np.zeros(3)):
        stats = draws.stats(groups, shift)
        assert_close(log_likelihood(model, stats), expected, factor=10)
        assert_close(jitted(model, stats), expected, factor=10)  # counts are unknown here: one row a person


def test_people_without_images_do_not_count(rng):
    model = draws.joint_bayes(rng)
    groups = draws.people(rng, model)
    stats = draws.stats(groups, np.zeros(3))
    wider = Stats(
        count=jnp.concatenate([jnp.zeros(2), stats.count]),
        sum=jnp.concatenate([jnp.zeros((2, 3)), stats.sum]),
        second_moment=stats.second_moment,
        shift=stats.shift,
    )
    expected = log_likelihood(model, stats)
    assert_close(log_likelihood(model, wider), expected)
    assert_close(jax.jit(log_likelihood)(model, wider), expected)


@pytest.mark.parametrize("jitted", [False, True])
def test_log_likelihood_is_differentiable_in_the_model(jitted, rng):
    """At a rank-deficient T_mu, where the derivative of a diagonal form would be finite and wrong."""
    parameters = free(draws.joint_bayes(rng, rank=1), rank=1)
    stats = draws.stats(draws.people(rng, draws.joint_bayes(rng)), np.zeros(3))
    score = jax.jit(log_likelihood) if jitted else log_likelihood
    check_grads(lambda p: score(constrained(p), stats), [parameters], order=1, modes=["rev"], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("weight", [0.0, 1 / 3, 1.0])
def test_penalized_objective_equals_the_dense_definition(weight, rng):
    model, prior = draws.joint_bayes(rng), draws.joint_bayes(rng)
    groups = draws.people(rng, model)
    found = penalized_objective(model, draws.stats(groups, np.zeros(3)), prior, weight)
    assert_close(found, np.asarray(reference.penalized_objective(model, groups, prior, weight)), factor=10)


def test_divergence_is_prior_first(rng):
    s, t = draws.spd(rng), draws.spd(rng)
    assert_close(objectives.gaussian_divergence(jnp.asarray(s), jnp.asarray(t)), np.asarray(reference.divergence(s, t)))


def test_one_direction_that_neither_covariance_has_contributes_nothing():
    """Four axes and rank 3, in the rounding of 40 draws."""
    divergence = jax.jit(objectives.gaussian_divergence)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        s, t, mixing = draws.spd(rng), draws.spd(rng), rng.normal(size=(4, 3))
        found = divergence(mixing @ s @ mixing.T, mixing @ t @ mixing.T)
        np.testing.assert_allclose(found, reference.divergence(s, t), rtol=1e-4)


def test_directions_that_neither_identity_covariance_has_contribute_nothing(rng):
    s, t = draws.spd(rng), draws.spd(rng)
    frame = np.linalg.qr(rng.normal(size=(20, 20)))[0][:, :3]
    models = [
        JointBayes(mean=jnp.zeros(20), identity_cov=jnp.asarray(frame @ a @ frame.T), noise_cov=jnp.eye(20))
        for a in (t, s)
    ]
    rows = by_person(draws.stats([np.zeros((2, 20)), np.zeros((1, 20))], np.zeros(20)))
    np.testing.assert_allclose(objectives.divergence(*models, rows), 2 * reference.divergence(s, t), rtol=1e-5)


def paper(rng, ratio):
    """M, E, Psi, Gamma, the sizes and a prior, all unrelated, for equations that are functions of any values."""
    groups = draws.people(rng, draws.joint_bayes(rng))
    identities, deviations = rng.normal(size=(13, 3)), rng.normal(size=(25, 3))
    prior = draws.joint_bayes(rng)
    sizes = np.array([len(images) for images in groups])
    return identities, deviations, draws.spd(rng), draws.spd(rng), sizes, prior


@pytest.mark.parametrize("ratio", [0.0, 0.5, 2.0])
def test_equations_of_the_paper(ratio, rng):
    m, e, psi, gamma, sizes, prior = paper(rng, ratio)
    chosen = {"prior": prior, "prior_weight": ratio / (1 + ratio)}
    found = objectives.eq6(m, e, psi, gamma, **chosen)
    assert_close(found, np.asarray(reference.eq6(m, e, psi, gamma, prior, ratio)))
    found = objectives.eq11(m, e, **chosen)
    assert_close(found, np.asarray(reference.eq11(m, e, prior, ratio)))
    found = objectives.eq19(m, e, psi, gamma, jnp.asarray(sizes, psi.dtype), **chosen)
    assert_close(found, np.asarray(reference.eq19(m, e, psi, gamma, sizes, prior, ratio)))


@pytest.mark.parametrize("ratio", [0.0, 2.0])
def test_eq11_is_eq6_at_its_best_less_a_constant(ratio, rng):
    m, e, _, _, _, prior = paper(rng, ratio)
    psi = m.T @ m / 13 + ratio * np.asarray(prior.identity_cov)
    gamma = e.T @ e / 25 + ratio * np.asarray(prior.noise_cov)
    best = objectives.eq6(m, e, psi, gamma, prior=prior, prior_weight=ratio / (1 + ratio))
    assert_close(objectives.eq11(m, e, prior=prior, prior_weight=ratio / (1 + ratio)), best - (13 + 25) * 3)
    for _ in range(20):
        away = objectives.eq6(
            m,
            e,
            psi + 0.1 * draws.spd(rng),
            gamma + 0.1 * draws.spd(rng),
            prior=prior,
            prior_weight=ratio / (1 + ratio),
        )
        assert away > best


@pytest.mark.parametrize("ratio", [0.0, 0.5, 2.0])
def test_eq19_with_the_missing_term_is_the_penalised_likelihood(ratio, rng):
    """`(19) + lambda (n log|Psi| + k log|Gamma|)`, least over M and E, equals `-2 F` up to a constant of the data."""
    model, prior = draws.joint_bayes(rng), draws.joint_bayes(rng)
    groups = draws.people(rng, model)
    m, e = reference.hidden_means(model, groups)
    sizes = jnp.asarray([len(images) for images in groups], float)
    psi, gamma = model.identity_cov, model.noise_cov
    found = objectives.eq19(m, e, psi, gamma, sizes, prior=prior, prior_weight=ratio / (1 + ratio))
    found += ratio * (13 * reference.log_det(psi) + 25 * reference.log_det(gamma))

    weight = ratio / (1 + ratio)
    objective = penalized_objective(model, draws.stats(groups, np.zeros(3)), prior, weight) / (1 - weight)
    constant = ratio * (13 * (reference.log_det(prior.identity_cov) + 3))
    constant += ratio * (25 * (reference.log_det(prior.noise_cov) + 3)) - 25 * 3 * np.log(2 * np.pi)
    assert_close(found, -2 * objective + constant, factor=10)


def test_eq11_is_unbounded_without_a_prior(rng):
    """M = 0, E = X is feasible and sends (11) to minus infinity: the degeneracy of the approximate E-step."""
    x, none = rng.normal(size=(25, 3)), np.zeros((13, 3))
    prior = draws.joint_bayes(rng)
    values = [float(objectives.eq11(none, x, prior=prior, prior_weight=s / (1 + s))) for s in (1.0, 1e-3, 1e-6, 1e-9)]
    assert np.all(np.diff(values) < -100)


def test_float32_stays_close(rng):
    model = draws.joint_bayes(rng)
    groups = draws.people(rng, model)
    narrow = JointBayes(**{name: value.astype(jnp.float32) for name, value in vars(model).items()})
    stats = draws.stats([images.astype(np.float32) for images in groups], np.asarray(narrow.mean))
    found = log_likelihood(narrow, stats)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, reference.log_likelihood(model, groups), rtol=1e-4)
