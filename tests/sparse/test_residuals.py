import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import sparse
from jaxface.linalg import gram
from jaxface.sparse import kernel_ksvd, ksvd
from jaxface.sparse.dictionary import Dictionary
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
    x, z = rng.normal(size=(12, 4)), rng.normal(size=4)
    init = kernel_ksvd.init(jax.random.key(0), kernel, x, num_atoms=6)
    fitted, _ = kernel_ksvd.fit(init, sparsity=2, num_iters=2)
    k = np.asarray(kernel(np.vstack([x, z]), np.vstack([x, z])))
    support, values = reference.kernel_omp(k[:12, :12], np.asarray(fitted.coefficients), k[:12, 12], 2)
    a = np.append(-np.asarray(fitted.coefficients)[:, support] @ values, 1)
    assert_close(sparse.kernel_residual(fitted, z, sparsity=2), a @ k @ a, factor=1e4)


def test_a_signal_belongs_to_the_dictionary_of_its_class(rng):
    """Classes that differ in their subspace, and, for the kernel, also where lines through zero coincide."""
    bases = rng.normal(size=(3, 2, 8))
    x = np.einsum("cnk,ckd->cnd", rng.normal(size=(3, 20, 2)), bases)
    dictionaries = jax.vmap(lambda rows: ksvd.fit(rows, ksvd.init(jax.random.key(0), rows, num_atoms=5),
                                                  sparsity=2, num_iters=3)[0])(jnp.asarray(x[:, :15]))  # fmt: skip
    tests = jnp.asarray(x[:, 15:].reshape(-1, 8))
    left = jax.vmap(lambda y: jax.vmap(lambda d: sparse.residual(d, y, sparsity=2))(dictionaries))(tests)
    assert (left.argmin(axis=1) == np.repeat(np.arange(3), 5)).all()
    # Two classes on one line, near and far: no ordinary dictionary tells them apart.
    line = np.stack([rng.uniform(1, 2, 20), rng.uniform(4, 5, 20)])[..., None] * np.ones((1, 1, 3))
    kernel = gram.gaussian(bandwidth=1.0)
    models = jax.vmap(lambda rows: kernel_ksvd.fit(kernel_ksvd.init(jax.random.key(0), kernel, rows, num_atoms=4),
                                                   sparsity=2, num_iters=2)[0])(jnp.asarray(line[:, :15]))  # fmt: skip
    tests = jnp.asarray(line[:, 15:].reshape(-1, 3))
    left = jax.vmap(lambda y: jax.vmap(lambda d: sparse.kernel_residual(d, y, sparsity=2))(models))(tests)
    assert (left.argmin(axis=1) == np.repeat(np.arange(2), 5)).all()
    flat = Dictionary(atoms=jnp.asarray(line[0, :4].T))
    assert (jax.vmap(lambda y: sparse.residual(flat, y, sparsity=1))(tests) < 1e-10).all()
