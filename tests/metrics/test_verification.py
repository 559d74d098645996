import math
import time

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import norm
from sklearn import metrics as peer

from jaxface.metrics import verification as v
from tests.metrics.people import finite_levels, labeled_scores, normal_scores
from tests.reference import metrics_reference as ref
from tests.tolerances import assert_close

# Scores 3 | 2 2 | 1 | 0: genuine 3, 2, 0 and impostors 2, 1.
SCORES = np.array([3.0, 2.0, 2.0, 1.0, 0.0])
SAME = np.array([True, True, False, False, True])


def test_roc_by_hand_with_a_tie():
    curve = v.roc(SCORES, SAME)
    np.testing.assert_array_equal(curve.thresholds, [np.inf, 3.0, 2.0, 1.0, 0.0])
    assert_close(curve.far, np.array([0.0, 0.0, 0.5, 1.0, 1.0]))
    assert_close(curve.vr, np.array([0.0, 1 / 3, 2 / 3, 2 / 3, 1.0]))


def test_rates_by_hand():
    curve = v.roc(SCORES, SAME)
    # Between (0, 1/3) and (1/2, 2/3) the line meets FAR = 1 - VR at 2/5.
    assert v.eer(curve) == pytest.approx(0.4, abs=1e-15)
    assert v.auc(curve) == pytest.approx((2 + 1.5 + 0) / 6, abs=1e-15)
    assert v.verification_rate(curve, 0.5) == pytest.approx(2 / 3)
    assert v.verification_rate(curve, 0.499) == pytest.approx(1 / 3)
    assert v.threshold_at_far(curve, 0.0) == 3.0
    assert v.rates_at(curve, 2.0) == (0.5, pytest.approx(2 / 3))
    assert v.rates_at(curve, 2.5) == (0.0, pytest.approx(1 / 3))
    assert v.rates_at(curve, -np.inf) == (1.0, 1.0)
    assert v.rates_at(curve, np.inf) == (0.0, 0.0)


def test_perfect_useless_and_inverted_scores():
    perfect = v.roc([2.0, 1.0], [True, False])
    useless = v.roc([1.0, 1.0], [True, False])
    inverted = v.roc([1.0, 2.0], [True, False])
    assert [v.eer(c) for c in (perfect, useless, inverted)] == [0.0, 0.5, 1.0]
    assert [v.auc(c) for c in (perfect, useless, inverted)] == [1.0, 0.5, 0.0]
    assert v.eer_rocch(inverted) == 0.5  # chance is always within reach of a mixture


@given(labeled_scores())
def test_everything_against_the_definition(pairs):
    scores, same = pairs
    curve, points = v.roc(scores, same), ref.roc_points(scores.tolist(), same.tolist())
    for field, expected in zip(curve, zip(*points, strict=True), strict=True):
        np.testing.assert_array_equal(field, [float(x) for x in expected])
    assert_close(v.auc(curve), float(ref.auc(scores.tolist(), same.tolist())))
    assert_close(v.eer(curve), float(ref.eer(points)))
    assert_close(v.eer_rocch(curve), float(ref.eer_rocch(points)))
    assert v.eer_rocch(curve) <= v.eer(curve) + 1e-15
    for far in (0.0, 0.1, 1 / 3, 0.5, 1.0):
        assert v.verification_rate(curve, far) == float(ref.verification_rate(points, far))
    cost = {"prior": 0.2, "cost_miss": 3.0, "cost_false_accept": 0.5}
    assert_close(v.min_dcf(curve, **cost), ref.min_dcf(points, *cost.values()))


@given(labeled_scores(values=finite_levels))
def test_the_threshold_at_a_far_keeps_it(pairs):
    scores, same = pairs
    curve = v.roc(scores, same)
    for far in (0.0, 0.2, 0.5):
        threshold = v.threshold_at_far(curve, far)
        accepted = scores >= threshold
        assert accepted[~same].mean() <= far
        assert accepted[same].mean() == v.verification_rate(curve, far)
        assert v.rates_at(curve, threshold) == (accepted[~same].mean(), accepted[same].mean())


@given(labeled_scores(values=finite_levels))
def test_rising_transforms_do_not_matter(pairs):
    scores, same = pairs
    curve, mapped = v.roc(scores, same), v.roc(np.exp(scores) - 5.0, same)
    np.testing.assert_array_equal(curve.far, mapped.far)
    np.testing.assert_array_equal(curve.vr, mapped.vr)


@given(labeled_scores())
def test_swapping_the_kinds_and_the_sign_mirrors_the_curve(pairs):
    scores, same = pairs
    curve, mirrored = v.roc(scores, same), v.roc(-scores, ~same)
    assert_close(mirrored.far, 1.0 - curve.vr[::-1])
    assert_close(mirrored.vr, 1.0 - curve.far[::-1])
    assert_close(v.auc(mirrored), v.auc(curve))
    assert_close(v.eer(mirrored), v.eer(curve))


@pytest.mark.parametrize("decimals", [None, 1])
def test_roc_and_auc_equal_scikit_learn(rng, decimals):
    scores, same = normal_scores(rng, 300, 900, decimals=decimals)
    curve = v.roc(scores, same)
    far, vr, thresholds = peer.roc_curve(same, scores, drop_intermediate=False)
    assert_close((curve.far, curve.vr), (far, vr))
    np.testing.assert_array_equal(curve.thresholds, thresholds)
    assert_close(v.auc(curve), peer.roc_auc_score(same, scores))


@pytest.mark.parametrize("decimals", [None, 1])
def test_det_equals_scikit_learn(rng, decimals):
    scores, same = normal_scores(rng, 50, 80, decimals=decimals)
    far, frr, thresholds = peer.det_curve(same, scores)
    det = v.det(v.roc(scores, same))
    theirs = {t: (f, m) for t, f, m in zip(thresholds, far, frr, strict=True)}
    matched = 0
    for threshold, ours_far, ours_frr in zip(*det, strict=True):
        if threshold in theirs and np.isfinite(threshold):
            expected_far, expected_frr = theirs[threshold]
            np.testing.assert_allclose(norm.cdf(ours_far), expected_far, atol=1e-12)
            np.testing.assert_allclose(norm.cdf(ours_frr), expected_frr, atol=1e-12)
            matched += 1
    assert matched >= len(thresholds) - 1


def test_det_ends_and_probit():
    det = v.det(v.roc(SCORES, SAME))
    assert det.probit_far[0] == -np.inf
    assert det.probit_frr[0] == np.inf
    assert det.probit_far[-1] == np.inf
    assert det.probit_frr[-1] == -np.inf
    rates = np.array([[0.5, 1e-9], [0.975, 0.02]])
    assert_close(v.probit(rates), norm.ppf(rates), factor=100.0)


def test_detection_costs_by_hand():
    curve = v.roc(SCORES, SAME)
    cost = {"prior": 0.5, "cost_miss": 1.0, "cost_false_accept": 2.0}
    # At 2.0: (0.5 * 1/3 + 1.0 * 1/2) / 0.5.
    assert v.dcf(curve, 2.0, **cost) == pytest.approx(4 / 3)
    assert v.bayes_threshold(**cost) == pytest.approx(math.log(2.0))
    assert v.actual_dcf(curve, **cost) == v.dcf(curve, math.log(2.0), **cost)
    assert v.min_dcf(curve, **cost) == pytest.approx(2 / 3)  # at 3.0


def test_calibrated_ratios_pay_nearly_the_minimum(rng):
    # For N(1, 1) against N(-1, 1) the log-likelihood ratio of x is 2 x.
    scores, same = normal_scores(rng, 20_000, 20_000, shift=2.0)
    curve = v.roc(2.0 * (scores - 1.0), same)
    cost = {"prior": 0.1, "cost_miss": 1.0, "cost_false_accept": 1.0}
    assert v.min_dcf(curve, **cost) <= v.actual_dcf(curve, **cost) <= v.min_dcf(curve, **cost) + 0.02
    shifted = v.roc(2.0 * (scores - 1.0) + 4.0, same)
    assert v.actual_dcf(shifted, **cost) > v.min_dcf(shifted, **cost) + 0.5


def test_infinite_scores_are_ranked():
    curve = v.roc([np.inf, np.inf, 0.0, -np.inf], [True, False, True, False])
    np.testing.assert_array_equal(curve.thresholds, [np.inf, np.inf, 0.0, -np.inf])
    np.testing.assert_array_equal(curve.vr, [0.0, 0.5, 1.0, 1.0])
    np.testing.assert_array_equal(curve.far, [0.0, 0.5, 0.5, 1.0])
    # A score of +inf passes the threshold +inf.
    assert v.rates_at(curve, np.inf) == (0.5, 0.5)


def test_labels_may_be_zero_and_one_and_scores_float32():
    whole = v.roc(SCORES, SAME)
    other = v.roc(SCORES.astype(np.float32), SAME.astype(np.int32))
    for field, expected in zip(other, whole, strict=True):
        np.testing.assert_array_equal(field, expected)
        assert field.dtype == np.float64


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
    kept = v.concave_hull(x, y)
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
    v.concave_hull(x, y)
    assert time.process_time() - start < 2.0  # a quadratic pass would take minutes


@pytest.mark.parametrize("n", [1, 2])
def test_the_hull_of_one_or_two_points(n):
    np.testing.assert_array_equal(v.concave_hull(np.arange(n) * 1.0, np.arange(n) * 1.0), np.arange(n))


@pytest.mark.parametrize(
    ("scores", "same", "message"),
    [
        ([1.0, np.nan, np.nan], [True, False, False], r"scores must not be NaN; 2 of 3 values.*index \(1,\)"),
        ([1.0, 2.0], [True, True], "at least one genuine and one impostor pair; got 2 genuine and 0"),
        ([1.0, 2.0], [False, False], "got 0 genuine and 2 impostor"),
        ([], [], "got 0 genuine and 0 impostor"),
        ([1.0, 2.0], [0, 2], "is_same must be True/False or 0/1"),
        ([1.0, 2.0], [0.0, 1.0], "is_same must be True/False or 0/1; got dtype float64"),
        ([1.0, 2.0], [True], r"is_same must have shape \[p\] with p = 2"),
        ([[1.0, 2.0]], [[True, False]], r"scores must have shape \[p\]"),
    ],
)
def test_what_roc_refuses(scores, same, message):
    with pytest.raises(ValueError, match=message):
        v.roc(scores, same)


def test_what_the_functions_of_a_roc_refuse():
    curve = v.roc(SCORES, SAME)
    with pytest.raises(ValueError, match=r"far must lie in \[0, 1\]"):
        v.verification_rate(curve, 1.5)
    with pytest.raises(ValueError, match=r"far must lie in \[0, 1\]"):
        v.threshold_at_far(curve, -0.1)
    with pytest.raises(ValueError, match="threshold must not be NaN"):
        v.rates_at(curve, np.nan)
    with pytest.raises(ValueError, match=r"prior must lie in \(0, 1\)"):
        v.min_dcf(curve, prior=0.0, cost_miss=1.0, cost_false_accept=1.0)
    with pytest.raises(ValueError, match="cost_miss must lie in"):
        v.min_dcf(curve, prior=0.5, cost_miss=0.0, cost_false_accept=1.0)
    with pytest.raises(ValueError, match="cost_false_accept must lie in"):
        v.min_dcf(curve, prior=0.5, cost_miss=1.0, cost_false_accept=np.inf)
    with pytest.raises(ValueError, match=r"rate must lie in \[0, 1\]"):
        v.probit([0.2, 1.2])
