import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import orthogonal_mp_gram

from jaxface.linalg import gram
from jaxface.sparse import ksvd, omp
from jaxface.sparse.dictionary import Dictionary, KernelDictionary, as_vector, decode
from tests.reference import sparse_reference as reference
from tests.sparse import draws
from tests.tolerances import assert_close

N, D, K, S = 20, 8, 12, 4


def signals(rng, n=N, d=D):
    return rng.normal(size=(n, d))


def assert_same_codes(codes, atoms, x, sparsity, *, factor=10.0):
    for i, y in enumerate(x):
        support, values = reference.omp(atoms, y, sparsity)
        used = len(support)
        np.testing.assert_array_equal(codes.indices[i][:used], support)
        assert_close(codes.values[i][:used], values, factor=factor)
        assert not np.asarray(codes.values[i][used:]).any()
        assert not np.asarray(codes.indices[i][used:]).any()


@pytest.mark.parametrize("unit", [True, False])
def test_equals_least_squares_on_supports_of_algorithm_1(unit, rng):
    dictionary, x = draws.dictionary(rng, unit=unit), signals(rng)
    codes = omp.encode_batch(dictionary, x, sparsity=S)
    assert_same_codes(codes, np.asarray(dictionary.atoms), x, S)


def test_more_atoms_than_one_width_of_sums(rng):
    """Sums over the support have several static widths; 12 atoms need three of them, and 150 are three groups."""
    dictionary, x = draws.dictionary(rng, d=20, k=150), signals(rng, d=20)
    codes = omp.encode_batch(dictionary, x, sparsity=12)
    assert_same_codes(codes, np.asarray(dictionary.atoms), x, 12, factor=100)


def test_supports_of_scikit_learn(rng):
    dictionary, x = draws.dictionary(rng, d=20, k=30), signals(rng, d=20)
    atoms = np.asarray(dictionary.atoms)
    peer = orthogonal_mp_gram(atoms.T @ atoms, atoms.T @ x.T, n_nonzero_coefs=6).T
    codes = omp.encode_batch(dictionary, x, sparsity=6)
    assert_close(jax.vmap(lambda code: as_vector(code, num_atoms=30))(codes), peer, factor=10)


def test_residual_is_orthogonal_to_the_atoms_taken(rng):
    dictionary, x = draws.dictionary(rng, unit=False), signals(rng)
    codes = omp.encode_batch(dictionary, x, sparsity=S)
    for i, y in enumerate(x):
        code = jax.tree.map(lambda leaf, i=i: leaf[i], codes)
        taken = np.asarray(dictionary.atoms)[:, code.indices]
        assert_close(taken.T @ (y - np.asarray(decode(dictionary, code))) / np.linalg.norm(taken, axis=0), np.zeros(S))
        assert len(set(np.asarray(code.indices).tolist())) == S


def test_one_signal_equals_the_batch_and_the_gram_form(rng):
    dictionary, x = draws.dictionary(rng, unit=False), signals(rng)
    codes = omp.encode_batch(dictionary, x, sparsity=S)
    atoms = dictionary.atoms
    one = jax.jit(lambda y: omp.encode(dictionary, y, sparsity=S))
    known = jax.jit(lambda y: omp.encode_gram(atoms.T @ atoms, y @ atoms, y @ y, sparsity=S))
    for i in range(3):
        expected = jax.tree.map(lambda leaf, i=i: leaf[i], codes)
        assert_close(one(x[i]), expected, factor=10)
        assert_close(known(x[i]), expected, factor=10)


def test_the_block_size_changes_nothing(rng):
    dictionary, x = draws.dictionary(rng), signals(rng)
    whole = omp.encode_batch(dictionary, x, sparsity=S)
    assert_close(omp.encode_batch(dictionary, x, sparsity=S, block_size=7), whole)


def test_scaling_atoms_scales_coefficients_only(rng):
    dictionary, x = draws.dictionary(rng), signals(rng)
    scale = rng.uniform(0.1, 10, size=K) * rng.choice([-1, 1], K)
    codes = omp.encode_batch(dictionary, x, sparsity=S)
    scaled = omp.encode_batch(Dictionary(atoms=dictionary.atoms * scale[None, :]), x, sparsity=S)
    np.testing.assert_array_equal(scaled.indices, codes.indices)
    assert_close(np.asarray(scaled.values) * scale[scaled.indices], codes.values, factor=10)


def test_equivariant_under_isometries(rng):
    """y -> c Q y and D -> Q D leave the supports and multiply the code by c."""
    dictionary, x = draws.dictionary(rng), signals(rng)
    q = np.linalg.qr(rng.normal(size=(D, D)))[0]
    codes = omp.encode_batch(dictionary, x, sparsity=S)
    turned = omp.encode_batch(Dictionary(atoms=q @ dictionary.atoms), 3 * x @ q.T, sparsity=S)
    np.testing.assert_array_equal(turned.indices, codes.indices)
    assert_close(turned.values, 3 * codes.values, factor=10)


def test_sparse_signals_are_recovered(rng):
    """2 atoms of 24 in 16 dimensions: where the reference finds them, so does this, and it stops there."""
    dictionary = draws.dictionary(rng, d=16, k=24)
    x, codes = draws.sparse_signals(rng, np.asarray(dictionary.atoms), 30, 2)
    found = omp.encode_batch(dictionary, x, sparsity=5)
    recovered = jax.vmap(lambda code: as_vector(code, num_atoms=24))(found)
    right = np.abs(np.asarray(recovered) - codes).max(axis=1) < 1e-8
    assert right.mean() > 0.8
    assert not np.asarray(found.values)[right][:, 2:].any()


def test_ties_go_to_the_lowest_index():
    dictionary = Dictionary(atoms=jnp.asarray([[0.0, 1, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]]))
    code = omp.encode(dictionary, jnp.asarray([1.0, -1, 1]), sparsity=3)
    np.testing.assert_array_equal(code.indices, [0, 1, 3])
    assert_close(code.values, np.array([1.0, 1, -1]))


@pytest.mark.parametrize("k", [1, 64, 200])
def test_the_largest_is_the_first_among_equals(k, rng):
    correlations = rng.integers(-3, 4, size=(50, k)).astype(float)
    found = jax.jit(jax.vmap(omp._largest))(correlations)
    np.testing.assert_array_equal(found, np.abs(correlations).argmax(axis=1))


def test_no_more_atoms_than_dimensions(rng):
    with pytest.raises(ValueError, match=r"sparsity must be at most 8 \(the dimension\); got 9"):
        omp.encode(draws.dictionary(rng), rng.normal(size=D), sparsity=9)


def test_duplicates_are_not_taken_twice(rng):
    """All atoms in the plane of the first two: a third one would make the least squares singular."""
    plane = draws.unit_columns(rng, 8, 2)
    atoms = np.concatenate([plane, plane @ rng.normal(size=(2, 6)), plane], axis=1)
    x = rng.normal(size=(5, 8))
    for dtype in (np.float64, np.float32):
        codes = omp.encode_batch(Dictionary(atoms=jnp.asarray(atoms, dtype)), x.astype(dtype), sparsity=5)
        assert not np.asarray(codes.values[:, 2:]).any()
        projected = x @ plane @ np.linalg.pinv(plane)
        rebuilt = jax.vmap(lambda code: decode(Dictionary(atoms=jnp.asarray(atoms, dtype)), code))(codes)  # noqa: B023
        assert_close(rebuilt, projected.astype(dtype), factor=100)


def test_an_atom_that_nearly_depends_on_those_taken_ends_the_pursuit():
    """It correlates with the residual beyond rounding, but what it adds to the span is lost in its length."""
    atoms = np.array([[1.0, 0, 1], [0, 1, 1], [0, 0, 1e-9]])
    code = omp.encode(Dictionary(atoms=jnp.asarray(atoms)), jnp.asarray([0.1, 2, 1]), sparsity=3)
    np.testing.assert_array_equal(code.indices, [1, 0, 0])
    assert_close(code.values, np.array([2, 0.1, 0]))


def test_an_atom_is_not_taken_twice_where_its_rounding_is_largest():
    """Coefficients of 1e6 on two coherent atoms leave more of these than what a third one has to explain."""
    atoms = np.array([[1.0, 1, 0], [0, 1e-6, 0], [0, 0, 1]])
    code = omp.encode(Dictionary(atoms=jnp.asarray(atoms)), jnp.asarray([1, 1, 1e-11]), sparsity=3)
    np.testing.assert_array_equal(code.indices, [1, 0, 2])
    assert_close(code.values[2], 1e-11)


def test_zero_signals_and_zero_atoms(rng):
    atoms = np.asarray(draws.dictionary(rng).atoms).copy()
    atoms[:, 0] = 0
    x = np.concatenate([np.zeros((2, D)), signals(rng, 3)])
    codes = omp.encode_batch(Dictionary(atoms=jnp.asarray(atoms)), x, sparsity=S)
    assert not np.asarray(codes.values[:2]).any()
    assert (np.asarray(codes.indices[2:]) > 0).all()
    assert np.isfinite(codes.values).all()
    empty = omp.encode_batch(Dictionary(atoms=jnp.zeros((D, K))), x, sparsity=S)
    assert not np.asarray(empty.values).any()


@pytest.mark.parametrize("tol", [0.2, 0.5, 0.9])
def test_stops_at_the_residual_asked_for(tol, rng):
    dictionary, x = draws.dictionary(rng, d=20, k=30), signals(rng, d=20)
    codes = omp.encode_batch(dictionary, x, sparsity=10, tol=tol)
    lengths = [len(reference.omp(np.asarray(dictionary.atoms), y, 10, tol)[0]) for y in x]
    np.testing.assert_array_equal((np.asarray(codes.values) != 0).sum(axis=1), lengths)
    assert len(set(lengths)) > 1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1e-6, 1.0, 1e6]))
def test_the_error_falls_with_every_atom_and_scale_does_not_matter(seed, scale):
    rng = np.random.default_rng(seed)
    dictionary, x = draws.dictionary(rng), scale * signals(rng, 4)
    codes = omp.encode_batch(dictionary, x, sparsity=6)
    assert np.isfinite(codes.values).all()
    for i, y in enumerate(x):
        assert_close(codes.values[i] / scale, reference.omp(np.asarray(dictionary.atoms), y / scale, 6)[1], factor=1e3)
        left = [np.linalg.norm(y)]
        for s in range(1, 7):
            taken = np.asarray(dictionary.atoms)[:, codes.indices[i, :s]]
            left.append(np.linalg.norm(y - taken @ np.linalg.lstsq(taken, y, rcond=None)[0]))
        assert np.all(np.diff(left) <= 1e-9 * left[0])


def test_float32_keeps_its_digits(rng):
    """Coherent atoms, condition number 1e3 of their Gram matrix: refinement holds what normal equations would lose."""
    base = draws.unit_columns(rng, 30, 1)
    atoms = base + 0.15 * rng.normal(size=(30, 40))
    x = rng.normal(size=(10, 30)) + 5 * base.T
    codes = omp.encode_batch(Dictionary(atoms=jnp.asarray(atoms, jnp.float32)), x.astype(np.float32), sparsity=8)
    assert codes.values.dtype == jnp.float32
    for i, y in enumerate(x):
        taken = atoms[:, codes.indices[i]]
        assert_close(codes.values[i], np.linalg.lstsq(taken, y, rcond=None)[0].astype(np.float32), factor=30)


def test_derivatives_are_those_of_the_least_squares(rng):
    dictionary, y = draws.dictionary(rng, unit=False), rng.normal(size=D)
    support, _ = reference.omp(np.asarray(dictionary.atoms), y, S)

    def by_lstsq(atoms, y):
        taken = atoms[:, np.array(support)]
        return jnp.linalg.solve(taken.T @ taken, taken.T @ y)

    def by_omp(atoms, y):
        return omp.encode(Dictionary(atoms=atoms), y, sparsity=S).values

    def by_batch(atoms, y):
        return omp.encode_batch(Dictionary(atoms=atoms), y[None, :], sparsity=S).values[0]

    def derivatives(fn):
        return jax.jit(jax.jacobian(fn, argnums=(0, 1)))(dictionary.atoms, jnp.asarray(y))

    expected = derivatives(by_lstsq)
    for fn in (by_omp, by_batch):
        assert_close(derivatives(fn), expected, factor=100)


def test_kernel_pursuit_equals_its_definition(rng):
    x = rng.normal(size=(15, 4))
    kernel = gram.gaussian(bandwidth=2.0)
    k = np.asarray(kernel(x, x))
    a = rng.normal(size=(15, 6))
    dictionary = KernelDictionary(
        kernel=kernel, train=jnp.asarray(x), coefficients=jnp.asarray(a), gram=jnp.asarray(a.T @ k @ a)
    )
    encode = jax.jit(lambda z: omp.kernel_encode(dictionary, z, sparsity=3))
    for z in rng.normal(size=(4, 4)):
        support, values = reference.kernel_omp(k, a, np.asarray(kernel(x, z[None]))[:, 0], 3)
        code = encode(z)
        np.testing.assert_array_equal(code.indices, support)
        assert_close(code.values, values, factor=100)


def test_the_linear_kernel_is_the_plain_pursuit(rng):
    x, y = rng.normal(size=(10, 6)), rng.normal(size=6)
    a = rng.normal(size=(10, 8))
    atoms = x.T @ a
    dictionary = KernelDictionary(
        kernel=gram.linear(), train=jnp.asarray(x), coefficients=jnp.asarray(a), gram=jnp.asarray(atoms.T @ atoms)
    )
    expected = omp.encode(Dictionary(atoms=jnp.asarray(atoms)), y, sparsity=3)
    assert_close(omp.kernel_encode(dictionary, y, sparsity=3), expected, factor=10)


def test_nan_is_refused_by_coders_and_unknown_inside_a_transformation(rng):
    x = draws.centered_faces(rng)
    dictionary = ksvd.init(jax.random.key(0), x, num_atoms=10)
    expected = omp.encode_batch(dictionary, x, sparsity=3)
    lost = x.copy()
    lost[3, 7] = np.nan
    with pytest.raises(ValueError, match="x must be finite; 1 of 1200"):
        omp.encode_batch(dictionary, lost, sparsity=3)
    for coder in (
        lambda x: omp.encode_batch(dictionary, x, sparsity=3),
        jax.vmap(lambda x: omp.encode(dictionary, x, sparsity=3)),
    ):
        found = jax.jit(coder)(lost)
        assert (found.indices[3] == -1).all()
        assert np.isnan(found.values[3]).all()
        others = np.delete(np.arange(len(x)), 3)
        np.testing.assert_array_equal(found.indices[others], expected.indices[others])
        assert np.isnan(decode(dictionary, jax.tree.map(lambda leaf: leaf[3], found))).all()
    atoms = dictionary.atoms.at[2, 1].set(jnp.nan)
    assert np.isnan(jax.jit(lambda a: omp.encode(Dictionary(atoms=a), x[0], sparsity=3).values)(atoms)).all()


def test_narrow_types_are_refused(rng):
    x = draws.centered_faces(rng).astype(np.float16)
    with pytest.raises(ValueError, match="got dtype float16"):
        omp.encode(Dictionary(atoms=jnp.eye(30, 10)), x[0], sparsity=3)
