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

__all__ = ["cllr", "cross_entropy", "min_cllr", "pav_llr", "reliability"]


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
    vertices = verification.hull(curve)
    far, vr = np.diff(vertices.far), np.diff(vertices.vr)
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
