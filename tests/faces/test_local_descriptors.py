from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.faces import local_descriptors
from tests.faces import orl
from tests.reference import faces_reference as reference
from tests.tolerances import assert_close

# Compiled whole: dispatched one by one, every operation would be compiled on its own.
STATIC = ("cells", "radii", "block", "stride", "num_bins", "num_points", "signed", "floor")
encode = jax.jit(local_descriptors.encode, static_argnames=STATIC)
ONE = {"cells": (4,), "radii": (1,), "block": 2, "stride": 3, "num_bins": 4, "num_points": 4}
TWO = {"cells": (3, 5), "radii": (1, 2.5), "block": 2, "stride": 4, "num_bins": 4, "num_points": 4}


def grid(size, patch, stride):
    """First pixels of the patches of an axis: as many as fit, what is left over shared by both ends."""
    count = (size - patch) // stride + 1
    margin = (size - patch - (count - 1) * stride) // 2
    return [margin + i * stride for i in range(count)]


def patches(shape, cell, block, stride):
    """Pixel windows (rows, columns) of the cells of every patch."""
    for top in grid(shape[0], block * cell, stride):
        for left in grid(shape[1], block * cell, stride):
            yield [
                (slice(top + i * cell, top + (i + 1) * cell), slice(left + j * cell, left + (j + 1) * cell))
                for i in range(block)
                for j in range(block)
            ]


def gradients(image, cell, block, stride, num_bins, signed, floor):
    votes = reference.hog_cells(image, 1, num_bins, signed)
    found = [
        np.concatenate([votes[window].sum(axis=(0, 1)) for window in windows])
        for windows in patches(image.shape, cell, block, stride)
    ]
    mean = sum(part.sum() for part in found) / len(found)
    return np.sqrt([part / (part.sum() + floor * mean) for part in found])


def patterns(image, cell, block, stride, radius, num_points):
    border = int(np.ceil(radius))
    codes = np.full(image.shape, -1)
    codes[border:-border, border:-border] = reference.lbp_codes(image, radius, num_points)
    uniform = reference.uniform_codes(num_points)
    found = []
    for windows in patches(image.shape, cell, block, stride):
        cells = []
        for window in windows:
            inside = [code for code in codes[window].ravel() if code >= 0]
            counts = [sum(code == known for code in inside) for known in uniform]
            cells.append(np.array([*counts, len(inside) - sum(counts)]) / len(inside))
        found.append(np.sqrt(np.concatenate(cells) / len(cells)))
    return np.array(found)


@pytest.mark.parametrize("signed", [False, True])
def test_every_patch_equals_the_loop_over_its_pixels(rng, signed):
    image = rng.random((17, 14))
    found = encode(image, **TWO, signed=signed, floor=0.01)
    expected_x, expected_y, expected_places = [], [], []
    for cell, radius in zip(TWO["cells"], TWO["radii"], strict=True):
        where = (cell, TWO["block"], TWO["stride"])
        expected_x.append(gradients(image, *where, TWO["num_bins"], signed, 0.01))
        expected_y.append(patterns(image, *where, radius, TWO["num_points"]))
        for windows in patches(image.shape, *where):
            rows = [row for window in windows for row in range(window[0].start, window[0].stop)]
            columns = [column for window in windows for column in range(window[1].start, window[1].stop)]
            expected_places.append((np.mean(columns), np.mean(rows)))
    assert_close(found.x, np.concatenate(expected_x))
    assert_close(found.y, np.concatenate(expected_y))
    assert_close(found.positions, np.array(expected_places))


def test_the_grid_is_centred_and_as_dense_as_asked():
    found = encode(np.zeros((13, 9)), **ONE)
    # Patches of 8 pixels: in 13 rows at 1 and 4, in 9 columns at 0 alone.
    assert_close(found.positions, np.array([[3.5, 4.5], [3.5, 7.5]]))
    assert found.x.shape == (2, 2 * 2 * 4)
    assert found.y.shape == (2, 2 * 2 * (4 * 3 + 3))


def test_all_scales_have_vectors_of_one_length(rng):
    both = encode(rng.random((17, 14)), **TWO)
    assert both.x.shape == (len(both.positions), 16)
    assert both.y.shape == (len(both.positions), 60)
    assert len(both.positions) == 3 * 3 + 2 * 2


def test_vectors_have_unit_length_and_the_floor_shortens_the_flat_ones(rng):
    image = rng.random((12, 24))
    image[:, 12:] = 0.5 + 0.01 * image[:, 12:]
    found = encode(image, **{**ONE, "stride": 8}, floor=0.1)
    left, right = found.positions[:, 0] < 8, found.positions[:, 0] > 16
    assert_close(np.linalg.norm(found.y, axis=1), np.ones(len(found.y)))
    assert np.linalg.norm(found.x[left], axis=1).min() > 0.9
    assert np.linalg.norm(found.x[right], axis=1).max() < 0.5


def test_light_and_contrast_do_not_matter(rng):
    image = rng.random((13, 12))
    assert_close(encode(0.1 * image + 0.4, **ONE)[:2], encode(image, **ONE)[:2], factor=10)


def test_constant_images_are_zero_in_one_view_with_finite_gradients():
    image = jnp.full((12, 12), 0.3, jnp.float32)
    found = encode(image, **ONE)
    assert np.all(found.x == 0)
    assert_close(np.linalg.norm(found.y, axis=1), np.ones(len(found.y), np.float32))
    slope = jax.jit(jax.grad(lambda image: local_descriptors.encode(image, **ONE).x.sum()))
    assert np.isfinite(slope(image)).all()
    half = image.at[:, :4].set(jnp.linspace(0, 1, 48, dtype=jnp.float32).reshape(12, 4))
    assert np.isfinite(slope(half)).all()


def test_views_of_real_faces_tell_people_apart():
    """Means of the descriptors by place: the nearest shot of ten people is of the same person."""
    images = np.asarray([[orl.image(person, shot) for shot in (1, 2)] for person in range(1, 11)]).astype("float32")
    settings = {"cells": (6, 9), "radii": (1, 2), "block": 2, "stride": 6, "num_bins": 8}
    found = jax.jit(jax.vmap(partial(local_descriptors.encode, **settings)))(images.reshape(20, 112, 92) / 255)
    assert found.x.shape[:2] == found.y.shape[:2] == found.positions.shape[:2]
    for view in (found.x, found.y):
        vectors = np.asarray(view).reshape(10, 2, -1)
        similarity = vectors[:, 0] @ vectors[:, 1].T
        assert (similarity.argmax(axis=1) == np.arange(10)).mean() >= 0.8


ERRORS = {
    "colour": ({}, (12, 12, 3), "image must be grey"),
    "no scale": ({"cells": (), "radii": ()}, (12, 12), "cells and radii must be of one length"),
    "a radius too few": ({"cells": (4, 5)}, (12, 12), "got 2 cells and 1 radii"),
    "a radius as large as its cell": ({"radii": (3.5,)}, (12, 12), "radii must be smaller than their cells"),
    "no radius": ({"radii": (0.0,)}, (12, 12), r"radii must lie in \(0, inf\); got 0.0"),
    "an empty cell": ({"cells": (0,)}, (12, 12), "cells must be at least 1; got 0"),
    "a patch larger than the image": ({}, (12, 7), "patches must fit into the image of 12 x 7 pixels; got 2 x 2 cells"),
    "no stride": ({"stride": 0}, (12, 12), "stride must be at least 1; got 0"),
    "no cells in a patch": ({"block": 0}, (12, 12), "block must be at least 1; got 0"),
    "no floor": ({"floor": 0.0}, (12, 12), r"floor must lie in \(0, 1\]; got 0.0"),
}


@pytest.mark.parametrize("what", ERRORS)
def test_message(what):
    changed, shape, message = ERRORS[what]
    with pytest.raises(ValueError, match=message):
        local_descriptors.encode(np.zeros(shape), **(ONE | changed))
