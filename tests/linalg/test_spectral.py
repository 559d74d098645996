import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from jaxface.linalg import spectral
from tests.tolerances import assert_close


def test_pair_is_diagonalised_and_inverted(rng):
    x, y = rng.normal(size=(3, 6)), rng.normal(size=(20, 6))
    a, b = x.T @ x, y.T @ y  # a has rank 3
    pair = spectral.diagonalize_pair(a, b)
    v = np.asarray(pair.vectors)
    assert_close(v.T @ b @ v, np.eye(6))
    assert_close(v.T @ a @ v, np.diag(pair.values))
    assert_close(pair.inverse @ v, np.eye(6))
    assert_close(pair.values, scipy.linalg.eigh(a, b, eigvals_only=True)[::-1], factor=10)


def test_inverse_holds_in_float32_at_condition_1e5(rng):
    q = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    b = (q * np.logspace(0, -5, 40)) @ q.T
    pair = spectral.diagonalize_pair(jnp.asarray(np.eye(40), jnp.float32), jnp.asarray(b, jnp.float32))
    product = np.asarray(pair.inverse, np.float64) @ np.asarray(pair.vectors, np.float64)
    assert np.abs(product - np.eye(40)).max() < 1e-4  # V'B instead of Q'L' is off by 2e-4 and more


def test_order_and_signs_are_fixed(rng):
    x = rng.normal(size=(9, 5))
    values, vectors = spectral.eigh(x.T @ x)
    assert np.all(np.diff(values) <= 0)
    assert np.all(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(5)] > 0)
    svd = spectral.thin_svd(x)
    assert_close(svd.left @ np.diag(svd.values) @ svd.right, x)
    assert_close(svd.values**2, values)
    assert_close(svd.right.T, vectors, factor=10)


def test_gradients_are_stopped_not_wrong():
    a = jnp.eye(3)
    assert_close(jax.grad(lambda m: spectral.eigh(m)[1][0, 0])(a), np.zeros((3, 3)))
    assert_close(jax.grad(lambda m: spectral.diagonalize_pair(m, a).values.sum())(a), np.zeros((3, 3)))
