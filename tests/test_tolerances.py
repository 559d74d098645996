import numpy as np
import pytest

from tests.tolerances import assert_close

EXPECTED = np.array([1.0, np.inf, -np.inf, np.nan, 1000.0])


def changed(place, value):
    out = EXPECTED.copy()
    out[place] = value
    return out


def test_equal_infinities_and_nans_at_the_same_places_are_close():
    assert_close(EXPECTED, EXPECTED)
    assert_close(np.float32(np.inf), np.inf)
    assert_close(changed(0, 1.0 + 5e-8), EXPECTED)


@pytest.mark.parametrize(
    ("place", "value"), [(0, 1.0 + 2e-7), (0, np.inf), (1, 1e300), (1, -np.inf), (2, np.nan), (3, 0.0)]
)
def test_an_infinity_hides_no_difference(place, value):
    with pytest.raises(AssertionError):
        assert_close(changed(place, value), EXPECTED)
    with pytest.raises(AssertionError):
        assert_close(EXPECTED, changed(place, value))


def test_the_coarser_dtype_and_the_factor_widen_the_tolerance():
    assert_close(np.float32([1.0, 0.5 + 5e-6]), np.array([1.0, 0.5]))
    assert_close([np.array(1.0 + 5e-8)], [np.array(1.0)], factor=1000)
    with pytest.raises(AssertionError):
        assert_close(np.array([1.0, 0.5 + 5e-6]), np.array([1.0, 0.5]))


@pytest.mark.parametrize(
    ("actual", "message"),
    [([np.ones(2)], "structures differ"), (np.ones(3), "shapes differ"), (np.ones((2, 1)), "shapes differ")],
)
def test_structures_and_shapes_must_agree(actual, message):
    with pytest.raises(AssertionError, match=message):
        assert_close(actual, np.ones(2))


def test_integers_must_be_equal():
    assert_close(np.array([1, 2]), np.array([1, 2]))
    with pytest.raises(AssertionError):
        assert_close(np.array([1, 2]), np.array([1, 3]))
