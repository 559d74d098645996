"""Sets of images with weights: the sums that determine their scores, and the score that is differentiable everywhere.

A set is the weighted sum s of its centred images and the sum Q of its weights: without weights the number of images.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.core.blocks import each_row
from jaxface.joint_bayes.counts import checked_weights
from jaxface.joint_bayes.model import JointBayes
from jaxface.joint_bayes.scores import ScoringBasis, project
from jaxface.linalg import psd

__all__ = ["SetSums", "llr_of_sets", "set_sums"]


class SetSums(NamedTuple):
    """What `set_llr` and `set_llr_matrix` take of sets; sums of disjoint sets of a person add."""

    sum: jax.Array  # [g, r], of weighted projections
    weight: jax.Array  # [g], sum of weights, or the number of images


def set_sums(
    basis: ScoringBasis, x: ArrayLike, ids: ArrayLike, *, num_sets: int, weights: ArrayLike | None = None
) -> SetSums:
    """The sums of sets from images x `[n, d]` and the set `[n]` of each, -1 for rows to leave out.

    `weights` `[n]` are precisions, as in `stats.collect`. A set without images has the score 0 against any other.
    """
    checks.samples(x=(x, "n d"), beside={"ids": (ids, "n"), "mean": (basis.mean, "d")})
    ids = jnp.asarray(checks.dense_labels("ids", ids, num_sets, padding=True))
    z = each_row(project, basis, jnp.asarray(x))
    if weights is None:
        q = jnp.ones(len(z), z.dtype)
    else:
        checks.shapes(x=(x, "n d"), weights=(weights, "n"))
        q = checked_weights("weights", weights, z.dtype)
    q = jnp.where(ids >= 0, q, 0)
    place = jnp.where(ids >= 0, ids, num_sets)
    sums, weight = (jax.ops.segment_sum(each, place, num_sets + 1)[:-1] for each in (q[:, None] * z, q))
    return SetSums(sums, weight)


def llr_of_sets(
    model: JointBayes,
    first: ArrayLike,
    second: ArrayLike,
    *,
    first_weights: ArrayLike | None = None,
    second_weights: ArrayLike | None = None,
) -> jax.Array:
    """Log-likelihood ratio of two sets of images `[m, d]` and `[n, d]`, by Cholesky.

    The weights `[m]` and `[n]` are precisions, 1 by default; an image of weight 0 is left out, so that sets of
    different sizes fit into arrays of one shape. Differentiable in the model, the images and the weights, also at zero.
    """
    checks.samples(first=(first, "m d"), second=(second, "n d"), beside={"mean": (model.mean, "d")})
    one = _weighted_sum("first_weights", model, jnp.asarray(first), first_weights)
    other = _weighted_sum("second_weights", model, jnp.asarray(second), second_weights)
    both = jax.tree.map(jnp.add, one, other)
    return _evidence(model, *both) - _evidence(model, *one) - _evidence(model, *other)


def _weighted_sum(name: str, model: JointBayes, x: jax.Array, weights: ArrayLike | None) -> tuple[jax.Array, jax.Array]:
    """`sum q (x - mean)` and `sum q`."""
    if weights is None:
        q = jnp.ones(len(x), x.dtype)
    else:
        checks.shapes(**{name: (weights, str(len(x)))})
        q = checked_weights(name, weights, x.dtype)
    return q @ (x - model.mean[None, :]), q.sum()


def _evidence(model: JointBayes, total: jax.Array, weight: jax.Array) -> jax.Array:
    """`1/2 [s'T_eps^-1 T_mu (T_eps + Q T_mu)^-1 s - log|T_eps + Q T_mu| + log|T_eps|]`, without a division by Q."""
    cov = model.noise_cov + weight * model.identity_cov
    explained = psd.solve(model.noise_cov, total) @ (model.identity_cov @ psd.solve(cov, total))
    return (explained - psd.log_det(cov) + psd.log_det(model.noise_cov)) / 2
