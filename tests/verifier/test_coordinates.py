"""From images and vectors to coordinates."""

import jax
import numpy as np
import pytest

from jaxface import verifier
from jaxface.faces import pipeline
from tests.tolerances import assert_close


def test_images_go_through_the_steps(rng):
    images = rng.random((40, 6, 6))
    steps = pipeline.build([("resize", {"height": 3, "width": 3, "method": "area"})])
    x = images.reshape(40, 3, 2, 3, 2).mean(axis=(2, 4)).reshape(40, 9)
    ids = np.repeat(np.arange(10), 4)
    found, _ = verifier.fit(
        jax.random.key(0), x, ids, num_people=10, num_components=4, num_iters=3, length_normalize=False, steps=steps
    )
    assert_close(verifier.encode(found, images, block_size=7), verifier.encode_vectors(found, x), factor=1e2)


def test_rows_get_the_length_of_a_standard_gaussian(rng):
    z = rng.normal(size=(7, 4))
    scaled = verifier.normalize_length(z)
    assert_close(scaled, 2 * z / np.linalg.norm(z, axis=1, keepdims=True))


def test_vectors_of_another_dimension_are_refused(fitted):
    found, x, _ = fitted
    with pytest.raises(ValueError, match="the model was fitted to vectors of 10 dimensions; got 4"):
        verifier.encode_vectors(found, x[:, :4])
