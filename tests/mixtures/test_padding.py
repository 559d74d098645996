"""Sets of different sizes in arrays."""

import numpy as np
import pytest

from jaxface.mixtures import padding


def test_three_views(rng):
    sets = [[rng.normal(size=(s, n)) for s in (2, 4)] for n in (3, 1, 2)]
    found = padding.pad_sets(*sets)
    np.testing.assert_array_equal(found.sample_weights, [[1, 1, 0, 0], [1, 1, 1, 1]])
    for view, own in zip(found.views, sets, strict=True):
        np.testing.assert_array_equal(view[0, :2], own[0])
        np.testing.assert_array_equal(view[0, 2:], 0)
        np.testing.assert_array_equal(view[1], own[1])


def test_a_third_view_of_two_widths_is_named():
    sets = [np.zeros((2, 3)), np.zeros((1, 3))]
    with pytest.raises(
        ValueError, match=r"view 2 must hold sets \[s, n\] of one width n; got shape \(1, 2\) for image 1"
    ):
        padding.pad_sets(sets, sets, [sets[0], np.zeros((1, 2))])
