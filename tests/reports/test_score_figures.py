from statistics import NormalDist

import numpy as np
import pytest

from jaxface import metrics
from jaxface.metrics import calibration, verification
from jaxface.reports import figures, score_figures


@pytest.fixture
def systems(rng):
    same = rng.random(3000) < 0.3
    return {name: (rng.normal(size=3000) + shift * same, same) for name, shift in (("weak", 1.0), ("good", 3.0))}


def lines_of(figure):
    return [line.get_xydata() for line in figure.axes[0].get_lines()]


def test_roc_shows_the_rates_of_the_curve(systems):
    curves = {name: metrics.roc(*labeled) for name, labeled in systems.items()}
    num_impostor = int((~systems["weak"][1]).sum())
    figure = score_figures.roc(curves, num_impostor=num_impostor)
    for (name, curve), points in zip(curves.items(), lines_of(figure), strict=True):
        assert points[0, 0] == pytest.approx(1 / num_impostor), name
        for far, vr in points[::37]:
            assert vr == verification.verification_rate(curve, far)
    low, high = figure.axes[0].get_ylim()
    assert 0 <= low <= min(points[:, 1].min() for points in lines_of(figure)) < 1 < high


def test_a_det_of_gaussian_scores_is_a_straight_line(rng):
    same = np.repeat([True, False], 20_000)
    curve = metrics.roc(rng.normal(size=40_000) + 2.0 * same, same)
    figure = score_figures.det({"gauss": curve})
    (points,) = lines_of(figure)
    inner = points[np.abs(points).max(axis=1) < 2]
    assert np.abs(inner.sum(axis=1) + 2.0).max() < 0.1  # probit(FAR) + probit(FRR) = -d'
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == [f"{100 * NormalDist().cdf(place):.4g} %" for place in figure.axes[0].get_xticks()]
    assert {"5 %", "20 %", "50 %"} <= set(labels)
    places = figure.axes[0].get_xticks()
    low, high = figure.axes[0].get_xlim()
    assert (np.diff(places) >= (high - low) / 9).all()  # room for labels


def test_axes_of_a_det_fit_their_own_range(rng):
    """Few false rejects: the axis of false rejects does not go up to half of all."""
    same = np.repeat([True, False], 20_000)
    scores = np.where(same, 6.0, 0.0) + rng.normal(size=40_000)
    figure = score_figures.det({"good": metrics.roc(np.round(scores, 1), same)})
    (points,) = lines_of(figure)
    for axis, (low, high) in ((0, figure.axes[0].get_xlim()), (1, figure.axes[0].get_ylim())):
        assert low <= points[:, axis].min() <= points[:, axis].max() <= high
        assert high - low <= max(1.0, np.ptp(points[:, axis]) + 0.3)
    assert len(figure.axes[0].get_yticks()) >= 2


def test_a_det_without_an_error_has_no_points():
    curve = metrics.roc([2.0, 3.0, 0.0, 1.0], [True, True, False, False])
    (points,) = lines_of(score_figures.det({"perfect": curve}))
    assert len(points) == 0


def test_tippett_shares(systems):
    name, (scores, same) = "good", systems["good"]
    genuine, impostor = lines_of(score_figures.tippett({name: (scores, same)}))
    for points, values in ((genuine, scores[same]), (impostor, scores[~same])):
        assert points[:, 1].min() == 1 / len(values)
        assert points[:, 1].max() == 1.0
        for x, share in points[::61]:
            assert share == (values >= x).mean()


def test_histograms_are_densities(systems):
    scores, same = systems["good"]
    scores = np.where(np.arange(len(scores)) == 0, -np.inf, scores)
    for points in lines_of(score_figures.histogram(scores, same, name="good")):
        width = points[1, 0] - points[0, 0]
        assert points[:, 1].sum() * width == pytest.approx(1.0)


def test_cross_entropy_lies_between_the_best_and_nothing(systems):
    scores, same = systems["good"]
    ratios = 3.0 * scores - 4.5  # of N(3, 1) against N(0, 1)
    found, best, nothing = lines_of(score_figures.cross_entropy({"good": (ratios, same)}))
    assert (best[:, 1] <= found[:, 1] + 1e-12).all()
    assert (found[:, 1] <= nothing[:, 1]).all()
    assert found[48] == pytest.approx([0.0, metrics.cllr(ratios, same)])
    figure = score_figures.cross_entropy({"good": (30 * ratios, same), "perfect": (100.0 * same - 50.0, same)})
    assert figure.axes[0].get_ylim() == (0.0, 1.05)
    figure = score_figures.cross_entropy({"good": (100.0 * same - 50.0 + scores, same)})  # hardly anything left
    top = max(points[:, 1].max() for points in lines_of(figure)[:-1])
    assert top < figure.axes[0].get_ylim()[1] < 3 * top


def test_a_million_scores_draw_some_hundred_points(rng):
    scores, same = rng.normal(size=1_000_000), rng.random(1_000_000) < 0.1
    figure = score_figures.tippett({"many": (scores, same)})
    assert all(len(points) <= 400 for points in lines_of(figure))
    assert len(figures.to_svg(figure)) < 200_000


def test_a_curve_of_many_scores_is_that_of_their_quantiles(rng):
    scores = np.concatenate([rng.normal(2, 2, 30_000), rng.normal(-2, 2, 90_000)])
    is_same = np.arange(120_000) < 30_000
    few, kinds = score_figures._quantiles(scores, is_same)
    assert (kinds.sum(), (~kinds).sum()) == (20_000, 20_000)
    odds = np.array([-4.0, 0.0, 3.0])
    exact = calibration.cross_entropy(scores, is_same, odds)
    np.testing.assert_allclose(calibration.cross_entropy(few, kinds, odds), exact, rtol=1e-3)
    short = score_figures._quantiles(scores[29_990:30_010], is_same[29_990:30_010])
    np.testing.assert_array_equal(np.sort(short[0]), np.sort(scores[29_990:30_010]))
