import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import hallucination
from jaxface.core.fitinfo import Status
from jaxface.hallucination import dictionary as by_dictionary
from jaxface.hallucination import kernel as by_kernel
from jaxface.hallucination import linear, network
from tests.hallucination.fits import (
    DICTIONARY,
    FITS,
    IN_ANY_UNIT,
    KEY,
    MASK,
    NETWORK,
    faces,
    mean_square,
)
from tests.sparse import draws
from tests.tolerances import assert_close

TINY, SMALL, LARGE, HUGE = 2.0**-100, 2.0**-33, 2.0**33, 2.0**80  # a power of two changes no digit of a face
NON_FINITE_WHEN_HUGE = ("ridge", "for_psnr", "linear_kernel", "ksvd", "dw_ksvd", "network")  # reports in squared units


@pytest.mark.parametrize("name", FITS)
def test_every_method_beats_the_mean_face(name, rng):
    faces = draws.faces(rng, n=48)
    train, test = faces[:40], faces[40:]
    model, info = FITS[name](train, MASK)
    images = hallucination.reconstruct_matrix(model, test[:, MASK], block_size=3)
    assert int(info.status) == Status.OK
    assert mean_square(images, test) < 0.5 * mean_square(np.tile(train.mean(axis=0), (8, 1)), test)
    assert_close(hallucination.reconstruct(model, test[0][MASK]), images[0], factor=1e4)


@pytest.mark.parametrize("name", ["ridge", "pca_prior", "kernel_ridge", "dw_ksvd"])
@pytest.mark.parametrize("mask", ["scattered", "one pixel", "all"])
def test_any_subset_of_the_pixels(name, mask, rng):
    chosen = {
        "scattered": rng.random(30) < 0.4,
        "one pixel": np.arange(30) == 17,
        "all": np.ones(30, bool),
    }[mask]
    x = draws.faces(rng)
    if name == "dw_ksvd":
        model, _ = by_dictionary.fit_dw_ksvd(KEY, x, chosen, beta=4.0, num_atoms=10, sparsity=1, num_iters=2)
    else:
        model, _ = FITS[name](x, chosen)
    np.testing.assert_array_equal(model.visible, np.flatnonzero(chosen))
    images = hallucination.reconstruct_matrix(model, x[:, chosen])
    assert np.isfinite(images).all()
    # An atom that hardly has the one visible pixel is taken at any length to explain it: dictionaries need more.
    if (name, mask) != ("dw_ksvd", "one pixel"):
        assert mean_square(images, x) < mean_square(np.tile(x.mean(axis=0), (len(x), 1)), x)


@pytest.mark.parametrize("name", [name for name in FITS if not name.startswith("fastfood_dw")])
def test_faces_that_are_all_the_same_are_returned(name, rng):
    face = draws.faces(rng, n=1)[0]
    model, _ = FITS[name](np.tile(face, (12, 1)), MASK)
    assert_close(hallucination.reconstruct(model, face[MASK]), face)
    other = hallucination.reconstruct(model, face[MASK] + 0.1)
    assert np.isfinite(other).all()


def test_bad_input(rng):
    x = draws.faces(rng)
    fit = FITS["ridge"]
    with pytest.raises(ValueError, match="mask must show at least one pixel; all of them are hidden"):
        fit(x, np.zeros(30, bool))
    with pytest.raises(ValueError, match="mask must be boolean, True where a pixel is visible; got dtype int"):
        fit(x, MASK.astype(int))
    with pytest.raises(ValueError, match="mask must be known outside jit"):
        jax.jit(fit)(x, MASK)
    with pytest.raises(ValueError, match="number of faces must be at least 2; got 1"):
        fit(x[:1], MASK)
    with pytest.raises(ValueError, match="x must be finite"):
        fit(np.where(x == x[3, 4], np.nan, x), MASK)
    with pytest.raises(ValueError, match=r"num_atoms must be at most 9 \(the number of signals\); got 10"):
        FITS["ksvd"](x[:9], MASK)
    with pytest.raises(ValueError, match=r"sparsity must be at most 15 \(the number of visible pixels\); got 16"):
        by_dictionary.fit_ksvd(KEY, x, MASK, num_atoms=20, sparsity=16, num_iters=1)
    with pytest.raises(ValueError, match=r"sparsity must be at most 10 \(the number of atoms\); got 11"):
        by_dictionary.fit_ksvd(KEY, x, MASK, num_atoms=10, sparsity=11, num_iters=1)
    with pytest.raises(ValueError, match=r"num_components must be at most 30 \(40 centred faces of 30 pixels\)"):
        linear.fit_pca(x, MASK, num_components=31)
    with pytest.raises(ValueError, match="beta must lie in"):
        by_dictionary.fit_dw_ksvd(KEY, x, MASK, beta=-1.0, **DICTIONARY)
    with pytest.raises(ValueError, match=r"beta must have shape \[\]; got shape \(30,\)"):
        by_dictionary.fit_dw_ksvd(KEY, x, MASK, beta=np.ones(30), **DICTIONARY)
    with pytest.raises(ValueError, match=r"ridge must have shape \[\]; got shape \(3,\)"):
        linear.fit_ridge(x, MASK, ridge=np.ones(3))
    with pytest.raises(ValueError, match=r"kernel must be one of jaxface.linalg.gram.*got 'gaussian' of type str"):
        by_kernel.fit_kernel_ridge("gaussian", x, MASK, ridge=1e-2)
    model, _ = fit(x, MASK)
    with pytest.raises(ValueError, match=r"pixels must have shape \[v\] with v = 15"):
        hallucination.reconstruct(model, x[0])
    with pytest.raises(ValueError, match=r"pixels must have shape \[v\] with v = 15; got shape \(1,\)"):
        hallucination.with_visible(model, x[0], x[0, :1])
    with pytest.raises(ValueError, match="image must be a floating point array; got dtype uint8"):
        hallucination.with_visible(model, x[0].astype(np.uint8), x[0, MASK])


def test_what_is_seen_is_put_back(rng):
    x = draws.faces(rng)
    model, _ = FITS["ridge"](x, MASK)
    image = hallucination.with_visible(model, hallucination.reconstruct(model, x[3][MASK]), x[3][MASK])
    assert_close(image[MASK], x[3][MASK])
    assert_close(image[~MASK], hallucination.reconstruct(model, x[3][MASK])[~MASK])


def test_rounds_for_the_psnr_raise_it(rng):
    """A few faces are noise: they no longer spoil the others."""
    x = draws.faces(rng, n=80)
    x[::5] = rng.random((16, 30))
    fit = functools.partial(linear.fit_ridge, ridge=1e-2)

    def mean_psnr(model):
        errors = ((np.asarray(hallucination.reconstruct_matrix(model, x[:, MASK])) - x) ** 2).mean(axis=1)
        return float(np.mean(-10 * np.log10(errors)))

    values = [mean_psnr(fit(x, MASK)[0])]
    values += [mean_psnr(hallucination.fit_for_psnr(fit, x, MASK, num_rounds=n)[0]) for n in (1, 3)]
    assert values[1] > values[0] + 0.5
    assert values[2] > values[1]
    errors = ((np.asarray(hallucination.reconstruct_matrix(fit(x, MASK)[0], x[:, MASK])) - x) ** 2).mean(axis=1)
    weighted, _ = fit(x, MASK, sample_weights=1 / (errors + 0.2 * np.median(errors)))
    once, _ = hallucination.fit_for_psnr(fit, x, MASK, num_rounds=1, floor=0.2)
    assert_close(once.matrix, weighted.matrix, factor=1e3)


@pytest.mark.parametrize("name", IN_ANY_UNIT)
def test_reconstructions_follow_the_unit_or_have_a_status(name, rng):
    x = faces(rng)
    model, _ = IN_ANY_UNIT[name](x, MASK)
    expected = hallucination.reconstruct_matrix(model, x[:4, MASK])
    for scale in (TINY, SMALL, LARGE, HUGE):
        model, info = IN_ANY_UNIT[name](np.float32(scale) * x, MASK, np.float32(scale))
        if scale == HUGE and name in NON_FINITE_WHEN_HUGE:
            assert int(info.status) == Status.NON_FINITE
        elif scale == TINY and name == "linear_kernel":  # products of such numbers are zero
            assert int(info.status) == Status.RANK_DEFICIENT
        else:
            assert int(info.status) == Status.OK
            found = hallucination.reconstruct_matrix(model, np.float32(scale) * x[:4, MASK])
            assert_close(found / np.float32(scale), expected, factor=1e3 if name == "network" else 100)


@pytest.mark.parametrize("name", IN_ANY_UNIT)
def test_pixels_with_nan_make_all_of_their_face_unknown(name, rng):
    x = faces(rng)
    model, _ = IN_ANY_UNIT[name](x, MASK)
    pixels = x[:4, MASK]
    expected = hallucination.reconstruct_matrix(model, pixels)
    pixels[2, 5] = np.nan
    found = hallucination.reconstruct_matrix(model, pixels)
    assert np.isnan(found[2]).all()
    assert np.isnan(hallucination.reconstruct(model, pixels[2])).all()
    others = np.array([0, 1, 3])
    assert_close(found[others], expected[others])
    if name == "fastfood_dw_ksvd":
        np.testing.assert_array_equal(np.isnan(hallucination.validity(model, pixels).share_clipped), [0, 0, 1, 0])


def test_no_report_is_dropped(rng, monkeypatch):
    """The worst status of all parts of a fit is that of the fit."""
    x = faces(rng)
    honest = linear.fit_ridge

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
            fit(x, MASK)
