import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.faces import color_hist
from tests.reference import faces_reference as reference
from tests.tolerances import assert_close

# Compiled whole: dispatched one by one, every operation would be compiled on its own.
rgb_to_luv = jax.jit(color_hist.rgb_to_luv)
hard_histogram = jax.jit(color_hist.hard_histogram, static_argnames=("num_bins",))
soft_histogram = jax.jit(color_hist.soft_histogram, static_argnames=("num_bins",))
gradient = jax.jit(jax.grad(lambda image, weights: color_hist.soft_histogram(image) @ weights))


def test_luv_equals_the_formulas_pixel_by_pixel(rng):
    image = rng.random((6, 5, 3))
    image[0] *= 0.04  # the linear part of the gamma curve and of the lightness
    image[1, 0] = 0
    image[1, 1] = 1
    assert_close(rgb_to_luv(image), reference.luv(image))


def test_luv_of_the_primaries_agrees_with_published_values():
    image = np.array([[[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, 0]]])
    published = [
        [53.24, 175.01, 37.76],
        [87.74, -83.07, 107.40],
        [32.30, -9.40, -130.34],
        [100, 0, 0],
        [0, 0, 0],
    ]
    assert np.abs(np.asarray(rgb_to_luv(image))[0] - published).max() < 0.06


def test_grays_have_no_colour():
    gray = np.linspace(0, 1, 30).astype("float32")
    luv = np.asarray(rgb_to_luv(np.repeat(gray[None, :, None], 3, axis=2)))
    assert np.abs(luv[..., 1:]).max() < 1e-3
    assert np.all(np.diff(luv[0, :, 0]) > 0)


def test_the_ranges_hold_the_whole_gamut():
    steps = np.linspace(0, 1, 9)
    faces = [c for c in itertools.product(steps, repeat=3) if 0.0 in c or 1.0 in c]
    luv = np.asarray(rgb_to_luv(np.array(faces)[None]))[0]
    low, high = np.array(color_hist.LUV_RANGES).T
    assert np.all(luv >= low - 1e-9)
    assert np.all(luv <= high + 1e-9)


@pytest.mark.parametrize("num_bins", [1, 16])
def test_the_hard_histogram_equals_the_loop(rng, num_bins):
    image = rng.random((9, 7, 3))
    result = hard_histogram(image, num_bins=num_bins)
    assert result.shape == (num_bins**3,)
    assert_close(result, reference.luv_histogram(image, num_bins, color_hist.LUV_RANGES, soft=False))


@pytest.mark.parametrize("num_bins", [2, 16])
def test_the_soft_histogram_equals_the_loop(rng, num_bins):
    image = rng.random((9, 7, 3))
    image[0, 0], image[0, 1], image[0, 2] = 0, 1, [0, 0, 1]
    result = soft_histogram(image, num_bins=num_bins)
    assert_close(result, reference.luv_histogram(image, num_bins, color_hist.LUV_RANGES, soft=True))


def test_histograms_sum_to_one_in_float32_over_many_pixels():
    """90,000 equal shares: added one by one in float32 they would be wrong in the fourth digit."""
    image = np.full((300, 300, 3), [0.31, 0.52, 0.17])
    for histogram in (hard_histogram, soft_histogram):
        single = histogram(image.astype("float32"))
        assert single.dtype == jnp.float32
        assert_close(single.sum(), np.float32(1), factor=2)
    soft = soft_histogram
    assert_close(soft(image.astype("float32")), soft(image), factor=20)


def test_white_and_black_lie_in_the_outermost_bins():
    histogram = np.asarray(hard_histogram(jnp.asarray([[[0.0] * 3, [1.0] * 3]]))).reshape(16, 16, 16)
    assert histogram[0].sum() == histogram[15].sum() == 0.5
    outside = soft_histogram(jnp.asarray([[[3.0, 3.0, 3.0]]]))
    assert_close(outside.sum(), 1.0)


@pytest.mark.parametrize("value", [0.0, 0.04045, 0.5, 1.0])
def test_gradients_are_finite_on_gray_black_and_white(rng, value):
    image = jnp.full((2, 2, 3), value)
    assert np.isfinite(gradient(image, jnp.asarray(rng.random(16**3)))).all()


def test_gray_images_and_too_few_bins_are_refused():
    with pytest.raises(ValueError, match="must be colour"):
        hard_histogram(jnp.ones((4, 4)))
    with pytest.raises(ValueError, match="num_bins must be at least 1"):
        hard_histogram(jnp.ones((4, 4, 3)), num_bins=0)
    with pytest.raises(ValueError, match="num_bins must be at least 2"):
        soft_histogram(jnp.ones((4, 4, 3)), num_bins=1)
