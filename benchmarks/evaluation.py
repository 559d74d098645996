"""Row E1: every measure of a million scores, without intervals."""

import importlib
from typing import NamedTuple

import numpy as np

from benchmarks.rows import Quantity, Row, speedup
from jaxface import metrics

_SCORES, _SHARE = 1_000_000, 0.1
_FAR = (0.01, 0.001, 0.0001)
_SEED = 20260711


class Scores(NamedTuple):
    """Ratios of trials, some of them of one person."""

    values: np.ndarray  # [p]
    is_same: np.ndarray  # bool [p]


class Found(NamedTuple):
    """What both sides give."""

    eer: float
    auc: float


def _scores() -> Scores:
    rng = np.random.default_rng(_SEED)
    is_same = rng.random(_SCORES) < _SHARE
    return Scores(2.0 * rng.normal(size=_SCORES) + np.where(is_same, 3.0, -3.0), is_same)


def _all_measures(scores: Scores) -> Found:
    """Those of the study `evaluate`: of the order of the scores, of their values, and of both."""
    curve = metrics.roc(scores.values, scores.is_same)
    metrics.eer_rocch(curve)
    metrics.det(curve)
    for far in _FAR:
        metrics.verification_rate(curve, far)
        metrics.threshold_at_far(curve, far)
    for cost in (metrics.min_dcf, metrics.actual_dcf):
        cost(curve, prior=0.01, cost_miss=1.0, cost_false_accept=1.0)
    metrics.cllr(scores.values, scores.is_same)
    metrics.min_cllr(curve)
    metrics.supported_range(scores.values, scores.is_same)
    return Found(metrics.eer(curve), metrics.auc(curve))


def _pyeer(scores: Scores) -> Found:
    """Its statistics take lists or arrays of the scores of both kinds."""
    of = importlib.import_module("pyeer.eer_info").get_eer_stats
    found = of(scores.values[scores.is_same], scores.values[~scores.is_same])
    return Found(float(found.eer), float(found.auc))


def _same_numbers(_: Scores, ours: Found, theirs: Found) -> str:
    for name, a, b in zip(Found._fields, ours, theirs, strict=True):
        assert abs(a - b) < 1e-3, f"{name} {a} and {b}"
    return f"EER {100 * ours.eer:.3f} and {100 * theirs.eer:.3f} %, AUC {ours.auc:.5f} and {theirs.auc:.5f}"


def _seconds(scores: Scores) -> float:
    import time

    begin = time.process_time()
    _all_measures(scores)
    return time.process_time() - begin


ROWS = (
    Row(
        name="E1",
        work=f"all measures of {_SCORES:,} scores without intervals",
        peer="pyeer, get_eer_stats",
        dtype="float64",
        data=_scores,
        ours=_all_measures,
        theirs=_pyeer,
        agree=_same_numbers,
        target=speedup(at_least=1.0),
        quantities=(Quantity("CPU time", "s", _seconds, 10.0),),
        packages=("pyeer",),
        floor=lambda scores: np.cumsum(scores.is_same[np.argsort(scores.values)]),
        floor_work="one sort of the scores and one running sum",
        reason="concave hulls and isotonic regressions of a million points: EER of the hull, min Cllr, supported range",
    ),
)
