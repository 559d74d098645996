import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.linalg import gram
from jaxface.sparse import atom_update, kernel_ksvd, ksvd, omp
from jaxface.sparse.dictionary import Dictionary, KernelDictionary
from tests.reference import sparse_reference as reference
from tests.sparse import draws
from tests.tolerances import assert_close

SETTINGS = {"sparsity": 3, "num_iters": 3, "max_coherence": 1.0, "min_users": 0}


def images(rng, n=30, d=4):
    return rng.normal(size=(n, d))


def test_equals_the_method_in_kernel_values_only(rng):
    x = images(rng)
    kernel = gram.gaussian(bandwidth=2.0)
    init = kernel_ksvd.init(jax.random.key(0), kernel, x, num_atoms=8)
    k = np.asarray(kernel(x, x))
    coefficients, errors = reference.kernel_ksvd(k, np.asarray(init.coefficients), 3, 3)
    fitted, info = kernel_ksvd.fit(init, atom_update=atom_update.exact, **SETTINGS)
    assert_close(info.objective, errors, factor=1e4)
    signs = np.sign(np.diag(coefficients.T @ k @ np.asarray(fitted.coefficients)))
    # Coefficients along tiny eigenvalues of K are free; atoms are compared where they are used, on the images.
    assert_close(k @ np.asarray(fitted.coefficients) * signs, k @ coefficients, factor=1e5)
    assert_close(fitted.gram, fitted.coefficients.T @ k @ fitted.coefficients, factor=1e4)
    assert int(info.rank) == 30


def test_codes_of_training_images_are_those_of_the_fit(rng):
    """The error in feature space, image by image through the kernel, is the first objective of the next fit."""
    x = images(rng)
    kernel = gram.gaussian(bandwidth=2.0)
    fitted, _ = kernel_ksvd.fit(kernel_ksvd.init(jax.random.key(0), kernel, x, num_atoms=8), sparsity=3, num_iters=3)
    codes = jax.vmap(lambda z: omp.kernel_encode(fitted, z, sparsity=3))(jnp.asarray(x))
    left = 0.0
    for i, z in enumerate(x):
        support, values = np.asarray(codes.indices[i]), np.asarray(codes.values[i])
        a = np.asarray(fitted.coefficients)[:, support] @ values
        k = np.asarray(kernel(x, x))
        left += 1 - 2 * a @ np.asarray(kernel(x, z[None]))[:, 0] + a @ k @ a
    again = kernel_ksvd.fit(fitted, **SETTINGS)[1]
    assert_close(again.objective[0], left, factor=100)


def test_the_linear_kernel_is_plain_ksvd(rng):
    x = images(rng, d=6)
    init = kernel_ksvd.init(jax.random.key(1), gram.linear(), x, num_atoms=8)
    fitted, info = kernel_ksvd.fit(init, **SETTINGS)
    plain, plain_info = ksvd.fit(x, Dictionary(atoms=x.T @ init.coefficients), **SETTINGS)
    assert_close(x.T @ fitted.coefficients, plain.atoms, factor=100)
    assert_close(info.objective, plain_info.objective, factor=100)
    assert int(info.rank) == 6


def test_duplicates_and_constant_images_are_finite(rng):
    x = np.repeat(images(rng, n=6), 2, axis=0)
    for rows in (x, np.ones((12, 4))):
        init = kernel_ksvd.init(jax.random.key(0), gram.gaussian(bandwidth=1.0), rows, num_atoms=5)
        fitted, info = kernel_ksvd.fit(init, sparsity=2, num_iters=2)
        assert np.isfinite(fitted.coefficients).all()
        assert int(info.rank) == len(np.unique(rows, axis=0))


def test_a_kernel_that_is_none_is_said(rng):
    x = images(rng)
    kernel = gram.as_kernel(lambda a, b: -(a @ b.T))
    init = KernelDictionary(kernel=kernel, train=jnp.asarray(x), coefficients=jnp.eye(30)[:, :5], gram=jnp.eye(5))
    assert int(kernel_ksvd.fit(init, sparsity=2, num_iters=1)[1].status) == Status.NOT_PSD


def test_the_burden():
    assert kernel_ksvd.gram_bytes(1_000_000, dtype=jnp.float32) == 4 * 10**12
    assert kernel_ksvd.gram_bytes(1000, dtype=jnp.float64) == 8_000_000
    with pytest.raises(ValueError, match="num_samples must be at least 1; got 0"):
        kernel_ksvd.gram_bytes(0, dtype=jnp.float32)


def test_a_kernel_out_of_range_is_a_status(rng):
    x = draws.centered_faces(rng)
    for scale, status in ((2.0**-100, Status.RANK_DEFICIENT), (2.0**80, Status.NON_FINITE)):
        start = kernel_ksvd.init(jax.random.key(0), gram.linear(), np.float32(scale) * x, num_atoms=10)
        start = jax.tree.map(lambda leaf: jnp.nan_to_num(leaf), start)
        assert int(kernel_ksvd.fit(start, sparsity=3, num_iters=1)[1].status) == status
