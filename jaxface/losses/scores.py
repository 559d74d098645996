"""Proper losses of log-likelihood ratios in nats; both kinds of pairs must occur."""

import math

import jax
import jax.numpy as jnp


def pairwise_logistic(scores: jax.Array, is_same: jax.Array, *, prior: jax.Array | float) -> jax.Array:
    """Cross-entropy in nats at a stated prior of "same person".

    `prior mean_same log(1 + e^-(s + t)) + (1 - prior) mean_different log(1 + e^(s + t))`, `t = logit(prior)`. The two
    kinds are averaged apart, so the proportion of genuine pairs in a sample has no influence.
    """
    threshold = jnp.log(prior) - jnp.log1p(-prior)
    same = is_same.astype(scores.dtype)
    cost_same = _mean(jax.nn.softplus(-(scores + threshold)), same)
    cost_different = _mean(jax.nn.softplus(scores + threshold), 1 - same)
    return prior * cost_same + (1 - prior) * cost_different


def cllr(scores: jax.Array, is_same: jax.Array) -> jax.Array:
    """`1/2 [mean_same log2(1 + e^-s) + mean_different log2(1 + e^s)]`, in bits: 0 is perfect, 1 knows nothing."""
    return pairwise_logistic(scores, is_same, prior=0.5) / math.log(2)


def _mean(cost: jax.Array, weight: jax.Array) -> jax.Array:
    # A pair of no weight must not pass NaN or infinity on, in value or gradient.
    return jnp.where(weight > 0, cost, 0).sum() / weight.sum()
