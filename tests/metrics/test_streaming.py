import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given

from jaxface.metrics import calibration, streaming, verification
from tests.metrics.people import labeled_scores, normal_scores
from tests.tolerances import assert_close

EDGES = np.array([-1.0, 0.0, 0.5, 2.0])


@st.composite
def counts(draw):
    of_bins = st.lists(st.integers(0, 3), min_size=EDGES.size + 1, max_size=EDGES.size + 1)
    genuine, impostor = np.array(draw(of_bins)), np.array(draw(of_bins))
    assume(genuine.any() and impostor.any())
    return genuine, impostor


def spread(genuine, impostor, *, genuine_on_top):
    """Scores with these counts whose bins are ordered as well, or as badly, as they can be."""
    middles = np.array([-2.0, -0.5, 0.25, 1.0, 3.0])
    lift = 0.1 if genuine_on_top else -0.1
    scores = np.concatenate([np.repeat(middles + lift, genuine), np.repeat(middles - lift, impostor)])
    return scores, np.arange(scores.size) < genuine.sum()


def test_counting_by_hand():
    scores = [-5.0, -1.0, -0.5, 0.0, 0.49, 0.5, 2.0, np.inf, -np.inf]
    genuine, impostor = streaming.count(scores, [False] + [True] * 7 + [False], EDGES)
    np.testing.assert_array_equal(genuine, [0, 2, 2, 1, 2])
    np.testing.assert_array_equal(impostor, [2, 0, 0, 0, 0])
    assert genuine.dtype == impostor.dtype == np.int64


@given(labeled_scores(), st.integers(0, 24))
def test_counts_of_blocks_add(pairs, cut):
    scores, same = pairs
    whole = streaming.count(scores, same, EDGES)
    parts = [streaming.count(s, y, EDGES) for s, y in ((scores[:cut], same[:cut]), (scores[cut:], same[cut:]))]
    for i in range(2):
        np.testing.assert_array_equal(whole[i], parts[0][i] + parts[1][i])
        assert whole[i].sum() == (same if i == 0 else ~same).sum()


@given(labeled_scores())
def test_the_curve_is_exact_at_every_edge(pairs):
    scores, same = pairs
    curve = streaming.roc(EDGES, *streaming.count(scores, same, EDGES))
    np.testing.assert_array_equal(curve.thresholds, [np.inf, 2.0, 0.5, 0.0, -1.0, -np.inf])
    exact = verification.roc(scores, same)
    for threshold, far, vr in list(zip(*curve, strict=True))[1:]:
        assert (far, vr) == verification.rates_at(exact, threshold)
    assert (curve.far[0], curve.vr[0], curve.far[-1], curve.vr[-1]) == (0.0, 0.0, 1.0, 1.0)


@given(labeled_scores())
def test_the_exact_values_lie_within_the_bounds(pairs):
    scores, same = pairs
    exact = verification.roc(scores, same)
    curve = streaming.roc(EDGES, *streaming.count(scores, same, EDGES))
    for bounds, from_counts, value in [
        (streaming.auc_bounds(curve), verification.auc(curve), verification.auc(exact)),
        (streaming.eer_bounds(curve), verification.eer(curve), verification.eer(exact)),
        *(
            (
                streaming.verification_rate_bounds(curve, far),
                verification.verification_rate(curve, far),
                verification.verification_rate(exact, far),
            )
            for far in (0.0, 0.1, 0.25, 0.5, 1.0)
        ),
    ]:
        assert bounds.low - 1e-12 <= value <= bounds.high + 1e-12
        assert bounds.low - 1e-12 <= from_counts <= bounds.high + 1e-12


@given(counts())
def test_the_hull_of_binned_scores_is_that_of_scores_at_the_bins(tables):
    """Empty bins repeat a point of the curve; the measures that need its hull must not mind."""
    sizes = np.concatenate(tables)
    scores, same = np.repeat(np.tile(np.arange(5.0), 2), sizes), np.repeat(np.arange(10) < 5, sizes)
    binned, exact = streaming.roc(EDGES, *tables), verification.roc(scores, same)
    assert verification.eer_rocch(binned) == pytest.approx(verification.eer_rocch(exact), abs=1e-12)
    assert verification.eer_rocch(binned) <= verification.eer(binned) + 1e-12
    assert calibration.min_cllr(binned) == pytest.approx(calibration.min_cllr(exact), abs=1e-12)
    corners = [list(zip(hull.far, hull.vr, strict=True)) for hull in map(verification.hull, (binned, exact))]
    assert corners[0] == corners[1]


@given(counts())
def test_the_bounds_are_reached(tables):
    genuine, impostor = tables
    curve = streaming.roc(EDGES, genuine, impostor)
    best = verification.roc(*spread(genuine, impostor, genuine_on_top=True))
    worst = verification.roc(*spread(genuine, impostor, genuine_on_top=False))
    assert_close(tuple(streaming.auc_bounds(curve)), (verification.auc(worst), verification.auc(best)))
    assert_close(tuple(streaming.eer_bounds(curve)), (verification.eer(best), verification.eer(worst)))
    for far in (0.0, 0.3, 0.7):
        reached = tuple(verification.verification_rate(c, far) for c in (worst, best))
        assert_close(tuple(streaming.verification_rate_bounds(curve, far)), reached)


def test_fine_bins_tighten_the_bounds(rng):
    scores, same = normal_scores(rng, 2_000, 20_000)
    exact = verification.roc(scores, same)
    widths = []
    for bins in (16, 256, 4096):
        edges = np.linspace(scores.min(), scores.max(), bins + 1)
        curve = streaming.roc(edges, *streaming.count(scores, same, edges))
        low, high = streaming.eer_bounds(curve)
        assert low <= verification.eer(exact) <= high
        widths.append(high - low)
    assert widths[0] > 4 * widths[1] > 16 * widths[2]
    assert widths[2] < 0.002


def test_what_streaming_refuses():
    with pytest.raises(ValueError, match="edges must be at least two rising numbers; got 1 values that make no bin"):
        streaming.count([0.0], [True], [1.0])
    with pytest.raises(ValueError, match="got 3 values that do not all rise"):
        streaming.count([0.0], [True], [0.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="edges must be finite"):
        streaming.count([0.0], [True], [0.0, np.inf])
    with pytest.raises(ValueError, match="scores must not be NaN"):
        streaming.count([np.nan], [True], EDGES)
    with pytest.raises(ValueError, match=r"genuine must have shape \[5\]; got shape \(4,\)"):
        streaming.roc(EDGES, [1, 0, 0, 0], [1, 0, 0, 0, 0])
    with pytest.raises(ValueError, match="impostor must be non-negative integer counts with a sum above 0"):
        streaming.roc(EDGES, [1, 0, 0, 0, 0], [0, 0, 0, 0, 0])
    with pytest.raises(ValueError, match="genuine must be non-negative integer counts"):
        streaming.roc(EDGES, [1, 0, -1, 0, 0], [1, 0, 0, 0, 0])
    with pytest.raises(ValueError, match="got dtype float64"):
        streaming.roc(EDGES, [1.0, 0, 0, 0, 0], [1, 0, 0, 0, 0])
    with pytest.raises(ValueError, match=r"far must lie in \[0, 1\]"):
        streaming.verification_rate_bounds(streaming.roc(EDGES, [1, 0, 0, 0, 0], [1, 0, 0, 0, 0]), 2.0)
