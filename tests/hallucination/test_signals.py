import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import hallucination
from jaxface.runtime import params_io
from jaxface.sparse import ksvd, online
from jaxface.sparse.dictionary import Dictionary
from tests.hallucination.fits import FASTFOOD, FITS, KEY, MASK, dense, mean_square
from tests.sparse import draws
from tests.tolerances import assert_close

MAPS = {name: FASTFOOD[name] for name in ("beta", "expansion", "quantile")}


@pytest.fixture
def x(rng):
    return draws.faces(rng)


def test_pixels_are_weighted_about_the_mean_of_the_sample(x):
    signals = hallucination.pixel_signals(x[:30], MASK, beta=4.0)
    expected = (x - x[:30].mean(axis=0)) * np.where(MASK, np.sqrt(5.0), 1.0)
    assert_close(signals.transform(x), expected)
    with pytest.raises(ValueError, match=r"x must have shape \[n, d\] with d = 30; got shape \(40, 29\)"):
        signals.transform(x[:, 1:])
    with pytest.raises(ValueError, match="beta must lie in"):
        hallucination.pixel_signals(x, MASK, beta=-1.0)


def test_features_are_those_of_both_maps_stacked(x):
    """One row after the other, by the matrices of the maps."""
    signals = hallucination.feature_signals(KEY, x, MASK, **MAPS)
    face, visible = dense(signals.face_map), dense(signals.visible_map)
    centered = x - x.mean(axis=0)
    expected = [np.sin(centered @ face.T) / np.sqrt(160), 2 * np.sin(centered[:, MASK] @ visible.T) / np.sqrt(80)]
    assert_close(signals.transform(x), np.concatenate(expected, axis=1))
    with pytest.raises(ValueError, match="beta must lie in"):
        hallucination.feature_signals(KEY, x, MASK, **(MAPS | {"beta": 0.0}))


def test_a_dictionary_of_the_signals_is_the_model_of_the_fit(x):
    """K-SVD on the signals, by hand."""
    sweeps = {"sparsity": 3, "num_iters": 2}
    pixels = hallucination.pixel_signals(x, MASK, beta=4.0)
    rows = pixels.transform(x)
    learnt, _ = ksvd.fit(rows, ksvd.init(KEY, rows, num_atoms=10), **sweeps)
    assert_close(hallucination.pixel_hallucinator(pixels, learnt, sparsity=3), FITS["dw_ksvd"](x, MASK)[0])
    model, _ = FITS["fastfood_dw_ksvd"](x, MASK)
    again = hallucination.feature_hallucinator(model.signals, Dictionary(atoms=model.atoms), sparsity=3)
    assert_close(again, model)
    assert (again.signals.form, again.inverse) == ("sin", "least_squares")
    with pytest.raises(
        ValueError, match=r"atoms must have shape \[240, k\] with|atoms must have shape \[240, k\]; got"
    ):
        hallucination.feature_hallucinator(model.signals, learnt, sparsity=3)


@pytest.mark.parametrize("kind", ["pixels", "features"])
def test_a_model_from_a_stream_reconstructs_faces_nobody_kept(kind, rng, tmp_path):
    """Better than the mean face, and than the dictionary that the stream began with; saved, it stays the same."""
    x, tests = draws.faces(rng, n=240), draws.faces(rng)
    if kind == "pixels":
        signals, build = hallucination.pixel_signals(x[:40], MASK, beta=4.0), hallucination.pixel_hallucinator
    else:
        signals = hallucination.feature_signals(KEY, x[:40], MASK, **MAPS)
        build = hallucination.feature_hallucinator
    start = ksvd.init(KEY, signals.transform(x[:40]), num_atoms=10)
    batches = [x[first : first + 40] for first in range(0, 240, 40)]
    state, info = online.fit_stream(online.init(start), batches, features=signals.transform, sparsity=3)
    assert int(info.num_iters) == 6
    models = [build(signals, dictionary, sparsity=3) for dictionary in (start, state.dictionary)]
    first, last = (
        mean_square(hallucination.reconstruct_matrix(model, jnp.asarray(tests[:, MASK])), tests) for model in models
    )
    assert last < first
    assert last < 0.7 * mean_square(np.tile(x.mean(axis=0), (40, 1)), tests)
    file = tmp_path / "model.safetensors"
    file.write_bytes(params_io.to_bytes(models[1]))
    loaded = params_io.load(file, type(models[1]))
    np.testing.assert_array_equal(loaded.atoms, models[1].atoms)
