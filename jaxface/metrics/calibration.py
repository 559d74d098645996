"""Calibration: are the scores the log-likelihood ratios they claim to be? Cllr, PAV, reliability.

`cllr` and `reliability` read the values of the scores as natural-log likelihood ratios; `min_cllr` and `pav`
use their order alone. Cllr - min Cllr is the information lost to bad calibration, min Cllr what is lost to
bad discrimination.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import inputs, verification
from jaxface.metrics.hull import concave_hull
from jaxface.metrics.inputs import Array
from jaxface.metrics.verification import Roc

__all__ = ["calibration_loss", "cllr", "min_cllr", "pav", "pav_llr", "reliability"]


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
    values, same = inputs.labelled(scores, is_same)
    loss = pair_loss(values, same)
    return float((loss[same].mean() + loss[~same].mean()) / 2.0)


def pair_loss(scores: Array, is_same: inputs.Mask) -> Array:
    """Bits lost on each pair `[p]`: log2(1 + exp(-s)) if genuine, log2(1 + exp(s)) if impostor, for any finite s."""
    return np.logaddexp(0.0, np.where(is_same, -scores, scores)) / math.log(2.0)


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


def calibration_loss(scores: npt.ArrayLike, is_same: npt.ArrayLike) -> float:
    """Bits lost to calibration: Cllr - min Cllr >= 0."""
    return cllr(scores, is_same) - min_cllr(verification.roc(scores, is_same))


def pav(scores: npt.ArrayLike, is_same: npt.ArrayLike) -> Array:
    """P(same) of each pair `[p]` by pool adjacent violators: the non-decreasing fit of the labels to the scores.

    Tied scores get one value. The prior is the share of genuine pairs; `pav_llr` takes it out.
    """
    genuine, impostor, index = _pooled(*inputs.labelled(scores, is_same))
    return (genuine / (genuine + impostor))[index]


def pav_llr(scores: npt.ArrayLike, is_same: npt.ArrayLike) -> Array:
    """Calibrated log-likelihood ratios `[p]` in nats by PAV; -inf and +inf where a pool holds one kind only."""
    genuine, impostor, index = _pooled(*inputs.labelled(scores, is_same))
    with np.errstate(divide="ignore"):
        llr = np.log(genuine / genuine.sum()) - np.log(impostor / impostor.sum())
    return llr[index]


def _pooled(scores: Array, is_same: inputs.Mask) -> tuple[Array, Array, npt.NDArray[np.intp]]:
    """Genuine and impostor counts `[k]` of the pools by rising score, and the pool `[p]` of every pair.

    Counts are whole numbers in float64, so pools are compared exactly up to 2^53.
    """
    distinct, group = np.unique(scores, return_inverse=True)
    genuine = np.bincount(group, weights=is_same, minlength=distinct.size)
    impostor = np.bincount(group, minlength=distinct.size) - genuine
    # The upper hull of the curve from the highest score down has the same vertices as the fit from the lowest up.
    x = np.concatenate([[0.0], np.cumsum(impostor[::-1])])
    y = np.concatenate([[0.0], np.cumsum(genuine[::-1])])
    vertices = concave_hull(x, y)
    sizes = np.diff(vertices)[::-1]
    pool_of_group = np.repeat(np.arange(sizes.size), sizes)
    return np.diff(y[vertices])[::-1], np.diff(x[vertices])[::-1], pool_of_group[group]


def reliability(scores: npt.ArrayLike, is_same: npt.ArrayLike, *, num_bins: int) -> Reliability:
    """Predicted against observed frequency of 'same' for log-likelihood ratios `[p]` in nats.

    The prediction is sigmoid(score + log(genuine / impostor pairs)): the posterior at the prior of these
    trials, so calibrated ratios lie on the diagonal.
    """
    checks.at_least("num_bins", num_bins, 1)
    values, same = inputs.labelled(scores, is_same)
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
