import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.faces import lbp
from tests.reference import faces_reference as reference
from tests.tolerances import assert_close

# Compiled whole: dispatched one by one, every operation would be compiled on its own.
codes = jax.jit(lbp.codes, static_argnames=("radius", "num_points"))
histograms = jax.jit(lbp.histograms, static_argnames=("radius", "cells", "num_points"))
encode = jax.jit(lbp.encode, static_argnames=("radii", "cells", "num_points", "root"))


@pytest.mark.parametrize(("radius", "num_points"), [(1, 8), (2, 8), (3, 8), (1.5, 8), (2, 12), (1, 4)])
def test_codes_equal_the_loop_over_pixels(rng, radius, num_points):
    image = rng.random((11, 9))
    expected = reference.lbp_codes(image, radius, num_points)
    np.testing.assert_array_equal(codes(image, radius=radius, num_points=num_points), expected)


def test_codes_equal_the_loop_on_images_full_of_ties(rng):
    image = rng.integers(0, 3, size=(12, 12)) / 2
    for radius in (1, 2, 3):
        expected = reference.lbp_codes(image, radius)
        np.testing.assert_array_equal(codes(image, radius=radius), expected)
        np.testing.assert_array_equal(codes(image.astype("float32"), radius=radius), expected)


def test_a_bright_pixel_on_the_right_is_bit_zero_and_above_is_bit_two():
    image = np.zeros((3, 3))
    image[1, 1] = 0.5
    image[1, 2] = 1.0
    assert codes(image, radius=1) == 1
    image[1, 2], image[0, 1] = 0.0, 1.0
    assert codes(image, radius=1) == 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 0.7, 1.0])
def test_constant_images_have_the_all_ones_code(dtype, value):
    image = np.full((12, 12), value, dtype)
    for radius in (1, 1.7, 2, 3):
        assert np.all(codes(image, radius=radius) == 255)


def test_the_codes_of_a_diagonal_ramp_do_not_depend_on_rounding():
    """Along the antidiagonal a ramp is flat: interpolated ties must all fall on the same side."""
    ramp = np.add.outer(np.arange(12), np.arange(12)) / 255
    for dtype in ("float32", "float64"):
        for radius in (1, 2, 3):
            assert len(np.unique(codes(ramp.astype(dtype), radius=radius))) == 1


def test_codes_do_not_depend_on_light_and_contrast(rng):
    image = rng.random((12, 12))
    np.testing.assert_array_equal(codes(0.2 * image + 0.5, radius=2), codes(image, radius=2))


@pytest.mark.parametrize("num_points", [4, 8, 10])
def test_the_table_gives_uniform_codes_bins_of_their_own(num_points):
    table = lbp.uniform_table(num_points)
    uniform = reference.uniform_codes(num_points)
    assert len(uniform) == num_points * (num_points - 1) + 2
    assert table[uniform].tolist() == list(range(len(uniform)))
    assert set(np.delete(table, uniform)) == {len(uniform)}


@pytest.mark.parametrize(("radius", "cells"), [(1, (2, 3)), (2, (3, 2)), (3, (1, 1)), (1.5, (4, 3))])
def test_histograms_equal_the_loop_over_pixels(rng, radius, cells):
    image = rng.random((17, 13))
    result = histograms(image, radius=radius, cells=cells)
    assert_close(result, reference.lbp_histograms(image, radius, cells))
    assert_close(result.sum(axis=2), np.ones(cells))


def test_the_vector_concatenates_radii_cells_and_bins(rng):
    image = rng.random((20, 16))
    expected = [reference.lbp_histograms(image, radius, (2, 2)).ravel() for radius in (1, 3)]
    vector = encode(image, radii=(1, 3), cells=(2, 2))
    assert vector.shape == (2 * 2 * 2 * 59,)
    assert_close(vector, np.concatenate(expected))
    assert_close(encode(image, radii=(1, 3), cells=(2, 2), root=True), np.sqrt(np.concatenate(expected)))


def test_the_border_needs_no_invented_pixels(rng):
    """Codes near the border see the image itself: a larger image has the same codes in its middle."""
    image = rng.random((16, 16))
    for radius in (1, 1.7, 3):
        border = math.ceil(radius)
        inner = codes(image[2:-2, 2:-2], radius=radius)
        np.testing.assert_array_equal(codes(image, radius=radius)[2:-2, 2:-2], inner)
        assert inner.shape == (12 - 2 * border, 12 - 2 * border)


def test_what_cannot_be_encoded_is_refused():
    image = jnp.ones((9, 9))
    with pytest.raises(ValueError, match=r"radius must leave pixels.*got 5 for an image of 9 x 9"):
        codes(image, radius=5)
    with pytest.raises(ValueError, match="radius must lie in"):
        codes(image, radius=0)
    with pytest.raises(ValueError, match="num_points must be at most 16"):
        codes(image, radius=1, num_points=17)
    with pytest.raises(ValueError, match="5 rows of cells in 9 pixels leave an empty one"):
        histograms(image, radius=3, cells=(5, 1))
    with pytest.raises(ValueError, match=r"cells must be \(rows, columns\)"):
        histograms(image, radius=1, cells=(2,))
    with pytest.raises(ValueError, match=r"cells \(columns\) must be at least 1"):
        histograms(image, radius=1, cells=(2, 0))
    with pytest.raises(ValueError, match="radii must hold at least one"):
        encode(image, radii=(), cells=(1, 1))
    with pytest.raises(ValueError, match="must be grey"):
        encode(jnp.ones((9, 9, 3)), cells=(1, 1))
