"""Both shortcuts and the thin factors against dense scatters, and where each of them stops being right."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.ensembles import lda_directions
from jaxface.linalg import scatter
from tests.ensembles import draws
from tests.reference import ensembles_reference as reference
from tests.tolerances import assert_close

C = 6


def problem(rng, num_axes):
    """Principal coordinates `[n, p]`, labels, and axes of one member; the moments and variances of the shortcuts."""
    y, labels, _ = draws.coordinates(rng)
    axes = rng.permutation(12)[:num_axes].astype(np.int32)
    moments = scatter.class_moments(jnp.asarray(y), jnp.asarray(labels), num_classes=C)
    return y, labels, axes, moments, (jnp.asarray(y) ** 2).mean(axis=0)


def within(y, labels, axes, ridge):
    """S_w / n on the axes with its ridge, and the ridge."""
    scatter_within = reference.scatters(y[:, axes], labels)[0] / len(y)
    added = ridge * np.trace(scatter_within) / len(axes)
    return scatter_within + added * np.eye(len(axes)), added


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("num_axes", [2, 5])
def test_any_square_root_whitens(num_axes, ridge, rng):
    y, labels, axes, moments, variances = problem(rng, num_axes)
    covariance, added = within(y, labels, axes, ridge)
    found = lda_directions.by_cholesky(moments, variances, axes, ridge=ridge)
    assert_close(found.basis @ found.basis.T, np.linalg.inv(covariance), factor=100)
    assert_close(found.jitter, np.asarray(added), factor=10)
    assert int(found.rank) == num_axes


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize(("num_axes", "width"), [(2, 2), (5, 3), (9, 5)])
def test_leading_directions_diagonalise_both_scatters(num_axes, width, ridge, rng):
    y, labels, axes, moments, variances = problem(rng, num_axes)
    covariance, added = within(y, labels, axes, ridge)
    between = reference.scatters(y[:, axes], labels)[1] / len(y)
    ones, settings = np.ones(len(y)), {"ridge": ridge, "width": width}
    for found in (
        lda_directions.by_means(moments, variances, axes, **settings),
        lda_directions.by_rows(jnp.asarray(y), jnp.asarray(labels), ones, axes, num_classes=C, **settings),
    ):
        basis = np.asarray(found.basis)
        assert_close(basis.T @ covariance @ basis, np.eye(width), factor=100)
        values = np.diag(basis.T @ between @ basis)
        assert_close(basis.T @ between @ basis, np.diag(values), factor=100)
        expected = np.linalg.eigvals(np.linalg.solve(covariance, between)).real
        assert_close(values, np.sort(expected)[::-1][:width], factor=1000)
        assert_close(found.jitter, np.asarray(added), factor=10)


def test_axes_that_are_not_used_have_rows_of_zeros(rng):
    y, labels, axes, moments, variances = problem(rng, 4)
    padded = np.append(axes, np.int32(-1))
    found = (
        lda_directions.by_cholesky(moments, variances, padded, ridge=0.1),
        lda_directions.by_means(moments, variances, padded, ridge=0.1, width=3),
        lda_directions.by_rows(
            jnp.asarray(y), jnp.asarray(labels), np.ones(len(y)), padded, ridge=0.1, num_classes=C, width=3
        ),
    )
    for each in found:
        assert not np.asarray(each.basis[-1]).any()


def test_the_margin_tells_that_no_digit_is_left(rng):
    """Equal images of everybody: S_w vanishes, and the shortcut tells."""
    labels = np.repeat(np.arange(C, dtype=np.int32), 3)
    y, _, _, _ = reference.principal_coordinates(rng.normal(size=(C, 8))[labels])
    y = jnp.asarray(y[:, :4])
    moments = scatter.class_moments(y, jnp.asarray(labels), num_classes=C)
    axes = np.arange(3, dtype=np.int32)
    by_means = lda_directions.by_means(moments, (y**2).mean(axis=0), axes, ridge=0.0, width=3)
    assert not float(by_means.margin) > 1e-12  # NaN is not either
