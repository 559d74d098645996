import math
import time

import numpy as np
import pytest
from hypothesis import given
from sklearn.isotonic import IsotonicRegression

from jaxface.metrics import calibration as c
from jaxface.metrics import verification as v
from jaxface.metrics.hull import concave_hull
from tests.metrics.draws import finite_levels, labelled_scores, normal_scores
from tests.reference import metrics_reference as ref
from tests.tolerances import assert_close


def test_cllr_by_hand():
    assert c.cllr([0.0, 0.0], [True, False]) == pytest.approx(1.0, abs=1e-15)
    assert c.cllr([math.log(3.0), 0.0], [True, False]) == pytest.approx((math.log2(4 / 3) + 1) / 2)


def test_cllr_of_extreme_ratios():
    assert c.cllr([1000.0, -1000.0], [True, False]) == 0.0
    assert c.cllr([-1000.0, 1000.0], [True, False]) == pytest.approx(1000.0 / math.log(2.0))
    assert c.cllr([np.inf, -np.inf], [True, False]) == 0.0
    assert c.cllr([np.inf, np.inf], [True, False]) == np.inf


@given(labelled_scores(values=finite_levels))
def test_cllr_and_its_minimum_against_the_definition(pairs):
    scores, same = pairs
    assert_close(c.cllr(scores, same), ref.cllr(scores.tolist(), same.tolist()))
    least = c.min_cllr(v.roc(scores, same))
    assert_close(least, ref.min_cllr(scores.tolist(), same.tolist()))
    assert -1e-12 <= least <= 1.0 + 1e-12
    assert c.calibration_loss(scores, same) >= -1e-12


@given(labelled_scores())
def test_min_cllr_is_reached_by_pav_and_ignores_rising_maps(pairs):
    scores, same = pairs
    least = c.min_cllr(v.roc(scores, same))
    assert_close(c.cllr(c.pav_llr(scores, same), same), least)
    assert_close(c.min_cllr(v.roc(np.arctan(scores), same)), least)


@given(labelled_scores())
def test_pav_against_the_min_max_formula(pairs):
    scores, same = pairs
    assert_close(c.pav(scores, same), np.array(ref.isotonic(scores.tolist(), same.tolist())))


@pytest.mark.parametrize("decimals", [None, 2, 0])
def test_pav_equals_scikit_learn(rng, decimals):
    scores, same = normal_scores(rng, 400, 1600, decimals=decimals)
    expected = IsotonicRegression().fit_transform(scores, same.astype(float))
    assert_close(c.pav(scores, same), expected)


def test_pav_llr_takes_the_prior_out(rng):
    scores, same = normal_scores(rng, 200, 700)
    probability, llr = c.pav(scores, same), c.pav_llr(scores, same)
    inside = (probability > 0.0) & (probability < 1.0)
    log_odds = np.log(probability[inside] / (1.0 - probability[inside]))
    assert_close(llr[inside], log_odds - math.log(200 / 700))
    assert np.isneginf(llr[probability == 0.0]).all()
    assert np.isposinf(llr[probability == 1.0]).all()
    assert (probability == 0.0).any()


def curves(name, n):
    rng = np.random.default_rng(3)
    steps = {
        "random": rng.random((n, 2)),
        "already concave": np.stack([np.arange(1.0, n + 1.0), np.arange(n, 0.0, -1.0)], axis=1),
        "convex": np.stack([np.arange(n, 0.0, -1.0), np.arange(1.0, n + 1.0)], axis=1),
        "straight": np.ones((n, 2)),
        # Slopes fall slowly and the last is steep: each round of pooling removes one vertex only.
        "late violator": np.stack([np.full(n, float(n)), np.r_[np.arange(n, 1.0, -1.0), 5.0 * n]], axis=1),
        "steps": np.eye(2)[rng.integers(0, 2, n)],
        "repeated": rng.integers(0, 2, (n, 2)) * (rng.random((n, 1)) < 0.2),  # as empty bins make it
    }[name]
    corner = np.zeros((1, 2))
    return np.concatenate([corner, np.cumsum(steps, axis=0)]).T


CURVES = ["random", "already concave", "convex", "straight", "late violator", "steps", "repeated"]


@pytest.mark.parametrize("name", CURVES)
def test_the_hull_covers_the_curve_and_bends_down(name):
    x, y = curves(name, 300)
    kept = concave_hull(x, y)
    assert kept[0] == 0
    assert kept[-1] == 300
    dx, dy = np.diff(x[kept]), np.diff(y[kept])
    assert (dy[:-1] * dx[1:] > dy[1:] * dx[:-1]).all()
    for i in range(x.size):  # under every edge: the edges are the hull
        assert (dx * (y[i] - y[kept][:-1]) - dy * (x[i] - x[kept][:-1]) <= 1e-7 * x[-1] * y[-1]).all()


@pytest.mark.parametrize("name", CURVES)
def test_the_hull_is_linear_in_time(name):
    x, y = curves(name, 200_000)
    start = time.process_time()
    concave_hull(x, y)
    assert time.process_time() - start < 2.0  # a quadratic pass would take minutes


@pytest.mark.parametrize("n", [1, 2])
def test_the_hull_of_one_or_two_points(n):
    np.testing.assert_array_equal(concave_hull(np.arange(n) * 1.0, np.arange(n) * 1.0), np.arange(n))


def test_reliability_by_hand():
    # Even odds, so the prediction is the sigmoid of the score.
    llr = np.log(np.array([0.9 / 0.1, 0.8 / 0.2, 0.1 / 0.9, 0.3 / 0.7]))
    table = c.reliability(llr, [True, False, False, True], num_bins=4)
    assert_close(table.edges, np.array([0.0, 0.25, 0.5, 0.75, 1.0]))
    np.testing.assert_array_equal(table.counts, [1, 1, 0, 2])
    assert_close(table.predicted[[0, 1, 3]], np.array([0.1, 0.3, 0.85]))
    assert_close(table.observed[[0, 1, 3]], np.array([0.0, 1.0, 0.5]))
    assert np.isnan(table.predicted[2])
    assert np.isnan(table.observed[2])


def test_reliability_of_calibrated_and_infinite_ratios(rng):
    scores, same = normal_scores(rng, 30_000, 60_000, shift=2.0)
    table = c.reliability(2.0 * (scores - 1.0), same, num_bins=10)
    np.testing.assert_allclose(table.observed, table.predicted, atol=0.03)
    ends = c.reliability([np.inf, -np.inf], [True, False], num_bins=5)
    np.testing.assert_array_equal(ends.counts, [1, 0, 0, 0, 1])


def test_what_calibration_refuses():
    with pytest.raises(ValueError, match="num_bins must be at least 1"):
        c.reliability([1.0, 0.0], [True, False], num_bins=0)
    for function in (c.cllr, c.pav, c.pav_llr, c.calibration_loss):
        with pytest.raises(ValueError, match="scores must not be NaN"):
            function([np.nan, 0.0], [True, False])
