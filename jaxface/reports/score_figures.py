"""Figures of verification scores: DET, Tippett, histograms and empirical cross-entropy, each for one or more systems.

Curves of a million scores are drawn through some hundred points, more than a page can show.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from jaxface.core import checks
from jaxface.metrics import calibration, verification
from jaxface.metrics.verification import Roc
from jaxface.reports import figures
from jaxface.reports.figures import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["cross_entropy", "det", "histogram", "roc", "tippett"]

Labeled = Mapping[str, tuple[np.ndarray, np.ndarray]]  # by system: scores [p] and whether each pair is one person

_QUANTILES = 20_000  # scores of a kind in a curve that averages over them
_POINTS = 400
_TICKS = (1e-6, 1e-5, 1e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.95, 0.99)  # of a DET


def roc(curves: Mapping[str, Roc], *, num_impostor: int) -> "Figure":
    """Verification rate against false accept rate, from the lowest rate that the impostor pairs resolve."""
    checks.at_least("num_impostor", num_impostor, 1)
    lines = [Curve(name, curve.far, curve.vr) for name, curve in curves.items()]
    return figures.roc(lines, min_far=max(1e-6, min(0.1, 1 / num_impostor)))


def det(curves: Mapping[str, Roc]) -> "Figure":
    """False rejects against false accepts on probit axes, where Gaussian scores give a straight line."""
    lines = []
    for name, curve in curves.items():
        kept = (curve.far > 0) & (curve.far < 1) & (curve.vr > 0) & (curve.vr < 1)
        points = verification.det(Roc(*(field[kept][_spread(int(kept.sum()))] for field in curve)))
        lines.append(Curve(name, points.probit_far, points.probit_frr))
    figure = figures.curves(lines, x_label="false accept rate", y_label="false reject rate", markers=False)
    axes = figure.axes[0]
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        low, high = _limits(np.concatenate([np.ravel(getattr(line, name)) for line in lines] or [np.empty(0)]))
        shown = _ticks_between(low, high)
        axis.set_ticks(verification.probit(shown), [f"{100 * rate:g} %" for rate in shown])
        axes.set(**{f"{name}lim": (low, high)})
    return figure


def _limits(places: np.ndarray) -> tuple[float, float]:
    """The ends of an axis of a DET: around its points, and wide enough for two ticks."""
    if not places.size:
        return -2.5, 0.1
    low, high = float(places.min()) - 0.1, float(places.max()) + 0.1
    return (low, high) if high - low >= 1.0 else ((low + high) / 2 - 0.5, (low + high) / 2 + 0.5)


def _ticks_between(low: float, high: float) -> np.ndarray:
    """Rates whose labels have room on a probit axis, from the largest down."""
    shown: list[float] = []
    last = np.inf
    for rate in sorted(_TICKS, reverse=True):
        place = float(verification.probit(rate))
        if low <= place <= high and last - place >= (high - low) / 9:
            shown.append(rate)
            last = place
    return np.asarray(shown[::-1])


def tippett(systems: Labeled) -> "Figure":
    """Share of genuine and of impostor pairs whose log-likelihood ratio is at least the value on the axis."""
    lines = []
    for name, (scores, is_same) in systems.items():
        for kind, values in (("genuine", scores[is_same]), ("impostor", scores[~is_same])):
            ordered = np.sort(values[np.isfinite(values)])[::-1]
            places = _spread(len(ordered))
            label = f"{name}, {kind}" if len(systems) > 1 else kind
            lines.append(Curve(label, ordered[places], (places + 1) / max(1, len(values))))
    return figures.curves(
        lines,
        x_label="log-likelihood ratio, nats",
        y_label="share of pairs at or above",
        markers=False,
        y_range=(0.0, 1.02),
    )


def histogram(scores: np.ndarray, is_same: np.ndarray, *, name: str, num_bins: int = 60) -> "Figure":
    """Densities of genuine and impostor scores over common bins; infinite scores are left out."""
    finite = np.isfinite(scores)
    edges = np.histogram_bin_edges(scores[finite], bins=num_bins)
    centers = (edges[1:] + edges[:-1]) / 2
    lines = [
        Curve(kind, centers, np.histogram(scores[finite & chosen], bins=edges, density=True)[0])
        for kind, chosen in (("genuine", is_same), ("impostor", ~is_same))
    ]
    return figures.curves(lines, x_label=name, y_label="density", markers=False)


def cross_entropy(systems: Labeled) -> "Figure":
    """Empirical cross-entropy of ratios against the prior, with the best that their order allows and with no ratio.

    The axis fits the systems: beside good ones the curve of no ratio leaves it at the top.
    """
    log_odds = np.linspace(-6.0, 6.0, 97)
    lines = []
    for name, (scores, is_same) in systems.items():
        best = calibration.pav_llr(scores, is_same)
        for label, values in ((name, scores), (f"{name}, best calibration", best)):
            lines.append(Curve(label, log_odds, calibration.cross_entropy(*_quantiles(values, is_same), log_odds)))
    highest = max(float(line.y.max()) for line in lines)
    silent = calibration.cross_entropy(np.zeros(2), np.array([True, False]), log_odds)
    lines.append(Curve("no ratio at all", log_odds, silent))
    return figures.curves(
        lines,
        x_label="prior log odds, nats",
        y_label="cross-entropy, bits",
        markers=False,
        y_range=(0.0, min(1.05, 2.5 * highest) or 1.05),
    )


def _quantiles(scores: np.ndarray, is_same: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of more than 20,000 scores of a kind the middles of so many equal parts: their mean is the same to the eye."""
    kinds = [np.sort(scores[is_same == kind]) for kind in (True, False)]
    kept = [
        each if len(each) <= _QUANTILES else each[((np.arange(_QUANTILES) + 0.5) * len(each) / _QUANTILES).astype(int)]
        for each in kinds
    ]
    return np.concatenate(kept), np.repeat([True, False], [len(each) for each in kept])


def _spread(count: int) -> np.ndarray:
    """Places among `count`, both ends among them, denser at the ends: there a curve of rates is read."""
    if count <= _POINTS:
        return np.arange(count)
    half = np.geomspace(1, count / 2, _POINTS // 2).astype(int) - 1
    return np.unique(np.concatenate([half, count - 1 - half]))
