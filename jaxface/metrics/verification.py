"""Verification: is this pair one person? ROC, area, equal error rate, verification rate, DET, detection cost.

Scores are sorted once, by `roc`. Every number that depends on their order alone is a function of the `Roc`, so the
curves of `streaming` (from counts) go through the same functions. A pair is accepted when score >=
threshold, and tied scores are accepted together. FAR = accepted impostors / impostors, VR = accepted genuine
/ genuine pairs, FRR = 1 - VR.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import arguments
from jaxface.metrics.arguments import Array, Index

__all__ = [
    "Roc",
    "actual_dcf",
    "auc",
    "bayes_threshold",
    "dcf",
    "det",
    "eer",
    "eer_rocch",
    "min_dcf",
    "probit",
    "rates_at",
    "roc",
    "threshold_at_far",
    "verification_rate",
]


class Roc(NamedTuple):
    """Operating points from 'accept nobody' to 'accept everybody'; between points the curve is a straight line."""

    thresholds: Array  # [t] falling; the first is +inf and stands for 'accept nobody'
    far: Array  # [t] rising from 0 to 1
    vr: Array  # [t] rising from 0 to 1


class Det(NamedTuple):
    """A ROC on normal-deviate axes, where Gaussian scores give a straight line."""

    thresholds: Array  # [t]
    probit_far: Array  # [t]
    probit_frr: Array  # [t]


def roc(scores: npt.ArrayLike, is_same: npt.ArrayLike) -> Roc:
    """The exact ROC of scores `[p]` and labels `[p]`: one point per distinct score, after (0, 0).

    Thresholds are the scores themselves. A score of +inf passes every threshold and cannot be refused; the second
    point then has the threshold +inf too.
    """
    values, same = arguments.labeled(scores, is_same)
    order = np.argsort(-values)
    falling = values[order]
    last = np.append(np.flatnonzero(falling[1:] != falling[:-1]), falling.size - 1)
    genuine = np.cumsum(same[order])[last]
    impostor = last + 1 - genuine
    return Roc(
        thresholds=np.concatenate([[np.inf], falling[last]]),
        far=np.concatenate([[0.0], impostor / impostor[-1]]),
        vr=np.concatenate([[0.0], genuine / genuine[-1]]),
    )


def hull(curve: Roc) -> Roc:
    """The vertices of the concave hull of the ROC, which a random choice between two thresholds can reach."""
    vertices = concave_hull(curve.far, curve.vr)
    return Roc(*(field[vertices] for field in curve))


def concave_hull(x: Array, y: Array) -> Index:
    """Indices `[k]` of the vertices of the upper concave hull of a curve `[n]` that never falls in x or y.

    The hull is an isotonic regression: its slopes are those of the steps, pooled wherever they rise. As a share
    dy / (dx + dy) a slope is finite, and steps pool by their lengths dx + dy. Steps of no length are left out: of
    points that are the same, as empty bins make them, the first is a vertex, at the end of the curve the last.
    """
    from scipy import optimize

    dx, dy = np.diff(x), np.diff(y)
    steps = np.flatnonzero(dx + dy > 0)
    if steps.size == 0:
        return np.arange(min(x.size, 1))
    length = (dx + dy)[steps]
    pools = optimize.isotonic_regression(dy[steps] / length, weights=length, increasing=False).blocks
    return np.concatenate([[0], steps[pools[1:-1] - 1] + 1, [x.size - 1]])


def auc(curve: Roc) -> float:
    """Area under the ROC = P(genuine score > impostor score) + P(equal) / 2."""
    return float(np.trapezoid(curve.vr, curve.far))


def eer(curve: Roc) -> float:
    """Equal error rate: where the straight lines between ROC points meet FAR = FRR."""
    return float(crossing(curve.far, curve.vr))


def eer_rocch(curve: Roc) -> float:
    """Equal error rate of the convex hull (ROCCH-EER); never above `eer`, and smoother for few pairs."""
    return eer(hull(curve))


def crossing(far: Array, vr: Array) -> Array:
    """FAR `[...]` at which curves `[..., t]` from (0, 0) to (1, 1), linear between points, meet FAR = 1 - VR."""
    gap = far + vr - 1.0
    after = np.argmax(gap >= 0.0, axis=-1)[..., None]

    def at(values: Array, index: np.ndarray) -> Array:
        return np.take_along_axis(values, index, axis=-1)[..., 0]

    gap_before, gap_after = at(gap, after - 1), at(gap, after)
    far_before, far_after = at(far, after - 1), at(far, after)
    return far_before - gap_before / (gap_after - gap_before) * (far_after - far_before)


def verification_rate(curve: Roc, far: float) -> float:
    """VR@FAR: the largest VR among operating points whose FAR is at most `far`; nothing is interpolated."""
    return float(curve.vr[_last_within(curve, far)])


def threshold_at_far(curve: Roc, far: float) -> float:
    """The lowest threshold whose FAR is at most `far`; +inf (accept nobody) when no score keeps within it."""
    return float(curve.thresholds[_last_within(curve, far)])


def _last_within(curve: Roc, far: float) -> int:
    checks.between("far", far, 0.0, 1.0)
    return int(np.searchsorted(curve.far, far, side="right")) - 1


def rates_at(curve: Roc, threshold: float) -> tuple[float, float]:
    """(FAR, VR) of accepting every pair with score >= threshold."""
    arguments.not_nan(threshold=threshold)
    point = int(np.searchsorted(-curve.thresholds, -threshold, side="right")) - 1
    return float(curve.far[point]), float(curve.vr[point])


def det(curve: Roc) -> Det:
    """Detection error trade-off: FAR and FRR on probit axes.

    Rates of 0 and 1 are -inf and +inf there; plotting leaves those points out.
    """
    return Det(curve.thresholds, probit(curve.far), -probit(curve.vr))


def probit(rate: npt.ArrayLike) -> Array:
    """The standard normal quantile of rates in [0, 1], of any shape; -inf at 0 and +inf at 1."""
    from scipy import special

    checks.between("rate", rate, 0.0, 1.0)
    return np.asarray(special.ndtri(arguments.numbers("rate", rate)))


def dcf(curve: Roc, threshold: float, *, prior: float, cost_miss: float, cost_false_accept: float) -> float:
    """Normalised detection cost at one threshold.

    (prior cost_miss FRR + (1 - prior) cost_false_accept FAR) / min(prior cost_miss, (1 - prior)
    cost_false_accept): 1 is as good as the better of accepting nobody and accepting everybody; `prior` is
    that of a genuine pair.
    """
    far, vr = rates_at(curve, threshold)
    miss, accept = _normalized_costs(prior, cost_miss, cost_false_accept)
    return miss * (1.0 - vr) + accept * far


def min_dcf(curve: Roc, *, prior: float, cost_miss: float, cost_false_accept: float) -> float:
    """The smallest normalised detection cost over all thresholds, at most 1; see `dcf`."""
    miss, accept = _normalized_costs(prior, cost_miss, cost_false_accept)
    return float(np.min(miss * (1.0 - curve.vr) + accept * curve.far))


def actual_dcf(curve: Roc, *, prior: float, cost_miss: float, cost_false_accept: float) -> float:
    """The detection cost at the Bayes threshold of the ROC of log-likelihood ratios in nats.

    Near `min_dcf` when the ratios are calibrated, possibly far above 1 when they are not.
    """
    threshold = bayes_threshold(prior=prior, cost_miss=cost_miss, cost_false_accept=cost_false_accept)
    return dcf(curve, threshold, prior=prior, cost_miss=cost_miss, cost_false_accept=cost_false_accept)


def bayes_threshold(*, prior: float, cost_miss: float, cost_false_accept: float) -> float:
    """The log-likelihood ratio (nats) above which accepting costs less: log of cost odds against prior odds."""
    miss, accept = _normalized_costs(prior, cost_miss, cost_false_accept)
    return math.log(accept / miss)


def _normalized_costs(prior: float, cost_miss: float, cost_false_accept: float) -> tuple[float, float]:
    """Expected costs of refusing everybody and of accepting everybody, divided by the smaller of the two."""
    checks.between("prior", prior, 0.0, 1.0, closed_low=False, closed_high=False)
    checks.positive("cost_miss", cost_miss)
    checks.positive("cost_false_accept", cost_false_accept)
    miss, accept = prior * cost_miss, (1.0 - prior) * cost_false_accept
    trivial = min(miss, accept)
    return miss / trivial, accept / trivial
