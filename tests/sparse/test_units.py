"""Signals in any unit, NaN, and what the reports say, for every coder, fit and reconstruction of the room.

A power of two changes no digit of a signal, so that the results in another unit are the same but for that power.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxface import hallucination
from jaxface.core.fitinfo import Status
from jaxface.hallucination import linear as linear_hallucination
from jaxface.hallucination import network
from jaxface.linalg import gram
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
    x = jnp.asarray(draws.centered_faces(rng)).at[3, 7].set(jnp.nan)
    for fit in (
        lambda x: hallucination.fit_pca(x, MASK, num_components=3),
        lambda x: hallucination.fit_pca_prior(x, MASK, num_components=3),
        lambda x: hallucination.fit_ridge(x, MASK, ridge=1e-2),
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
