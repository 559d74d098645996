"""Matrices that resample one axis, and their application to both."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxface.faces import geometry, separable
from tests.tolerances import assert_close


@settings(max_examples=25, deadline=None)
@given(size=st.integers(1, 40), new_size=st.integers(1, 40))
def test_weights_keep_constants_and_area_weights_keep_the_mean(size, new_size):
    for weights in (separable.area_weights, separable.linear_weights, separable.lanczos_weights):
        assert_close(weights(size, new_size).sum(axis=1), np.ones(new_size))
    assert_close(separable.area_weights(size, new_size).mean(axis=0), np.full(size, 1 / size))
    for weights in geometry.RESIZE_METHODS.values():
        assert_close(weights(size, size), np.eye(size))


def test_area_weights_are_overlaps_of_intervals():
    assert_close(separable.area_weights(3, 2), np.array([[2, 1, 0], [0, 1, 2]]) / 3)
    assert_close(separable.area_weights(2, 3), np.array([[1, 0], [0.5, 0.5], [0, 1]]))


def test_rows_and_columns_are_treated_apart(rng):
    left, image, right = rng.random((2, 4)), rng.random((4, 5, 3)), rng.random((6, 5))
    expected = np.stack([left @ image[:, :, c] @ right.T for c in range(3)], axis=-1)
    assert_close(separable.apply(left, image, right), expected)
    assert separable.apply(left, image.astype(np.float32), right).dtype == np.float32
