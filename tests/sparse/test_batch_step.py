import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.sparse import batch_step
from jaxface.sparse.dictionary import SparseCode
from tests.tolerances import assert_close

B, K, D, S = 40, 12, 8, 3


@pytest.fixture
def codes(rng):
    """With an atom that nobody uses, one that everybody uses, and signals whose pursuit ended early."""
    indices = np.stack([[0, *rng.permutation(np.arange(1, K - 1))[: S - 1]] for _ in range(B)]).astype(np.int32)
    values = rng.normal(size=(B, S))
    values[::7, 1:], indices[::7, 1:] = 0, 0
    return SparseCode(jnp.asarray(indices), jnp.asarray(values))


def dense(codes):
    rows = np.zeros((B, K))
    np.add.at(rows, (np.arange(B)[:, None], np.asarray(codes.indices)), np.asarray(codes.values))
    return rows


@pytest.mark.parametrize("size", [5, 1024])
def test_the_gram_matrix_in_tiles(size, rng, monkeypatch):
    monkeypatch.setattr(batch_step, "_TILE", size)
    atoms = rng.normal(size=(K, D))
    assert_close(batch_step.gram(jnp.asarray(atoms)), atoms @ atoms.T)
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    cosines = np.abs(np.tril(atoms @ atoms.T, -1))
    found = np.asarray(batch_step.repeats(batch_step.gram(jnp.asarray(atoms)), 0.6))
    assert found.tolist() == (cosines > 0.6).any(axis=1).tolist()
    assert 0 < found.sum() < K


def test_correlations_with_the_residual_are_a_product_with_all_codes(codes, rng):
    """Also as the sum over two parts of a batch."""
    residual = jnp.asarray(rng.normal(size=(B, D)))
    whole = batch_step.correlate(codes, residual, num_atoms=K)
    assert_close(whole, dense(codes).T @ np.asarray(residual))
    assert not np.asarray(whole[K - 1]).any()
    halves = [
        batch_step.correlate(SparseCode(codes.indices[part], codes.values[part]), residual[part], num_atoms=K)
        for part in (slice(0, 20), slice(20, 40))
    ]
    assert_close(halves[0] + halves[1], whole)


def test_the_guard_ends_what_steps_of_full_length_drive_apart(rng):
    """Codes that nearly agree on all atoms: steps by the squares alone overshoot, guarded ones descend."""
    rows = np.abs(1 + 0.2 * rng.normal(size=(B, S)))
    codes = SparseCode(jnp.tile(jnp.arange(S, dtype=jnp.int32)[None, :], (B, 1)), jnp.asarray(rows))
    x = rng.normal(size=(B, D))
    weight = batch_step.weigh(codes, num_atoms=K)
    assert_close(weight, (dense(codes) ** 2).sum(axis=0))
    errors, cuts = {}, 0
    for name in ("plain", "guarded"):
        atoms, errors[name] = jnp.zeros((K, D)), []
        for _ in range(6):
            residual = jnp.asarray(x) - dense(codes) @ atoms
            errors[name].append(float((residual**2).sum()))
            gap = batch_step.correlate(codes, residual, num_atoms=K)
            step = jnp.where(weight[:, None] > 0, gap / jnp.where(weight > 0, weight, 1)[:, None], 0)
            length, is_cut = batch_step.guarded(step, weight, jnp.zeros(K), codes, block_size=16)
            cuts += int(is_cut) if name == "guarded" else 0
            atoms = atoms + (length if name == "guarded" else 1) * step
    assert errors["plain"][-1] > 10 * errors["plain"][0]
    assert (np.diff(errors["guarded"]) < 0).all()
    assert cuts >= 1
    assert_close(batch_step.guarded(jnp.zeros((K, D)), weight, weight, codes, block_size=16), (jnp.ones(()), False))


def test_atoms_become_signals(rng):
    atoms, x = rng.normal(size=(K, D)), rng.normal(size=(B, D))
    replaced = np.isin(np.arange(K), (2, 5, 11))
    signals = rng.permutation(B)[:K]
    new = batch_step.replace(jnp.asarray(atoms), jnp.asarray(x), jnp.asarray(signals), jnp.asarray(replaced))
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert_close(new, np.where(replaced[:, None], unit[signals], atoms))
