"""Somebody enrolled, or a stranger? A calibration of identification, fitted to identification itself.

The ratios of pairs are calibrated where genuine and impostor pairs overlap. Whether a probe shows anybody of N people
is decided by the best of N ratios, far out in the tail of the impostors, where that calibration says little: with deep
embeddings it calls half of the enrolled people unknown. So the task is played with people that are in no other fit:
some are enrolled, the others are strangers, and a logistic regression finds the evidence

    log(exp(floor) + exp(slope * ratio - crowd * log N + offset))

from the ratio of each enrolled person to a photo of theirs, and from the best ratio of each stranger. It is fitted for
one enrolled photo, for two, and so on, and to galleries of several sizes N, which `crowd` tells apart. The floor is the
logarithm of the share of photos that show nothing recognisable, or the wrong person. Without it a few of them would
make the slope so small that nobody is named.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo
from jaxface.core.fitinfo import FitInfo
from jaxface.core.labels import dense
from jaxface.losses import pairwise_logistic
from jaxface.losses.minimization import minimize
from jaxface.verifier.model import Presence, Verifier
from jaxface.verifier.score import Gallery, score_sets

__all__ = ["FEWEST", "fit_presence"]

FEWEST = 10  # people with enough photos: fewer make no gallery
_SHARES = (8, 4, 2)  # of these people one in so many is enrolled
_NUM_ITERS = 60
_SETTLED = 1e-6  # relative change of the loss
_RIDGE = 1e-3  # keeps the slope finite if the two kinds do not overlap
_FLOOR = -5.0  # where the fit of the floor starts, and what few data leave it at


class Played(NamedTuple):
    """Probes of many games."""

    ratio: np.ndarray  # [p], of the mate, or the best one of a stranger
    log_size: np.ndarray  # [p], of the gallery
    is_enrolled: np.ndarray  # bool [p]
    weight: np.ndarray  # [p], equal sums for both kinds in every gallery, or the size would tell who is enrolled


def fit_presence(
    verifier: Verifier,
    coordinates: ArrayLike,
    ids: ArrayLike,
    *,
    rng: np.random.Generator,
    most_photos: int = 4,
    num_rounds: int = 8,
) -> tuple[Verifier, FitInfo]:
    """The verifier with a `presence` fitted to coordinates `[n, r]` of people that are in no other fit.

    ids: who is shown `[n]`; people with one photo are strangers.
    most_photos: the largest number of enrolled photos with a fit of its own; with fewer than ten people who have a
        photo more than that, the fit ends earlier.
    num_rounds: draws of galleries and photos for each number.
    """
    checks.samples(coordinates=(coordinates, "n r"), beside={"ids": (ids, "n")})
    checks.at_least("most_photos", most_photos, 1)
    checks.at_least("num_rounds", num_rounds, 1)
    people = dense(np.asarray(ids)).ids
    counts = np.bincount(people)
    numbers = [n for n in range(1, most_photos + 1) if np.count_nonzero(counts > n) >= FEWEST]
    if not numbers:
        raise ValueError(
            f"the fit of presence needs {FEWEST} people with two photos or more; got "
            f"{np.count_nonzero(counts > 1)} of {counts.size}. Give more people."
        )
    points = np.asarray(coordinates)
    games = [_play(verifier, points, people, n, rng=rng, num_rounds=num_rounds) for n in numbers]
    return _fitted(verifier, games)


def _play(
    verifier: Verifier,
    points: np.ndarray,
    people: np.ndarray,
    num_photos: int,
    *,
    rng: np.random.Generator,
    num_rounds: int,
) -> Played:
    """Galleries of several sizes, with `num_photos` photos of each person."""
    parts: list[Played] = []
    counts = np.bincount(people)
    candidates = np.flatnonzero(counts > num_photos)
    for _ in range(num_rounds):
        rows = np.lexsort((rng.random(people.size), people))  # shuffled within each person
        start = np.concatenate([[0], np.cumsum(counts)[:-1]])
        enrolled = rows[start[candidates, None] + np.arange(num_photos)]  # [c, num_photos]
        probes = rows[start + np.where(counts > num_photos, num_photos, 0)]  # one of each person
        gallery = Gallery(jnp.asarray(points[enrolled].sum(axis=1)), np.full(candidates.size, num_photos))
        alone = Gallery(jnp.asarray(points[probes]), np.ones(probes.size, int))
        scores = np.asarray(score_sets(verifier, gallery, alone))
        for size in sorted({max(candidates.size // share, 2) for share in _SHARES}):
            chosen = rng.permutation(candidates.size)[:size]
            parts.append(_gallery(scores[chosen], candidates[chosen]))
    return Played(*(np.concatenate(field) for field in zip(*parts, strict=True)))


def _gallery(scores: np.ndarray, enrolled: np.ndarray) -> Played:
    """The probes of everybody `[q]` against some enrolled people, from ratios `[size, q]`."""
    mates = scores[np.arange(enrolled.size), enrolled]
    best = np.delete(scores.max(axis=0), enrolled)
    sizes = [mates.size, best.size]
    log_size = np.full(sum(sizes), np.log(enrolled.size))
    weight = np.repeat(np.divide(1.0, sizes), sizes)
    return Played(np.concatenate([mates, best]), log_size, np.repeat([True, False], sizes), weight)


def _fitted(verifier: Verifier, games: list[Played]) -> tuple[Verifier, FitInfo]:
    """One regression for each number of photos; probes of weight zero make the arrays equally long."""
    longest = max(len(game.ratio) for game in games)
    dtype = verifier.calibration.slope.dtype

    def padded(name: str) -> jax.Array:
        values = [np.asarray(getattr(game, name)) for game in games]
        return jnp.asarray([np.pad(each, (0, longest - len(each))) for each in values], dtype)

    presence, info = _fit_all(*map(padded, Played._fields))
    status = fitinfo.or_non_finite(fitinfo.worst(*info.status), presence)
    return dataclasses.replace(verifier, presence=presence), info._replace(
        status=status,
        num_iters=info.num_iters.max(),
        objective=info.objective.mean(axis=0),
        rank=info.rank[0],
        jitter=info.jitter.max(),
        num_replaced=info.num_replaced.sum(),
    )


@jax.jit
def _fit_all(
    ratio: jax.Array, log_size: jax.Array, is_enrolled: jax.Array, weight: jax.Array
) -> tuple[Presence, FitInfo]:
    """Regressions `[m]` of probes `[m, p]`."""
    return jax.vmap(_fit_one)(ratio, log_size, is_enrolled, weight)


def _fit_one(
    ratio: jax.Array, log_size: jax.Array, is_enrolled: jax.Array, weight: jax.Array
) -> tuple[Presence, FitInfo]:
    """Logistic regression of probes `[p]` with standardised ratios, both kinds counting alike."""
    center = (weight * ratio).sum() / weight.sum()
    spread = jnp.sqrt((weight * (ratio - center) ** 2).sum() / weight.sum())
    spread = jnp.where(spread > 0, spread, 1)
    zero = jnp.zeros((), ratio.dtype)
    data = ((ratio - center) / spread, log_size, is_enrolled, weight)
    start = (zero, jnp.ones_like(zero), zero, zero + _FLOOR)
    (log_slope, crowd, offset, floor), info = minimize(_loss, start, data, num_iters=_NUM_ITERS, tol=_SETTLED)
    slope = jnp.exp(log_slope) / spread
    return Presence(slope=slope, crowd=crowd, offset=offset - slope * center, floor=floor), info


def _loss(free: tuple[jax.Array, ...], data: tuple[jax.Array, ...]) -> jax.Array:
    log_slope, crowd, offset, floor = free
    ratio, log_size, is_enrolled, weight = data
    scores = jnp.logaddexp(floor, jnp.exp(log_slope) * ratio - crowd * log_size + offset)
    cost = pairwise_logistic(scores, is_enrolled, prior=0.5, sample_weights=weight)
    return cost + _RIDGE * (log_slope**2 + crowd**2 + (floor - _FLOOR) ** 2)
