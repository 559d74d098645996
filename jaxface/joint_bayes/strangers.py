"""The scores of one image against images of strangers, without a cohort: z-norm for a Joint Bayes score.

A stranger's coordinates in the diagonal basis are `t ~ N(0, I + diag(l))`. With `v = 1 + l`, `p1 = l / (1 + l)`,
`p2 = l / (1 + 2 l)` and `a = (p2 - p1) / 2` the log-likelihood ratio of z and t has

    mean      sum a z^2 + a v + log(1 + l) - log(1 + 2 l) / 2
    variance  sum 2 a^2 v^2 + p2^2 z^2 v

the limit of the moments over a cohort as it grows.
"""

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


def stranger_moments(basis: ScoringBasis, z: ArrayLike) -> StrangerMoments:
    """Moments of the scores of coordinates z `[n, r]`, of `project`, against strangers from the model.

    `metrics.normalization` takes them in the place of the moments over a cohort. Differentiable in z.
    """
    checks.shapes(z=(z, "n r"), values=(basis.values, "r"))
    checks.floating(z=z)
    squares, values = jnp.asarray(z) ** 2, jax.lax.stop_gradient(basis.values)
    v, p1, p2 = 1 + values, values / (1 + values), values / (1 + 2 * values)
    a = (p2 - p1) / 2
    constant = (a * v + jnp.log1p(values) - jnp.log1p(2 * values) / 2).sum()
    variance = squares @ (p2**2 * v) + 2 * ((a * v) ** 2).sum()
    return StrangerMoments(squares @ a + constant, jnp.sqrt(variance))
