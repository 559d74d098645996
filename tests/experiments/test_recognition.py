import jax
import jax.numpy as jnp
import numpy as np

from experiments.common import recognition
from jaxface.linalg import gram
from jaxface.subspace import KernelMap, LinearMap, kernel_transform
from tests.tolerances import assert_close


def test_error_counts_wrong_neighbours():
    gallery, ids = jnp.array([[0.0], [10.0]]), jnp.array([0, 1], jnp.int32)
    probes, truth = jnp.array([[1.0], [9.0], [6.0], [4.0]]), jnp.array([0, 1, 0, 0], jnp.int32)
    assert_close(recognition.error(gallery, ids, probes, truth), 0.25)


def test_cosine_error_ignores_length():
    x = jnp.array([[1.0, 0.0], [0.0, 1.0], [100.0, 1.0], [0.5, 60.0]])
    ids = jnp.array([0, 1, 0, 1], jnp.int32)
    assert_close(recognition.cosine_error(x, ids, jnp.array([0, 1]), jnp.array([2, 3])), 0.0)


def test_widths_can_be_vmapped(rng):
    fitted = LinearMap(mean=jnp.zeros(4), basis=jnp.asarray(rng.normal(size=(4, 3))))
    kept = jax.vmap(recognition.leading, in_axes=(None, 0))(fitted, jnp.array([1, 3]))
    assert_close(kept.basis[0], np.pad(np.asarray(fitted.basis[:, :1]), ((0, 0), (0, 2))))
    assert_close(kept.basis[1], fitted.basis)
    x = jnp.asarray(rng.normal(size=(6, 4)))
    ids = jnp.array([0, 1, 2, 0, 1, 2], jnp.int32)
    z = x @ fitted.basis
    expected = recognition.error(z[:3], ids[:3], z[3:], ids[3:])
    assert_close(recognition.error_of_map(fitted, x, ids, jnp.arange(3), jnp.arange(3, 6)), expected)


def test_leading_coordinates_of_a_kernel_map(rng):
    a, offset = jnp.asarray(rng.normal(size=(6, 3))), jnp.asarray(rng.normal(size=3))
    train = jnp.asarray(rng.normal(size=(6, 4)))
    fitted = KernelMap(kernel=gram.linear(), train=train, coefficients=a, offset=offset)
    whole, kept = (kernel_transform(each, train[0]) for each in (fitted, recognition.leading_of_kernel(fitted, 2)))
    assert_close(kept, whole.at[2].set(0.0))
