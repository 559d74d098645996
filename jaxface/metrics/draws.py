"""The statistics of a verification result over resamples of its people: what intervals and differences are made of.

Systems that are drawn with the same seed on the same trials see the same resamples, so their statistics can be compared
resample by resample.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import arguments, calibration, resampling, verification
from jaxface.metrics.arguments import Array, Index, Mask

__all__ = ["Draws", "resample_subjects"]

FAR_GRID = np.geomspace(1e-4, 1.0, 97)
_FINITE_LOSS, _INFINITE_LOSS, _RIGHT = 0, 1, 2  # rows of the features of a pair


class Statistics(NamedTuple):
    """Statistics of r resamples."""

    eer: Array  # [r]
    auc: Array  # [r]
    cllr: Array  # [r], bits; of use when the scores are log-likelihood ratios in nats
    min_cllr: Array  # [r], bits
    accuracy: Array  # [r], at the given threshold
    far_there: Array  # [r], at the given threshold
    vr_there: Array  # [r]
    rates: Array  # [r, f + k]: verification rates at `far`, then at `band_far`
    num_pairs: Array  # [r, 2], genuine and impostor pairs


class Draws(NamedTuple):
    """Statistics of all pairs and of every resample of the people."""

    whole: Statistics  # of one resample, in which everybody counts once
    resampled: Statistics
    far: Array  # [f] as asked
    band_far: Array  # [k]
    threshold: float | None
    num_people: int
    num_undefined: int  # resamples left out: they drew no genuine or no impostor pair


def resample_subjects(
    scores: npt.ArrayLike,
    is_same: npt.ArrayLike,
    subject_a: npt.ArrayLike,
    subject_b: npt.ArrayLike,
    *,
    rng: "np.random.Generator",
    num_resamples: int = 1000,
    far: npt.ArrayLike = (0.01, 0.001),
    band_far: npt.ArrayLike = FAR_GRID,
    threshold: float | None = None,
) -> Draws:
    """Draws people with replacement and computes the statistics of their pairs, from pairs `[p]`.

    `resampling` says how much a pair then weighs. Every resample's ROC is exact, ties included, and the statistics
    follow the conventions of `verification`.

    scores, is_same: the result, and which pairs show one person.
    subject_a, subject_b: the two people of each pair.
    rng, num_resamples: the draws of people.
    far: where the verification rate is reported `[f]`. A FAR below about one over the number of impostor pairs is
        not estimable, and no interval repairs that.
    band_far: where the band of the ROC is reported `[k]`.
    threshold: adds the accuracy, the FAR and the VR of the decisions at this score.
    """
    values, same = arguments.labeled(scores, is_same)
    first, second, num_people = _dense_subjects(same, subject_a, subject_b)
    check_sampling(num_people, num_resamples)
    rates = Rates.of(far, band_far)
    ranked = resampling.rank(values, same, first, second, _features(values, same, threshold))
    whole = rates.statistics(resampling.weigh(ranked, np.ones((1, num_people))))
    blocks = resampling.multiplicities(num_people, num_resamples, rng, block_size=resampling.affordable_block(ranked))
    resampled = joined([rates.statistics(resampling.weigh(ranked, block)) for block in blocks], num_resamples)
    num_undefined = num_resamples - resampled.eer.size
    return Draws(whole, resampled, rates.far, rates.band_far, threshold, num_people, num_undefined)


class Rates(NamedTuple):
    """FARs at which the verification rate is wanted."""

    far: Array  # [f]
    band_far: Array  # [k]

    @classmethod
    def of(cls, far: npt.ArrayLike, band_far: npt.ArrayLike) -> "Rates":
        """Checked rates."""
        return cls(_rates_of("far", far), _rates_of("band_far", band_far))

    def statistics(self, weighted: resampling.Weighted) -> Statistics:
        """Of the resamples that hold genuine and impostor pairs."""
        targets, column = np.unique(np.concatenate([self.far, self.band_far]), return_inverse=True)
        found = _statistics(weighted, targets)
        return found._replace(rates=found.rates[:, column])


def joined(blocks: list[Statistics], num_resamples: int) -> Statistics:
    """The statistics of all resamples."""
    found = Statistics(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))
    if found.eer.size == 0:
        raise ValueError(
            f"scores must hold genuine and impostor pairs of several subjects; none of {num_resamples} resamples "
            "drew both. Give more subjects."
        )
    return found


def _features(scores: Array, is_same: Mask, threshold: float | None) -> Array:
    """Per pair `[3, p]`: Cllr loss if finite, whether it is infinite, whether the decision at `threshold` is right."""
    loss = calibration.pair_loss(scores, is_same)
    infinite = np.isinf(loss)
    if threshold is None:
        right = np.zeros(scores.shape, bool)
    else:
        arguments.not_nan(threshold=threshold)
        right = (scores >= threshold) == is_same
    return np.stack([np.where(infinite, 0.0, loss), infinite, right])


def _statistics(weighted: resampling.Weighted, targets: Array) -> Statistics:
    """The statistics of the resamples that hold genuine and impostor pairs."""
    defined = (weighted.genuine > 0.0) & (weighted.impostor > 0.0)
    far, vr = weighted.far[defined], weighted.vr[defined]
    num_genuine, num_impostor = weighted.genuine[defined], weighted.impostor[defined]
    genuine, impostor = weighted.genuine_features[:, defined], weighted.impostor_features[:, defined]
    cllr = (genuine[_FINITE_LOSS] / num_genuine + impostor[_FINITE_LOSS] / num_impostor) / 2.0
    endless = genuine[_INFINITE_LOSS] + impostor[_INFINITE_LOSS] > 0.0
    return Statistics(
        eer=verification.crossing(far, vr),
        auc=np.asarray(np.trapezoid(vr, far, axis=1)),
        cllr=np.where(endless, np.inf, cllr),
        min_cllr=np.array([calibration.hull_loss(*curve) for curve in zip(far, vr, strict=True)]),
        accuracy=(genuine[_RIGHT] + impostor[_RIGHT]) / (num_genuine + num_impostor),
        far_there=1.0 - impostor[_RIGHT] / num_impostor,
        vr_there=genuine[_RIGHT] / num_genuine,
        rates=_rates(far, vr, targets),
        num_pairs=np.stack([num_genuine, num_impostor], axis=1),
    )


def _rates(far: Array, vr: Array, targets: Array) -> Array:
    """VR@FAR `[r, targets]` of curves `[r, t]` for rising targets: the last point with FAR at most the target."""
    num_curves, num_targets = far.shape[0], targets.size
    first_target = np.searchsorted(targets, far)  # the lowest target each point keeps within
    code = first_target + (num_targets + 1) * np.arange(num_curves)[:, None]
    points = np.bincount(code.ravel(), minlength=num_curves * (num_targets + 1))
    within = np.cumsum(points.reshape(num_curves, num_targets + 1)[:, :num_targets], axis=1)
    return np.take_along_axis(vr, within - 1, axis=1)


def _rates_of(name: str, rates: npt.ArrayLike) -> Array:
    values = arguments.numbers(name, rates)
    checks.shapes(**{name: (values, "f")})
    checks.between(name, values, 0.0, 1.0)
    return values


def _dense_subjects(is_same: Mask, subject_a: npt.ArrayLike, subject_b: npt.ArrayLike) -> tuple[Index, Index, int]:
    """Both subjects `[p]` as dense integers, which must agree with the labels, and the number of people."""
    checks.shapes(is_same=(is_same, "p"), subject_a=(subject_a, "p"), subject_b=(subject_b, "p"))
    first, second, num_people = arguments.dense_pair(subject_a, subject_b, names=("subject_a", "subject_b"))
    contradiction = is_same != (first == second)
    if contradiction.any():
        where = int(np.argmax(contradiction))
        raise ValueError(
            f"is_same must be subject_a == subject_b; it is not for {int(contradiction.sum())} pairs, "
            f"the first at index {where}. Give the subjects whose identities made the labels."
        )
    return first, second, num_people


def check_sampling(num_people: int, num_resamples: int) -> None:
    """Refuses fewer than two people and fewer than one resample."""
    checks.at_least("the number of subjects", num_people, 2, "one subject cannot be resampled")
    checks.at_least("num_resamples", num_resamples, 1)
