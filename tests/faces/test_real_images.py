"""Sanity on real faces: the features tell people apart, and precision does not change them."""

import functools

import jax
import numpy as np
import pytest

from jaxface.faces import lbp, pipeline
from tests.faces import orl
from tests.tolerances import assert_close


@functools.cache
def faces() -> np.ndarray:
    """Ten people, four shots each: float32 `[10, 4, 112, 92]`."""
    shots = [[orl.image(person, shot) for shot in range(1, 5)] for person in range(1, 11)]
    return np.asarray(shots).astype("float32") / 255


FEATURES = {
    "lbp": [("lbp", {"cells": (7, 6), "root": True})],
    "hog": [("hog", {"cell": 8, "num_bins": 9, "block": 2})],
    "normalised pixels": [
        ("local_norm", {"window": 5}),
        ("resize", {"height": 28, "width": 23, "method": "area"}),
    ],
}


@pytest.mark.parametrize("feature", FEATURES)
def test_the_nearest_shot_is_of_the_same_person(feature):
    images = faces()
    built = pipeline.build(FEATURES[feature])
    vectors = np.asarray(pipeline.encode_batch(built, images.reshape(40, 112, 92), block_size=16))
    vectors = vectors.reshape(10, 4, -1) / np.linalg.norm(vectors, axis=1).reshape(10, 4, 1)
    similarity = np.einsum("psd,qtd->pstq", vectors[:, 2:], vectors[:, :2]).max(axis=2)
    correct = similarity.argmax(axis=2) == np.arange(10)[:, None]
    assert correct.mean() >= 0.8


def test_codes_of_eight_bit_faces_are_the_same_in_both_precisions():
    """Eight-bit pixels are full of exact ties, which rounding to float32 must not break."""
    eight_bit = orl.image(3, 1)
    for radius in (1, 2, 3):
        codes = jax.jit(functools.partial(lbp.codes, radius=radius))
        double = codes(eight_bit / 255.0)
        single = codes((eight_bit / 255.0).astype("float32"))
        np.testing.assert_array_equal(single, double)


def test_blocks_do_not_change_the_vectors():
    built = pipeline.build(FEATURES["hog"])
    images = faces().reshape(40, 112, 92)
    expected = pipeline.encode_batch(built, images, block_size=16)
    assert_close(pipeline.encode_batch(built, images, block_size=7), expected)
