import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import sparse
from jaxface.linalg import gram
from jaxface.sparse import kernel_ksvd
from jaxface.sparse.dictionary import Dictionary, KernelDictionary
from tests.reference import sparse_reference as reference
from tests.tolerances import assert_close


def test_the_residual_is_what_the_code_of_the_reference_leaves(rng):
    atoms, y = rng.normal(size=(6, 9)), rng.normal(size=6)
    support, values = reference.omp(atoms, y, 3)
    expected = ((y - atoms[:, support] @ values) ** 2).sum()
    assert_close(sparse.residual(Dictionary(atoms=jnp.asarray(atoms)), y, sparsity=3), expected, factor=10)


@pytest.mark.parametrize("kernel", [gram.gaussian(bandwidth=2.0), gram.polynomial(degree=2)])
def test_the_residual_in_feature_space_by_kernel_values(kernel, rng):
    """From the matrix of all kernel values, the image among them."""
    x, z, a = rng.normal(size=(12, 4)), rng.normal(size=4), rng.normal(size=(12, 6))
    k = np.asarray(kernel(np.vstack([x, z]), np.vstack([x, z])))
    atoms = KernelDictionary(kernel=kernel, train=x, coefficients=a, gram=a.T @ k[:12, :12] @ a)
    support, values = reference.kernel_omp(k[:12, :12], a, k[:12, 12], 2)
    weights = np.append(-a[:, support] @ values, 1)
    assert_close(sparse.kernel_residual(atoms, z, sparsity=2), weights @ k @ weights, factor=1e3)


def test_a_signal_belongs_to_the_dictionary_of_its_class(rng):
    """Classes that differ in their subspace, and, for the kernel, also where lines through zero coincide."""
    x = np.einsum("cnk,ckd->cnd", rng.normal(size=(3, 9, 2)), rng.normal(size=(3, 2, 8)))
    dictionaries = Dictionary(atoms=jnp.asarray(x[:, :5].transpose(0, 2, 1)))
    tests = jnp.asarray(x[:, 5:].reshape(-1, 8))
    left = jax.vmap(lambda y: jax.vmap(lambda d: sparse.residual(d, y, sparsity=2))(dictionaries))(tests)
    assert (left.argmin(axis=1) == np.repeat(np.arange(3), 4)).all()
    # Two classes on one line, near and far: no ordinary dictionary tells them apart.
    line = np.stack([rng.uniform(1, 2, 9), rng.uniform(4, 5, 9)])[..., None] * np.ones((1, 1, 3))
    kernel = gram.gaussian(bandwidth=1.0)
    models = jax.vmap(lambda rows: kernel_ksvd.init(jax.random.key(0), kernel, rows, num_atoms=4))
    tests = jnp.asarray(line[:, 5:].reshape(-1, 3))
    near_and_far = models(jnp.asarray(line[:, :5]))
    left = jax.vmap(lambda y: jax.vmap(lambda d: sparse.kernel_residual(d, y, sparsity=2))(near_and_far))(tests)
    assert (left.argmin(axis=1) == np.repeat(np.arange(2), 4)).all()
    flat = Dictionary(atoms=jnp.asarray(line[0, :4].T))
    assert (jax.vmap(lambda y: sparse.residual(flat, y, sparsity=1))(tests) < 1e-10).all()
