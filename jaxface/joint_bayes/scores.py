"""The score: log p(x1, x2 | one person) - log p(x1, x2 | two people), in nats.

Three forms of one number:
- `llr` by Cholesky: differentiable in x and in the model, right on rank-deficient and proportional covariances;
- `quadratic_form` and `low_rank`: the matrices A and B of (13) and thin factors of them;
- `ScoringBasis`: the diagonal basis, for matrices of scores and for sets; differentiable in x only.

In float32 every form loses about eps times the condition number of T_eps, unless its eigenvectors are the axes: below
1e-4 relative at a condition of 1e3 and 0.01 nat on scores of 10 at 1e5; `quadratic_form` loses most. A basis that is
computed in float64 and cast to float32 is accurate to 1e-4 nat.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.core.pytree import params
from jaxface.joint_bayes import posterior
from jaxface.joint_bayes.model import JointBayes
from jaxface.linalg import psd

__all__ = [
    "ScoringBasis",
    "choose_rank",
    "diagonalize",
    "llr",
    "llr_matrix",
    "low_rank",
    "project",
    "quadratic_form",
    "same_size_llr_matrix",
    "score_projections",
    "set_evidence",
    "set_llr",
    "set_llr_matrix",
    "truncation_bounds",
]


class QuadraticForm(NamedTuple):
    """`2 (LLR - constant) = x1'A x1 + x2'A x2 + x1'B x2` for centred x."""

    a: jax.Array  # [d, d], negative semidefinite
    b: jax.Array  # [d, d], positive semidefinite
    constant: jax.Array  # [], nats


class LowRank(NamedTuple):
    """`A = -F_a F_a'`, `B = F_b F_b'` on the directions kept, and a bound on the cost of the others."""

    factor_a: jax.Array  # [d, r]
    factor_b: jax.Array  # [d, r]
    constant: jax.Array  # []
    error_bound: jax.Array  # [], nats: bound on the mean |LLR - truncated LLR| over pairs from the model


@params
class ScoringBasis:
    """Coordinates `z = V'(x - mean)` in which the covariances of noise and identity are I and diag(values)."""

    mean: jax.Array  # [d]
    vectors: jax.Array  # [d, r]
    values: jax.Array  # [r], descending

    def check(self) -> None:
        """Refuses shapes that do not fit and negative variances; on the host."""
        checks.shapes(mean=(self.mean, "... d"), vectors=(self.vectors, "... d r"), values=(self.values, "... r"))
        checks.between("values", self.values, 0, math.inf)


def llr(model: JointBayes, x1: ArrayLike, x2: ArrayLike) -> jax.Array:
    """Log-likelihood ratio of two images `[d]`.

    On `u = (x1 + x2) / sqrt 2` and `v = (x1 - x2) / sqrt 2` both hypotheses are block diagonal: one person has
    covariances `T_eps + 2 T_mu` and `T_eps`, two people have `U = T_eps + T_mu` twice.
    """
    checks.shapes(mean=(model.mean, "d"), x1=(x1, "d"), x2=(x2, "d"))
    checks.floating(x1=x1, x2=x2)
    x1, x2 = jnp.asarray(x1), jnp.asarray(x2)
    either = model.noise_cov + model.identity_cov
    u, v = math.sqrt(0.5) * (x1 + x2 - 2 * model.mean), math.sqrt(0.5) * (x1 - x2)
    same = psd.log_density(either + model.identity_cov, u) + psd.log_density(model.noise_cov, v)
    return same - psd.log_density(either, u) - psd.log_density(either, v)


def quadratic_form(model: JointBayes) -> QuadraticForm:
    """A and B of (13) and the constant that makes the score a log-likelihood ratio; differentiable in the model."""
    either = psd.symmetrize(model.identity_cov + model.noise_cov)
    eye = jnp.eye(either.shape[0], dtype=either.dtype)
    conditional = either - model.identity_cov @ psd.solve(either, model.identity_cov)
    a = psd.solve(either, eye) - psd.solve(conditional, eye)
    b = psd.solve(model.identity_cov + model.noise_cov / 2, psd.solve(model.noise_cov, model.identity_cov).T)
    constant = (psd.log_det(either) - psd.log_det(conditional)) / 2
    return QuadraticForm(psd.symmetrize(a), psd.symmetrize(b), constant)


def low_rank(model: JointBayes, *, rank: int) -> LowRank:
    """Thin factors on the `rank` leading directions: `A = -V l^2/((1+l)(1+2l)) V'`, `B = V 2l/(1+2l) V'`."""
    checks.at_least("rank", rank, 1)
    basis = diagonalize(model, rank=rank)
    values = basis.values
    scale_a = values / jnp.sqrt((1 + values) * (1 + 2 * values))
    scale_b = jnp.sqrt(2 * values / (1 + 2 * values))
    return LowRank(
        factor_a=basis.vectors * scale_a[None, :],
        factor_b=basis.vectors * scale_b[None, :],
        constant=_constant(values),
        error_bound=truncation_bounds(model)[rank],
    )


def truncation_bounds(model: JointBayes) -> jax.Array:
    """For every rank r, `[d + 1]`: a bound on the mean |LLR - LLR of rank r| over pairs from the model, in nats.

    A direction of value l contributes `p2 (z1 + z2)^2 / 2 - p1 (z1^2 + z2^2) / 2 + c` with `p_m = l / (1 + m l)`; under
    either hypothesis the means of the first two are at most l each, and `c = log(1 + l) - log(1 + 2 l) / 2`.
    """
    values = posterior.diagonal_basis(model).values
    cost = 2 * values + jnp.log1p(values) - jnp.log1p(2 * values) / 2
    beyond = jnp.cumsum(cost[::-1])[::-1]
    return jnp.concatenate([beyond, jnp.zeros(1, beyond.dtype)])


def choose_rank(model: JointBayes, *, tol: float) -> int:
    """The least rank whose truncation bound is at most `tol` nats; on the host."""
    checks.positive("tol", tol)
    bounds = np.asarray(truncation_bounds(model))
    if not np.isfinite(bounds).all():
        raise ValueError(
            "model must be a valid one; its truncation bounds are NaN or infinite, as with NaN in a covariance or a "
            "noise_cov that is not positive definite."
        )
    return int(np.argmax(bounds <= tol))


def diagonalize(model: JointBayes, *, rank: int | None = None) -> ScoringBasis:
    """The diagonal basis, or its `rank` directions with the largest identity variance."""
    d = model.mean.shape[0]
    width = d if rank is None else rank
    checks.at_least("rank", width, 0)
    checks.at_most("rank", width, d, "the dimension")
    basis = posterior.diagonal_basis(model)
    return ScoringBasis(
        mean=jax.lax.stop_gradient(model.mean), vectors=basis.vectors[:, :width], values=basis.values[:width]
    )


def project(basis: ScoringBasis, x: ArrayLike) -> jax.Array:
    """`z = V'(x - mean)` of one image `[d]`: what a gallery stores. A set is the sum of its z and a count."""
    checks.shapes(mean=(basis.mean, "d"), x=(x, "d"))
    checks.floating(x=x)
    return (jnp.asarray(x) - basis.mean) @ basis.vectors


def set_llr(
    basis: ScoringBasis, sum_a: ArrayLike, count_a: jax.Array | float, sum_b: ArrayLike, count_b: jax.Array | float
) -> jax.Array:
    """Log-likelihood ratio of two sets of images, from the sums `[r]` of their projections and their sizes.

    `g(s_a + s_b, m_a + m_b) - g(s_a, m_a) - g(s_b, m_b)`, `g(s, m) = 1/2 sum [l s^2 / (1 + m l) - log(1 + m l)]`.
    Of images with weights the sums are weighted and m is the sum of weights. An empty set has the score 0.
    """
    checks.shapes(values=(basis.values, "r"), sum_a=(sum_a, "r"), sum_b=(sum_b, "r"))
    checks.floating(sum_a=sum_a, sum_b=sum_b)
    for name, count in (("count_a", count_a), ("count_b", count_b)):
        checks.between(name, count, 0.0, math.inf, closed_high=False)
    sum_a, sum_b = jnp.asarray(sum_a), jnp.asarray(sum_b)
    whole = _evidence(basis.values, sum_a + sum_b, count_a + count_b)
    return whole - _evidence(basis.values, sum_a, count_a) - _evidence(basis.values, sum_b, count_b)


def set_evidence(basis: ScoringBasis, sums: ArrayLike, counts: ArrayLike) -> jax.Array:
    """g(s, m) `[g]` of sets with sums of projections `[g, r]` and counts or sums of weights `[g]`.

    `set_llr` of two sets is g of both together less g of each; `cluster.listed` takes g itself.
    """
    checks.shapes(values=(basis.values, "r"), sums=(sums, "g r"), counts=(counts, "g"))
    checks.floating(sums=sums)
    checks.between("counts", counts, 0.0, math.inf, closed_high=False)
    sums = jnp.asarray(sums)
    return _set_evidence(basis.values, sums, jnp.asarray(counts, sums.dtype))


@jax.jit
def _set_evidence(values: jax.Array, sums: jax.Array, counts: jax.Array) -> jax.Array:
    return jax.vmap(_evidence, in_axes=(None, 0, 0))(values, sums, counts)


def llr_matrix(basis: ScoringBasis, gallery: ArrayLike, probes: ArrayLike) -> jax.Array:
    """Scores `[g, q]` of images gallery `[g, d]` and probes `[q, d]`: one GEMM and two rank-one terms."""
    checks.shapes(gallery=(gallery, "g d"), probes=(probes, "q d"), mean=(basis.mean, "d"))
    checks.floating(gallery=gallery, probes=probes)
    return _llr_matrix(basis, jnp.asarray(gallery), jnp.asarray(probes))


@jax.jit
def _llr_matrix(basis: ScoringBasis, gallery: jax.Array, probes: jax.Array) -> jax.Array:
    # Centred before the projection: in float32 a mean far from zero costs its digits afterwards.
    z_gallery, z_probes = ((x - basis.mean[None, :]) @ basis.vectors for x in (gallery, probes))
    return score_projections(basis, z_gallery, z_probes)


def score_projections(basis: ScoringBasis, gallery: ArrayLike, probes: ArrayLike) -> jax.Array:
    """`llr_matrix` `[g, q]` of projected rows `[g, r]` and `[q, r]`; `core.pair_counts` counts scores in this form."""
    checks.shapes(values=(basis.values, "r"), gallery=(gallery, "g r"), probes=(probes, "q r"))
    checks.floating(gallery=gallery, probes=probes)
    gallery, probes = jnp.asarray(gallery), jnp.asarray(probes)
    values = basis.values
    own = -(values**2) / (2 * (1 + values) * (1 + 2 * values))
    cross = (gallery * (values / (1 + 2 * values))[None, :]) @ probes.T
    constant = _constant(values)
    return cross + ((gallery**2) @ own)[:, None] + ((probes**2) @ own)[None, :] + constant


def set_llr_matrix(
    basis: ScoringBasis, sum_a: ArrayLike, count_a: ArrayLike, sum_b: ArrayLike, count_b: ArrayLike
) -> jax.Array:
    """Scores `[g, q]` of sets with any sizes: sums of projections `[g, r]`, `[q, r]` and counts `[g]`, `[q]`.

    One GEMM of width 2 r for each different size among the second sets, so let these be the sets with fewer different
    sizes. The counts must be known: inside `jit`, close over them, or vmap `set_llr`. Counts may be sums of weights
    (`sets.set_sums`); round the weights of many single images to few levels (`quality.rounded`).
    """
    checks.shapes(
        sum_a=(sum_a, "g r"),
        count_a=(count_a, "g"),
        sum_b=(sum_b, "q r"),
        count_b=(count_b, "q"),
        values=(basis.values, "r"),
    )
    checks.floating(sum_a=sum_a, sum_b=sum_b)
    if not (checks.is_concrete(count_a) and checks.is_concrete(count_b)):
        raise ValueError(
            "count_a and count_b must be known outside jit and vmap: sets of one size share a product. Close over "
            "them as NumPy arrays, or vmap set_llr, which takes any counts."
        )
    sum_a, sum_b = jnp.asarray(sum_a), jnp.asarray(sum_b)
    sizes, count_a = (checks.real(*each) for each in (("count_b", count_b), ("count_a", count_a)))
    for name, each in (("count_a", count_a), ("count_b", sizes)):
        checks.between(name, each, 0.0, math.inf, closed_high=False)
    count_a = jnp.asarray(count_a.astype(sum_a.dtype))
    places, blocks = [np.zeros(0, np.int64)], [jnp.zeros((len(sum_a), 0), sum_a.dtype)]
    for size in np.unique(sizes):
        places.append(np.flatnonzero(sizes == size))
        blocks.append(same_size_llr_matrix(basis, sum_a, count_a, sum_b[places[-1]], jnp.asarray(size, sum_a.dtype)))
    return jnp.concatenate(blocks, axis=1)[:, np.argsort(np.concatenate(places))]


@jax.jit
def same_size_llr_matrix(
    basis: ScoringBasis, sum_a: jax.Array, count_a: jax.Array, sum_b: jax.Array, size: jax.Array
) -> jax.Array:
    """`set_llr_matrix` for second sets of one size `[]`, under any transformation: one GEMM of width 2 r.

    `[2 a s, a] . [t, t^2]` and terms of rank one, with `a = l / (2 (1 + (m + size) l))`.
    """
    checks.shapes(values=(basis.values, "r"), sum_a=(sum_a, "g r"), count_a=(count_a, "g"), sum_b=(sum_b, "q r"))
    values = basis.values
    a = values[None, :] / (2 * (1 + (count_a[:, None] + size) * values[None, :]))
    left = jnp.concatenate([2 * a * sum_a, a], axis=1)
    right = jnp.concatenate([sum_b, sum_b**2], axis=1)
    joint = (a * sum_a**2).sum(axis=1) - jnp.log1p((count_a[:, None] + size) * values[None, :]).sum(axis=1) / 2
    alone_a = jax.vmap(_evidence, in_axes=(None, 0, 0))(values, sum_a, count_a)
    alone_b = jax.vmap(_evidence, in_axes=(None, 0, None))(values, sum_b, size)
    return left @ right.T + (joint - alone_a)[:, None] - alone_b[None, :]


def _evidence(values: jax.Array, total: jax.Array, count: Any) -> jax.Array:
    """g(s, m): log-density of a set with one identity, less its terms without identity."""
    precision = 1 + count * values
    return (values * total**2 / precision).sum() / 2 - jnp.log(precision).sum() / 2


def _constant(values: jax.Array) -> jax.Array:
    """The LLR of two images at the mean: `1/2 sum [2 log(1 + l) - log(1 + 2 l)]`."""
    return (jnp.log1p(values) - jnp.log1p(2 * values) / 2).sum()
