import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.sparse import dictionary, omp
from jaxface.sparse.dictionary import Dictionary, SparseCode, as_vector, decode, shrink, unit_atoms
from tests.sparse import draws
from tests.tolerances import assert_close


def test_a_code_is_a_vector_and_a_sum_of_atoms(rng):
    atoms = rng.normal(size=(5, 7))
    code = SparseCode(jnp.asarray([4, 2, 0]), jnp.asarray([1.5, -2.0, 0.0]))  # the pursuit ended after two atoms
    x = np.zeros(7)
    x[[4, 2]] = 1.5, -2.0
    assert_close(as_vector(code, num_atoms=7), x)
    assert_close(decode(Dictionary(atoms=jnp.asarray(atoms)), code), atoms @ x)
    assert_close(dictionary.weighted_sum(jnp.asarray(atoms.T), code.indices, code.values), atoms @ x)


def test_an_atom_is_shrunk_by_its_largest_entry():
    """(21): the ratios of the entries stay, and a small atom stays as it is."""
    atom = jnp.asarray([0.5, -2.0, 1.0])
    assert_close(shrink(atom, 0.5), np.array([0.125, -0.5, 0.25]))
    assert_close(shrink(atom, 2.0), atom)
    assert_close(shrink(jnp.zeros(3), 0.5), np.zeros(3))


def test_unit_atoms_keep_a_zero_atom(rng):
    atoms = rng.normal(size=(4, 3))
    atoms[:, 1] = 0
    unit, length = unit_atoms(jnp.asarray(atoms))
    assert_close(np.linalg.norm(unit, axis=0), np.array([1.0, 0, 1]))
    assert_close(unit * length[None, :], atoms)
    assert float(length[1]) == 1


def test_a_batch_of_codes_is_no_code(rng):
    atoms = draws.dictionary(rng)
    codes = omp.encode_batch(atoms, rng.normal(size=(5, 8)), sparsity=2)
    with pytest.raises(ValueError, match=r"indices must have shape \[s\]; got shape \(5, 2\)"):
        decode(atoms, codes)
    with pytest.raises(ValueError, match=r"indices must have shape \[s\]; got shape \(5, 2\)"):
        as_vector(codes, num_atoms=12)
