"""Fusion rules: log posteriors of the members `[m, ..., c]` to one answer `[..., c]`.

All but `vote` return `log P(c | x)`, normalised. Where a rule leaves no class possible, all become equally likely. NaN
in one member is NaN in the answer. `predict` names the class, the lowest label among equals. `weighted` has weights
learnt on held-out images. Every rule but `weighted` is a `Fold`: it can be read after each member, as `growth` does.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo, loops, search
from jaxface.core.fitinfo import FitInfo, Status

__all__ = ["Rule", "fit_weights", "max", "median", "min", "predict", "product", "sum", "vote", "weighted"]

Rule = Callable[[jax.Array], jax.Array]  # log posteriors [m, ..., c] of the members to one answer [..., c]


class Fold(NamedTuple):
    """A rule one member at a time: `start` of all log posteriors `[m, ..., c]`, `add` one member, `answer` so far."""

    start: Callable[[jax.Array], Any]
    add: Callable[[Any, jax.Array], Any]
    answer: Callable[[Any], jax.Array]

    def __call__(self, log_posteriors: jax.Array) -> jax.Array:
        """The answer after all members, added in order: XLA's own sums depend on the number of lanes."""
        checks.floating(log_posteriors=log_posteriors)
        checks.at_least("number of members", log_posteriors.shape[0], 1)
        return _fold(self, log_posteriors)


@partial(jax.jit, static_argnames="rule")
def _fold(rule: Fold, log_posteriors: jax.Array) -> jax.Array:
    state, _ = jax.lax.scan(lambda state, one: (rule.add(state, one), None), rule.start(log_posteriors), log_posteriors)
    return rule.answer(state)


class Total(NamedTuple):
    """The sum `exp(shift) scaled` of `P_t` over some members."""

    scaled: jax.Array  # [..., c], sum of exp(log P_t - shift)
    shift: jax.Array  # [..., c], the largest log P_t so far


class Ballot(NamedTuple):
    """Votes so far, and the sum that settles their ties."""

    votes: jax.Array  # [..., c]
    total: Total


class Ranking(NamedTuple):
    """Members in ascending order, with infinity at the places not taken yet."""

    ascending: jax.Array  # [m, ..., c]
    number: jax.Array | int  # of members so far


def nothing(one: jax.Array) -> Total:
    """The sum over no members, whose posteriors are like those of `one` `[..., c]`."""
    checks.floating(log_posteriors=one)
    return Total(jnp.zeros_like(one), jnp.full_like(one, float(jnp.finfo(one.dtype).min)))


def add(total: Total, one: jax.Array) -> Total:
    """The sum with the posteriors `[..., c]` of one more member."""
    shift = jnp.maximum(total.shift, one)
    return Total(total.scaled * jnp.exp(total.shift - shift) + jnp.exp(one - shift), shift)


def mean(total: Total) -> jax.Array:
    """`log P` of the sum, normalised."""
    return normalize(jnp.log(total.scaled) + total.shift)


def sum(log_posteriors: jax.Array) -> jax.Array:
    """`P = 1/T sum_t P_t`."""
    return _SUM(log_posteriors)


def product(log_posteriors: jax.Array) -> jax.Array:
    """`P` proportional to `prod_t P_t`, as a sum of logarithms: a product of 400 factors underflows."""
    return _PRODUCT(log_posteriors)


def min(log_posteriors: jax.Array) -> jax.Array:
    """`P` proportional to `min_t P_t`; the minima themselves do not sum to one."""
    return _MIN(log_posteriors)


def max(log_posteriors: jax.Array) -> jax.Array:
    """`P` proportional to `max_t P_t`."""
    return _MAX(log_posteriors)


def median(log_posteriors: jax.Array) -> jax.Array:
    """`P` proportional to the median over t of P_t, the mean of the middle two when T is even."""
    return _middle(Ranking(jnp.sort(log_posteriors, axis=0), log_posteriors.shape[0]))


def vote(log_posteriors: jax.Array) -> jax.Array:
    """Score: votes minus the winner's votes; ties are broken by the sum rule's posterior.

    Each member votes for its likeliest class, the lowest label among equals.
    """
    return _VOTE(log_posteriors)


def weighted(log_posteriors: jax.Array, member_weights: ArrayLike) -> jax.Array:
    """`P = sum_t w_t P_t` with weights `[m]` that are at least 0 and sum to one."""
    checks.floating(log_posteriors=log_posteriors, member_weights=member_weights)
    checks.shapes(member_weights=(member_weights, str(log_posteriors.shape[0])))
    checks.between("member_weights", member_weights, 0.0, jnp.inf, closed_high=False)
    shape = (-1,) + (1,) * (log_posteriors.ndim - 1)
    return normalize(logsumexp(log_posteriors, axis=0, b=jnp.reshape(member_weights, shape)))


def fit_weights(
    log_posteriors: ArrayLike, labels: ArrayLike, *, num_iters: int, tol: float = 0.0
) -> tuple[jax.Array, FitInfo]:
    """Weights `[m]` that maximise the mean `log sum_t w_t P_t(label)` of held-out images, by EM from equal weights.

    The problem is concave, so the start does not matter, and every step ascends: `w_t` becomes the mean share of member
    t in the posterior of the right class. Images are left out if every member gives their class the probability 0. If
    none is left, the weights stay equal and the status is UNIDENTIFIED. Held-out people must be enrolled first
    (`lda_member.enroll`).
    """
    sizes = checks.shapes(log_posteriors=(log_posteriors, "m n c"), labels=(labels, "n"))
    checks.floating(log_posteriors=log_posteriors)
    checks.between("log_posteriors", log_posteriors, -math.inf, math.inf, closed_high=False)  # NaN is not
    checks.at_least("number of members", sizes["m"], 1)
    checks.at_least("number of images", sizes["n"], 1)
    labels = checks.dense_labels("labels", labels, sizes["c"])
    return _fit_weights(jnp.asarray(log_posteriors), jnp.asarray(labels), num_iters=num_iters, tol=tol)


@partial(jax.jit, static_argnames=("num_iters", "tol"))
def _fit_weights(
    log_posteriors: jax.Array, labels: jax.Array, *, num_iters: int, tol: float
) -> tuple[jax.Array, FitInfo]:
    m = log_posteriors.shape[0]
    right = jnp.take_along_axis(log_posteriors, labels[None, :, None], axis=2)[:, :, 0]
    # An image of probability 0 under every member says nothing about the weights.
    counts = ~jnp.isneginf(right).all(axis=0)
    number = jnp.maximum(counts.sum(dtype=right.dtype), 1)
    is_identified = counts.any()

    def update(log_weights: jax.Array) -> tuple[jax.Array, jax.Array]:
        joint = log_weights[:, None] + jnp.where(counts[None, :], right, 0)
        evidence = logsumexp(joint, axis=0)
        shares = jnp.where(counts[None, :], joint - evidence[None, :], -jnp.inf)
        weights = jnp.where(is_identified, logsumexp(shares, axis=1) - jnp.log(number), log_weights)
        return weights, jnp.where(counts, evidence, 0).sum() / number

    log_weights, trace = loops.iterate(update, jnp.full(m, -math.log(m), right.dtype), num_iters=num_iters, tol=tol)
    is_lost = jnp.isnan(log_posteriors).any()
    cases = (is_lost, Status.NON_FINITE), (~is_identified, Status.UNIDENTIFIED)
    status = fitinfo.diagnose(*cases, otherwise=trace.status)
    return jnp.exp(log_weights), fitinfo.iterative(status=status, num_iters=trace.num_iters, objective=trace.objective)


def predict(fused: jax.Array) -> jax.Array:
    """The class with the largest entry of `[..., c]`, the lowest label among equals; int32.

    NaN names no class: it is refused, and gives -1 under a transformation.
    """
    checks.at_least("number of classes", checks.shapes(fused=(fused, "... c"))["c"], 1)
    checks.floating(fused=fused)
    if checks.is_concrete(fused) and (lost := int(np.isnan(np.asarray(fused)).any(axis=-1).sum())):
        raise ValueError(f"fused must be free of NaN to name a class; {lost} answers hold NaN. Leave those images out.")
    return _winner(fused)


def votes(log_posteriors: jax.Array) -> jax.Array:
    """One-hot votes `[..., c]` of posteriors `[..., c]`; NaN where a posterior holds NaN."""
    winner = _winner(log_posteriors)
    vote = jax.nn.one_hot(winner, log_posteriors.shape[-1], dtype=log_posteriors.dtype)
    return jnp.where((winner < 0)[..., None], jnp.nan, vote)


def vote_scores(count: jax.Array, fused: jax.Array) -> jax.Array:
    """Votes `[..., c]` relative to the winner's, with ties settled by log posteriors `[..., c]`."""
    return (count - count.max(axis=-1, keepdims=True)) + jnp.exp(fused)


def normalize(log_p: jax.Array) -> jax.Array:
    """`log P` with `sum_c P_c = 1` over the last axis; uniform where every class is impossible."""
    checks.floating(log_posteriors=log_p)
    possible = (~jnp.isneginf(log_p)).any(axis=-1, keepdims=True)
    return jax.nn.log_softmax(jnp.where(possible, log_p, 0), axis=-1)


def _winner(scores: jax.Array) -> jax.Array:
    return jnp.where(jnp.isnan(scores).any(axis=-1), -1, search.first_min(-scores)).astype(jnp.int32)


def _from(neutral: float) -> Callable[[jax.Array], jax.Array]:
    return lambda log_posteriors: jnp.full_like(log_posteriors[0], neutral)


def _add_vote(ballot: Ballot, one: jax.Array) -> Ballot:
    return Ballot(ballot.votes + votes(one), add(ballot.total, one))


def _insert(ranking: Ranking, one: jax.Array) -> Ranking:
    below = jnp.concatenate([jnp.full_like(one, -jnp.inf)[None], ranking.ascending[:-1]])
    return Ranking(jnp.clip(one[None], below, ranking.ascending), ranking.number + 1)


def _middle(ranking: Ranking) -> jax.Array:
    ascending, number = ranking
    middle = jnp.logaddexp(ascending[(number - 1) // 2], ascending[number // 2])
    return normalize(jnp.where(jnp.isnan(ascending[-1]), jnp.nan, middle))  # NaN sorts last


_SUM = Fold(lambda log_posteriors: nothing(log_posteriors[0]), add, mean)
_PRODUCT = Fold(_from(0.0), jnp.add, normalize)
_MIN = Fold(_from(jnp.inf), jnp.minimum, normalize)
_MAX = Fold(_from(-jnp.inf), jnp.maximum, normalize)
_VOTE = Fold(
    start=lambda log_posteriors: Ballot(_from(0.0)(log_posteriors), nothing(log_posteriors[0])),
    add=_add_vote,
    answer=lambda ballot: vote_scores(ballot.votes, mean(ballot.total)),
)
# `median` sorts all members at once; inserting them one by one gives the same order.
_MEDIAN = Fold(
    start=lambda log_posteriors: Ranking(jnp.full_like(log_posteriors, jnp.inf), jnp.zeros((), jnp.int32)),
    add=_insert,
    answer=_middle,
)
FOLDS: dict[Rule, Fold] = {sum: _SUM, product: _PRODUCT, min: _MIN, max: _MAX, median: _MEDIAN, vote: _VOTE}
