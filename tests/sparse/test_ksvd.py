import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.sparse import ATOM_UPDATES, atom_update, ksvd, omp
from jaxface.sparse.dictionary import Dictionary, as_vector, decode
from tests.reference import sparse_reference as reference
from tests.sparse import draws
from tests.sparse.draws import signals, start
from tests.tolerances import assert_close

KEY = jax.random.key(0)
TINY, SMALL, LARGE, HUGE = 2.0**-100, 2.0**-33, 2.0**33, 2.0**80
NO_REPLACEMENT = {"max_coherence": 1.0, "min_users": 0}


@pytest.mark.parametrize("update", ATOM_UPDATES)
def test_equals_the_textbook_loop(update, rng):
    x, init = signals(rng), start(rng)
    exact = update == "exact"
    atoms, errors = reference.ksvd(np.asarray(init.atoms), x, 3, 3, exact=exact)
    fitted, info = ksvd.fit(x, init, sparsity=3, num_iters=3, atom_update=ATOM_UPDATES[update], **NO_REPLACEMENT)
    # The sign of a singular vector is free.
    signs = np.sign((np.asarray(fitted.atoms) * atoms).sum(axis=0))
    assert_close(np.asarray(fitted.atoms) * signs, atoms, factor=1e4 if exact else 10)
    assert_close(info.objective, errors, factor=1e2 if exact else 10)
    assert int(info.num_replaced) == 0
    assert int(info.status) == Status.OK


@pytest.mark.parametrize("update", ATOM_UPDATES)
def test_the_codebook_stage_never_raises_the_error(update, rng):
    x, init = signals(rng), start(rng)
    _, report = ksvd.trace(x, init, sparsity=3, num_iters=12, atom_update=ATOM_UPDATES[update])
    assert np.all(np.asarray(report.codebook_error) <= np.asarray(report.coding_error) * (1 + 1e-12))
    assert report.codebook_error[-1] < 0.8 * report.coding_error[0]


def test_the_trace_is_the_fit(rng):
    x, init = signals(rng), start(rng)
    fitted, info = ksvd.fit(x, init, sparsity=3, num_iters=4)
    traced, report = ksvd.trace(x, init, sparsity=3, num_iters=4)
    assert_close(traced.atoms, fitted.atoms)
    assert_close(report.coding_error, info.objective)
    assert int(report.num_replaced.sum()) == int(info.num_replaced)


def test_a_fit_in_segments_is_the_fit_in_one_go(rng):
    x, init = signals(rng), start(rng)
    whole, info = ksvd.fit(x, init, sparsity=3, num_iters=4)
    first, head = ksvd.fit(x, init, sparsity=3, num_iters=2)
    second, tail = ksvd.fit(x, first, sparsity=3, num_iters=2)
    assert_close(second.atoms, whole.atoms)
    assert_close(jnp.concatenate([head.objective, tail.objective]), info.objective)


def test_ends_when_the_error_settles(rng):
    x, init = signals(rng), start(rng)
    _, info = ksvd.fit(x, init, sparsity=3, num_iters=50, tol=1e-2)
    done = int(info.num_iters)
    assert int(info.status) == Status.OK
    assert done < 50
    assert abs(info.objective[done - 1] / info.objective[done - 2] - 1) <= 1e-2
    assert int(ksvd.fit(x, init, sparsity=3, num_iters=2, tol=1e-9)[1].status) == Status.MAX_ITERS


def test_recovers_the_dictionary_that_made_the_signals():
    rng = np.random.default_rng(3)
    truth = draws.unit_columns(rng, 10, 15)
    x, _ = draws.sparse_signals(rng, truth, 800, 2, noise=0.01)
    fitted, info = ksvd.fit(x, ksvd.init(jax.random.key(0), x, num_atoms=15), sparsity=2, num_iters=60)
    cosine = np.abs(truth.T @ np.asarray(fitted.atoms)).max(axis=1)
    assert (cosine > 0.99).sum() >= 13
    assert info.objective[-1] < 0.2 * info.objective[0]


@pytest.mark.parametrize("update", ATOM_UPDATES)
def test_stacked_and_reweighted_are_the_same_algorithm(update, rng):
    """(15): rows of weight 1 and sqrt(beta) are rows of weight sqrt(1 + beta), and not 1 + sqrt(beta)."""
    beta, seen = 5.0, np.arange(8) < 3
    x = signals(rng)
    atoms = draws.unit_columns(rng, 8, 12)

    def sweep(signals, atoms):
        init = Dictionary(atoms=jnp.asarray(atoms))
        settings = {"sparsity": 3, "num_iters": 1, "atom_update": ATOM_UPDATES[update]} | NO_REPLACEMENT
        fitted, info = ksvd.fit(signals, init, **settings)
        coded = ksvd.code_signals(fitted, jnp.asarray(signals), sparsity=3, block_size=256)
        return np.asarray(fitted.atoms), np.asarray(coded.codes.indices), np.asarray(coded.codes.values), info

    def stacked(rows):
        return np.concatenate([rows, np.sqrt(beta) * rows[seen]])

    weights = np.where(seen, np.sqrt(1 + beta), 1.0)
    tall, tall_support, tall_values, tall_info = sweep(stacked(x.T).T, stacked(atoms))
    short, support, values, info = sweep(x * weights, atoms * weights[:, None])
    np.testing.assert_array_equal(tall_support, support)
    scale = np.abs(tall).max()
    assert np.abs(tall[:8] - short / weights[:, None]).max() < 1e-12 * scale
    assert np.abs(tall[8:] - np.sqrt(beta) * tall[:8][seen]).max() < 1e-12 * scale
    assert np.abs(tall_values - values).max() < 1e-12 * np.abs(values).max()
    assert_close(tall_info.objective, info.objective)

    printed = np.where(seen, 1 + np.sqrt(beta), 1.0)
    wrong, *_ = sweep(x * printed, atoms * printed[:, None])
    assert np.abs(tall[:8] - wrong / printed[:, None]).max() > 1e-3 * scale


def test_equivariant_under_isometries(rng):
    x, init = signals(rng), start(rng)
    q = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    fitted, info = ksvd.fit(x, init, sparsity=3, num_iters=2)
    turned, turned_info = ksvd.fit(2 * x @ q.T, Dictionary(atoms=q @ init.atoms), sparsity=3, num_iters=2)
    assert_close(turned.atoms, q @ np.asarray(fitted.atoms), factor=10)
    assert_close(turned_info.objective, 4 * np.asarray(info.objective), factor=10)


def test_unused_atoms_move_to_the_worst_coded_signals_each_once(rng):
    """Two far signals nobody explains, three atoms nobody uses: the two are taken, and a third one after them."""
    x = signals(rng)
    x[[4, 9]] = [100 * np.eye(8)[6], 200 * np.eye(8)[7]]
    atoms = np.concatenate([np.eye(8)[:, :3], np.zeros((8, 3))], axis=1)
    fitted, report = ksvd.trace(x, Dictionary(atoms=jnp.asarray(atoms)), sparsity=1, num_iters=1)
    assert int(report.num_replaced[0]) == 3
    assert_close(report.replacement_cost, np.zeros(1))
    assert_close(fitted.atoms[:, 3:5], np.eye(8)[:, [7, 6]])
    assert np.abs(np.asarray(fitted.atoms[:, 5])[6:]).max() < 0.9


def test_coherent_atoms_are_replaced_and_their_cost_is_told(rng):
    x, init = signals(rng), start(rng)
    twin = np.asarray(init.atoms).copy()
    twin[:, 5] = -twin[:, 2] + 1e-3 * twin[:, 0]
    coded = ksvd.code_signals(Dictionary(atoms=jnp.asarray(twin)), jnp.asarray(x), sparsity=3, block_size=256)
    unfit = ksvd.is_too_coherent(coded.atoms, 0.99)
    np.testing.assert_array_equal(np.flatnonzero(unfit), [5])
    # A threshold that many atoms fail, so that used ones go: the cost is what their part of the codes was worth.
    _, report = ksvd.trace(x, init, sparsity=3, num_iters=1, max_coherence=0.5)
    kept, without = ksvd.trace(x, init, sparsity=3, num_iters=1, **NO_REPLACEMENT)
    assert int(report.num_replaced[0]) > 0
    assert float(report.replacement_cost[0]) > 0
    assert_close(report.codebook_error, without.codebook_error)

    book = atom_update.update_atoms(
        ksvd.code_signals(init, jnp.asarray(x), sparsity=3, block_size=256), atom_update=atom_update.approximate
    )
    gone = np.asarray(ksvd.is_too_coherent(book.atoms, 0.5))
    rows = np.array(jax.vmap(lambda code: as_vector(code, num_atoms=12))(book.codes))
    rows[:, gone] = 0
    left = ((x - rows @ np.asarray(kept.atoms).T) ** 2).sum()
    assert_close(report.codebook_error + report.replacement_cost, np.array([left]), factor=10)


def test_nothing_is_replaced_where_all_is_coded(rng):
    """Three signals and three atoms that are them: three more atoms find nothing to learn, and stay."""
    x = rng.normal(size=(3, 8))
    atoms = np.concatenate([x.T, np.zeros((8, 1)), x.T], axis=1)
    fitted, info = ksvd.fit(x, Dictionary(atoms=jnp.asarray(atoms)), sparsity=1, num_iters=3)
    assert int(info.num_replaced) == 0
    assert_close(info.objective, np.zeros(3))
    assert_close(fitted.atoms[:, 4:], x.T)


def test_more_atoms_than_signals_and_constant_signals_stay_finite(rng):
    for x in (rng.normal(size=(6, 8)), np.ones((6, 8)), np.zeros((6, 8))):
        fitted, info = ksvd.fit(x, start(rng), sparsity=3, num_iters=3)
        assert np.isfinite(fitted.atoms).all()
        assert np.isfinite(info.objective).all()
        assert int(info.status) == Status.OK


def test_init_takes_different_signals_of_length_one(rng):
    x = signals(rng, n=6)
    start = ksvd.init(jax.random.key(0), x, num_atoms=6)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosine = unit @ np.asarray(start.atoms)
    np.testing.assert_array_equal(np.sort(np.argmax(cosine, axis=1)), np.arange(6))
    assert_close(cosine.max(axis=1), np.ones(6))
    x[[0, 3]] = 0
    assert (np.linalg.norm(ksvd.init(jax.random.key(1), x, num_atoms=4).atoms, axis=0) > 0.5).all()


def test_no_gradient_through_a_fit(rng):
    x = jnp.asarray(rng.normal(size=(30, 8)))
    start = ksvd.init(jax.random.key(0), x, num_atoms=6)

    def total(fit, x):
        return fit(x, start, sparsity=2, num_iters=2, min_users=25)[0].atoms.sum()

    for fit in (ksvd.fit, ksvd.trace):
        assert not np.asarray(jax.grad(functools.partial(total, fit))(x)).any()


def test_at_one_no_atom_is_too_coherent(rng):
    atoms = rng.normal(size=(300, 7)).astype(np.float32)
    assert not np.asarray(ksvd.is_too_coherent(jnp.concatenate([atoms, atoms]), 1.0)).any()
    assert np.asarray(ksvd.is_too_coherent(jnp.concatenate([atoms, atoms]), 0.9999))[300:].all()


def test_no_signals(rng):
    start = ksvd.init(jax.random.key(0), rng.normal(size=(6, 8)), num_atoms=4)
    with pytest.raises(ValueError, match="number of signals must be at least 1; got 0"):
        ksvd.fit(np.zeros((0, 8)), start, sparsity=1, num_iters=1)


def test_nan_under_jit_is_non_finite(rng):
    x = jnp.asarray(draws.centered_faces(rng)).at[3, 7].set(jnp.nan)
    start = Dictionary(atoms=jnp.eye(30, 10))
    assert int(jax.jit(lambda x: ksvd.fit(x, start, sparsity=3, num_iters=1)[1].status)(x)) == Status.NON_FINITE


@pytest.mark.parametrize("scale", [TINY, SMALL, LARGE, HUGE])
@pytest.mark.parametrize("update", ATOM_UPDATES)
def test_dictionaries_and_codes_follow_the_unit(update, scale, rng):
    x, unit = draws.centered_faces(rng), np.float32(scale)
    settings = {"sparsity": 3, "num_iters": 2, "atom_update": ATOM_UPDATES[update]}
    expected, report = ksvd.fit(x, ksvd.init(KEY, x, num_atoms=10), **settings)
    found, info = ksvd.fit(unit * x, ksvd.init(KEY, unit * x, num_atoms=10), **settings)
    np.testing.assert_array_equal(found.atoms, expected.atoms)
    if scale == HUGE:
        assert int(info.status) == Status.NON_FINITE
    else:
        assert int(info.status) == Status.OK
        assert_close(info.objective, report.objective * unit**2)
    codes, codes1 = (omp.encode_batch(found, s * x, sparsity=3) for s in (unit, np.float32(1)))
    np.testing.assert_array_equal(codes.indices, codes1.indices)
    np.testing.assert_array_equal(codes.values / unit, codes1.values)
    long, one = Dictionary(atoms=unit * found.atoms), omp.encode(found, x[0], sparsity=3)
    np.testing.assert_array_equal(omp.encode(long, unit * x[0], sparsity=3).values, one.values)


def test_objectives_are_values_where_the_steps_start(rng):
    x = draws.centered_faces(rng).astype(np.float64)
    start = ksvd.init(KEY, x, num_atoms=10)
    _, info = ksvd.fit(x, start, sparsity=3, num_iters=2)
    after, _ = ksvd.fit(x, start, sparsity=3, num_iters=1)
    for entry, dictionary in zip(info.objective, (start, after), strict=True):
        codes = omp.encode_batch(dictionary, x, sparsity=3)
        rebuilt = jax.vmap(lambda code, d=dictionary: decode(d, code))(codes)
        assert_close(entry, ((x - rebuilt) ** 2).sum())
