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
KEEP = {"max_coherence": 1.0, "min_share": 0.0}  # no atom is replaced


def signals(rng, n=160):
    return rng.normal(size=(n, D)) * np.linspace(3, 0.3, D)


def batches(x, size=40):
    return [x[i : i + size] for i in range(0, len(x), size)]


def stream(rng):
    return online.init(draws.dictionary(rng, d=D, k=K))


def dense(codes):
    return jax.vmap(lambda code: as_vector(code, num_atoms=K))(codes)


def error(dictionary, x):
    rows = dense(omp.encode_batch(dictionary, x, sparsity=3))
    return float(((x - rows @ dictionary.atoms.T) ** 2).sum())


def together(rng):
    """Three atoms in nearly equal parts, and a direction that none of them has: each alone would make up for it."""
    pattern = np.eye(D)[:3].sum(axis=0) + 0.3 * np.eye(D)[7]
    return rng.uniform(1, 2, size=(160, 1)) * pattern + 0.01 * rng.normal(size=(160, D))


@pytest.mark.parametrize(("draw", "is_cut"), [(signals, False), (together, True)])
def test_a_step_is_its_formula_written_densely(draw, is_cut, rng):
    """Batch after batch, with the codes of every dictionary; the guard cuts steps where codes overlap much."""
    x = draw(rng)
    atoms = np.concatenate([np.eye(D)[:, :6], draws.unit_columns(rng, D, K - 6)], axis=1)
    state = online.init(Dictionary(atoms=jnp.asarray(atoms)))
    weight, num_cut = np.zeros(K), 0
    for number, batch in enumerate(batches(x), start=1):
        codes = np.asarray(dense(omp.encode_batch(Dictionary(atoms=jnp.asarray(atoms)), batch, sparsity=3)))
        atoms, weight, length = reference.stream_step(atoms, (1 - 1 / number) * weight, codes, batch)
        num_cut += length < 1
        state, step = online.update(state, batch, sparsity=3, **KEEP)
        assert bool(step.is_cut) == (length < 1)
        assert_close(state.atoms, atoms.T, factor=10)
        assert_close(state.weight, weight, factor=10)
    assert int(state.num_batches) == 4
    assert int(state.num_cut) == num_cut
    assert (num_cut > 0) == is_cut


def test_forgetting_fades_what_was_before(rng):
    """At batch t = 2 with exponent 1 the past counts a half, with infinity-like exponents nothing."""
    x = signals(rng)
    state, _ = online.update(stream(rng), x[:40], sparsity=3, **KEEP)
    coded = [online.update(state, x[40:80], sparsity=3, forgetting=f, **KEEP)[0] for f in (0.0, 1.0, 60.0)]
    users, seen = [np.asarray(s.num_users) for s in coded], [np.asarray(s.num_signals) for s in coded]
    assert_close(users[1] - users[2], np.asarray(state.num_users) / 2)
    assert_close(users[0] - users[2], np.asarray(state.num_users))
    assert_close(seen[1], np.full(K, 60.0))


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


def test_a_donated_state_ends_the_same_and_is_used_up(rng):
    x = signals(rng)
    begin, again = (stream(np.random.default_rng(0)) for _ in range(2))
    kept, _ = online.fit_stream(begin, batches(x), sparsity=3)
    donated, _ = online.fit_stream(again, batches(x), sparsity=3, donate=True)
    for left, right in zip(jax.tree.leaves(donated), jax.tree.leaves(kept), strict=True):
        np.testing.assert_array_equal(left, right)
    assert again.atoms.is_deleted()
    assert not begin.atoms.is_deleted()


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
    assert (state.weight[3], state.num_users[3], state.num_signals[3]) == (0, 0, 0)
    assert abs(state.dictionary.atoms[7, 3]) < 1e-12
    assert_close(jnp.linalg.norm(state.dictionary.atoms, axis=0), np.ones(K))


def test_atoms_are_judged_by_the_signals_since_they_were_placed(rng):
    """One user is a usual share of three signals, and too few of three thousand."""
    x = signals(rng, n=4)
    for num_signals, num_replaced in ((3.0, 0), (3000.0, 1)):
        state = stream(np.random.default_rng(0))._replace(
            num_users=jnp.full(K, 1000.0).at[7].set(1),
            num_signals=jnp.full(K, 3000.0).at[7].set(num_signals),
            num_batches=jnp.asarray(1000, jnp.int32),
        )
        _, step = online.update(state, x, sparsity=1, min_share=0.1)
        assert int(step.num_replaced) == num_replaced


def test_an_atom_that_repeats_an_earlier_one_is_replaced(rng):
    atoms = np.asarray(draws.dictionary(rng).atoms).copy()
    atoms[:, 9] = -atoms[:, 2]
    x = signals(rng, n=40)
    state, step = online.update(online.init(Dictionary(atoms=jnp.asarray(atoms))), x, sparsity=3, min_share=0.0)
    assert int(step.num_replaced) == int(state.num_replaced) == 1
    rows = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert np.abs(rows - np.asarray(state.atoms[9])[None, :]).max(axis=1).min() < 1e-12


def test_features_are_made_of_each_batch_and_the_state_that_came_stays(rng):
    x = signals(rng)
    start = stream(rng)
    kept = jax.tree.map(np.array, start)
    plain, info = online.fit_stream(start, [2 * batch for batch in batches(x)], sparsity=3)
    made, made_info = online.fit_stream(start, batches(x), sparsity=3, features=lambda batch: 2 * batch)
    for left, right in zip(
        jax.tree.leaves((plain, info, kept)), jax.tree.leaves((made, made_info, start)), strict=True
    ):
        np.testing.assert_array_equal(left, right)
    with pytest.raises(ValueError, match=r"features\(batch\) must have shape \[40, 8\]; got shape \(40, 3\)"):
        online.fit_stream(start, batches(x), sparsity=3, features=lambda batch: batch[:, :3])
    broken = np.where(np.arange(D) == 2, np.nan, x)
    with pytest.raises(ValueError, match="batch must be finite; 40 of 320 values"):
        online.fit_stream(start, batches(broken), sparsity=3, features=jnp.nan_to_num)


def test_batches_grow_with_the_dictionary():
    assert [online.batch_size(k) for k in (1, 128, 4096)] == [64, 128, 4096]
    with pytest.raises(ValueError, match="num_atoms must be at least 1; got 0"):
        online.batch_size(0)


def test_zero_batches_change_nothing(rng):
    state = stream(rng)
    after, step = online.update(state, np.zeros((40, D)), sparsity=3)
    assert_close(after.dictionary.atoms, state.dictionary.atoms)
    assert float(step.relative_error) == 0
    assert not np.asarray(after.weight).any()


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
