"""What the folds say together: every kind on all people, with intervals over people.

Ratios are calibrated in each fold, so the pairs of all folds stand in one list. No pair crosses two folds.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from ml_collections import ConfigDict

from experiments.common.inputs import Vectors
from experiments.verifier.sides import Sides
from jaxface import metrics
from jaxface.core.fitinfo import Status
from jaxface.losses import calibration
from jaxface.metrics import bootstrap, draws
from jaxface.metrics.bootstrap import SubjectDifferences, SubjectIntervals
from jaxface.metrics.draws import Draws
from jaxface.metrics.verification import Roc

CHOSEN = "the kind chosen in each fold"
REFERENCE = "cosine"


class Evidence(NamedTuple):
    """A kind of verifier on the pairs of all folds."""

    curve: Roc
    cllr: float
    min_cllr: float
    drawn: Draws

    @property
    def intervals(self) -> SubjectIntervals:
        """Intervals over people."""
        return bootstrap.subject_intervals(self.drawn)

    def less(self, other: "Evidence") -> SubjectDifferences:
        """Differences to another kind on the same people."""
        return bootstrap.subject_differences(self.drawn, other.drawn)


class Pooled(NamedTuple):
    """The pairs of all folds, and what each kind makes of them."""

    ratios: dict[str, np.ndarray]  # [p] each, without the kinds that failed in some fold
    is_same: np.ndarray  # bool [p]
    first: np.ndarray  # int [p], the person on either side
    second: np.ndarray
    largest_share: float  # of one person in the pairs of one person


def pool(
    config: ConfigDict, vectors: Vectors, drawn: Sequence[Sides], measured: Sequence[Mapping[str, np.ndarray]]
) -> Pooled:
    """The pairs of the folds one after the other."""
    people = [vectors.ids[side.rows] for side in drawn]
    trials = [side.trial for side in drawn]
    scores = np.concatenate([arrays["scores"] for arrays in measured], axis=1)
    ratios = {kind: row for kind, row in zip(config.kinds, scores, strict=True) if not np.isnan(row).any()}
    chosen = [arrays["scores"][int(arrays["chosen"])] for arrays in measured]
    first, second = (
        np.concatenate([ids[trial[side]] for ids, trial in zip(people, trials, strict=True)]) for side in (0, 1)
    )
    is_same = np.concatenate([trial.is_same for trial in trials])
    share = float(np.bincount(first[is_same]).max() / is_same.sum())
    return Pooled(ratios | {CHOSEN: np.concatenate(chosen)}, is_same, first, second, share)


def measure(config: ConfigDict, pooled: Pooled) -> dict[str, Evidence]:
    """The evidence of every kind; resamples are the same people for all."""
    return {name: of_ratios(config, pooled, ratios) for name, ratios in pooled.ratios.items()}


def of_ratios(config: ConfigDict, pooled: Pooled, ratios: np.ndarray) -> Evidence:
    """The evidence of ratios `[p]` of the pooled pairs."""
    curve = metrics.roc(ratios, pooled.is_same)
    drawn = draws.resample_subjects(
        ratios,
        pooled.is_same,
        pooled.first,
        pooled.second,
        rng=np.random.default_rng((config.seed, 3)),
        num_resamples=config.num_resamples,
        far=config.far,
        band_far=(),
    )
    return Evidence(curve, metrics.cllr(ratios, pooled.is_same), metrics.min_cllr(curve), drawn)


def calibrated(held_out: np.ndarray, is_same: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Scores `[p]` as ratios by the calibration of those of other people; NaN where that has no minimum."""
    affine, info = calibration.fit(held_out, is_same)
    if int(info.status) >= Status.NON_FINITE:
        return np.full(len(scores), np.nan)
    return np.asarray(calibration.calibrate(affine, scores))


def numbers(config: ConfigDict, found: Evidence) -> dict[str, float]:
    """The measures of a kind by name."""
    rates = {f"VR at FAR {far:g}": metrics.verification_rate(found.curve, far) for far in config.far}
    return {"EER": metrics.eer(found.curve)} | rates | {"Cllr": found.cllr, "min Cllr": found.min_cllr}
