"""Proper losses of log-likelihood ratios in nats; pairs of one person and of two must both occur."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks

__all__ = ["cllr", "pairwise_logistic"]


def pairwise_logistic(
    scores: ArrayLike, is_same: ArrayLike, *, prior: jax.Array | float, sample_weights: ArrayLike | None = None
) -> jax.Array:
    """Cross-entropy in nats at a stated prior of "same person", of scores and labels `[p]`.

    `prior mean_same log(1 + e^-(s + t)) + (1 - prior) mean_different log(1 + e^(s + t))`, `t = logit(prior)`. Each kind
    is averaged separately, so the proportion of genuine pairs in a sample has no influence. `sample_weights` `[p]` say
    how much each pair counts within its kind.
    """
    scores, same = labeled(scores, is_same)
    checks.between("prior", prior, 0.0, 1.0, closed_low=False, closed_high=False)
    prior = jnp.asarray(prior, scores.dtype)
    threshold = jnp.log(prior) - jnp.log1p(-prior)
    same = same.astype(scores.dtype)
    counted, counted_different = same, 1 - same
    if sample_weights is not None:
        weights = weights_of(sample_weights, scores)
        counted, counted_different = weights * same, weights * (1 - same)
    cost_same = _mean(jax.nn.softplus(-(scores + threshold)), counted)
    cost_different = _mean(jax.nn.softplus(scores + threshold), counted_different)
    return prior * cost_same + (1 - prior) * cost_different


def cllr(scores: ArrayLike, is_same: ArrayLike) -> jax.Array:
    """`1/2 [mean_same log2(1 + e^-s) + mean_different log2(1 + e^s)]`, in bits: 0 is perfect, 1 is uninformative."""
    return pairwise_logistic(scores, is_same, prior=0.5) / math.log(2)


def labeled(scores: ArrayLike, is_same: ArrayLike) -> tuple[jax.Array, jax.Array]:
    """Scores `[p]` and booleans `[p]`, after a check that labels are 0 or 1 and that both occur.

    Under a transformation labels are unknown: the score of a pair with another label becomes NaN.
    """
    scores = array_of(scores)
    checks.shapes(scores=(scores, "p"), is_same=(is_same, "p"))
    checks.floating(scores=scores)
    if checks.is_concrete(is_same):
        is_same = checks.real("is_same", is_same)
        kinds = np.unique(is_same)
        if not np.isin(kinds, (0, 1)).all():
            raise ValueError(f"is_same must be True or False, or 1 or 0; got {kinds[~np.isin(kinds, (0, 1))][0]!s}.")
        if kinds.size < 2:
            raise ValueError("is_same must hold pairs of one person and of two; got one kind only.")
    labels = jnp.asarray(is_same)
    return jnp.where((labels == 0) | (labels == 1), jnp.asarray(scores), jnp.nan), labels.astype(bool)


def weights_of(sample_weights: ArrayLike, scores: jax.Array) -> jax.Array:
    """Weights `[p]` of scores `[p]`, in their type, after a check that none is negative."""
    checks.shapes(scores=(scores, "p"), sample_weights=(sample_weights, "p"))
    checks.between("sample_weights", sample_weights, 0.0, math.inf, closed_high=False)
    return jnp.asarray(sample_weights, scores.dtype)


def array_of(scores: ArrayLike) -> ArrayLike:
    """An array as it is; a list as a NumPy array."""
    return scores if hasattr(scores, "dtype") else np.asarray(scores)


def _mean(cost: jax.Array, weights: jax.Array) -> jax.Array:
    # The cost of other pairs may be NaN or infinite and must not reach the sum or its gradient.
    return (weights * jnp.where(weights > 0, cost, 0)).sum() / weights.sum()
