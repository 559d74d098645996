import jax
import numpy as np
import pytest

from jaxface.linalg import triangular
from tests.tolerances import assert_close


@pytest.fixture
def lower(rng):
    """With numbers above the diagonal, which must not be read."""
    return rng.normal(size=(5, 5)) + 4 * np.eye(5)


@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 0)])
def test_solves_are_those_of_dense_systems(shape, lower, rng):
    b, factor = rng.normal(size=shape), np.tril(lower)
    assert_close(triangular.solve(lower, b), np.linalg.solve(factor, b), factor=10)
    assert_close(triangular.solve_transposed(lower, b), np.linalg.solve(factor.T, b), factor=10)
    assert_close(triangular.solve_product(lower, b), np.linalg.solve(factor @ factor.T, b), factor=10)


def test_the_inverse_and_a_whitened_matrix(lower, rng):
    factor, a = np.tril(lower), rng.normal(size=(5, 5))
    inverse = np.linalg.inv(factor)
    assert_close(triangular.inverse(jax.numpy.asarray(lower)), inverse, factor=10)
    assert_close(triangular.whiten(lower, a + a.T), inverse @ (a + a.T) @ inverse.T, factor=10)


def test_types_are_those_of_both_arguments(lower):
    whole = np.arange(5)
    assert triangular.solve(lower.astype(np.float32), whole).dtype == np.float32
    assert triangular.solve(lower, whole.astype(np.float32)).dtype == np.float64
