"""Scores as log-likelihood ratios: Cllr after a calibration on other people, min Cllr, and intervals over people.

The scores of cosines and distances are no ratios, so their raw values have no Cllr. People are cut into folds, and the
pair of people in folds i and j is calibrated by pairs of people in neither: nobody is on two sides.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxface import metrics
from jaxface.core.fitinfo import raise_if_failed
from jaxface.losses import calibration
from jaxface.metrics import intervals
from jaxface.metrics.intervals import Interval
from jaxface.reports.tables import Cell, Estimate, Table, percent_interval, with_interval

COLUMNS = ("Cllr, raw", "Cllr, calibrated", "min Cllr", "EER %, all pairs", "Cllr, all pairs")
NUM_FOLDS = 4
_NUM_ITERS = 20  # of a calibration: two numbers
_BINS = 256  # of equally many pairs: a calibration sees the mean score of each
WORDS = (
    "Cllr and min Cllr are in bits: 0 is perfect, 1 says nothing. A score that is no log-likelihood ratio has a Cllr "
    f"only after calibration: people are cut into {NUM_FOLDS} folds, and slope and offset of a pair are fitted to the "
    "pairs of people in other folds. The last two columns take these calibrated ratios of all splits together; their "
    "95 % intervals resample the people, the same ones in every split."
)


class Trials(NamedTuple):
    """Scores of pairs of known people."""

    scores: np.ndarray  # [p]
    first: np.ndarray  # integers [p], who is on the left
    second: np.ndarray

    @property
    def is_same(self) -> np.ndarray:
        """Whether both sides show one person, bool `[p]`."""
        return self.first == self.second


def of_matrix(scores: Any, ids: np.ndarray) -> Trials:
    """All pairs of rows of a symmetric matrix `[n, n]`."""
    first, second = np.triu_indices(len(ids), 1)
    return Trials(np.asarray(scores, np.float64)[first, second], ids[first], ids[second])


def across_people(trials: Trials, *, seed: int) -> np.ndarray:
    """Calibrated ratios `[p]`; NaN where the people are too few to leave some of them out."""
    people = np.unique(np.concatenate([trials.first, trials.second]))
    fold = np.random.default_rng((seed, 4)).permutation(people.size) % NUM_FOLDS
    sides = fold[np.searchsorted(people, trials.first)], fold[np.searchsorted(people, trials.second)]
    part = np.minimum(*sides) * NUM_FOLDS + np.maximum(*sides)
    sums, counts = _binned(trials, part)
    choices = list(itertools.combinations_with_replacement(range(NUM_FOLDS), 2))
    kept = np.array(
        [[not set(divmod(each, NUM_FOLDS)) & set(pair) for each in range(NUM_FOLDS**2)] for pair in choices]
    )
    weights = np.tensordot(kept.astype(float), counts, 1)  # [choices, kinds, bins]
    if not (weights.sum(axis=2) > 0).all():
        return np.full(len(trials.scores), np.nan)
    means = np.tensordot(kept.astype(float), sums, 1) / np.maximum(weights, 1)
    is_same = np.repeat([False, True], means.shape[2])
    fits, info = _fits(means.reshape(len(choices), -1), is_same, weights.reshape(len(choices), -1))
    raise_if_failed(info, "calibration")
    place = np.zeros(NUM_FOLDS**2, int)
    place[[i * NUM_FOLDS + j for i, j in choices]] = np.arange(len(choices))
    chosen = place[part]
    return np.asarray(fits.slope, np.float64)[chosen] * trials.scores + np.asarray(fits.offset, np.float64)[chosen]


def _binned(trials: Trials, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums of scores and numbers of pairs `[parts, kinds, bins]`; bins have equal shares of either kind of pairs."""
    of_kinds = [np.quantile(trials.scores[kind], np.linspace(0, 1, _BINS // 2 + 1)[1:-1]) for kind in _kinds(trials)]
    place = np.searchsorted(np.sort(np.concatenate(of_kinds)), trials.scores)
    shape = (NUM_FOLDS**2, 2, _BINS)
    code = (part * 2 + trials.is_same) * _BINS + place
    size = int(np.prod(shape))
    sums, counts = np.bincount(code, trials.scores, size), np.bincount(code, minlength=size)
    return sums.reshape(shape), counts.reshape(shape)


def _kinds(trials: Trials) -> tuple[np.ndarray, np.ndarray]:
    return trials.is_same, ~trials.is_same


@jax.jit
def _fits(scores: jax.Array, is_same: jax.Array, weights: jax.Array) -> Any:
    """A calibration for each row of scores and weights `[k, b]`, one after the other."""

    def fit(row: tuple[jax.Array, jax.Array]) -> Any:
        return calibration.fit(row[0], is_same, sample_weights=row[1], num_iters=_NUM_ITERS)

    return jax.lax.map(fit, (scores, weights))


def measured(trials: Trials, *, seed: int, is_ratio: bool = False) -> dict[str, np.ndarray]:
    """Raw Cllr (NaN unless scores are ratios), Cllr after calibration, min Cllr; `llr` are calibrated ratios `[p]`."""
    llr, is_same = across_people(trials, seed=seed), trials.is_same
    return {
        "raw Cllr": np.asarray(metrics.cllr(trials.scores, is_same) if is_ratio else np.nan),
        "Cllr": np.asarray(np.nan if np.isnan(llr).any() else metrics.cllr(llr, is_same)),
        "min Cllr": np.asarray(metrics.min_cllr(metrics.roc(trials.scores, is_same))),
        "llr": llr,
    }


def over_people(parts: Sequence[Trials], *, num_resamples: int, seed: int) -> np.ndarray:
    """EER and Cllr `[2, 3]` of the calibrated ratios of all splits together: estimate and both ends of the interval."""
    llr, first, second = (np.concatenate(fields) for fields in zip(*parts, strict=True))
    if np.isnan(llr).any():
        return np.full((2, 3), np.nan)
    rng = np.random.default_rng((seed, 5))
    found = metrics.subject_bootstrap(llr, first == second, first, second, rng=rng, num_resamples=num_resamples)
    return np.array([found.eer, found.cllr], float)


def together(
    scored: Sequence[Mapping[str, Trials]], *, ratios: Sequence[str], num_resamples: int, seed: int
) -> dict[str, np.ndarray]:
    """The arrays of a stage from the scores of every split by name: `raw Cllr`, `Cllr`, `min Cllr` `[scores, splits]`.

    `people` `[scores, 2, 3]` is `over_people` of each score.
    """
    names = list(scored[0])
    found = {
        name: [measured(each[name], seed=seed, is_ratio=name in ratios) for each in scored] for name in names
    }  # fmt: skip
    calibrated = {
        name: [each[name]._replace(scores=one["llr"]) for each, one in zip(scored, found[name], strict=True)]
        for name in names
    }
    people = [over_people(calibrated[name], num_resamples=num_resamples, seed=seed) for name in names]
    arrays = {
        field: np.array([[one[field] for one in found[name]] for name in names])
        for field in ("raw Cllr", "Cllr", "min Cllr")
    }
    return {**arrays, "people": np.stack(people)}


def cells(arrays: Mapping[str, np.ndarray], row: int, *, test_to_train: float) -> tuple[Cell, ...]:
    """A score's cells below `COLUMNS`; the first three are means over splits, with the intervals of the splits."""
    of_splits = [
        estimate(arrays[field][row], test_to_train=test_to_train) for field in ("raw Cllr", "Cllr", "min Cllr")
    ]
    eer, cllr = (Interval(*values) for values in arrays["people"][row])
    return (*of_splits, percent_interval(eer), with_interval(cllr, digits=3))


def estimate(values: np.ndarray, *, test_to_train: float) -> Cell:
    """Mean of bits `[splits]` with its interval; NaN for none."""
    if np.isnan(values).any():
        return Estimate(np.nan)
    found = intervals.split_interval(values, test_to_train=test_to_train, within=intervals.POSITIVE)
    return with_interval(found, digits=3)


def table(
    names: Sequence[str], arrays: Mapping[str, np.ndarray], *, test_to_train: float, caption: str, first: str = "score"
) -> Table:
    """The scores of a study by name, a row each."""
    rows = [(name, *cells(arrays, row, test_to_train=test_to_train)) for row, name in enumerate(names)]
    return Table((first, *COLUMNS), rows, caption)


def results(names: Sequence[str], arrays: Mapping[str, np.ndarray], ending: str) -> dict[str, float]:
    """Means over the splits by name, for results.json; what a score lacks is left out."""
    found = {
        f"{field}, {name}, {ending}": float(arrays[key][row].mean())
        for field, key in (("raw Cllr", "raw Cllr"), ("calibrated Cllr", "Cllr"), ("min Cllr", "min Cllr"))
        for row, name in enumerate(names)
    }
    return {name: value for name, value in found.items() if not np.isnan(value)}
