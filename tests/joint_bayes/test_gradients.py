"""One score is differentiable in the model, right where spectra are degenerate; the fast one is so in x only."""

import jax
import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import pytest
from jax.test_util import check_grads

from jaxface.joint_bayes import (
    JointBayes,
    constrained,
    diagonalize,
    fit,
    free,
    init,
    llr,
    penalized_objective,
    posterior,
    project,
    quadratic_form,
    score_projections,
    set_llr,
)
from jaxface.joint_bayes.stats import by_person
from jaxface.linalg import psd
from tests.joint_bayes import draws
from tests.tolerances import assert_close

POINTS = ["generic", "rank-deficient", "proportional"]
score = jax.jit(llr)
gradient = jax.jit(jax.grad(llr))


def at(point, rng):
    """A model of four dimensions and a pair."""
    model = draws.joint_bayes(rng, d=4, rank=2 if point == "rank-deficient" else None)
    if point == "proportional":
        model = JointBayes(mean=model.mean, identity_cov=0.7 * model.noise_cov, noise_cov=model.noise_cov)
    return model, jnp.asarray(rng.normal(size=4)), jnp.asarray(rng.normal(size=4))


@pytest.mark.parametrize("point", POINTS)
def test_llr_is_differentiable_in_the_pair_and_the_model(point, rng):
    check_grads(score, at(point, rng), order=1, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("point", POINTS)
def test_quadratic_form_is_differentiable_in_the_model(point, rng):
    model, x1, x2 = at(point, rng)

    def by_matrices(model):
        form = quadratic_form(model)
        y1, y2 = x1 - model.mean, x2 - model.mean
        return form.constant + (y1 @ form.a @ y1 + y2 @ form.a @ y2 + y1 @ form.b @ y2) / 2

    found, expected = jax.jit(jax.grad(by_matrices))(model), gradient(model, x1, x2)
    assert_close(found.mean, expected.mean, factor=100)
    for left, right in ((found.identity_cov, expected.identity_cov), (found.noise_cov, expected.noise_cov)):
        assert_close(psd.symmetrize(left), psd.symmetrize(right), factor=100)


def naive(model, x1, x2):
    """The two densities in the diagonal basis, differentiated through its eigenvectors."""
    lower = jnp.linalg.cholesky(model.noise_cov)
    half = jax.scipy.linalg.solve_triangular(lower, model.identity_cov, lower=True)
    values, rotation = jnp.linalg.eigh(jax.scipy.linalg.solve_triangular(lower, half.T, lower=True))
    vectors = jax.scipy.linalg.solve_triangular(lower, rotation, lower=True, trans=1)
    z1, z2 = (x1 - model.mean) @ vectors, (x2 - model.mean) @ vectors
    same = (z1 + z2) ** 2 / (1 + 2 * values) / 2 + (z1 - z2) ** 2 / 2 + jnp.log(1 + 2 * values)
    different = (z1**2 + z2**2) / (1 + values) + 2 * jnp.log(1 + values)
    return (different - same).sum() / 2


@pytest.mark.parametrize("point", POINTS)
def test_through_eigenvectors_the_gradient_can_be_wrong(point, rng):
    """Right where the spectrum is generic, which makes it a trap; hence the stopped gradient of `diagonalize`."""
    model, x1, x2 = at(point, rng)
    assert_close(naive(model, x1, x2), score(model, x1, x2), factor=10)
    found, expected = (psd.symmetrize(g(model, x1, x2).identity_cov) for g in (jax.jit(jax.grad(naive)), gradient))
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error < 1e-9 if point == "generic" else not error < 0.01  # or NaN, for values that are exactly equal


@pytest.mark.parametrize("point", POINTS)
def test_the_fast_score_has_the_right_gradient_in_x_and_none_in_the_model(point, rng):
    model, x1, x2 = at(point, rng)
    one = jnp.asarray(1.0)

    def by_sets(model, x1, x2):
        basis = diagonalize(model)
        return set_llr(basis, project(basis, x1), one, project(basis, x2), one)

    def by_matrix(model, x1, x2):
        basis = diagonalize(model)
        return score_projections(basis, project(basis, x1)[None, :], project(basis, x2)[None, :])[0, 0]

    expected = jax.jit(jax.grad(llr, argnums=(1, 2)))(model, x1, x2)
    for fast in (by_sets, by_matrix):
        in_model, *in_x = jax.jit(jax.grad(fast, argnums=(0, 1, 2)))(model, x1, x2)
        assert_close(tuple(in_x), expected, factor=10)
        assert_close(in_model, jax.tree.map(jnp.zeros_like, model))


def test_sets_are_differentiable_in_their_sums(rng):
    model, x1, x2 = at("rank-deficient", rng)
    basis = diagonalize(model)
    of_sums = jax.jit(lambda a, b: set_llr(basis, a, jnp.asarray(3.0), b, jnp.asarray(2.0)))
    check_grads(of_sums, (x1, x2), order=2, atol=1e-6, rtol=1e-6)


def test_vmap_over_pairs_equals_a_loop(rng):
    model, _, _ = at("generic", rng)
    x1, x2 = rng.normal(size=(2, 5, 4))
    found = jax.jit(jax.vmap(llr, in_axes=(None, 0, 0)))(model, x1, x2)
    assert_close(found, np.array([score(model, a, b) for a, b in zip(x1, x2, strict=True)]))
    gradients = jax.jit(jax.vmap(gradient, in_axes=(None, 0, 0)))(model, x1, x2)
    assert_close(gradients.noise_cov[3], gradient(model, x1[3], x2[3]).noise_cov)


def test_em_ends_where_the_gradient_of_its_objective_vanishes(rng):
    """Two routes to one optimum: the E- and M-steps, and the derivative of the Cholesky form in free parameters."""
    model, prior = draws.joint_bayes(rng), draws.joint_bayes(rng)
    stats = draws.stats(draws.people(rng, model), np.zeros(3))
    fitted, _ = fit(stats, model, prior=prior, prior_weight=0.3, num_iters=300)
    slope = jax.jit(jax.grad(lambda p: penalized_objective(constrained(p), stats, prior, 0.3)))
    before, after = slope(free(model)), slope(free(fitted))
    assert np.abs(before.identity_root).max() > 1
    assert np.abs(before.noise_root).max() > 1
    np.testing.assert_allclose(after.identity_root, 0, atol=1e-6)
    np.testing.assert_allclose(after.noise_root, 0, atol=1e-6)


def test_what_comes_from_eigenvectors_has_no_gradient(rng):
    """Of the fit, its start and the E-step; through the eigenvectors it would be finite and wrong."""
    model, prior = draws.joint_bayes(rng), draws.joint_bayes(rng)
    stats = draws.stats(draws.people(rng, model), np.zeros(3))

    def total(tree):
        return sum(leaf.sum() for leaf in jax.tree.leaves(tree) if leaf.dtype == jnp.float64)

    def fitted(stats, model, prior, weight):
        return total(fit(stats, model, prior=prior, prior_weight=weight, num_iters=2))

    gradients = [
        jax.grad(fitted, argnums=(0, 1, 2, 3))(stats, model, prior, 0.3),
        jax.grad(lambda stats: total(init(stats)))(stats),
        jax.grad(lambda model: total(posterior.full(model, by_person(stats))))(model),
    ]
    assert all((np.asarray(leaf) == 0).all() for leaf in jax.tree.leaves(gradients))
