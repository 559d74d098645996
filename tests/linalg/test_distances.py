import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial.distance import cdist

from jaxface.linalg import distances
from tests.tolerances import assert_close


def test_matrices_equal_scipy(rng):
    x, y = rng.normal(size=(6, 4)), rng.normal(size=(9, 4))
    assert_close(distances.squared_distance_matrix(x, y), cdist(x, y) ** 2)
    assert_close(distances.cosine_matrix(x, y), 1 - cdist(x, y, "cosine"))


def test_large_common_offset_does_not_cancel(rng):
    x, y = rng.normal(size=(6, 4)), rng.normal(size=(9, 4))
    moved = distances.squared_distance_matrix(jnp.asarray(x + 1e3, jnp.float32), jnp.asarray(y + 1e3, jnp.float32))
    assert np.abs(moved - cdist(x, y) ** 2).max() < 1e-2


def test_gradients_are_zero_where_vectors_coincide():
    x = jnp.array([1.0, 2.0])
    assert_close(jax.grad(distances.distance)(x, x), np.zeros(2))
    assert_close(jax.grad(distances.norm)(jnp.zeros(3)), np.zeros(3))
    assert np.isfinite(jax.grad(lambda v: distances.cosine(v, x))(jnp.zeros(2))).all()


def test_zero_vectors_stay_zero():
    assert_close(distances.normalize(jnp.zeros((2, 3))), np.zeros((2, 3)))
    assert_close(distances.cosine(jnp.zeros(3), jnp.ones(3)), 0.0)


def test_nan_is_not_taken_for_a_vector_of_no_length():
    assert np.isnan(distances.norm(jnp.asarray([np.nan, 1.0])))


def test_bytes_do_not_wrap_around(rng):
    x, y = (rng.integers(0, 256, (3, 40)).astype(np.uint8) for _ in range(2))
    for fn in (distances.cosine_matrix, distances.squared_distance_matrix):
        assert_close(fn(jnp.asarray(x), jnp.asarray(y)), fn(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)))
    for fn in (distances.distance, distances.cosine):
        assert_close(fn(jnp.asarray(x[0]), jnp.asarray(y[0])), fn(*jnp.asarray([x[0], y[0]], jnp.float32)))


def test_second_derivatives_where_rows_coincide():
    x = jnp.array([1.0, 2.0])
    found = jax.hessian(lambda z: distances.squared_distance_matrix(z[None], x[None])[0, 0])(x)
    assert_close(found, 2 * np.eye(2))


def test_the_inverse_root_of_nothing_is_zero_with_a_finite_gradient():
    x = jnp.array([4.0, 0.0, -1.0])
    assert distances.safe_inverse_sqrt(x).tolist() == [0.5, 0.0, 0.0]
    assert_close(jax.grad(lambda v: distances.safe_inverse_sqrt(v).sum())(x), np.array([-1 / 16, 0.0, 0.0]))
