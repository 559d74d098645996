"""Who a probe shows among enrolled people, or nobody of them: by tiles of a gallery of any size.

The people with the most evidence come from `core.search.top_k`, and the probability of the best one from a second pass
that adds up the evidence for all others. No matrix of scores `[g, q]` is kept.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface import joint_bayes
from jaxface.core import blocks, checks, search
from jaxface.joint_bayes import ScoringBasis
from jaxface.losses import calibration
from jaxface.losses.calibration import Affine
from jaxface.verifier.model import Presence, Verifier
from jaxface.verifier.score import Gallery, basis_of

__all__ = ["Identification", "identify"]

_PROBES = 1024  # a block of probes
_PEOPLE = 1024  # a tile of the gallery
_ROWS = 64 * _PEOPLE  # of the gallery on the device at a time


class Identification(NamedTuple):
    """The most probable person of each probe, and those who come next."""

    person: np.ndarray  # int32 [q], row of the gallery; -1 for a probe with NaN
    evidence: np.ndarray  # [q], log-likelihood ratio in nats of this person of the gallery against a stranger
    probability: np.ndarray  # [q], that the probe shows this person
    is_named: np.ndarray  # bool [q], whether the evidence reaches the threshold
    threshold: float  # least evidence of a probe that is named
    candidates: search.Best  # rows [q, k] of the gallery with the most evidence, and their evidence


class Crowd(NamedTuple):
    """What turns the coordinates of a probe and of enrolled people into evidence."""

    basis: ScoringBasis
    calibration: Affine
    presence: Presence | None
    log_size: jax.Array  # [], of the gallery


def identify(
    verifier: Verifier,
    gallery: Gallery,
    probes: ArrayLike,
    *,
    prior: float,
    threshold: float | None = None,
    num_best: int = 1,
) -> Identification:
    """The most probable enrolled person of each probe `[q, r]`, and whether "nobody" is more probable.

    prior: probability that a probe shows somebody enrolled, the same for each person.
    threshold: least evidence of a probe that is named; by default that at which the person and "nobody" are equally
        probable. `metrics.stranger_threshold` gives one for a rate of false names.
    num_best: how many people are listed for each probe.
    """
    checks.between("prior", prior, 0.0, 1.0, closed_low=False, closed_high=False)
    checks.at_least("num_best", num_best, 1)
    sizes = checks.shapes(probes=(probes, "q r"), sums=(gallery.sums, "g r"), counts=(gallery.counts, "g"))
    crowd = _crowd(verifier, sizes["g"])
    people, alone = _with_counts(gallery.sums, gallery.counts), _with_counts(probes, np.ones(sizes["q"]))
    best = search.top_k(_evidence, crowd, people, alone, num_best=num_best)
    person, evidence = best.rows[:, 0], best.scores[:, 0].astype(np.float64)
    log_odds = math.log(prior) - math.log1p(-prior)  # of somebody enrolled against a stranger
    others = _others(crowd, people, alone, person) + log_odds
    with np.errstate(invalid="ignore"):  # a probe with NaN
        probability = np.exp(evidence + log_odds - np.logaddexp(0, np.logaddexp(evidence + log_odds, others)))
    least = -log_odds if threshold is None else threshold
    return Identification(person, evidence, probability, evidence >= least, least, best)


def _crowd(verifier: Verifier, num_people: int) -> Crowd:
    log_size = jnp.asarray(math.log(num_people), verifier.calibration.slope.dtype)
    return Crowd(basis_of(verifier), verifier.calibration, verifier.presence, log_size)


def _with_counts(sums: ArrayLike, counts: np.ndarray) -> np.ndarray:
    """Rows `[n, r + 1]` of sums of coordinates and the number of images."""
    host = np.asarray(sums)
    return np.concatenate([host, counts[:, None].astype(host.dtype)], axis=1)


def _evidence(crowd: Crowd, people: jax.Array, probes: jax.Array) -> jax.Array:
    """Log-likelihood ratios `[t, p]` in nats of "this person, one of N" against "a stranger".

    Without a fitted `presence` they are the ratios less log N: a priori each of the N people is equally probable.
    """
    return _recognized(crowd, people, probes, with_floor=True)


def _recognized(crowd: Crowd, people: jax.Array, probes: jax.Array, *, with_floor: bool) -> jax.Array:
    """The evidence, with or without what is owed to photos that show nothing recognisable."""
    counts, one = people[:, -1], jnp.ones((), probes.dtype)
    raw = joint_bayes.same_size_llr_matrix(crowd.basis, people[:, :-1], counts, probes[:, :-1], one)
    scores = calibration.calibrate(crowd.calibration, raw)
    if crowd.presence is None:
        return scores - crowd.log_size
    entry = jnp.clip(counts.astype(jnp.int32), 1, crowd.presence.slope.shape[0]) - 1
    slope, per_log, offset, floor = (
        jnp.asarray(part)[entry, None].astype(scores.dtype)
        for part in (crowd.presence.slope, crowd.presence.crowd, crowd.presence.offset, crowd.presence.floor)
    )
    found = slope * scores - per_log * crowd.log_size + offset
    return jnp.logaddexp(floor, found) if with_floor else found


def _others(crowd: Crowd, people: np.ndarray, probes: np.ndarray, best: np.ndarray) -> np.ndarray:
    """The log of the added evidence `[q]` for everybody but the best person.

    The floor is left out: a photo that shows nothing recognisable is explained once, with the best person.
    """
    size = -(-len(probes) // blocks.num_blocks(len(probes), _PROBES))
    asked = [jnp.asarray(x) for x, _ in blocks.padded_batches(probes, block_size=size)]
    taken = [jnp.asarray(x) for x, _ in blocks.padded_batches(best, block_size=size)]
    totals = [jnp.full(size, -jnp.inf, x.dtype) for x in asked]
    places = np.arange(len(people), dtype=np.int32)
    for start in range(0, len(people), _ROWS):
        part = jnp.asarray(people[start : start + _ROWS]), jnp.asarray(places[start : start + _ROWS])
        totals = [_added(crowd, part, *each) for each in zip(asked, taken, totals, strict=True)]
    return np.concatenate([np.asarray(total, np.float64) for total in totals])[: len(probes)]


@jax.jit
def _added(
    crowd: Crowd, part: tuple[jax.Array, jax.Array], probes: jax.Array, best: jax.Array, total: jax.Array
) -> jax.Array:
    """The log total `[p]` after the people of a part and their places in the gallery."""

    def step(total: jax.Array, tile: tuple[jax.Array, jax.Array], is_new: jax.Array) -> jax.Array:
        people, place = tile
        found = _recognized(crowd, people, probes, with_floor=False)
        is_counted = is_new[:, None] & (place[:, None] != best[None, :])
        return jnp.logaddexp(total, jax.nn.logsumexp(jnp.where(is_counted, found, -jnp.inf), axis=0))

    return blocks.fold_rows(step, total, part, block_size=_PEOPLE)
