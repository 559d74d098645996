from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.faces import hog
from tests.reference import faces_reference as reference
from tests.tolerances import assert_close

# Compiled whole: dispatched one by one, every operation would be compiled on its own.
cell_histograms = jax.jit(hog.cell_histograms, static_argnames=("cell", "num_bins", "signed"))
encode = jax.jit(hog.encode, static_argnames=("cell", "num_bins", "block", "signed", "clip", "floor"))
gradient = jax.jit(jax.grad(lambda image: hog.encode(image, cell=4, num_bins=4, block=1).sum()))


@pytest.mark.parametrize(("cell", "num_bins", "signed"), [(4, 9, False), (5, 8, True), (3, 2, False), (3, 2, True)])
def test_cells_equal_the_loop_over_pixels(rng, cell, num_bins, signed):
    image = rng.random((12, 15))
    result = cell_histograms(image, cell=cell, num_bins=num_bins, signed=signed)
    assert_close(result, reference.hog_cells(image, cell, num_bins, signed))


@pytest.mark.parametrize(("block", "clip", "signed"), [(1, 0.4, True), (2, 0.2, False), (3, 0.2, True)])
def test_blocks_equal_the_loop_over_blocks(rng, block, clip, signed):
    image = rng.random((13, 15))
    result = encode(image, cell=4, num_bins=6, block=block, signed=signed, clip=clip)
    assert_close(result, reference.hog(image, 4, 6, block, signed, clip, 1e-3))


def test_the_votes_of_all_bins_are_the_gradient_magnitude(rng):
    image = rng.random((8, 8))
    d_row, d_column = np.gradient(image)
    expected = np.hypot(d_row, d_column).reshape(2, 4, 2, 4).mean(axis=(1, 3))
    assert_close(cell_histograms(image, cell=4, num_bins=7).sum(axis=2), expected)


def test_an_edge_votes_for_its_direction():
    """Brightness growing to the right has angle 0: shared by the first and the last unsigned bin."""
    ramp = np.tile(np.arange(8.0), (8, 1)) / 8
    cells = cell_histograms(ramp, cell=8, num_bins=4)
    assert_close(cells.ravel(), np.array([1 / 16, 0, 0, 1 / 16]))
    signed = cell_histograms(ramp.T, cell=8, num_bins=2, signed=True)
    assert_close(signed.ravel(), np.array([1 / 8, 0.0]))


def test_turning_the_gradient_round_matters_only_when_signed(rng):
    image = rng.random((12, 12))
    options = {"cell": 4, "num_bins": 8, "block": 2}
    assert_close(encode(1 - image, **options), encode(image, **options))
    turned = np.asarray(cell_histograms(1 - image, cell=4, num_bins=8, signed=True))
    assert_close(turned, np.roll(cell_histograms(image, cell=4, num_bins=8, signed=True), 4, axis=2))


def test_light_and_contrast_do_not_matter(rng):
    image = rng.random((12, 12))
    options = {"cell": 4, "num_bins": 8, "block": 2}
    assert_close(encode(0.01 * image + 0.4, **options), encode(image, **options))


def test_cells_cover_images_they_do_not_divide(rng):
    shape = jax.eval_shape(partial(hog.cell_histograms, cell=8, num_bins=9), rng.random((112, 92))).shape
    assert shape == (14, 11, 9)


def test_constant_images_give_zero_and_a_finite_gradient():
    image = jnp.full((8, 16), 0.3, jnp.float32)
    assert np.all(encode(image, cell=4, num_bins=4, block=1) == 0)
    assert np.isfinite(gradient(image)).all()


def test_flat_areas_beside_texture_have_finite_gradients(rng):
    image = rng.random((8, 16)).astype("float32")
    image[:, 8:] = 0.5
    assert np.isfinite(gradient(image)).all()


def test_a_single_row_of_pixels_has_no_vertical_gradient():
    cells = cell_histograms(jnp.arange(6.0)[None, :] / 6, cell=1, num_bins=4, signed=True)
    assert_close(cells, np.tile(np.array([1 / 12, 0, 0, 1 / 12]), (1, 6, 1)))


def test_grids_that_do_not_fit_are_refused():
    image = jnp.ones((8, 12))
    with pytest.raises(ValueError, match="cell must not be larger than the image of 8 x 12 pixels; got 9"):
        cell_histograms(image, cell=9, num_bins=4)
    with pytest.raises(ValueError, match="block must fit into the grid of 2 x 3 cells; got 3"):
        encode(image, cell=4, num_bins=4, block=3)
    with pytest.raises(ValueError, match="num_bins must be at least 2"):
        cell_histograms(image, cell=4, num_bins=1)
    with pytest.raises(ValueError, match=r"clip must lie in \(0, 1\]"):
        encode(image, cell=4, num_bins=4, block=1, clip=0.0)
    with pytest.raises(ValueError, match="floor must lie in"):
        encode(image, cell=4, num_bins=4, block=1, floor=-1.0)
