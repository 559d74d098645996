import jax
import numpy as np
import pytest

from jaxface.linalg import small_cholesky
from tests.linalg.cases import several
from tests.tolerances import assert_close


@jax.jit
def inverse_factor_and_more(a):
    root = small_cholesky.inverse_factor(a)
    return root, small_cholesky.inverse(a), small_cholesky.log_det(root)


@pytest.mark.parametrize("size", [1, 5, 12])
def test_inverse_factors(size, rng):
    a = several(rng, 6, size)
    root, inverse, log_det = inverse_factor_and_more(a)
    for one, factor in zip(a, root, strict=True):
        assert_close(factor, np.linalg.inv(np.linalg.cholesky(one)), factor=100)
    assert_close(inverse, np.linalg.inv(a), factor=100)
    assert_close(log_det, np.linalg.slogdet(a)[1], factor=10)


def test_inverse_factors_of_ill_conditioned_and_indefinite_matrices(rng):
    q = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    ill = (q * np.logspace(0, -9, 8)) @ q.T
    bad = np.diag([1.0, 1, 1, -1, 1, 1, 1, 1])
    root = np.asarray(inverse_factor_and_more(np.stack([ill, bad]))[0])
    np.testing.assert_allclose(root[0] @ ill @ root[0].T, np.eye(8), atol=1e-5)
    assert np.isnan(root[1]).any()
    assert np.isfinite(root[0]).all()
