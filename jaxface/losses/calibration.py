"""Affine calibration: `LLR = slope * score + offset`, by logistic regression on the scores of held-out people.

A model fitted to other people is over-confident on new ones: its ratios rank well and mean too much. Two numbers mend
that; people used here count as training people in every comparison.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo, machine
from jaxface.core.fitinfo import FitInfo
from jaxface.core.pytree import params
from jaxface.linalg import scaling
from jaxface.losses.minimization import minimize
from jaxface.losses.scores import array_of, labelled, pairwise_logistic

__all__ = ["Affine", "calibrate", "fit", "identity", "probability"]


@params
class Affine:
    """Calibrated score: `slope * score + offset`, the slope positive."""

    slope: jax.Array  # []
    offset: jax.Array  # []


def identity(dtype: jnp.dtype) -> Affine:
    """The calibration that changes nothing."""
    return Affine(slope=jnp.ones((), dtype), offset=jnp.zeros((), dtype))


def calibrate(calibration: Affine, scores: ArrayLike) -> jax.Array:
    """`slope * scores + offset`, any shape."""
    scores = array_of(scores)
    checks.floating(scores=scores)
    scores = jnp.asarray(scores)
    return calibration.slope * scores + calibration.offset


def probability(llr: jax.Array, *, prior: float) -> jax.Array:
    """`P(same person | score)` at a stated prior: the logistic function of LLR + logit(prior)."""
    checks.floating(llr=llr)
    checks.between("prior", prior, 0.0, 1.0, closed_low=False, closed_high=False)
    return jax.nn.sigmoid(llr + jnp.log(prior) - jnp.log1p(-prior))


def fit(
    scores: ArrayLike, is_same: ArrayLike, *, prior: float = 0.5, ridge: float = 1e-4, num_iters: int = 50
) -> tuple[Affine, FitInfo]:
    """Logistic regression of `is_same` `[p]` on `scores` `[p]` at a stated prior.

    The scores are standardised inside; `ridge` on the squared slope there keeps it finite when the two kinds do not
    overlap. The slope stays positive: calibration does not turn a score around. Scores may have any unit.
    """
    scores, is_same = labelled(scores, is_same)
    checks.finite(scores=scores)
    checks.between("prior", prior, 0.0, 1.0, closed_low=False, closed_high=False)
    checks.between("ridge", ridge, 0.0, jnp.inf, closed_high=False)
    power = scaling.exponent(scores)
    scores = scaling.shifted(scores, -power)
    center, spread = scores.mean(), scores.std()
    # Of equal scores rounding alone is left, and a slope that magnifies it.
    rounding = 8 * machine.eps(scores.dtype) * jnp.abs(scores).max()
    spread = jnp.where(spread > rounding, spread, 1)
    start = (jnp.zeros((), scores.dtype), jnp.zeros((), scores.dtype))
    data = ((scores - center) / spread, is_same, jnp.asarray(prior, scores.dtype), jnp.asarray(ridge, scores.dtype))
    (log_slope, offset), info = minimize(_loss, start, data, num_iters=num_iters)
    slope = jnp.exp(log_slope) / spread
    found = Affine(slope=scaling.shifted(slope, -power), offset=offset - slope * center)
    return found, info._replace(status=fitinfo.or_non_finite(info.status, (scores, found)))


def _loss(free: tuple[jax.Array, jax.Array], data: tuple[jax.Array, ...]) -> jax.Array:
    log_slope, offset = free
    scores, is_same, prior, ridge = data
    slope = jnp.exp(log_slope)
    return pairwise_logistic(slope * scores + offset, is_same, prior=prior) + ridge * slope**2
