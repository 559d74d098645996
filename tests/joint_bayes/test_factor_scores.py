"""Scores by factors against dense covariances."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.joint_bayes import (
    LowRankJointBayes,
    diagonalize,
    diagonalize_factors,
    leading_factors,
    llr,
    llr_matrix,
    llr_of_factors,
    quadratic_form,
    to_dense,
)
from tests.joint_bayes import draws
from tests.reference import joint_bayes_reference as reference
from tests.tolerances import assert_close

D, RANK = 4, 2


def test_scores_of_factors_are_those_of_the_dense_model(rng):
    model = draws.joint_bayes(rng, D, RANK)
    thin, x = leading_factors(model, rank=RANK), rng.normal(size=(5, D))
    basis = diagonalize_factors(thin)
    assert basis.vectors.shape == (D, RANK)
    assert_close(basis, diagonalize(model, rank=RANK), factor=100)
    expected = np.array([[reference.llr(model, a, b) for b in x[3:]] for a in x[:3]])
    assert_close(llr_matrix(basis, x[:3], x[3:]), expected, factor=100)
    pairs = np.array([[llr_of_factors(thin, a, b) for b in x[3:]] for a in x[:3]])
    assert_close(pairs, expected, factor=100)
    # More columns than directions: what is left over counts nothing.
    wide = LowRankJointBayes(
        mean=thin.mean, root=jnp.concatenate([thin.root, thin.root[:, :1]], axis=1), noise_cov=thin.noise_cov
    )
    expected = np.asarray(llr(to_dense(wide), x[0], x[1]))
    assert_close(llr_matrix(diagonalize_factors(wide), x[:1], x[1:2])[0, 0], expected, factor=100)
    assert_close(llr_of_factors(wide, x[0], x[1]), expected, factor=100)


def test_the_printed_forms_of_a_and_b_by_factors(rng):
    """`B = 2 D^-1 F (I + 2 F'D^-1 F)^-1 F'D^-1` and `A = -V diag(l^2 / ((1 + l)(1 + 2l))) V'`, D = T_eps."""
    model = draws.joint_bayes(rng, D, RANK)
    form, thin = quadratic_form(model), leading_factors(model, rank=RANK)
    solved = np.linalg.solve(thin.noise_cov, thin.root)
    b = 2 * solved @ np.linalg.solve(np.eye(RANK) + 2 * np.asarray(thin.root).T @ solved, solved.T)
    assert_close(form.b, b, factor=1)
    basis = jax.tree.map(np.asarray, diagonalize_factors(thin))
    scale = basis.values**2 / ((1 + basis.values) * (1 + 2 * basis.values))
    assert_close(form.a, -(basis.vectors * scale) @ basis.vectors.T, factor=1)
    scale = 2 * basis.values / (1 + 2 * basis.values)
    assert_close(form.b, (basis.vectors * scale) @ basis.vectors.T, factor=1)
