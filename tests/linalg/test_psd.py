import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from jaxface.linalg import psd
from tests.tolerances import assert_close


def matrix(rng, d=6, n=20):
    x = rng.normal(size=(n, d))
    return x.T @ x


def test_solve_and_log_det_with_ridge_equal_numpy(rng):
    a, b = matrix(rng), rng.normal(size=(6, 3))
    ridged = a + 0.05 * np.trace(a) / 6 * np.eye(6)
    assert_close(psd.solve(a, b, ridge=0.05), scipy.linalg.solve(ridged, b))
    assert_close(psd.log_det(a, ridge=0.05), np.linalg.slogdet(ridged)[1])
    density = scipy.stats.multivariate_normal(np.zeros(6), a).logpdf(b[:, 1])
    assert_close(psd.log_density(a, b[:, 1]), density)


def test_ridge_is_relative_so_units_do_not_matter(rng):
    a, b = matrix(rng, n=3), rng.normal(size=6)  # rank 3 of 6: only the ridge makes it invertible
    assert_close(psd.solve(1e-12 * a, b, ridge=1e-3) * 1e-12, psd.solve(a, b, ridge=1e-3))


def test_ridge_works_in_float32_where_an_absolute_jitter_vanishes(rng):
    a = jnp.asarray(1e4 * matrix(rng, n=3), jnp.float32)
    assert np.isfinite(psd.log_det(a, ridge=1e-4))


def test_not_positive_definite_gives_nan_and_no_exception():
    assert np.isnan(psd.log_det(jnp.diag(jnp.array([1.0, -1.0]))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(2, 2), (2, 3), (3, 3), (3, 4), (7, 8), (18, 20), (30, 40)])
def test_too_few_images_are_never_definite(n, d, dtype):
    """n centred images have rank n - 1 at most, whatever the units of the axes and however they are mixed."""
    factor, definite = jax.jit(psd.cholesky), jax.jit(psd.is_definite)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        mixed = rng.normal(size=(d, d)) if seed % 2 else np.diag(10.0 ** rng.uniform(-3, 3, d))
        x = (rng.normal(size=(n, d)) @ mixed).astype(dtype)
        x -= x.mean(axis=0)
        assert not definite(factor(x.T @ x / n))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_definite_is_above_rounding_in_any_units(dtype):
    eps = np.finfo(dtype).eps
    for units in (np.ones(4), np.full(4, 1e9), 10.0 ** np.array([-9, 3, 0, 9])):
        for correlation, expected in ((1 - 40 * eps, True), (1 - 2 * eps, False)):
            a = np.eye(4)
            a[0, 3] = a[3, 0] = correlation
            lower = np.linalg.cholesky(a) * units[:, None]
            assert psd.is_definite(jnp.asarray(lower, dtype)) == expected
    assert not psd.is_definite(jnp.linalg.cholesky(-jnp.eye(3)))  # NaN
    assert not psd.is_definite(jnp.zeros((3, 3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_covariances_that_are_none_are_refused(dtype):
    noise = np.array([[2, 1], [1, 2]], dtype)
    psd.check_covariance("cov", noise)
    psd.check_covariance("cov", np.stack([noise, noise * dtype(1e-30)]))
    psd.check_covariance("cov", np.zeros((2, 2), dtype), unit=noise)
    psd.check_covariance("cov", -noise * np.finfo(dtype).eps, unit=noise)  # rounding beside the other covariance
    for bad, unit, message in (
        (noise - 2 * np.eye(2, dtype=dtype), None, "cov must be positive definite; its least eigenvalue is -1"),
        (np.zeros((2, 2), dtype), None, "cov must be positive definite; its least eigenvalue is 0"),
        (-noise, noise, "cov must be positive semidefinite; its least eigenvalue is -3"),
        (np.triu(noise), None, "cov must be symmetric"),
    ):
        with pytest.raises(ValueError, match=message):
            psd.check_covariance("cov", bad, unit=unit)


def test_least_eigenvalue_is_close_and_never_below(rng):
    for least in (1e-6, 0.1):
        q = np.linalg.qr(rng.normal(size=(12, 12)))[0]
        lower = np.linalg.cholesky((q * np.append(least, np.linspace(1, 5, 11))) @ q.T)
        estimate = float(psd.least_eigenvalue(jnp.asarray(lower)))
        assert least * (1 - 1e-9) <= estimate < 1.2 * least


def test_a_least_eigenvalue_far_below_rounding_does_not_overflow():
    lower = jnp.diag(jnp.asarray([1.0, 1e-12], jnp.float32))  # the square of the inverse is 1e48
    np.testing.assert_allclose(psd.least_eigenvalue(lower), 1e-24, rtol=1e-5)
    assert not psd.is_definite(jnp.asarray([[1.0, 0.0], [1.0, 1e-12]], jnp.float32))
