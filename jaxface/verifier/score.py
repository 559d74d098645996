"""From coordinates to calibrated ratios and names; differentiable in the coordinates but not in the verifier."""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface import joint_bayes
from jaxface.core import blocks, checks
from jaxface.joint_bayes import ScoringBasis
from jaxface.losses import calibration
from jaxface.verifier.model import Verifier

__all__ = ["Gallery", "Identification", "enroll", "identify", "score_matrix", "score_pairs", "score_sets"]

BLOCK_SIZE = 65_536  # pairs in flight
_MOST_SCORES = 2**24  # of an identification, at a time


class Gallery(NamedTuple):
    """Sets of images, each of one person: the sums and counts that determine their scores."""

    sums: jax.Array  # [g, r], of coordinates
    counts: np.ndarray  # int [g]


class Identification(NamedTuple):
    """The most probable person of each probe."""

    person: np.ndarray  # int32 [q], row of the gallery
    evidence: np.ndarray  # [q], log-likelihood ratio in nats of this person of the gallery against a stranger
    probability: np.ndarray  # [q], that the probe shows this person
    is_named: np.ndarray  # bool [q], whether the evidence reaches the threshold
    threshold: float  # least evidence of a probe that is named


def enroll(coordinates: ArrayLike, ids: ArrayLike, *, num_people: int) -> Gallery:
    """One set for each person from coordinates `[n, r]` and dense ids `[n]`; every person needs at least one row."""
    checks.shapes(coordinates=(coordinates, "n r"), ids=(ids, "n"))
    checks.floating(coordinates=coordinates)
    ids = checks.dense_labels("ids", ids, num_people)
    checks.every_label("ids", ids, num_people)
    sums = jax.ops.segment_sum(jnp.asarray(coordinates), jnp.asarray(ids), num_people)
    return Gallery(sums, np.bincount(np.asarray(ids), minlength=num_people))


def score_pairs(
    verifier: Verifier, coordinates: ArrayLike, first: ArrayLike, second: ArrayLike, *, block_size: int = BLOCK_SIZE
) -> jax.Array:
    """Scores `[p]` of pairs of rows of coordinates `[n, r]`; work and memory grow with the pairs alone."""
    sizes = checks.shapes(coordinates=(coordinates, "n r"), first=(first, "p"), second=(second, "p"))
    checks.floating(coordinates=coordinates)
    rows = [checks.dense_labels(name, each, sizes["n"]) for name, each in (("first", first), ("second", second))]
    index = jnp.stack([jnp.asarray(each) for each in rows], axis=1)
    return _score_pairs(verifier, jnp.asarray(coordinates), index, block_size=block_size)


@partial(jax.jit, static_argnames="block_size")
def _score_pairs(verifier: Verifier, coordinates: jax.Array, index: jax.Array, *, block_size: int) -> jax.Array:
    verifier = jax.lax.stop_gradient(verifier)
    basis = joint_bayes.diagonalize(verifier.model)
    one = jnp.ones((), coordinates.dtype)

    def score(pair: jax.Array) -> jax.Array:
        return joint_bayes.set_llr(basis, coordinates[pair[0]], one, coordinates[pair[1]], one)

    return calibration.calibrate(verifier.calibration, blocks.map_rows(score, index, block_size=block_size))


def score_matrix(verifier: Verifier, gallery: ArrayLike, probes: ArrayLike) -> jax.Array:
    """Scores `[g, q]` of coordinates of single images `[g, r]` and `[q, r]`, by one GEMM."""
    checks.shapes(gallery=(gallery, "g r"), probes=(probes, "q r"))
    verifier = jax.lax.stop_gradient(verifier)
    raw = joint_bayes.score_projections(_basis(verifier), jnp.asarray(gallery), jnp.asarray(probes))
    return calibration.calibrate(verifier.calibration, raw)


def score_sets(verifier: Verifier, gallery: Gallery, probes: Gallery) -> jax.Array:
    """Scores `[g, q]` of sets with any numbers of images."""
    raw = joint_bayes.set_llr_matrix(_basis(verifier), gallery.sums, gallery.counts, probes.sums, probes.counts)
    return calibration.calibrate(verifier.calibration, raw)


def identify(
    verifier: Verifier, gallery: Gallery, probes: ArrayLike, *, prior: float, threshold: float | None = None
) -> Identification:
    """The most probable enrolled person of each probe `[q, r]`, and whether "nobody" is more probable.

    prior: probability that a probe shows somebody enrolled, the same for each person.
    threshold: least evidence of a probe that is named; by default that at which the person and "nobody" are equally
        probable. `metrics.stranger_threshold` gives one for a rate of false names.
    """
    checks.between("prior", prior, 0.0, 1.0, closed_low=False, closed_high=False)
    sizes = checks.shapes(probes=(probes, "q r"))
    least = math.log1p(-prior) - math.log(prior) if threshold is None else threshold
    size = min(sizes["q"], max(1, _MOST_SCORES // len(gallery.counts)))
    parts = blocks.padded_batches(np.asarray(probes), block_size=size)
    answers = [_named(verifier, gallery, block, prior) for block, _ in parts]
    person, best, probability = (np.concatenate(each)[: sizes["q"]] for each in zip(*answers, strict=True))
    return Identification(person, best, probability, best >= least, least)


def _named(verifier: Verifier, gallery: Gallery, probes: np.ndarray, prior: float) -> tuple[np.ndarray, ...]:
    """The person, the evidence and the probability of each of a block of probes."""
    alone = Gallery(jnp.asarray(probes), np.ones(len(probes), np.int32))
    found = evidence(verifier, gallery, score_sets(verifier, gallery, alone))
    person = found.argmax(axis=0).astype(np.int32)
    place = (person, np.arange(found.shape[1]))
    return person, found[place], posterior(found, prior=prior)[place]


def evidence(verifier: Verifier, gallery: Gallery, scores: ArrayLike) -> np.ndarray:
    """Log-likelihood ratios `[g, q]` in nats of "this person, one of N" against "a stranger", of ratios `[g, q]`.

    Without a fitted `presence` they are the ratios less log N: a priori each of the N people is equally probable.
    """
    found, presence = np.asarray(scores, np.float64), verifier.presence
    crowd = math.log(len(found))
    if presence is None:
        return found - crowd
    entry = np.minimum(gallery.counts, len(presence.slope)) - 1
    parts = (presence.slope, presence.crowd, presence.offset, presence.floor)
    slope, per_log, offset, floor = (np.asarray(each, np.float64)[entry, None] for each in parts)
    return np.logaddexp(floor, slope * found - per_log * crowd + offset)


def posterior(evidence: np.ndarray, *, prior: float) -> np.ndarray:
    """Probability `[g, q]` of each person from the evidence; `prior` is that of somebody enrolled."""
    log_odds = evidence + math.log(prior) - math.log1p(-prior)  # against a stranger
    return np.exp(log_odds - np.logaddexp(0, np.logaddexp.reduce(log_odds, axis=0)))


@jax.jit
def _basis(verifier: Verifier) -> ScoringBasis:
    return joint_bayes.diagonalize(verifier.model)
