import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.sparse import ATOM_UPDATES, atom_update, ksvd
from jaxface.sparse.atom_update import Codebook
from jaxface.sparse.dictionary import SparseCode, as_vector
from tests.sparse.draws import signals, start
from tests.tolerances import assert_close


def test_every_atom_lowers_the_error_exact_ones_most(rng):
    x, init = signals(rng), start(rng)
    coded = ksvd.code_signals(init, jnp.asarray(x), sparsity=3, block_size=256)
    after = {name: atom_update.update_atoms(coded, atom_update=update) for name, update in ATOM_UPDATES.items()}
    errors = {name: float((book.residual**2).sum()) for name, book in after.items()}
    assert errors["exact"] < errors["approximate"] < float((coded.residual**2).sum())


def test_the_residual_is_that_of_the_codes(rng):
    x, init = signals(rng), start(rng)
    coded = ksvd.code_signals(init, jnp.asarray(x), sparsity=3, block_size=32)
    for book in (coded, atom_update.update_atoms(coded, atom_update=atom_update.approximate)):
        rows = np.asarray(jax.vmap(lambda code: as_vector(code, num_atoms=12))(book.codes))
        assert_close(book.residual, x - rows @ np.asarray(book.atoms))


@pytest.mark.parametrize("spectrum", [[3, 1, 0.5], [2, 2, 1], [2], [1e-8, 1e-9], [5, 4.999, 4.998, 4.99]])
def test_exact_update_is_the_leading_singular_vector(spectrum, rng):
    """On the side of the start. Also where singular values repeat, or there is one only."""
    u, v = (np.linalg.qr(rng.normal(size=(n, len(spectrum))))[0] for n in (40, 30))
    r = (u * np.array(spectrum)) @ v.T
    first = r.T @ rng.normal(size=40)
    found = np.asarray(atom_update.exact(lambda vector: r.T @ (r @ vector), jnp.asarray(first)))
    assert_close(np.linalg.norm(found), 1.0)
    assert_close(np.linalg.norm(r @ found), spectrum[0], factor=10)
    assert found @ first > 0
    assert not np.asarray(atom_update.exact(lambda vector: 0 * vector, jnp.zeros(30))).any()


def test_users_are_counted(rng):
    codes = SparseCode(jnp.asarray([[0, 2], [2, 0], [1, 0]]), jnp.asarray([[1.0, 2], [3, 0], [-1, 0]]))
    np.testing.assert_array_equal(atom_update.count_users(codes, num_atoms=4), [1, 1, 2, 0])
    book = Codebook(jnp.eye(4), codes, jnp.zeros((3, 4)))
    assert_close(atom_update.update_atoms(book, atom_update=atom_update.approximate).atoms[3], np.eye(4)[3])
