"""What a committee gains over its members: the errors E_av and E_com, their correlation, and accuracy as it grows.

For classification the truth h(x) is one-hot, `P_t(. | x) = h(x) + e_t(x)`, and with `C_ij = E[e_i(x)'e_j(x)]`

    E_av = 1/T sum_t C_tt      E_com = 1/T^2 sum_ij C_ij = E_av / T + 1/T^2 sum_{i != j} C_ij = E_av - ambiguity

where E_com is the error of the sum rule and the ambiguity `1/T sum_t E|P_t - P|^2` is never negative: in
squared error a committee is never worse than its average member, whatever the correlations. In 0-1 error it can be.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, messages
from jaxface.ensembles import fusion
from jaxface.ensembles.fusion import Rule

__all__ = ["Diagnosis", "Growth", "diagnose", "growth"]


class Diagnosis(NamedTuple):
    """Squared (Brier) errors of members and committee."""

    products: jax.Array  # [m, m], C, mean products of errors
    average_error: jax.Array  # [], E_av
    committee_error: jax.Array  # [], E_com
    ambiguity: jax.Array  # [], E_av - E_com: the gain by the diversity of the members
    correlation: jax.Array  # [m, m], C_ij / sqrt(C_ii C_jj), not centred; 0 for a member without error
    mean_correlation: jax.Array  # [], over i != j; NaN for one member


class Growth(NamedTuple):
    """The first T members, T = 1..m."""

    average_error: jax.Array  # [m], E_av
    committee_error: jax.Array  # [m], E_com of the sum rule
    accuracy: jax.Array  # [m], of the rule


def diagnose(log_posteriors: ArrayLike, labels: ArrayLike) -> Diagnosis:
    """Errors of log posteriors `[m, n, c]` at images with known labels `[n]`."""
    labels = _checked_labels(log_posteriors, labels)
    c = _products(jnp.asarray(log_posteriors), jnp.asarray(labels))
    m = c.shape[0]
    average, together = jnp.diagonal(c).mean(), c.mean()
    length = jnp.sqrt(jnp.diagonal(c))
    inverse = jnp.where(length > 0, 1 / jnp.where(length > 0, length, 1), 0)
    correlation = c * inverse[:, None] * inverse[None, :]
    others = correlation.sum() - jnp.diagonal(correlation).sum()
    mean = others / (m * (m - 1)) if m > 1 else jnp.full_like(others, jnp.nan)
    return Diagnosis(c, average, together, average - together, correlation, mean)


def growth(log_posteriors: ArrayLike, labels: ArrayLike, *, rule: Rule = fusion.sum) -> Growth:
    """Errors and accuracy of the first T members for all T, in one pass over log posteriors `[m, n, c]`.

    `rule` is one of `fusion`; for `weighted` add the logarithms of the weights to the posteriors and take `sum`. Ties
    are settled as `predict` settles them after the rule. NaN in the posteriors of an image is NaN in the accuracy.
    """
    labels = _checked_labels(log_posteriors, labels)
    if rule not in fusion.FOLDS:
        names = ", ".join(f"fusion.{known.__name__}" for known in fusion.FOLDS)
        raise ValueError(f"rule must be one of {names}; got {messages.describe(rule)}.")
    return _growth(jnp.asarray(log_posteriors), jnp.asarray(labels), rule=rule)


@partial(jax.jit, static_argnames="rule")
def _growth(log_posteriors: jax.Array, labels: jax.Array, *, rule: Rule) -> Growth:
    c = _products(log_posteriors, labels)
    size = jnp.arange(1, c.shape[0] + 1, dtype=c.dtype)
    within = jnp.diagonal(jnp.cumsum(jnp.cumsum(c, axis=0), axis=1))
    fold = fusion.FOLDS[rule]

    def add(state: Any, one: jax.Array) -> tuple[Any, jax.Array]:
        state = fold.add(state, one)
        predicted = fusion.predict(fold.answer(state))
        return state, jnp.where(predicted < 0, jnp.nan, predicted == labels).mean(dtype=c.dtype)

    _, accuracy = jax.lax.scan(add, fold.start(log_posteriors), log_posteriors)
    return Growth(jnp.cumsum(jnp.diagonal(c)) / size, within / size**2, accuracy)


def _products(log_posteriors: jax.Array, labels: jax.Array) -> jax.Array:
    """C `[m, m]`, the mean over images of `e_i'e_j`."""
    truth = jax.nn.one_hot(labels, log_posteriors.shape[2], dtype=log_posteriors.dtype)
    errors = jnp.exp(log_posteriors) - truth[None]
    flat = errors.reshape(errors.shape[0], -1)
    return flat @ flat.T / labels.shape[0]


def _checked_labels(log_posteriors: ArrayLike, labels: ArrayLike) -> ArrayLike:
    sizes = checks.shapes(log_posteriors=(log_posteriors, "m n c"), labels=(labels, "n"))
    checks.floating(log_posteriors=log_posteriors)
    checks.at_least("number of members", sizes["m"], 1)
    checks.at_least("number of images", sizes["n"], 1)
    return checks.dense_labels("labels", labels, sizes["c"])
