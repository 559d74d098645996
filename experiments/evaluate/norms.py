"""Normalised scores beside the raw ones: by the scores of every file against a cohort of strangers."""

import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields
from jaxface.core import checks, messages
from jaxface.data import trials
from jaxface.data.trials import Trials
from jaxface.metrics import normalization
from jaxface.metrics.normalization import CohortMoments

ENDING = ", s-norm"


def check(config: ConfigDict) -> None:
    """Refuses entries that are no NAME=FILE."""
    fields.counts(config, "cohort_best", minimum=2)
    for entry in config.cohorts:
        if not all(entry.partition("=")):
            raise ValueError(f"config.cohorts must hold NAME=FILE entries; got {entry!r}.")


def normalized(config: ConfigDict, known: Trials) -> dict[str, np.ndarray]:
    """The s-norm of every system that has a cohort, under its name with `ENDING`."""
    found = {}
    for entry in config.cohorts:
        name, _, file = entry.partition("=")
        checks.one_of("a system of config.cohorts", name, known.scores)
        if not known.first:
            raise ValueError("scores can be normalised where the trials name their files; these do not.")
        row_of, moments = _moments(config, file, known)
        first, second = (moments.of([row_of[each] for each in side]) for side in (known.first, known.second))
        found[name + ENDING] = normalization.s_norm(known.scores[name], first, second)
    return found


def _moments(config: ConfigDict, file: str, known: Trials) -> tuple[dict[str, int], CohortMoments]:
    """The row of every file of the trials, and its moments against the cohort."""
    cohort = trials.read(file, delimiter=config.delimiter)
    where = messages.printable(file)
    if not cohort.first or len(cohort.scores) != 1:
        raise ValueError(f"{where} must have lines `file cohort score`: two names and one column of scores.")
    files = sorted({*known.first, *known.second})
    others = sorted(set(cohort.second))
    if both := sorted(set(others) & set(files)):
        raise ValueError(
            f"{where} holds files of the trials in the cohort, such as {messages.printable(both[0])!r}: the cohort are "
            "strangers to all trials. Take them out."
        )
    row_of, column_of = ({name: k for k, name in enumerate(names)} for names in (files, others))
    matrix = np.full((len(files), len(others)), np.nan)
    (scores,) = cohort.scores.values()
    for one, other, score in zip(cohort.first, cohort.second, scores, strict=True):
        if one in row_of:
            matrix[row_of[one], column_of[other]] = score
    lacking = np.argwhere(np.isnan(matrix))
    if len(lacking):
        row, column = lacking[0]
        raise ValueError(
            f"{where} lacks {len(lacking)} of {matrix.size} scores of a file of the trials against the cohort; the "
            f"first is of {messages.printable(files[row])!r} and {messages.printable(others[column])!r}."
        )
    return row_of, normalization.cohort_moments(matrix, num_best=config.cohort_best)
