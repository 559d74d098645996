"""Affine calibration: `LLR = slope * score + offset`, by logistic regression on the scores of held-out people.

A model is over-confident on people that it was not fitted to: its ratios rank pairs well but are too large. Two numbers
correct this. The people that fit them count as training people in every comparison.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from jaxface.core import checks, fitinfo, machine
from jaxface.core.fitinfo import FitInfo
from jaxface.core.pytree import params
from jaxface.linalg import scaling
from jaxface.losses.minimization import minimize
from jaxface.losses.scores import array_of, labeled, pairwise_logistic, weights_of

__all__ = ["Affine", "calibrate", "fit", "neutral", "probability"]


@params
class Affine:
    """Calibrated score: `slope * score + offset`, the slope positive."""

    slope: jax.Array  # []
    offset: jax.Array  # []


def neutral(dtype: DTypeLike) -> Affine:
    """The calibration that leaves scores unchanged: slope 1 and offset 0."""
    return Affine(slope=jnp.ones((), dtype), offset=jnp.zeros((), dtype))


def calibrate(calibration: Affine, scores: ArrayLike) -> jax.Array:
    """`slope * scores + offset`, any shape."""
    scores = array_of(scores)
    checks.floating(scores=scores)
    scores = jnp.asarray(scores)
    return calibration.slope * scores + calibration.offset


def probability(llr: ArrayLike, *, prior: float) -> jax.Array:
    """`P(same person | score)` at a stated prior: the logistic function of LLR + logit(prior), any shape."""
    llr = array_of(llr)
    checks.floating(llr=llr)
    checks.between("prior", prior, 0.0, 1.0, closed_low=False, closed_high=False)
    return jax.nn.sigmoid(jnp.asarray(llr) + jnp.log(prior) - jnp.log1p(-prior))


def fit(
    scores: ArrayLike,
    is_same: ArrayLike,
    *,
    prior: float = 0.5,
    ridge: float = 1e-4,
    num_iters: int = 50,
    tol: float = 0.0,
    sample_weights: ArrayLike | None = None,
) -> tuple[Affine, FitInfo]:
    """Logistic regression of `is_same` `[p]` on `scores` `[p]` at a stated prior.

    The scores are standardised first; `ridge` on the squared slope keeps it finite if the two kinds do not overlap. The
    slope is positive: calibration does not reverse the order of scores. Scores may have any unit.

    num_iters, tol: steps of L-BFGS; with `tol > 0` it ends when the loss changes by less, relative to its value.
    sample_weights: how much each pair counts within its kind `[p]`; a pair of weight zero has no influence.
    """
    scores, is_same = labeled(scores, is_same)
    checks.finite(scores=scores)
    checks.between("prior", prior, 0.0, 1.0, closed_low=False, closed_high=False)
    checks.between("ridge", ridge, 0.0, jnp.inf, closed_high=False)
    weights = None if sample_weights is None else weights_of(sample_weights, scores)
    counted = scores if weights is None else jnp.where(weights > 0, scores, 0)
    power = scaling.exponent(counted)
    scores, counted = scaling.shifted(scores, -power), scaling.shifted(counted, -power)
    center = counted.mean() if weights is None else (weights * counted).sum() / weights.sum()
    spread = counted.std() if weights is None else jnp.sqrt((weights * (counted - center) ** 2).sum() / weights.sum())
    # If all scores are equal, their spread is rounding; do not divide by it.
    rounding = 8 * machine.eps(scores.dtype) * jnp.abs(counted).max()
    spread = jnp.where(spread > rounding, spread, 1)
    start = (jnp.zeros((), scores.dtype), jnp.zeros((), scores.dtype))
    settings = jnp.asarray(prior, scores.dtype), jnp.asarray(ridge, scores.dtype)
    data = ((scores - center) / spread, is_same, *settings, weights)
    (log_slope, offset), info = minimize(_loss, start, data, num_iters=num_iters, tol=tol)
    slope = jnp.exp(log_slope) / spread
    affine = Affine(slope=scaling.shifted(slope, -power), offset=offset - slope * center)
    return affine, info._replace(status=fitinfo.or_non_finite(info.status, (scores, affine)))


def _loss(free: tuple[jax.Array, jax.Array], data: tuple[Any, ...]) -> jax.Array:
    log_slope, offset = free
    scores, is_same, prior, ridge, weights = data
    slope = jnp.exp(log_slope)
    cost = pairwise_logistic(slope * scores + offset, is_same, prior=prior, sample_weights=weights)
    return cost + ridge * slope**2
