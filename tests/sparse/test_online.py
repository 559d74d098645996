import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.blocks import padded_batches
from jaxface.core.fitinfo import Status
from jaxface.runtime.checkpoint import Checkpoints
from jaxface.sparse import ksvd, omp, online
from jaxface.sparse.dictionary import Dictionary, as_vector
from tests.reference import sparse_reference as reference
from tests.sparse import draws
from tests.tolerances import assert_close

K, D = 12, 8


def signals(rng, n=160):
    return rng.normal(size=(n, D)) * np.linspace(3, 0.3, D)


def batches(x, size=40):
    return [x[i : i + size] for i in range(0, len(x), size)]


def stream(rng):
    return online.init(draws.dictionary(rng, d=D, k=K))


def error(dictionary, x):
    codes = omp.encode_batch(dictionary, x, sparsity=3)
    rows = jax.vmap(lambda code: as_vector(code, num_atoms=dictionary.atoms.shape[1]))(codes)
    return float(((x - rows @ dictionary.atoms.T) ** 2).sum())


def test_the_sums_are_those_of_the_codes(rng):
    """With every dictionary's own codes, batch after batch, and without forgetting; up to the scaling of atoms."""
    x = signals(rng)
    state = stream(rng)
    moment, cross = np.zeros((K, K)), np.zeros((D, K))
    for batch in batches(x):
        codes = omp.encode_batch(state.dictionary, batch, sparsity=3)
        rows = np.asarray(jax.vmap(lambda code: as_vector(code, num_atoms=K))(codes))
        moment, cross = moment + rows.T @ rows, cross + batch.T @ rows
        before = np.asarray(state.dictionary.atoms)
        state, _ = online.update(state, batch, sparsity=3, forgetting=0.0, max_coherence=1.0, min_share=0.0)
        after = np.asarray(state.dictionary.atoms)
        scale = np.sqrt(np.diag(state.code_moment) / np.where(np.diag(moment) > 0, np.diag(moment), 1))
        moment, cross = moment * np.outer(scale, scale), cross * scale
        assert_close(state.code_moment, moment, factor=10)
        assert_close(state.cross_moment, cross, factor=10)
        # The atoms before normalisation descend; so do those after, with their own sums.
        assert reference.surrogate(after, moment, cross) < reference.surrogate(before / scale, moment, cross)
    assert int(state.num_batches) == 4


def test_forgetting_fades_what_was_before(rng):
    """At batch t = 2 with exponent 1 the past counts a half, with infinity-like exponents nothing."""
    x = signals(rng)
    state, _ = online.update(stream(rng), x[:40], sparsity=3, min_share=0.0, max_coherence=1.0)
    coded = [online.update(state, x[40:80], sparsity=3, forgetting=f, min_share=0.0, max_coherence=1.0)[0]
             for f in (0.0, 1.0, 60.0)]  # fmt: skip
    users = [np.asarray(s.num_users) for s in coded]
    assert_close(users[1] - users[2], np.asarray(state.num_users) / 2)
    assert_close(users[0] - users[2], np.asarray(state.num_users))


def test_one_pass_comes_near_the_fit_in_memory():
    rng = np.random.default_rng(1)
    truth = draws.unit_columns(rng, D, K)
    x, _ = draws.sparse_signals(rng, truth, 4000, 3, noise=0.1)
    start = ksvd.init(jax.random.key(0), x[:200], num_atoms=K)
    in_memory, _ = ksvd.fit(x, start, sparsity=3, num_iters=10)
    state, info = online.fit_stream(online.init(start), batches(x, 200), sparsity=3)
    assert error(state.dictionary, x) < 1.1 * error(in_memory, x)
    assert error(state.dictionary, x) < 0.6 * error(start, x)
    assert info.objective.shape == (20,)
    assert info.objective[-1] < info.objective[0]
    assert int(info.status) == Status.OK


def test_an_interrupted_stream_goes_on_as_if_nothing_had_happened(rng, tmp_path):
    x = signals(rng)
    whole, info = online.fit_stream(stream(np.random.default_rng(0)), batches(x), sparsity=3)
    first, _ = online.fit_stream(stream(np.random.default_rng(0)), batches(x)[:2], sparsity=3)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(2, first)
    step, restored = checkpoints.latest(first)
    checkpoints.close()
    resumed, tail = online.fit_stream(restored, batches(x)[step:], sparsity=3)
    for left, right in zip(jax.tree.leaves(resumed), jax.tree.leaves(whole), strict=True):
        np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(tail.objective, info.objective[2:])


def test_rows_of_zeros_fill_a_batch_without_effect(rng):
    x = signals(rng, n=70)
    plain, info = online.fit_stream(stream(np.random.default_rng(0)), batches(x), sparsity=3)
    padded = (rows for rows, _ in padded_batches(x, block_size=40))
    filled, filled_info = online.fit_stream(stream(np.random.default_rng(0)), padded, sparsity=3)
    assert_close(filled, plain)
    assert_close(filled_info, info)


def test_the_state_does_not_grow(rng):
    sizes = {
        num: sum(leaf.nbytes for leaf in jax.tree.leaves(state))
        for num in (1, 4)
        for state in [online.fit_stream(stream(rng), batches(signals(rng))[:num], sparsity=3)[0]]
    }
    assert sizes[1] == sizes[4]


def test_unused_atoms_move_to_signals_that_are_coded_badly(rng):
    """An atom outside the span of all signals, and a signal that only its own direction explains."""
    x = signals(rng, n=40)
    x[:, 7] = 0
    x[5] = 300 * np.eye(8)[6]
    atoms = np.asarray(draws.dictionary(rng).atoms).copy()
    atoms[7] = 0
    atoms[:, 3] = np.eye(8)[7]
    state, step = online.update(online.init(Dictionary(atoms=jnp.asarray(atoms))), x, sparsity=3)
    assert int(step.num_replaced) >= 1
    assert not np.asarray(state.code_moment[3]).any()
    assert not np.asarray(state.cross_moment[:, 3]).any()
    assert abs(state.dictionary.atoms[7, 3]) < 1e-12
    assert_close(jnp.linalg.norm(state.dictionary.atoms, axis=0), np.ones(K))


def test_zero_batches_change_nothing(rng):
    state = stream(rng)
    after, step = online.update(state, np.zeros((40, D)), sparsity=3)
    assert_close(after.dictionary.atoms, state.dictionary.atoms)
    assert float(step.relative_error) == 0
    assert np.isfinite(after.code_moment).all()


def test_no_batches():
    with pytest.raises(ValueError, match="batches must hold at least one batch; got none"):
        online.fit_stream(stream(np.random.default_rng(0)), iter(()), sparsity=3)


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**-66, 2.0**80])
def test_a_stream_out_of_range_learns_nothing_and_says_so(scale, rng):
    x = np.float32(scale) * draws.centered_faces(rng)
    start = online.init(ksvd.init(jax.random.key(0), x, num_atoms=10))
    state, info = online.fit_stream(start, [x[:20], x[20:]], sparsity=3)
    assert int(info.status) == Status.NON_FINITE
    np.testing.assert_array_equal(state.dictionary.atoms, start.dictionary.atoms)


def test_a_batch_without_signals(rng):
    with pytest.raises(ValueError, match="signals of a batch must be at least 1; got 0"):
        online.update(stream(rng), np.zeros((0, D)), sparsity=1)
