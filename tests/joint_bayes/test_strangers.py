"""Scores against strangers: the closed form is the limit of a cohort, and its own quadratic form."""

import numpy as np
import pytest

from jaxface import joint_bayes
from jaxface.joint_bayes import ScoringBasis
from tests.tolerances import assert_close

VALUES = np.array([3.0, 1.0, 0.2, 0.0])
BASIS = ScoringBasis(mean=np.zeros(4), vectors=np.eye(4), values=VALUES)


def test_the_moments_of_many_strangers(rng):
    z = np.concatenate([rng.normal(size=(3, 4)) * np.sqrt(1 + VALUES), np.zeros((1, 4))])
    strangers = rng.normal(size=(200_000, 4)) * np.sqrt(1 + VALUES)
    scores = np.asarray(joint_bayes.score_projections(BASIS, z, strangers))
    found = joint_bayes.stranger_moments(BASIS, z)
    error = scores.std(axis=1) / np.sqrt(200_000)
    np.testing.assert_array_less(np.abs(scores.mean(axis=1) - found.mean), 5 * error)
    np.testing.assert_allclose(scores.std(axis=1), found.spread, rtol=0.02)


def test_one_dimension_by_quadrature():
    """Gauss-Hermite nodes integrate the quadratic score and its square exactly."""
    basis = ScoringBasis(mean=np.zeros(1), vectors=np.eye(1), values=np.array([1.7]))
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    weights = weights / weights.sum()
    z = np.array([[0.3], [-2.0]])
    scores = np.asarray(joint_bayes.score_projections(basis, z, np.sqrt(2.7) * nodes[:, None]))
    mean = scores @ weights
    found = joint_bayes.stranger_moments(basis, z)
    assert_close(found.mean, mean, factor=10)
    assert_close(found.spread, np.sqrt((scores - mean[:, None]) ** 2 @ weights), factor=10)


@pytest.mark.parametrize("m", [1, 2, 5, 1.3])
def test_sets_of_several_images_by_quadrature(m):
    basis = ScoringBasis(mean=np.zeros(1), vectors=np.eye(1), values=np.array([1.7]))
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    weights = weights / weights.sum()
    sums, ones = np.array([[0.3], [-4.0]]), np.ones(12)
    scores = np.asarray(joint_bayes.set_llr_matrix(basis, sums, [m, m], np.sqrt(2.7) * nodes[:, None], ones))
    mean = scores @ weights
    found = joint_bayes.stranger_moments(basis, sums, np.array([m, m]))
    assert_close(found.mean, mean, factor=10)
    assert_close(found.spread, np.sqrt((scores - mean[:, None]) ** 2 @ weights), factor=10)
    if m == 1:
        assert_close(found, joint_bayes.stranger_moments(basis, sums))


def test_errors():
    for call, message in (
        (lambda: joint_bayes.stranger_moments(BASIS, np.ones((2, 3))), r"values must have shape \[r\] with r = 3"),
        (lambda: joint_bayes.stranger_moments(BASIS, np.ones((2, 4), int)), "sums must be a floating point array"),
        (lambda: joint_bayes.stranger_moments(BASIS, np.ones((2, 4)), np.ones(3)), r"counts must have shape \[n\]"),
        (lambda: joint_bayes.stranger_moments(BASIS, np.ones((2, 4)), -np.ones(2)), r"counts must lie in \[0, inf\)"),
        (lambda: joint_bayes.set_evidence(BASIS, np.ones((2, 3)), np.ones(2)), r"sums must have shape \[g, r\]"),
        (lambda: joint_bayes.set_evidence(BASIS, np.ones((2, 4)), -np.ones(2)), r"counts must lie in \[0, inf\)"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()
