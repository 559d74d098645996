import math

import numpy as np
import pytest
from hypothesis import given
from sklearn.isotonic import IsotonicRegression

from jaxface.metrics import calibration as c
from jaxface.metrics import verification as v
from tests.metrics.people import finite_levels, labeled_scores, normal_scores
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


@given(labeled_scores(values=finite_levels))
def test_cllr_and_its_minimum_against_the_definition(pairs):
    scores, same = pairs
    assert_close(c.cllr(scores, same), ref.cllr(scores.tolist(), same.tolist()))
    least = c.min_cllr(v.roc(scores, same))
    assert_close(least, ref.min_cllr(scores.tolist(), same.tolist()))
    assert -1e-12 <= least <= 1.0 + 1e-12


@given(labeled_scores())
def test_min_cllr_is_reached_by_pav_and_ignores_rising_maps(pairs):
    scores, same = pairs
    least = c.min_cllr(v.roc(scores, same))
    assert_close(c.cllr(c.pav_llr(scores, same), same), least)
    assert_close(c.min_cllr(v.roc(np.arctan(scores), same)), least)


def log_ratios(probability, same):
    """The ratios of posterior probabilities at the prior of the trials."""
    with np.errstate(divide="ignore"):
        return np.log(probability) - np.log1p(-probability) - math.log(same.sum() / (~same).sum())


@given(labeled_scores())
def test_pav_against_the_min_max_formula(pairs):
    scores, same = pairs
    expected = log_ratios(np.array(ref.isotonic(scores.tolist(), same.tolist())), same)
    assert_close(c.pav_llr(scores, same), expected, factor=10)


@pytest.mark.parametrize("decimals", [None, 2, 0])
def test_pav_equals_scikit_learn(rng, decimals):
    scores, same = normal_scores(rng, 400, 1600, decimals=decimals)
    expected = log_ratios(IsotonicRegression().fit_transform(scores, same.astype(float)), same)
    assert_close(c.pav_llr(scores, same), expected, factor=10)
    assert np.isneginf(expected).any()


def test_cross_entropy_against_the_definition(rng):
    scores, same = rng.normal(size=30), rng.random(30) < 0.4
    odds = np.array([-3.0, 0.0, 1.5])
    prior = 1 / (1 + np.exp(-odds))
    lost = np.where(same, -1, 1)[None, :] * (scores[None, :] + odds[:, None])
    bits = np.log2(1 + np.exp(lost))
    expected = prior * bits[:, same].mean(axis=1) + (1 - prior) * bits[:, ~same].mean(axis=1)
    found = c.cross_entropy(scores, same, odds)
    assert_close(found, expected)
    assert_close(found[1], c.cllr(scores, same))
    silent = c.cross_entropy([0.0, 0.0], [True, False], odds)
    assert_close(silent, -prior * np.log2(prior) - (1 - prior) * np.log2(1 - prior))
    with pytest.raises(ValueError, match="log_odds must be finite"):
        c.cross_entropy(scores, same, [np.inf])


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
    for function in (c.cllr, c.pav_llr):
        with pytest.raises(ValueError, match="scores must not be NaN"):
            function([np.nan, 0.0], [True, False])


def test_the_range_that_trials_support_by_a_fine_grid(rng):
    """The bounds of Vergeer et al. against the costs on a grid, and their closed forms."""
    for shift, scale, sizes in ((1.5, 3.0, (40, 300)), (0.0, 1.0, (30, 30)), (-1.0, 2.0, (20, 50)), (3.0, 1.0, (9, 9))):
        same = np.repeat([True, False], sizes)
        llr = scale * (rng.normal(size=same.size) + np.where(same, shift, -shift))
        theta = np.linspace(-25, 25, 500_001)
        below = np.searchsorted(np.sort(llr[same]), theta, side="right")
        above = sizes[1] - np.searchsorted(np.sort(llr[~same]), theta, side="right")
        costs = (below + 1) / (sizes[0] + 1) + np.exp(theta) * (above + 1) / (sizes[1] + 1)
        is_worse = costs > np.minimum(1, np.exp(theta)) * (1 + 1e-12)
        low, high = c.supported_range(llr, same)
        assert low == pytest.approx(theta[is_worse & (theta <= 0)].max(initial=-25), abs=2e-4)
        assert high == pytest.approx(theta[is_worse & (theta >= 0)].min(initial=25), abs=2e-4)


def test_the_range_of_separated_and_of_reversed_ratios():
    same = np.repeat([True, False], (5, 20))
    apart = np.where(same, 30.0, -30.0)
    expected = np.log(21 / (20 * 6)), np.log(21 * 5 / 6)
    assert c.supported_range(apart, same) == pytest.approx(expected, rel=1e-12)
    assert c.supported_range(-apart, same) == (0.0, 0.0)


def test_moving_ratios_into_their_range_repairs_and_costs_nothing(rng):
    """N(+-4, 8) are their own log-likelihood ratios; three times as large they are too sure."""
    same = np.repeat([True, False], (500, 5000))
    llr = np.sqrt(8) * rng.normal(size=5500) + np.where(same, 4.0, -4.0)
    gained = [
        c.cllr(each, same) - c.cllr(np.clip(each, *c.supported_range(each, same)), same) for each in (llr, 3 * llr)
    ]
    assert abs(gained[0]) < 0.005
    assert gained[1] > 0.08


def test_infinite_ratios_are_beyond_every_bound(rng):
    same = np.repeat([True, False], (30, 60))
    llr = 4 * rng.normal(size=90) + np.where(same, 3.0, -3.0)
    ends = np.where(np.abs(llr) > 8, np.sign(llr) * np.inf, llr)
    assert np.isinf(ends).any()
    assert c.supported_range(ends, same) == c.supported_range(llr, same)
