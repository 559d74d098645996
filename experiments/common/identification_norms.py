"""Who of many by normalised scores: the best of a gallery by the ratio, by s-norms, and by the evidence.

An s-norm takes the mean and the spread of the scores that the enrolled person and the probe each have against
strangers: in closed form from the model, or from the nearest people of a cohort (adaptive). The largest of many scores
decides here, far out in the tail of the strangers, where a mean and a spread say little: so every rule takes its
threshold from the same strangers, and is judged by others.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxface import joint_bayes, verifier
from jaxface.metrics import normalization
from jaxface.metrics.normalization import CohortMoments
from jaxface.verifier import Gallery, Verifier

EVIDENCE, RATIO, CLOSED, ADAPTIVE = "evidence", "ratio", "s-norm in closed form", "adaptive s-norm"


class BestScores(NamedTuple):
    """The best of a gallery for each probe, by one rule."""

    person: np.ndarray  # int [q], row of the gallery
    score: np.ndarray  # [q]


def best(
    model: Verifier, gallery: Gallery, probes: np.ndarray, cohort: np.ndarray, *, num_best: int | None
) -> dict[str, BestScores]:
    """The best people for probes `[q, r]` by every rule; the cohort `[c, r]` shows strangers to both sides.

    `num_best` of the cohort count for the adaptive norm, at most all of them.
    """
    basis = joint_bayes.diagonalize(model.model)
    scores = _ratios(basis, gallery, probes)
    closed = [
        _moments(joint_bayes.stranger_moments(basis, *each))
        for each in ((gallery.sums, gallery.counts), (jnp.asarray(probes),))
    ]
    number = min(len(cohort), len(cohort) if num_best is None else num_best)
    alone = verifier.Gallery(jnp.asarray(probes), np.ones(len(probes), np.int32))
    adaptive = [
        normalization.cohort_moments(_ratios(basis, side, cohort), num_best=number) for side in (gallery, alone)
    ]
    answer = verifier.identify(model, gallery, probes, prior=0.5)
    return {
        EVIDENCE: BestScores(answer.person, answer.evidence),
        RATIO: _best(scores),
        CLOSED: _best(normalization.s_norm(scores, *closed)),
        ADAPTIVE: _best(normalization.s_norm(scores, *adaptive)),
    }


def _ratios(basis: joint_bayes.ScoringBasis, gallery: Gallery, probes: np.ndarray) -> np.ndarray:
    ones = np.ones(len(probes), np.int32)
    return np.asarray(
        joint_bayes.set_llr_matrix(basis, gallery.sums, gallery.counts, jnp.asarray(probes), ones), np.float64
    )


def _moments(found: joint_bayes.StrangerMoments) -> CohortMoments:
    return CohortMoments(*(np.asarray(each, np.float64) for each in found))


def _best(scores: np.ndarray) -> BestScores:
    person = scores.argmax(axis=0)
    return BestScores(person, scores[person, np.arange(scores.shape[1])])
