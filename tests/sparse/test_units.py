"""Signals in any unit, NaN, and what the reports say, for every coder, fit and reconstruction of the room.

A power of two changes no digit of a signal, so that the results in another unit are the same but for that power.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxface import hallucination, sparse
from jaxface.core.fitinfo import Status
from jaxface.hallucination import linear as linear_hallucination
from jaxface.hallucination import network
from jaxface.linalg import gram
from jaxface.sparse import kernel_ksvd, ksvd, omp, online
from jaxface.sparse.dictionary import Dictionary
from tests.sparse import draws
from tests.tolerances import assert_close

KEY = jax.random.key(0)
MASK = draws.top_mask()
SIZES = {"num_atoms": 10, "sparsity": 3, "num_iters": 2}
MAPPED = SIZES | {"beta": 4.0, "expansion": 5, "quantile": 1.0}
NETWORK = {"ridge": 0.01, "width": 8, "num_layers": 2, "batch_size": 10, "dropout": 0.0, "optimizer": optax.adam(1e-3)}
RIDGE = functools.partial(hallucination.fit_ridge, ridge=1e-2)
TINY, SMALL, LARGE, HUGE = 2.0**-100, 2.0**-33, 2.0**33, 2.0**80

# A fit of faces in units of s. Some report squares of the unit, which are out of range where it is HUGE.
FITS = {
    "pca": lambda x, s: hallucination.fit_pca(x, MASK, num_components=3),
    "pca_prior": lambda x, s: hallucination.fit_pca_prior(x, MASK, num_components=5),
    "ridge": lambda x, s: hallucination.fit_ridge(x, MASK, ridge=1e-2),
    "for_psnr": lambda x, s: hallucination.fit_for_psnr(RIDGE, x, MASK, num_rounds=2),
    "linear_kernel": lambda x, s: hallucination.fit_kernel_ridge(gram.linear(), x, MASK, ridge=1e-2),
    "gaussian_kernel": lambda x, s: hallucination.fit_kernel_ridge(gram.gaussian(bandwidth=2 * s), x, MASK, ridge=1e-2),
    "fastfood_ridge": lambda x, s: hallucination.fit_fastfood_ridge(
        KEY, x, MASK, num_features=64, bandwidth=2 * s, ridge=1e-2
    ),
    "ksvd": lambda x, s: hallucination.fit_ksvd(KEY, x, MASK, **SIZES),
    "dw_ksvd": lambda x, s: hallucination.fit_dw_ksvd(KEY, x, MASK, beta=4.0, **SIZES),
    "fastfood_dw_ksvd": lambda x, s: hallucination.fit_fastfood_dw_ksvd(KEY, x, MASK, **MAPPED),
    "dekernelized": lambda x, s: hallucination.fit_fastfood_dw_ksvd_dekernelized(KEY, x, MASK, **MAPPED),
    "network": lambda x, s: hallucination.fit_network(KEY, x, MASK, num_epochs=2, **NETWORK),
}
NON_FINITE_WHEN_HUGE = ("ridge", "for_psnr", "linear_kernel", "ksvd", "dw_ksvd", "network")


def faces(rng):
    return draws.faces(rng).astype(np.float32)


def signals(rng):
    x = faces(rng)
    return x - x.mean(axis=0)


@pytest.mark.parametrize("name", FITS)
def test_reconstructions_follow_the_unit_or_have_a_status(name, rng):
    x = faces(rng)
    model, _ = FITS[name](x, np.float32(1))
    expected = hallucination.reconstruct_matrix(model, x[:4, MASK])
    for scale in (TINY, SMALL, LARGE, HUGE):
        model, info = FITS[name](np.float32(scale) * x, np.float32(scale))
        if scale == HUGE and name in NON_FINITE_WHEN_HUGE:
            assert int(info.status) == Status.NON_FINITE
        elif scale == TINY and name == "linear_kernel":  # products of such numbers are zero
            assert int(info.status) == Status.RANK_DEFICIENT
        else:
            assert int(info.status) == Status.OK
            found = hallucination.reconstruct_matrix(model, np.float32(scale) * x[:4, MASK])
            assert_close(found / np.float32(scale), expected, factor=1e3 if name == "network" else 100)


@pytest.mark.parametrize("scale", [TINY, SMALL, LARGE, HUGE])
@pytest.mark.parametrize("update", sparse.ATOM_UPDATES)
def test_dictionaries_and_codes_follow_the_unit(update, scale, rng):
    x, unit = signals(rng), np.float32(scale)
    settings = {"sparsity": 3, "num_iters": 2, "update": sparse.ATOM_UPDATES[update]}
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


@pytest.mark.parametrize("scale", [TINY, 2.0**-66, HUGE])
def test_a_stream_out_of_range_learns_nothing_and_says_so(scale, rng):
    x = np.float32(scale) * signals(rng)
    start = online.init(ksvd.init(KEY, x, num_atoms=10))
    state, info = online.fit_stream(start, [x[:20], x[20:]], sparsity=3)
    assert int(info.status) == Status.NON_FINITE
    np.testing.assert_array_equal(state.dictionary.atoms, start.dictionary.atoms)


def test_a_kernel_out_of_range_is_a_status(rng):
    x = signals(rng)
    for scale, status in ((TINY, Status.RANK_DEFICIENT), (HUGE, Status.NON_FINITE)):
        start = kernel_ksvd.init(KEY, gram.linear(), np.float32(scale) * x, num_atoms=10)
        start = jax.tree.map(lambda leaf: jnp.nan_to_num(leaf), start)
        assert int(kernel_ksvd.fit(start, sparsity=3, num_iters=1)[1].status) == status


def test_nan_is_refused_by_coders_and_unknown_inside_a_transformation(rng):
    x = signals(rng)
    dictionary = ksvd.init(KEY, x, num_atoms=10)
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
        assert np.isnan(sparse.decode(dictionary, jax.tree.map(lambda leaf: leaf[3], found))).all()
    atoms = dictionary.atoms.at[2, 1].set(jnp.nan)
    assert np.isnan(jax.jit(lambda a: omp.encode(Dictionary(atoms=a), x[0], sparsity=3).values)(atoms)).all()


@pytest.mark.parametrize("name", FITS)
def test_pixels_with_nan_make_all_of_their_face_unknown(name, rng):
    x = faces(rng)
    model, _ = FITS[name](x, np.float32(1))
    pixels = x[:4, MASK]
    expected = hallucination.reconstruct_matrix(model, pixels)
    pixels[2, 5] = np.nan
    found = hallucination.reconstruct_matrix(model, pixels)
    assert np.isnan(found[2]).all()
    assert np.isnan(hallucination.reconstruct(model, pixels[2])).all()
    others = np.array([0, 1, 3])
    assert_close(found[others], expected[others])
    if name == "fastfood_dw_ksvd":
        assert np.isnan(hallucination.share_clipped(model, pixels[2]))


def test_nan_under_jit_is_non_finite(rng):
    x = jnp.asarray(signals(rng)).at[3, 7].set(jnp.nan)
    for fit in (
        lambda x: hallucination.fit_pca(x, MASK, num_components=3),
        lambda x: hallucination.fit_pca_prior(x, MASK, num_components=3),
        lambda x: hallucination.fit_ridge(x, MASK, ridge=1e-2),
        lambda x: ksvd.fit(x, Dictionary(atoms=jnp.eye(30, 10)), sparsity=3, num_iters=1),
    ):
        assert int(jax.jit(lambda x, fit=fit: fit(x)[1].status)(x)) == Status.NON_FINITE


def test_the_jitter_is_what_was_added(rng):
    """In units of the matrix: the solution is that of the matrix with the jitter on its diagonal, and no other."""
    x = 10 * faces(rng).astype(np.float64)
    y = x - x.mean(axis=0)
    seen = y[:, MASK]
    model, info = hallucination.fit_ridge(x, MASK, ridge=1e-2)
    penalized = seen.T @ seen + float(info.jitter) * np.eye(seen.shape[1])
    assert_close(model.matrix, np.linalg.solve(penalized, seen.T @ y), factor=100)
    _, begun = hallucination.fit_network(KEY, x, MASK, num_epochs=1, **NETWORK)
    assert_close(begun.jitter, info.jitter)
    model, info = hallucination.fit_kernel_ridge(gram.linear(), x, MASK, ridge=1e-2)
    k = seen @ seen.T
    assert_close(model.coefficients, np.linalg.solve(k + float(info.jitter) * np.eye(len(k)), y), factor=1e4)
    _, info = hallucination.fit_pca_prior(
        x[:5], MASK, num_components=4
    )  # nothing is discarded, so that a floor is needed
    energy = ((x[:5] - x[:5].mean(axis=0)) ** 2).sum() / 5
    assert float(info.jitter) == pytest.approx(30 * np.finfo(float).eps * energy)


def test_objectives_are_values_where_the_steps_start(rng):
    x = signals(rng).astype(np.float64)
    start = ksvd.init(KEY, x, num_atoms=10)
    _, info = ksvd.fit(x, start, sparsity=3, num_iters=2)
    after, _ = ksvd.fit(x, start, sparsity=3, num_iters=1)
    for entry, dictionary in zip(info.objective, (start, after), strict=True):
        codes = omp.encode_batch(dictionary, x, sparsity=3)
        rebuilt = jax.vmap(lambda code, d=dictionary: sparse.decode(d, code))(codes)
        assert_close(entry, ((x - rebuilt) ** 2).sum())


def test_no_report_is_dropped(rng, monkeypatch):
    """The worst status of all parts of a fit is that of the fit."""
    x = faces(rng)
    honest = linear_hallucination.fit_ridge

    def failed(*arguments, **settings):
        model, info = honest(*arguments, **settings)
        return model, info._replace(status=jnp.asarray(int(Status.NOT_PSD), jnp.int32))

    rounds = iter([failed, honest, honest])
    _, info = hallucination.fit_for_psnr(lambda *a, **k: next(rounds)(*a, ridge=1e-2, **k), x, MASK, num_rounds=2)
    assert int(info.status) == Status.NOT_PSD
    monkeypatch.setattr(network, "fit_ridge", failed)
    assert int(hallucination.fit_network(KEY, x, MASK, num_epochs=1, **NETWORK)[1].status) == Status.NOT_PSD


def test_narrow_types_are_refused(rng):
    x = faces(rng).astype(np.float16)
    for fit in (FITS["ridge"], FITS["ksvd"], FITS["pca"]):
        with pytest.raises(ValueError, match="got dtype float16"):
            fit(x, np.float32(1))
    with pytest.raises(ValueError, match="got dtype float16"):
        omp.encode(Dictionary(atoms=jnp.eye(30, 10)), x[0], sparsity=3)
