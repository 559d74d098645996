import jax.numpy as jnp

from experiments.common import recognition
from jaxface.subspace import LinearMap
from tests.tolerances import assert_close


def test_error_counts_wrong_neighbours():
    gallery, ids = jnp.array([[0.0], [10.0]]), jnp.array([0, 1], jnp.int32)
    probes, truth = jnp.array([[1.0], [9.0], [6.0], [4.0]]), jnp.array([0, 1, 0, 0], jnp.int32)
    assert_close(recognition.error(gallery, ids, probes, truth), 0.25)


def test_cosine_error_ignores_length():
    x = jnp.array([[1.0, 0.0], [0.0, 1.0], [100.0, 1.0], [0.5, 60.0]])
    ids = jnp.array([0, 1, 0, 1], jnp.int32)
    assert_close(recognition.cosine_error(x, ids, jnp.array([0, 1]), jnp.array([2, 3])), 0.0)


def test_error_of_a_map(rng):
    fitted = LinearMap(mean=jnp.zeros(4), basis=jnp.asarray(rng.normal(size=(4, 3))))
    x = jnp.asarray(rng.normal(size=(6, 4)))
    ids = jnp.array([0, 1, 2, 0, 1, 2], jnp.int32)
    z = x @ fitted.basis
    expected = recognition.error(z[:3], ids[:3], z[3:], ids[3:])
    assert_close(recognition.error_of_map(fitted, x, ids, jnp.arange(3), jnp.arange(3, 6)), expected)
