"""Checks of images, and the NaN rule."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.faces import pixels


def test_what_is_not_an_image_is_refused():
    with pytest.raises(ValueError, match=r"got dtype uint8. Convert 8-bit images with .* / 255"):
        pixels.require(np.zeros((4, 4), np.uint8))
    with pytest.raises(ValueError, match=r"\[h, w, 3\] \(colour\); got shape \(4, 4, 4\)"):
        pixels.require(np.zeros((4, 4, 4)))
    with pytest.raises(ValueError, match="at least one pixel"):
        pixels.require(np.zeros((0, 4)))
    with pytest.raises(ValueError, match="must be grey"):
        pixels.require_gray(np.zeros((4, 4, 3)))
    with pytest.raises(ValueError, match="must be colour"):
        pixels.require_color(np.zeros((4, 4)))


@pytest.mark.parametrize("channels", [(), (3,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_grey_and_colour_images_pass(channels, dtype):
    pixels.require(np.zeros((2, 3, *channels), dtype))


def test_lists_are_no_images():
    with pytest.raises(ValueError, match=r"images must be an array; got .* Convert it with numpy.asarray"):
        pixels.require_floating([[0.5]], "images")


def test_one_unknown_pixel_makes_every_value_unknown(rng):
    image, values = rng.random((3, 4)), jnp.asarray(rng.random(5))
    np.testing.assert_array_equal(pixels.known(jnp.asarray(image), values), values)
    for unknown in (np.nan, np.inf):
        image[1, 2] = unknown
        assert np.isnan(jax.jit(pixels.known)(image, values)).all()
