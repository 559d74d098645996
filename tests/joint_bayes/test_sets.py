"""Sets of weighted images: their sums, and three ways to the same score."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.stats import multivariate_normal

from jaxface.joint_bayes import (
    JointBayes,
    diagonalize,
    llr,
    llr_of_sets,
    set_evidence,
    set_llr,
    set_llr_matrix,
    set_sums,
)
from jaxface.linalg import psd
from tests.joint_bayes import draws
from tests.reference import quality_reference as reference
from tests.tolerances import assert_close

IDS = np.array([0, 0, 1, 2, 2, 2, -1, 1], np.int32)  # set 3 has no image
Q = np.array([0.3, 2.0, 0.0, 1.0, 4.0, 0.1, 5.0, 0.7])
score = jax.jit(llr_of_sets)


def dense(model, x, a, b):
    parts = []
    for place in (a, b):
        kept = (place == IDS) & (Q > 0)
        parts += [x[kept], reference.by_weights(Q[kept])]
    return reference.llr(model, *parts)


@pytest.mark.parametrize("rank", [None, 1])
def test_scores_of_weighted_sets_are_those_of_dense_gaussians(rank, rng):
    model, x = draws.joint_bayes(rng, rank=rank), rng.normal(size=(8, 3))
    basis = diagonalize(model)
    sums = set_sums(basis, x, IDS, num_sets=4, weights=Q)
    np.testing.assert_allclose(sums.weight, [2.3, 0.7, 5.1, 0.0], rtol=1e-12)
    matrix = set_llr_matrix(basis, *sums, *sums)
    for a in range(3):
        for b in range(a):
            expected = dense(model, x, a, b)
            assert_close(matrix[a, b], expected, factor=10)
            pair = [jax.tree.map(lambda leaf, k=k: leaf[k], sums) for k in (a, b)]
            assert_close(set_llr(basis, *pair[0], *pair[1]), expected, factor=10)
            weights = [np.where(k == IDS, Q, 0) for k in (a, b)]
            found = score(model, x, x, first_weights=weights[0], second_weights=weights[1])
            assert_close(found, expected, factor=100)
    assert_close(matrix[3], np.zeros(4))  # nothing is known of an empty set


def test_without_weights_every_image_counts_one(rng):
    model, x = draws.joint_bayes(rng), rng.normal(size=(8, 3))
    basis = diagonalize(model)
    plain, ones = (set_sums(basis, x, IDS, num_sets=4, weights=w) for w in (None, np.ones(8)))
    assert_close(plain, ones)
    np.testing.assert_array_equal(plain.weight, [2, 2, 3, 0])
    assert_close(score(model, x[:1], x[1:2]), llr(model, x[0], x[1]), factor=10)


def test_integers_are_repetitions(rng):
    model, x = draws.joint_bayes(rng), rng.normal(size=(4, 3))
    found = score(model, x[:2], x[2:], first_weights=np.array([3.0, 1.0]), second_weights=np.array([2.0, 2.0]))
    repeated = score(model, x[[0, 0, 0, 1]], x[[2, 2, 3, 3]])
    assert_close(found, repeated, factor=10)


def test_the_unit_of_the_weights_and_a_vanishing_one(rng):
    model, x = draws.joint_bayes(rng), rng.normal(size=(4, 3))
    q = np.array([0.5, 2.0])
    scaled = JointBayes(mean=model.mean, identity_cov=model.identity_cov, noise_cov=7 * model.noise_cov)
    expected = score(model, x[:2], x[2:], first_weights=q, second_weights=q)
    assert_close(score(scaled, x[:2], x[2:], first_weights=7 * q, second_weights=7 * q), expected, factor=10)
    zero, near = (score(model, x[:2], x[2:], first_weights=q, second_weights=np.full(2, e)) for e in (0.0, 1e-9))
    assert_close(zero, 0.0)
    np.testing.assert_allclose(near, 0, atol=1e-6)
    among_others = score(model, x[:2], x[2:], first_weights=q, second_weights=np.array([0.5, 1e-9]))
    without = reference.llr(model, x[:2], reference.by_weights(q), x[2:3], reference.by_weights([0.5]))
    np.testing.assert_allclose(among_others, without, atol=1e-7)


def dense_score(model, x, q):
    """The densities of two and of four stacked images, differentiable by JAX."""

    def log_density(rows):
        m = len(rows)
        cov = jnp.kron(jnp.ones((m, m)), model.identity_cov) + jnp.kron(jnp.diag(1 / q[rows]), model.noise_cov)
        return multivariate_normal.logpdf(x[rows].ravel(), jnp.tile(model.mean, m), cov)

    return log_density(np.arange(4)) - log_density(np.arange(2)) - log_density(np.arange(2, 4))


def of_four(model, x, q):
    return llr_of_sets(model, x[:2], x[2:], first_weights=q[:2], second_weights=q[2:])


gradients = [jax.jit(jax.grad(form, argnums=(0, 1, 2))) for form in (of_four, dense_score)]


@pytest.mark.parametrize("rank", [None, 1])
def test_it_is_differentiable_in_everything(rank, rng):
    """Also at a weight of zero, where an image begins to count."""
    model, x = draws.joint_bayes(rng, rank=rank), rng.normal(size=(4, 3))
    found, expected = (each(model, x, np.array([0.3, 2.0, 1.0, 0.5])) for each in gradients)
    for name in ("identity_cov", "noise_cov"):
        assert_close(*(psd.symmetrize(getattr(each[0], name)) for each in (found, expected)), factor=100)
    assert_close((found[0].mean, *found[1:]), (expected[0].mean, *expected[1:]), factor=100)
    at_zero, near_zero = (gradients[0](model, x, np.array([0.3, q, 1.0, 0.5]))[2] for q in (0.0, 1e-7))
    np.testing.assert_allclose(at_zero, near_zero, rtol=1e-4, atol=1e-5)


def test_errors(rng):
    model, x = draws.joint_bayes(rng), rng.normal(size=(8, 3))
    basis = diagonalize(model)
    for call, message in (
        (lambda: set_sums(basis, x, IDS, num_sets=2), r"ids must be in \[0, 2\) or -1 for padding; got values from -1"),
        (lambda: set_sums(basis, x, IDS, num_sets=3, weights=-Q), r"weights must lie in \[0, inf\); got 7 values"),
        (lambda: set_sums(basis, x, IDS, num_sets=3, weights=Q[:2]), r"weights must have shape \[n\] with n = 8"),
        (lambda: set_sums(basis, x[:, :2], IDS, num_sets=3), r"mean must have shape \[d\] with d = 2"),
        (lambda: llr_of_sets(model, x, x, second_weights=Q[:2]), r"second_weights must have shape \[8\]; got shape"),
        (lambda: llr_of_sets(model, x, x, first_weights=-Q), r"first_weights must lie in \[0, inf\); got 7 values"),
        (lambda: llr_of_sets(model, x[0], x), r"first must have shape \[m, d\]; got shape \(3,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("rank", [None, 1])
def test_evidence_is_the_density_over_that_without_identity(rank, rng):
    model, x = draws.joint_bayes(rng, rank=rank), rng.normal(size=(8, 3))
    nobody = JointBayes(mean=model.mean, identity_cov=jnp.zeros((3, 3)), noise_cov=model.noise_cov)
    basis = diagonalize(model)
    expected = np.zeros(4)  # set 3 has no image
    for place in range(3):
        kept = (place == IDS) & (Q > 0)
        each = (x[kept], reference.by_weights(Q[kept]))
        expected[place] = reference.log_density(model, *each) - reference.log_density(nobody, *each)
    assert_close(set_evidence(basis, *set_sums(basis, x, IDS, num_sets=4, weights=Q)), expected, factor=10)
