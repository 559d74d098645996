"""Calibration: are the scores the log-likelihood ratios that they claim to be? Cllr, PAV and reliability.

`cllr` and `reliability` read the values of the scores as natural-log likelihood ratios; `min_cllr` and `pav_llr` use
their order alone. min Cllr is the information lost to bad discrimination, Cllr - min Cllr that lost to bad calibration.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import arguments, verification
from jaxface.metrics.arguments import Array
from jaxface.metrics.verification import Roc

__all__ = ["cllr", "cross_entropy", "min_cllr", "pav_llr", "reliability", "supported_range"]


class Reliability(NamedTuple):
    """Predicted against observed frequency in equal bins of probability; NaN where a bin is empty."""

    edges: Array  # [b + 1] from 0 to 1
    predicted: Array  # [b] mean P(same) of the pairs in the bin
    observed: Array  # [b] share of genuine pairs in the bin
    counts: npt.NDArray[np.intp]  # [b]


def cllr(scores: npt.ArrayLike, is_same: npt.ArrayLike) -> float:
    """Cost of log-likelihood ratios in bits, from ratios `[p]` in nats.

    1/2 mean_genuine log2(1 + exp(-s)) + 1/2 mean_impostor log2(1 + exp(s)): 0 is perfect, 1 is saying nothing
    (s = 0), and a ratio of the wrong infinite sign costs infinity.
    """
    values, same = arguments.labeled(scores, is_same)
    loss = pair_loss(values, same)
    return float((loss[same].mean() + loss[~same].mean()) / 2.0)


def pair_loss(scores: Array, is_same: arguments.Mask) -> Array:
    """Bits lost on each pair `[p]`: log2(1 + exp(-s)) if genuine, log2(1 + exp(s)) if impostor, for any finite s."""
    return np.logaddexp(0.0, np.where(is_same, -scores, scores)) / math.log(2.0)


def cross_entropy(scores: npt.ArrayLike, is_same: npt.ArrayLike, log_odds: npt.ArrayLike) -> Array:
    """Empirical cross-entropy in bits of ratios `[p]` in nats, at prior log odds `[t]`: `[t]`.

    P mean_genuine log2(1 + exp(-(s + t))) + (1 - P) mean_impostor log2(1 + exp(s + t)), where P = sigmoid(t) is the
    prior of a genuine pair. At t = 0 this is Cllr. Ratios of 0 give the entropy of the prior.
    """
    values, same = arguments.labeled(scores, is_same)
    checks.shapes(log_odds=(log_odds, "t"))
    odds = arguments.numbers("log_odds", log_odds)
    checks.finite(log_odds=odds)
    prior = np.exp(-np.logaddexp(0.0, -odds))
    losses = np.array([[pair_loss(values[kind] + t, same[kind]).mean() for kind in (same, ~same)] for t in odds])
    return prior * losses[:, 0] + (1.0 - prior) * losses[:, 1]


def min_cllr(curve: Roc) -> float:
    """Cllr in bits after the best monotone recalibration of the scores behind this ROC (PAV, ties pooled).

    On each segment of the concave hull the calibrated ratio is its slope dVR / dFAR, so
    min Cllr = 1/2 sum_segments [dVR log2(1 + dFAR / dVR) + dFAR log2(1 + dVR / dFAR)].
    """
    return hull_loss(curve.far, curve.vr)


def hull_loss(far: Array, vr: Array) -> float:
    """`min_cllr` of a curve `[t]` that never falls."""
    vertices = verification.concave_hull(far, vr)
    far, vr = np.diff(far[vertices]), np.diff(vr[vertices])
    both = (far > 0.0) & (vr > 0.0)
    far, vr = far[both], vr[both]
    nats = vr * np.log1p(far / vr) + far * np.log1p(vr / far)
    return float(nats.sum() / (2.0 * math.log(2.0)))


def pav_llr(scores: npt.ArrayLike, is_same: npt.ArrayLike) -> Array:
    """Log-likelihood ratios `[p]` in nats by pool adjacent violators: the best monotone calibration on these trials.

    It is the isotonic regression of the labels on the scores, ties pooled, without the prior of the trials: -inf and
    +inf where a pool holds one kind only.
    """
    from scipy import optimize

    values, same = arguments.labeled(scores, is_same)
    distinct, index = np.unique(values, return_inverse=True)
    total = np.bincount(index, minlength=distinct.size)
    genuine = np.bincount(index, weights=same, minlength=distinct.size)
    pools = optimize.isotonic_regression(genuine / total, weights=total).blocks
    genuine, total = (np.add.reduceat(counts, pools[:-1]) for counts in (genuine, total))
    impostor = total - genuine
    with np.errstate(divide="ignore"):
        llr = np.log(genuine / genuine.sum()) - np.log(impostor / impostor.sum())
    return np.repeat(llr, np.diff(pools))[index]


def supported_range(llr: npt.ArrayLike, is_same: npt.ArrayLike) -> tuple[float, float]:
    """The least and the largest log-likelihood ratio in nats that so many trials support (Vergeer et al. 2016).

    One misleading trial is added to either kind. At a threshold t on the ratio, deciding by the ratios then costs

        (#(same <= t) + 1) / (n_same + 1) + t (#(different > t) + 1) / (n_different + 1)

    and deciding without them min(1, t). The bounds are the thresholds nearest to 0 nats where the ratios cost more;
    ratios beyond a bound are to be moved there. Pairs of few people count as few: give one trial for each person.
    """
    values, same = arguments.labeled(llr, is_same)
    points = np.unique(np.append(values[np.isfinite(values)], 0.0))
    edges = np.concatenate([[-np.inf], points, [np.inf]])
    left, right = edges[:-1], edges[1:]  # intervals [left, right) in which the counts do not change
    num_same, num_different = np.count_nonzero(same), np.count_nonzero(~same)
    below = np.searchsorted(np.sort(values[same]), left, side="right")
    above = num_different - np.searchsorted(np.sort(values[~same]), left, side="right")
    missed, accepted = (below + 1.0) / (num_same + 1.0), (above + 1.0) / (num_different + 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        costs_more_above = np.log((1.0 - missed) / accepted)
        costs_more_below = np.log(missed / (1.0 - accepted))
    start = np.maximum(np.maximum(left, 0.0), costs_more_above)
    end = np.minimum(np.minimum(right, 0.0), np.where(accepted < 1.0, costs_more_below, np.inf))
    high = start[(right > 0.0) & (start < right)]
    low = end[(left < 0.0) & (end > left)]
    return float(low.max(initial=-np.inf)), float(high.min(initial=np.inf))


def reliability(scores: npt.ArrayLike, is_same: npt.ArrayLike, *, num_bins: int) -> Reliability:
    """Predicted against observed frequency of 'same' for log-likelihood ratios `[p]` in nats.

    The prediction is sigmoid(score + log(genuine / impostor pairs)): the posterior at the prior of these
    trials, so calibrated ratios lie on the diagonal.
    """
    checks.at_least("num_bins", num_bins, 1)
    values, same = arguments.labeled(scores, is_same)
    log_odds = values + math.log(np.count_nonzero(same) / np.count_nonzero(~same))
    probability = np.exp(-np.logaddexp(0.0, -log_odds))
    bins = np.minimum((probability * num_bins).astype(np.intp), num_bins - 1)
    count = np.bincount(bins, minlength=num_bins)
    per_pair = np.where(count > 0, 1.0, np.nan) / np.maximum(count, 1)
    return Reliability(
        edges=np.linspace(0.0, 1.0, num_bins + 1),
        predicted=np.bincount(bins, weights=probability, minlength=num_bins) * per_pair,
        observed=np.bincount(bins, weights=same, minlength=num_bins) * per_pair,
        counts=count,
    )
