import jax.numpy as jnp
import numpy as np
import scipy.linalg

from jaxface.linalg import discriminant, scatter
from tests.tolerances import assert_close

LABELS = np.repeat(np.arange(4), 6)


def samples(rng, d=5):
    return rng.normal(size=(24, d)) + 3 * rng.normal(size=(4, d))[LABELS]


def factors(x):
    return (
        scatter.within_factor(jnp.asarray(x), LABELS, num_classes=4),
        scatter.between_factor(jnp.asarray(x), LABELS, num_classes=4),
    )


def test_both_whitenings_lead_to_the_generalised_eigenvectors(rng):
    x = samples(rng)
    within, between = factors(x)
    values, vectors = scipy.linalg.eigh(between.T @ between, within.T @ within)
    for whitener in (
        discriminant.whitening(within, x, 1, 0.0),
        discriminant.balanced_whitening(within, (within**2).sum(axis=0), jnp.asarray(0.0)),
    ):
        assert int(whitener.rank) == 5
        basis = np.asarray(discriminant.leading_directions(between, whitener.basis, width=3))
        assert_close(basis.T @ within.T @ within @ basis, np.eye(3), factor=100)
        assert_close(basis.T @ between.T @ between @ basis, np.diag(values[::-1][:3]), factor=100)
        assert_close(abs(basis.T @ within.T @ within @ vectors[:, ::-1][:, :3]), np.eye(3), factor=100)


def test_a_ridge_is_relative_and_a_penalty_is_not(rng):
    x = samples(rng)
    within, _ = factors(x)
    cov = within.T @ within / 20
    ridge = discriminant.whitening(within, x, 20, 0.1)
    assert_close(ridge.jitter, 0.1 * np.trace(cov) / 5)
    inverse = np.linalg.inv(cov + np.asarray(ridge.jitter) * np.eye(5))
    assert_close(ridge.basis @ ridge.basis.T, inverse, factor=100)
    penalty = discriminant.balanced_whitening(within / np.sqrt(20), np.ones(5), ridge.jitter)
    assert_close(penalty.basis @ penalty.basis.T, inverse, factor=100)


def test_axes_of_any_scale_keep_their_rank(rng):
    scale = np.geomspace(1, 1e-12, 5)
    within, _ = factors(samples(rng) * scale)
    balanced = discriminant.balanced_whitening(within, (within**2).sum(axis=0), jnp.asarray(0.0))
    assert int(balanced.rank) == 5
    rows = within @ balanced.basis
    assert_close(rows.T @ rows, np.eye(5), factor=100)
    without = discriminant.balanced_whitening(within.at[:, 2].set(0), (within**2).sum(axis=0), jnp.asarray(0.0))
    assert int(without.rank) == 4
    assert float(without.margin) < 1e-20


def test_classes_that_coincide_leave_columns_of_zeros(rng):
    x = samples(rng)
    x[LABELS == 3] += x[LABELS == 2].mean(axis=0) - x[LABELS == 3].mean(axis=0)
    within, between = factors(x)
    whitener = discriminant.whitening(within, x, 1, 0.0)
    basis = discriminant.leading_directions(between, whitener.basis, width=3, rtol=1e-10)
    assert not np.asarray(basis[:, 2]).any()
    assert_close(basis.T @ within.T @ within @ basis, np.diag([1.0, 1.0, 0.0]), factor=100)
    free = discriminant.leading_directions(between, whitener.basis, width=3)
    assert np.asarray(free[:, 2]).any()
    assert_close(free[:, :2], basis[:, :2])
