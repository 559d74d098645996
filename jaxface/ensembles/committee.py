"""What a committee gains over its members: the errors E_av and E_com, their correlation, and accuracy as it grows.

For classification the truth h(x) is one-hot, `P_t(. | x) = h(x) + e_t(x)`, and with `C_ij = E[e_i(x)'e_j(x)]`

    E_av = 1/T sum_t C_tt      E_com = 1/T^2 sum_ij C_ij = E_av / T + 1/T^2 sum_{i != j} C_ij = E_av - ambiguity

where E_com is the error of the sum rule and the ambiguity `1/T sum_t E|P_t - P|^2` is never negative: in
squared error a committee is never worse than its average member, whatever the correlations. In 0-1 error it can be.

C and the numbers of right answers are sums over images, so all functions take some images at a time. `assess` computes
the posteriors of these images too: 1,000 members on 2,000 images of 200 people never need the array of 400 million.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, messages, pytree
from jaxface.ensembles import fusion
from jaxface.ensembles.fusion import Rule
from jaxface.ensembles.members import check_columns, map_members
from jaxface.ensembles.posteriors import Posterior

__all__ = ["Diagnosis", "Growth", "assess", "diagnose", "growth"]

_ELEMENTS = 2**22  # posteriors in flight, 16 MB of float32


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


class _Sums(NamedTuple):
    """Sums over images."""

    products: jax.Array  # [m, m], of e_i'e_j
    right: jax.Array  # [m], right answers of the first T members; NaN after an image with NaN


def diagnose(log_posteriors: ArrayLike, labels: ArrayLike) -> Diagnosis:
    """Errors of log posteriors `[m, n, c]` at images with known labels `[n]`."""
    labels = _checked_labels(log_posteriors, labels)
    return _diagnose(jnp.asarray(log_posteriors), jnp.asarray(labels))


@jax.jit
def _diagnose(log_posteriors: jax.Array, labels: jax.Array) -> Diagnosis:
    shape, dtype = log_posteriors.shape, log_posteriors.dtype
    return _diagnosed(_sums(_rows_of(log_posteriors), shape, dtype, labels, None).products / len(labels))


def growth(log_posteriors: ArrayLike, labels: ArrayLike, *, rule: Rule = fusion.sum) -> Growth:
    """Errors and accuracy of the first T members for all T, in one pass over log posteriors `[m, n, c]`.

    `rule` is one of `fusion`; for `weighted` add the logarithms of the weights to the posteriors and take `sum`. Ties
    are settled as `predict` settles them after the rule. NaN in the posteriors of an image is NaN in the accuracy.
    """
    labels = _checked_labels(log_posteriors, labels)
    _check_rule(rule)
    return _growth(jnp.asarray(log_posteriors), jnp.asarray(labels), rule=rule)


@partial(jax.jit, static_argnames="rule")
def _growth(log_posteriors: jax.Array, labels: jax.Array, *, rule: Rule) -> Growth:
    shape, dtype = log_posteriors.shape, log_posteriors.dtype
    return _grown(_sums(_rows_of(log_posteriors), shape, dtype, labels, rule), len(labels))


def assess(
    members: Any, x: ArrayLike, labels: ArrayLike, *, posterior: Posterior, rule: Rule = fusion.sum
) -> tuple[Diagnosis, Growth]:
    """`diagnose` and `growth` of the members on images x `[n, p]` with known labels `[n]`, in one pass over the images.

    Beside members and images, memory holds the posteriors of some images at a time and `[m, m]` products of errors.
    """
    sizes = checks.shapes(x=(x, "n p"), labels=(labels, "n"))
    checks.floating(x=x)
    checks.at_least("number of images", sizes["n"], 1)
    check_columns("x", members, x)
    _check_rule(rule)
    x = jnp.asarray(x)
    num_classes = jax.eval_shape(lambda members, x: posterior(pytree.member(members, 0), x), members, x).shape[1]
    labels = checks.dense_labels("labels", labels, num_classes)
    return _assess(members, x, jnp.asarray(labels), posterior=posterior, rule=rule)


@partial(jax.jit, static_argnames=("posterior", "rule"))
def _assess(
    members: Any, x: jax.Array, labels: jax.Array, *, posterior: Posterior, rule: Rule
) -> tuple[Diagnosis, Growth]:
    def of_rows(rows: jax.Array) -> jax.Array:
        return map_members(lambda member: posterior(member, x[rows]), members)

    one = jax.eval_shape(of_rows, jnp.zeros(1, jnp.int32))
    sums = _sums(of_rows, (one.shape[0], len(x), one.shape[2]), one.dtype, labels, rule)
    return _diagnosed(sums.products / len(x)), _grown(sums, len(x))


def _rows_of(log_posteriors: jax.Array) -> Callable[[jax.Array], jax.Array]:
    """Posteriors `[m, b, c]` of consecutive rows of `[m, n, c]`."""
    return lambda rows: jax.lax.dynamic_slice_in_dim(log_posteriors, rows[0], len(rows), axis=1)


def _sums(
    of_rows: Callable[[jax.Array], jax.Array],
    shape: tuple[int, ...],
    dtype: jnp.dtype,
    labels: jax.Array,
    rule: Rule | None,
) -> _Sums:
    """The sums over images, whose posteriors `[m, b, c]` are made for some rows at a time; all are of `shape`.

    Without a rule no answers are counted.
    """
    m, n, c = shape

    def add(total: _Sums, rows: jax.Array, valid: jax.Array) -> _Sums:
        log_p, truth = of_rows(rows), labels[rows]
        errors = jnp.exp(log_p) - jax.nn.one_hot(truth, c, dtype=dtype)[None]
        flat = jnp.where(valid[None, :, None], errors, 0).reshape(m, -1)
        right = total.right if rule is None else total.right + _right(log_p, truth, valid, rule)
        return _Sums(total.products + flat @ flat.T, right)

    nothing = _Sums(jnp.zeros((m, m), dtype), jnp.zeros(m, dtype))
    return blocks.fold_rows(add, nothing, jnp.arange(n, dtype=jnp.int32), block_size=max(1, _ELEMENTS // (m * c)))


def _right(log_p: jax.Array, labels: jax.Array, valid: jax.Array, rule: Rule) -> jax.Array:
    """How many of the valid images `[b]` the first T members name right, `[m]`."""
    fold = fusion.FOLDS[rule]

    def add(state: Any, one: jax.Array) -> tuple[Any, jax.Array]:
        state = fold.add(state, one)
        predicted = fusion.predict(fold.answer(state))
        is_right = jnp.where(predicted < 0, jnp.nan, (predicted == labels).astype(one.dtype))
        return state, jnp.where(valid, is_right, 0).sum()

    return jax.lax.scan(add, fold.start(log_p), log_p)[1]


def _diagnosed(c: jax.Array) -> Diagnosis:
    """What the mean products of errors C `[m, m]` say."""
    m = c.shape[0]
    average, together = jnp.diagonal(c).mean(), c.mean()
    length = jnp.sqrt(jnp.diagonal(c))
    inverse = jnp.where(length > 0, 1 / jnp.where(length > 0, length, 1), 0)
    correlation = c * inverse[:, None] * inverse[None, :]
    others = correlation.sum() - jnp.diagonal(correlation).sum()
    mean = others / (m * (m - 1)) if m > 1 else jnp.full_like(others, jnp.nan)
    return Diagnosis(c, average, together, average - together, correlation, mean)


def _grown(sums: _Sums, num_images: int) -> Growth:
    """What the sums over images say of the first T members."""
    c = sums.products / num_images
    size = jnp.arange(1, c.shape[0] + 1, dtype=c.dtype)
    within = jnp.diagonal(jnp.cumsum(jnp.cumsum(c, axis=0), axis=1))
    return Growth(jnp.cumsum(jnp.diagonal(c)) / size, within / size**2, sums.right / num_images)


def _check_rule(rule: Rule) -> None:
    if rule not in fusion.FOLDS:
        names = ", ".join(f"fusion.{known.__name__}" for known in fusion.FOLDS)
        raise ValueError(f"rule must be one of {names}; got {messages.describe(rule)}.")


def _checked_labels(log_posteriors: ArrayLike, labels: ArrayLike) -> ArrayLike:
    sizes = checks.shapes(log_posteriors=(log_posteriors, "m n c"), labels=(labels, "n"))
    checks.floating(log_posteriors=log_posteriors)
    checks.at_least("number of members", sizes["m"], 1)
    checks.at_least("number of images", sizes["n"], 1)
    return checks.dense_labels("labels", labels, sizes["c"])
