"""What a run evaluates: trials with their truth, the scores of each system, and who is in each pair."""

from typing import NamedTuple

import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.evaluate import norms
from jaxface.core import checks, messages
from jaxface.data import trials
from jaxface.data.trials import Trials


class Systems(NamedTuple):
    """The scores of all systems on the same trials; larger always means more similar."""

    scores: dict[str, np.ndarray]  # float64 [p] each
    is_same: np.ndarray  # bool [p]
    people: tuple[np.ndarray, np.ndarray] | None  # int64 [p] each: who is on either side
    trials: Trials


def check(config: ConfigDict) -> None:
    """Refuses fields that do not fit, before anything is read."""
    if (config.trials is None) == (config.genuine is None or config.impostor is None):
        raise ValueError(
            "name what to evaluate: --config.trials=FILE, or both --config.genuine=FILE and --config.impostor=FILE."
        )
    fields.shares(config, "far", above_zero=True)
    checks.between("config.prior", config.prior, 0.0, 1.0, closed_low=False, closed_high=False)
    fields.positive(config, "cost_miss", "cost_false_accept")
    fields.counts(config, "num_folds", minimum=3)  # a trial between two folds is calibrated by a third
    fields.counts(config, "num_resamples", minimum=1)
    norms.check(config)
    for entry in config.systems:
        if not all(entry.partition("=")):
            raise ValueError(f"config.systems must hold NAME=FILE entries; got {entry!r}.")


def paths(config: ConfigDict) -> dict[str, str | None]:
    """The files of a run, for its record."""
    others = {
        f"{what} {name}": file
        for what, entries in (("system", config.systems), ("cohort", config.cohorts))
        for name, _, file in (entry.partition("=") for entry in entries)
    }
    return {"trials": config.trials, "genuine": config.genuine, "impostor": config.impostor, **others}


def load(config: ConfigDict) -> Systems:
    """The trials of a run with every system's scores."""
    known = _trials(config)
    for entry in config.systems:
        name, _, file = entry.partition("=")
        known = trials.with_scores(known, file, name=name, delimiter=config.delimiter)
    if known.is_same is None:
        raise ValueError(
            "no column says which pairs show one person: name it with --config.columns.same=NAME, or score the pairs "
            "with a verifier in experiments.score."
        )
    if not known.scores:
        raise ValueError(
            "the trials have no scores: name a file with --config.systems=\"('NAME=FILE',)\", or the columns with "
            "--config.columns.scores."
        )
    for field in ("distances", "reference"):
        for name in np.atleast_1d([] if config[field] is None else config[field]).tolist():
            checks.one_of(f"config.{field}", name, known.scores)
    is_same = known.is_same
    known = known._replace(scores=known.scores | norms.normalized(config, known))
    distances = {*config.distances, *(name + norms.ENDING for name in config.distances)}
    scores = {name: -values if name in distances else values for name, values in known.scores.items()}
    return Systems(scores, is_same, _people(known), known)


def _trials(config: ConfigDict) -> Trials:
    if config.trials is None:
        return trials.read_scores(config.genuine, config.impostor)
    columns = {role: name for role, name in config.columns.items() if role != "scores" and name is not None}
    return trials.read(config.trials, columns=columns, scores=tuple(config.columns.scores), delimiter=config.delimiter)


def _people(known: Trials) -> tuple[np.ndarray, np.ndarray] | None:
    """The people of both sides as integers; a truth that contradicts columns of people is refused."""
    sides = trials.people(known)
    if sides is None or known.is_same is None:
        return None
    _, ids = np.unique(np.concatenate(sides), return_inverse=True)
    first, second = ids[: len(sides[0])], ids[len(sides[0]) :]
    wrong = np.flatnonzero((first == second) != known.is_same)
    if len(wrong):
        k = int(wrong[0])
        raise ValueError(
            f"the truth contradicts the people of {len(wrong)} trials; the first is row {k + 1}, with "
            f"{messages.printable(sides[0][k])!r} and {messages.printable(sides[1][k])!r} "
            f"{'as' if known.is_same[k] else 'not as'} one person."
        )
    return first, second
