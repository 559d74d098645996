import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from jaxface.metrics import intervals
from jaxface.metrics.intervals import POSITIVE, RATE, SIGNED, paired_interval, split_interval
from tests.tolerances import assert_close


def reach_of(values, ratio=0.0, level=0.95):
    n = len(values)
    error = np.std(values, ddof=1) * math.sqrt(1 / n + ratio)
    return stats.t.ppf((1 + level) / 2, n - 1) * error


def test_paired_interval_against_scipy(rng):
    first, second = rng.normal(size=(2, 12)) + 0.3
    expected = stats.ttest_rel(first, second).confidence_interval(0.9)
    interval = paired_interval(first, second, test_to_train=0.0, within=SIGNED, level=0.9)
    assert_close((interval.low, interval.high), (expected.low, expected.high))
    assert_close(interval.estimate, np.mean(first - second))
    wider = paired_interval(first, second, test_to_train=1.0, within=SIGNED, level=0.9)
    assert_close(wider.high - wider.low, np.sqrt(13.0) * (interval.high - interval.low))
    assert_close(split_interval(first, test_to_train=0.5, within=SIGNED).high, np.mean(first) + reach_of(first, 0.5))


def test_differences_of_rates_are_cut_at_the_largest_one():
    first, second = np.array([1.0, 0.9, 1.0, 0.3, 1.0]), np.array([0.0, 0.0, 0.1, 0.0, 0.2])
    low, high = (-1.0, 1.0)
    interval = paired_interval(first, second, test_to_train=1.0, within=RATE)
    plain = paired_interval(first, second, test_to_train=1.0, within=SIGNED)
    assert plain.high > high
    assert interval == (plain.estimate, max(plain.low, low), high)
    counts = paired_interval(10 * first, 10 * second, test_to_train=1.0, within=(0.0, 10.0))
    assert_close(np.array(counts), 10 * np.array(interval))
    assert paired_interval(first, second, test_to_train=1.0, within=POSITIVE) == plain


@given(st.lists(st.integers(0, 40), min_size=5, max_size=12), st.sampled_from([0.0, 0.3, 1.0, 9.0]))
def test_limits_of_a_rate_solve_the_equation_of_the_score_interval(counts, ratio):
    """Against a root finder, values at 0 and 1 included."""
    values = np.array(counts) / 40
    interval = split_interval(values, test_to_train=ratio, within=RATE)
    if np.ptp(values) == 0:
        assert np.isnan(interval[1:]).all()
        return
    mean, reach = values.mean(), reach_of(values, ratio)
    scale = reach / math.sqrt(mean * (1 - mean))
    excess = lambda mu: abs(mean - mu) - scale * math.sqrt(mu * (1 - mu))  # noqa: E731
    low, high = (optimize.brentq(excess, end, mean, xtol=1e-14) if excess(end) > 0 else end for end in (0.0, 1.0))
    np.testing.assert_allclose((interval.low, interval.high), (low, high), atol=1e-11)
    assert 0.0 <= interval.low < interval.estimate < interval.high <= 1.0
    mirrored = split_interval(1 - values, test_to_train=ratio, within=RATE)
    np.testing.assert_allclose((1 - mirrored.high, 1 - mirrored.low), (low, high), atol=1e-11)


@given(st.lists(st.floats(1e-3, 1e3), min_size=5, max_size=12), st.floats(0.0, 2.0))
def test_limits_of_a_positive_quantity_are_on_a_log_scale(values, ratio):
    interval = split_interval(values, test_to_train=ratio, within=POSITIVE)
    if np.ptp(values) <= 1e-12 * max(values):
        assert np.isnan(interval[1:]).all()
        return
    mean = np.mean(values)
    assert 0.0 < interval.low <= mean <= interval.high
    np.testing.assert_allclose(math.log(interval.high / mean), reach_of(values, ratio) / mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(interval.low * interval.high, mean**2, rtol=1e-9)
    shifted = split_interval(np.array(values) + 7.0, test_to_train=ratio, within=(7.0, math.inf))
    np.testing.assert_allclose(shifted.high - 7.0, interval.high, rtol=1e-6)


def test_the_cases_that_could_not_be():
    """Error rates below 0 and beyond 100 %, a negative Cllr: what Student's t gave for numbers such as these."""
    errors, cllr = np.array([0.02, 0.0, 0.3, 0.04, 0.0]), np.array([0.2, 0.1, 0.3, 2.6, 0.1])
    for values, within in ((errors, RATE), (1 - errors, RATE), (cllr, POSITIVE)):
        plain = split_interval(values, test_to_train=1.0, within=SIGNED)
        assert plain.low < 0.0 or plain.high > 1.0
        interval = split_interval(values, test_to_train=1.0, within=within)
        assert within[0] < interval.low < values.mean() < interval.high < within[1]


def test_there_is_no_interval_below_five_splits_or_without_spread():
    for values in ([0.3], [0.1, 0.2], [0.1, 0.2, 0.3, 0.2], [0.1] * 7, [0.0] * 7, [1.0] * 7):
        for within in (RATE, POSITIVE, SIGNED):
            interval = split_interval(values, test_to_train=0.5, within=within)
            assert interval.estimate == np.mean(values)
            assert np.isnan([interval.low, interval.high]).all()
    # The differences are equal but for rounding.
    first = np.array([0.3, 0.5, 0.4, 0.6, 0.7, 0.9])
    for second in (first - 0.1, first, 0.2 + 0 * first[:1].repeat(6)):
        interval = paired_interval(first[: second.size], second, test_to_train=0.5, within=RATE)
        absent = np.ptp(first - second) < 1e-9
        assert np.isnan([interval.low, interval.high]).all() == absent
    assert np.isnan(paired_interval([0.1, 0.2], [0.3, 0.1], test_to_train=0.0, within=RATE)[1:]).all()


@pytest.mark.parametrize(
    ("trials", "rate", "num_splits"), [(40, 0.05, 5), (80, 0.01, 10), (40, 0.4, 5), (200, 0.02, 20)]
)
def test_rates_are_covered_as_often_as_said(trials, rate, num_splits):
    """1,000 sets of independent splits: at least as often as Student's t, and never outside [0, 1]."""
    drawn = np.random.default_rng(3).binomial(trials, rate, (1000, num_splits)) / trials
    drawn = drawn[np.ptp(drawn, axis=1) > 0]
    found, plain = (
        np.array([split_interval(values, test_to_train=0.0, within=within)[1:] for values in drawn])
        for within in (RATE, SIGNED)
    )
    covered, before = (np.mean((ends[:, 0] <= rate) & (rate <= ends[:, 1])) for ends in (found, plain))
    assert 0.925 <= covered <= 0.985  # the standard deviation of a share near 0.95 is 0.007
    assert covered >= before - 0.01
    assert found.min() >= 0.0
    if rate < 0.05 and num_splits < 20:
        assert plain[:, 0].min() < 0.0  # the reason for all this


def test_positive_quantities_are_covered_no_less_often_than_by_student_t():
    drawn = np.exp(0.6 * np.random.default_rng(4).normal(size=(1000, 5)))
    truth = math.exp(0.18)
    found, plain = (
        np.array([split_interval(values, test_to_train=0.0, within=within)[1:] for values in drawn])
        for within in (POSITIVE, SIGNED)
    )
    covered, before = (np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])) for ends in (found, plain))
    assert covered >= 0.92
    assert covered >= before
    assert found.min() > 0.0 > plain.min()


@given(st.integers(1, 400), st.data())
def test_wilson_against_scipy(trials, data):
    successes = data.draw(st.integers(0, trials))
    expected = stats.binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    interval = intervals.wilson(successes, trials)
    np.testing.assert_allclose((interval.low, interval.high), (expected.low, expected.high), atol=1e-12)
    assert 0.0 <= interval.low <= interval.estimate <= interval.high <= 1.0


def test_what_the_intervals_refuse():
    five = np.linspace(0.1, 0.5, 5)
    with pytest.raises(TypeError, match="within"):
        paired_interval(five, five, test_to_train=0.0)
    with pytest.raises(TypeError, match="test_to_train"):
        split_interval(five, within=RATE)
    with pytest.raises(ValueError, match="the number of splits must be at least 1"):
        paired_interval([], [], test_to_train=0.0, within=RATE)
    with pytest.raises(ValueError, match="test_to_train must lie in"):
        paired_interval(five, five, test_to_train=-1.0, within=RATE)
    with pytest.raises(ValueError, match="first must be finite"):
        paired_interval(five * np.nan, five, test_to_train=0.0, within=RATE)
    with pytest.raises(ValueError, match=r"values must lie in the range \[0, 1\] given by within; got 10\. .*RATE"):
        split_interval(100 * five, test_to_train=0.0, within=RATE)
    with pytest.raises(ValueError, match=r"second must lie in the range \[0, inf\]"):
        paired_interval(five, -five, test_to_train=0.0, within=POSITIVE)
    for within in ((1.0, 0.0), (-math.inf, 1.0), (math.nan, 1.0)):
        with pytest.raises(ValueError, match="within must be"):
            split_interval(five, test_to_train=0.0, within=within)
    with pytest.raises(ValueError, match=r"level must lie in \(0, 1\)"):
        split_interval(five, test_to_train=0.0, within=RATE, level=95)
    with pytest.raises(ValueError, match=r"successes must lie in \[0, 3\]"):
        intervals.wilson(4, 3)
    with pytest.raises(ValueError, match="trials must be at least 1"):
        intervals.wilson(0, 0)
