"""A threshold for a rate of false accepts, from people who are strangers to everything else in the run."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs
from experiments.common.inputs import Vectors
from jaxface import metrics, verifier
from jaxface.core import checks
from jaxface.data import overlap, pairs
from jaxface.metrics.intervals import Interval
from jaxface.verifier import Gallery, Verifier


class Stated(NamedTuple):
    """A threshold, and the rate that it promises for other people."""

    threshold: float
    far: Interval
    num_people: int

    def in_words(self) -> str:
        """The promise in a sentence."""
        value, low, high = (100 * end for end in self.far)
        reach = "no interval of so few" if np.isnan(low) else f"for other people between {low:.2g} and {high:.2g} %"
        return (
            f"The threshold is that of a rate of false accepts, from {self.num_people:,} strangers: {value:.2g} % of "
            f"them pass, {reach}."
        )


def check(config: ConfigDict) -> None:
    """Refuses a rate without strangers, and strangers without a rate."""
    fields.counts(config, "max_images", minimum=2)
    fields.counts(config, "num_resamples")
    if config.far is not None:
        checks.between("config.far", config.far, 0.0, 1.0, closed_low=False, closed_high=False)
    if (config.far is None) != (config.strangers.root is None):
        raise ValueError(
            "a threshold for a rate of false accepts needs both --config.far=0.01 and --config.strangers.root, known "
            "people who are in no fit and not in your data, such as test/test.npz of a run of experiments.verifier."
        )


def load(config: ConfigDict, model: Verifier, others: dict[str, Vectors]) -> Vectors:
    """The strangers; people who are in the other sets of the run are refused by name."""
    strangers = inputs.load_vectors(config.strangers, model.steps)
    for name, each in others.items():
        sides = {"strangers": strangers, name: each}
        overlap.refuse_shared_people(**{side: overlap.Known(v.x, v.ids, v.names) for side, v in sides.items()})
    return strangers


def of_pairs(config: ConfigDict, model: Verifier, strangers: Vectors) -> Stated:
    """The threshold of pairs, from all pairs of two strangers; the interval resamples people.

    At most `max_images` images of a person, as in the evidence of a verifier.
    """
    rows = pairs.limited(strangers.ids, max_rows=config.max_images)
    ids = strangers.ids[rows]
    z = verifier.encode_vectors(model, jnp.asarray(strangers.x[rows]))
    trial = pairs.all_pairs(ids)
    _refuse_one_kind(trial.is_same)
    scores = np.asarray(verifier.score_matrix(model, z, z))[trial.first, trial.second]
    threshold = metrics.threshold_at_far(metrics.roc(scores, trial.is_same), config.far)
    found = metrics.subject_bootstrap(
        scores,
        trial.is_same,
        ids[trial.first],
        ids[trial.second],
        rng=np.random.default_rng(config.seed),
        num_resamples=config.num_resamples,
        band_far=(),
        threshold=threshold,
    )
    assert found.far_there is not None
    return Stated(float(threshold), found.far_there, found.num_people)


def of_gallery(config: ConfigDict, model: Verifier, enrolled: Gallery, strangers: Vectors) -> Stated:
    """The threshold of identification among these enrolled people, from the best evidence of each stranger."""
    z = verifier.encode_vectors(model, jnp.asarray(strangers.x))
    best = verifier.identify(model, enrolled, z, prior=config.prior).evidence
    found = metrics.stranger_threshold(best, strangers.ids, far=config.far)
    return Stated(found.threshold, found.far, found.num_people)


def _refuse_one_kind(is_same: np.ndarray) -> None:
    if is_same.all() or not is_same.any():
        raise ValueError(
            "the strangers must be known people, several of them with two images or more; all their pairs are of "
            f"{'one person' if is_same.all() else 'two people'}."
        )
