"""Scores against the dense computation: every score by Cholesky factors, pair by pair."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import verifier
from jaxface.verifier import Verifier
from tests.tolerances import assert_close


def dense_features(found: Verifier, x):
    z = (x - np.asarray(found.reduction.mean)) @ np.asarray(found.reduction.basis)
    if found.length_normalize:
        z = z / np.linalg.norm(z, axis=1, keepdims=True) * np.sqrt(z.shape[1])
    return z


def dense_llr(found: Verifier, sets_a, sets_b):
    """log p(A, B | one person) - log p(A | ...) - log p(B | ...) from the covariances of stacked images."""
    t_mu, t_eps, mean = (
        np.asarray(part) for part in (found.model.identity_cov, found.model.noise_cov, found.model.mean)
    )

    def log_density(rows):
        m, r = rows.shape
        cov = np.kron(np.ones((m, m)), t_mu) + np.kron(np.eye(m), t_eps)
        centered = (rows - mean).ravel()
        return -0.5 * (
            np.linalg.slogdet(cov)[1] + centered @ np.linalg.solve(cov, centered) + m * r * np.log(2 * np.pi)
        )

    raw = log_density(np.concatenate([sets_a, sets_b])) - log_density(sets_a) - log_density(sets_b)
    return float(found.calibration.slope) * raw + float(found.calibration.offset)


def test_pairs_matrix_and_sets_are_the_dense_ratio(fitted):
    found, x, _ = fitted
    z, points = dense_features(found, x), verifier.encode_vectors(found, x)
    first, second = np.array([0, 3, 7, 7]), np.array([1, 20, 8, 2])
    expected = np.array([dense_llr(found, z[[a]], z[[b]]) for a, b in zip(first, second, strict=True)])
    assert_close(verifier.score_pairs(found, points, first, second), expected, factor=1e2)
    assert_close(verifier.score_pairs(found, points, first, second, block_size=3), expected, factor=1e2)
    assert_close(verifier.score_matrix(found, points, points)[first, second], expected, factor=1e2)
    gallery = verifier.enroll(points[:13], np.array([0] * 2 + [1] * 6 + [2] * 5), num_people=3)
    probes = verifier.Gallery(jnp.stack([points[20] + points[21], points[22]]), np.array([2, 1]))
    sets = [z[:2], z[2:8], z[8:13]], [z[20:22], z[22:23]]
    expected = np.array([[dense_llr(found, a, b) for b in sets[1]] for a in sets[0]])
    assert_close(verifier.score_sets(found, gallery, probes), expected, factor=1e2)


def test_messages(fitted):
    found, x, _ = fitted
    points = verifier.encode_vectors(found, x)
    with pytest.raises(ValueError, match=r"second must be in \[0, 30\)"):
        verifier.score_pairs(found, points, np.array([0]), np.array([30]))
    with pytest.raises(ValueError, match=r"ids must use every id in \[0, 4\)"):
        verifier.enroll(points[:3], np.array([0, 1, 3]), num_people=4)


def test_scores_of_pairs_are_differentiable_in_the_coordinates(fitted):
    found, x, _ = fitted
    points = verifier.encode_vectors(found, x)

    def total(points):
        return verifier.score_pairs(found, points, jnp.array([0, 1]), jnp.array([2, 3])).sum()

    slope = jax.grad(total)(points)
    direction = np.zeros(points.shape)
    direction[0, 1] = 1e-6
    measured = (total(points + direction) - total(points - direction)) / 2e-6
    np.testing.assert_allclose(slope[0, 1], measured, rtol=1e-5)
