"""The scores of one image or set against images of strangers, without a cohort: z-norm for a Joint Bayes score.

A stranger's coordinates in the diagonal basis are `t ~ N(0, I + diag(l))`. With `v = 1 + l`, `p_m = l / (1 + m l)` and
`a = (p_(m + 1) - p_1) / 2` the log-likelihood ratio of t and a set of m images that sum to s has

    mean      sum (p_(m + 1) - p_m) s^2 / 2 + a v + [log(1 + l) + log(1 + m l) - log(1 + (m + 1) l)] / 2
    variance  sum 2 a^2 v^2 + p_(m + 1)^2 s^2 v

the limit of the moments over a cohort as it grows.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.joint_bayes.scores import ScoringBasis

__all__ = ["StrangerMoments", "stranger_moments"]


class StrangerMoments(NamedTuple):
    """Of the log-likelihood ratios in nats of each image and a random stranger."""

    mean: jax.Array  # [n]
    spread: jax.Array  # [n], standard deviation


def stranger_moments(basis: ScoringBasis, sums: ArrayLike, counts: ArrayLike | None = None) -> StrangerMoments:
    """Moments of the scores of coordinates `[n, r]`, of `project`, against images of strangers from the model.

    With `counts` `[n]` the rows are sums of the coordinates of so many images, or weighted sums and sums of weights.
    `metrics.normalization` takes the moments in the place of those over a cohort. Differentiable in the sums.
    """
    checks.shapes(sums=(sums, "n r"), values=(basis.values, "r"))
    checks.floating(sums=sums)
    squares, values = jnp.asarray(sums) ** 2, jax.lax.stop_gradient(basis.values)[None, :]
    m = jnp.ones((len(squares), 1), squares.dtype)
    if counts is not None:
        checks.shapes(sums=(sums, "n r"), counts=(counts, "n"))
        checks.between("counts", counts, 0.0, math.inf, closed_high=False)
        m = jnp.asarray(counts, squares.dtype)[:, None]
    v, p1, own, joint = 1 + values, *(values / (1 + k * values) for k in (1, m, m + 1))
    a = (joint - p1) / 2
    logs = jnp.log1p(values) + jnp.log1p(m * values) - jnp.log1p((m + 1) * values)
    mean = ((joint - own) * squares / 2 + a * v + logs / 2).sum(axis=1)
    variance = (2 * (a * v) ** 2 + joint**2 * squares * v).sum(axis=1)
    return StrangerMoments(mean, jnp.sqrt(variance))
