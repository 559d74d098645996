import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from jaxface.metrics import lfw
from tests.metrics.people import levels, normal_scores
from tests.reference import metrics_reference as ref
from tests.tolerances import assert_close


@given(st.lists(levels, min_size=12, max_size=12), st.permutations(range(12)))
def test_against_the_definition(scores, order):
    scores = np.array(scores)
    order = np.array(order)
    same, folds = np.tile([True, False], 6)[order], np.repeat(["a", "b", "c"], 4)[order]
    result = lfw.lfw_accuracy(scores, same, folds)
    mean, error, accuracy = ref.lfw_accuracy(scores.tolist(), same.tolist(), folds.tolist())
    assert_close(result.accuracy, np.array(accuracy))
    assert_close((result.mean, result.standard_error), (mean, error))


def test_ten_folds_by_hand():
    # Nine folds are perfect at any threshold in (0, 1]; in the last one a genuine pair scores 0.
    scores = np.array([1.0, 0.0] * 9 + [0.0, 0.0])
    same = np.array([True, False] * 10)
    result = lfw.lfw_accuracy(scores, same, np.repeat(np.arange(10), 2))
    np.testing.assert_array_equal(result.accuracy, [1.0] * 9 + [0.5])
    np.testing.assert_array_equal(result.threshold, np.ones(10))
    assert result.mean == pytest.approx(0.95)
    assert result.standard_error == pytest.approx(math.sqrt((9 * 0.05**2 + 0.45**2) / 9 / 10))


def test_of_several_best_thresholds_the_highest():
    # 4 and 1 both make one error.
    assert lfw.best_threshold([4.0, 3.0, 2.0, 1.0], [True, False, False, True]) == 4.0
    assert lfw.best_threshold([4.0, 3.0], [False, True]) == np.inf  # reject all: one error, as accepting all
    assert lfw.best_threshold([2.0, 2.0, 2.0], [True, True, False]) == 2.0


def test_a_rising_transform_changes_no_decision(rng):
    scores, same = normal_scores(rng, 200, 200)
    folds = rng.integers(0, 10, 400)
    plain, mapped = lfw.lfw_accuracy(scores, same, folds), lfw.lfw_accuracy(np.exp(3.0 * scores), same, folds)
    np.testing.assert_array_equal(plain.accuracy, mapped.accuracy)


def test_what_lfw_refuses():
    with pytest.raises(ValueError, match="the number of folds must be at least 2"):
        lfw.lfw_accuracy([1.0, 0.0], [True, False], [3, 3])
    with pytest.raises(ValueError, match=r"folds must have shape \[p\] with p = 2"):
        lfw.lfw_accuracy([1.0, 0.0], [True, False], [3])
    with pytest.raises(ValueError, match=r"folds must not be NaN; 1 of 4 values are, the first at index \(2,\)"):
        lfw.lfw_accuracy([1.0, 0.0, 1.0, 0.0], [True, False] * 2, [0, 0, np.nan, 1])
    with pytest.raises(ValueError, match="at least one genuine and one impostor pair; got 0 genuine and 1"):
        lfw.lfw_accuracy([1.0, 0.0], [True, False], [0, 1])
