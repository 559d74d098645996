"""Data in any unit: equal results where float32 holds the variances, a status where it does not; NaN; float16."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.core.fitinfo import Status
from jaxface.mixtures import encoding, gmm
from tests.mixtures import draws
from tests.tolerances import assert_close

SIZES = {"num_components": 2, "latent_dim": 2}
VECTORS = {
    "fisher": mixtures.fisher_vector,
    "gradient": mixtures.gradient_vector,
    "latent": mixtures.latent_vector,
    "super": mixtures.super_vector,
}
ENCODERS = VECTORS | {"scores": encoding.closed_form, "autodiff": encoding.autodiff}
NUM_ITERS = 3


def pairs(rng):
    x, y = draws.pairs(rng)
    return x.astype(np.float32), y.astype(np.float32)


@functools.cache
def fitted(scale_x, scale_y, full=False):
    x, y = pairs(np.random.default_rng(4))
    x, y = np.float32(scale_x) * x, np.float32(scale_y) * y
    start = mixtures.init(jax.random.key(0), x, y, full_noise=full, **SIZES)
    return x, y, *mixtures.fit(x, y, start, num_iters=NUM_ITERS)


def coded(model, x, y, name):
    """Of three images with 20 descriptors each."""
    return mixtures.encode_batch(model, x.reshape(3, 20, -1), y.reshape(3, 20, -1), encoder=ENCODERS[name])


@pytest.mark.parametrize("scales", [(2.0**-33, 2.0**-33), (2.0**33, 2.0**33), (2.0**-40, 1.0)])
@pytest.mark.parametrize("full", [False, True])
def test_the_unit_changes_nothing_but_the_unit(scales, full):
    x, y, model, info = fitted(*scales, full)
    x1, y1, model1, info1 = fitted(1.0, 1.0, full)
    assert int(info.status) == int(info1.status) != Status.NON_FINITE
    unit = np.float32(scales[0])
    assert_close(model.mean_x / unit, model1.mean_x)
    assert_close(model.noise_x / unit / unit, model1.noise_x, factor=10)
    assert_close(mixtures.responsibilities(model, x[0], y[0]), mixtures.responsibilities(model1, x1[0], y1[0]))
    assert_close(mixtures.llr_matrix(model, x[:4], y[:4]), mixtures.llr_matrix(model1, x1[:4], y1[:4]), factor=10)
    assert_close(mixtures.predict(model, y=y[0]) / unit, mixtures.predict(model1, y=y1[0]), factor=10)
    log_units = x.shape[1] * math.log(scales[0]) + y.shape[1] * math.log(scales[1])
    assert_close(info.objective, info1.objective - np.float32(len(x) * log_units), factor=10)
    if not full:
        for name in VECTORS:
            found = coded(model, x, y, name)
            assert np.isfinite(found).all()
            np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-4)
        assert_close(coded(model, x, y, "fisher"), coded(model1, x1, y1, "fisher"), factor=100)
        for name in ("scores", "autodiff"):  # those of full noise amplify the rounding of responsibilities
            expected = coded(model1, x1, y1, name).noises[0]
            assert_close(coded(model, x, y, name).noises[0] * unit * unit, expected, factor=100)


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**-66, 2.0**66, 2.0**100])
def test_variances_that_float32_cannot_hold_are_a_status(scale):
    x, y, _, info = fitted(scale, scale)
    assert int(info.status) == Status.NON_FINITE
    assert int(fitted(scale, 1.0)[-1].status) == Status.NON_FINITE
    for ridge in (0.0, 1e-3):
        assert int(mixtures.closed_form(x, y, latent_dim=2, ridge=ridge)[1].status) == Status.NON_FINITE
    start = gmm.init(jax.random.key(0), x, num_components=2)
    assert int(gmm.fit(x, start, num_iters=2)[1].status) == Status.NON_FINITE


@pytest.mark.parametrize("value", [0.0, 5.0, 1e-10, 1e10])
def test_a_constant_view_has_a_status_and_finite_codes(value):
    x, y = pairs(np.random.default_rng(4))
    y = np.full_like(y, value)
    start = mixtures.init(jax.random.key(0), x, y, **SIZES)
    model, info = mixtures.fit(x, y, start, num_iters=NUM_ITERS)
    assert int(info.status) == Status.RANK_DEFICIENT
    for name in VECTORS:
        assert np.isfinite(coded(model, x, y, name)).all()
    floor = 1e-6 * (value**2 or 1)
    assert_close(model.noise_y, np.full(model.noise_y.shape, floor, np.float32), factor=100)
    assert_close(info.jitter, np.float32(floor), factor=100)


def test_the_jitter_is_in_the_unit_of_the_view_that_needed_it(rng):
    """The second view has a dimension of nothing but its mean; its floor is that of its own variances."""
    x, y = pairs(rng)
    y[:, 1] = 3.0
    y = np.float32(2.0**30) * y
    start = mixtures.init(jax.random.key(0), x, y, **SIZES)
    model, info = mixtures.fit(x, y, start, num_iters=NUM_ITERS, floor=1e-4)
    least = 1e-4 * np.delete(y, 1, axis=1).astype(float).var(axis=0).sum() / y.shape[1]
    assert float(info.jitter) == pytest.approx(least, rel=0.01)
    assert_close(model.noise_y[:, 1], np.full(2, least, np.float32), factor=1e4)


@pytest.mark.parametrize("name", ENCODERS)
def test_an_image_with_nan_has_no_vector_and_the_others_keep_theirs(name):
    x, y, model, _ = fitted(1.0, 1.0)
    expected = coded(model, x, y, name)
    x, y = x.reshape(3, 20, -1).copy(), y.reshape(3, 20, -1)
    encoder = ENCODERS[name]
    x[1, 3, 0] = np.nan
    weights = np.ones((3, 20), np.float32)
    found = mixtures.encode_batch(model, x, y, encoder=encoder, sample_weights=weights)
    for new, old in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert np.isnan(new[1]).any()
        assert_close(new[np.array([0, 2])], old[np.array([0, 2])], factor=10)
    assert np.isnan(jax.tree.leaves(encoder(model, x[1], y[1]))[0]).any()
    weights[1, 3] = 0
    assert draws.all_finite(mixtures.encode_batch(model, x, y, encoder=encoder, sample_weights=weights))


def test_float16_is_refused_in_samples_and_models():
    x, y, model, _ = fitted(1.0, 1.0)
    with pytest.raises(ValueError, match="got dtype float16"):
        mixtures.fit(x.astype(np.float16), y, model, num_iters=1)
    narrow = jax.tree.map(lambda leaf: leaf.astype(jnp.float16), model)
    with pytest.raises(ValueError, match=r"mean_x must be .* got dtype float16"):
        mixtures.log_density(narrow, x[0], y[0])
