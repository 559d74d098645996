"""The numbers of a system: error rates, costs, calibration on people who were left out, intervals, differences."""

import itertools
from typing import Any, NamedTuple

import jax
import numpy as np
from ml_collections import ConfigDict

from experiments.evaluate.systems import Systems
from jaxface import metrics
from jaxface.core.fitinfo import raise_if_failed
from jaxface.losses import calibration, fusion
from jaxface.losses.calibration import Affine
from jaxface.losses.fusion import Fusion
from jaxface.metrics import bootstrap, draws, verification
from jaxface.metrics.bootstrap import SubjectDifferences, SubjectIntervals
from jaxface.metrics.draws import Draws
from jaxface.metrics.mate_counts import MateCounts
from jaxface.metrics.verification import Roc

RANGE = ("least ratio supported", "largest ratio supported")  # in nats, by the number of trials


class Measured(NamedTuple):
    """A system on all trials."""

    curve: Roc
    llr: np.ndarray  # [p], calibrated on other people
    affine: Affine  # calibration on all trials: what to use from now on
    numbers: dict[str, float]
    draws: Draws | None  # over resamples of the people
    draws_of_llr: Draws | None

    @property
    def intervals(self) -> SubjectIntervals | None:
        """Intervals of what the scores decide by their order."""
        return None if self.draws is None else bootstrap.subject_intervals(self.draws)

    @property
    def cllr(self) -> SubjectIntervals | None:
        """Intervals of the calibrated ratios."""
        return None if self.draws_of_llr is None else bootstrap.subject_intervals(self.draws_of_llr)


def measure(config: ConfigDict, systems: Systems, name: str) -> Measured:
    """Everything that a table says of a system."""
    scores = systems.scores[name]
    return _measured(config, systems, scores, *calibrated(config, systems, scores))


def fused(config: ConfigDict, systems: Systems) -> tuple[Measured, Fusion]:
    """All systems together: each trial by a fusion that has not seen its people, and the fusion of all trials."""
    x = np.stack(list(systems.scores.values()), axis=1)
    if not np.isfinite(x).all():
        raise ValueError("config.fuse needs finite scores of every system; some are infinite.")
    place, weights = _left_out(config, systems, np.ones(len(x), bool))
    fits, info = _fusions(x, systems.is_same, weights.astype(x.dtype))
    raise_if_failed(info, "fusion")
    llr = (np.asarray(fits.weights)[place] * x).sum(axis=1) + np.asarray(fits.offset)[place]
    whole = jax.tree.map(lambda leaf: leaf[0], fits)
    return _measured(config, systems, llr, llr, calibration.neutral(llr.dtype)), whole


def _measured(config: ConfigDict, systems: Systems, scores: np.ndarray, llr: np.ndarray, affine: Affine) -> Measured:
    """The numbers of scores and of their ratios."""
    is_same = systems.is_same
    curve = metrics.roc(scores, is_same)
    costs = {"prior": config.prior, "cost_miss": config.cost_miss, "cost_false_accept": config.cost_false_accept}
    numbers = {"EER": metrics.eer(curve), "AUC": metrics.auc(curve)}
    numbers |= {f"VR at FAR {far:g}": metrics.verification_rate(curve, far) for far in config.far}
    numbers |= {
        "min DCF": metrics.min_dcf(curve, **costs),
        "actual DCF": metrics.actual_dcf(metrics.roc(llr, is_same), **costs),
        "Cllr of the scores as they are": metrics.cllr(scores, is_same),
        "Cllr, calibrated": metrics.cllr(llr, is_same),
        "min Cllr": metrics.min_cllr(curve),
        **dict(zip(RANGE, metrics.supported_range(llr, is_same), strict=True)),
        "threshold of the costs": _threshold(affine, verification.bayes_threshold(**costs)),
    }
    numbers |= {f"threshold at FAR {far:g}": metrics.threshold_at_far(curve, far) for far in config.far}
    return Measured(curve, llr, affine, numbers, *(_draws(config, systems, each) for each in (scores, llr)))


def differences(found: Measured, reference: Measured) -> tuple[SubjectDifferences, SubjectDifferences] | None:
    """A system less the reference on the same resamples of people: of the scores, and of their calibrated ratios."""
    if found.draws is None or reference.draws is None or found.draws_of_llr is None or reference.draws_of_llr is None:
        return None
    return (
        bootstrap.subject_differences(found.draws, reference.draws),
        bootstrap.subject_differences(found.draws_of_llr, reference.draws_of_llr),
    )


def _draws(config: ConfigDict, systems: Systems, scores: np.ndarray) -> Draws | None:
    if systems.people is None:
        return None
    return draws.resample_subjects(
        scores,
        systems.is_same,
        *systems.people,
        rng=np.random.default_rng(config.seed),  # the same people are drawn for every system
        num_resamples=config.num_resamples,
        far=config.far,
    )


def calibrated(config: ConfigDict, systems: Systems, scores: np.ndarray) -> tuple[np.ndarray, Affine]:
    """Ratios `[p]` of a calibration that has not seen the people of the trial, and the calibration on all trials.

    People are cut into folds. The trial of people in folds i and j is calibrated by the trials of people in other
    folds. Without people the trials themselves are cut.
    """
    finite = np.isfinite(scores)
    place, weights = _left_out(config, systems, finite)
    fits, info = _fits(np.where(finite, scores, 0.0), systems.is_same, weights.astype(scores.dtype))
    raise_if_failed(info, "calibration")
    slope, offset = np.asarray(fits.slope), np.asarray(fits.offset)
    whole = jax.tree.map(lambda leaf: leaf[0], fits)
    return slope[place] * scores + offset[place], whole


def _left_out(config: ConfigDict, systems: Systems, is_used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of k fits each trial takes `[p]`, and the trials that fit it `[k, p]`; the first fit takes all of them."""
    first, second = _folds(config, systems)
    pairs = list(itertools.combinations_with_replacement(range(config.num_folds), 2))
    if systems.people is None:
        pairs = [(k, k) for k in range(config.num_folds)]
    used = [is_used & ~np.isin(first, pair) & ~np.isin(second, pair) for pair in pairs]
    weights = np.stack([is_used, *used])
    _refuse_lost_kinds(weights, systems.is_same)
    low, high = np.minimum(first, second), np.maximum(first, second)
    place = np.zeros(len(is_used), int)
    for k, (i, j) in enumerate(pairs, 1):
        place[(low == i) & (high == j)] = k
    return place, weights


@jax.jit
def _fits(scores: jax.Array, is_same: jax.Array, weights: jax.Array) -> Any:
    """A calibration for each row of weights `[k, p]`, one after the other."""
    return jax.lax.map(lambda weight: calibration.fit(scores, is_same, sample_weights=weight, tol=1e-9), weights)


@jax.jit
def _fusions(x: jax.Array, is_same: jax.Array, weights: jax.Array) -> Any:
    """A fusion for each row of weights `[k, p]`, one after the other."""
    return jax.lax.map(lambda weight: fusion.fit(x, is_same, sample_weights=weight, tol=1e-9), weights)


def _folds(config: ConfigDict, systems: Systems) -> tuple[np.ndarray, np.ndarray]:
    """The fold of both sides of each trial."""
    rng = np.random.default_rng((config.seed, 1))
    if systems.people is None:
        fold = rng.permutation(len(systems.is_same)) % config.num_folds
        return fold, fold
    first, second = systems.people
    fold = rng.permutation(max(first.max(), second.max()) + 1) % config.num_folds
    return fold[first], fold[second]


def _refuse_lost_kinds(weights: np.ndarray, is_same: np.ndarray) -> None:
    if not (weights[:, is_same].any(axis=1) & weights[:, ~is_same].any(axis=1)).all():
        raise ValueError(
            "some fold of people leaves no genuine or no impostor trial to calibrate on: give fewer folds with "
            "--config.num_folds, or more trials."
        )


def _threshold(affine: Affine, ratio: float) -> float:
    """The raw score whose calibrated ratio is `ratio`."""
    return float((ratio - affine.offset) / affine.slope)


class Ranked(NamedTuple):
    """A system that identifies: the probes are the second files, the people of the first files are enrolled."""

    counts: MateCounts
    num_people: int  # enrolled


def ranked(systems: Systems, name: str) -> Ranked | None:
    """The ranks of the probes, if the trials compare every second file with all people of the first files.

    A file is not compared with itself. A probe may lack trials with its own person: then it shows a stranger.
    """
    known = systems.trials
    if systems.people is None or not known.first:
        return None
    first, second = (np.asarray(side) for side in (known.first, known.second))
    is_pair = first != second
    gallery_ids, probe_ids = (side[is_pair] for side in systems.people)
    _, probes = np.unique(second[is_pair], return_inverse=True)
    counts = metrics.counts_from_trials(systems.scores[name][is_pair], gallery_ids, probes, probe_ids)
    enrolled = np.unique(gallery_ids)
    whom = np.empty(len(counts.compared), probe_ids.dtype)
    whom[probes] = probe_ids
    if (counts.compared < enrolled.size - np.isin(whom, enrolled)).any():
        return None
    return Ranked(counts, enrolled.size)
