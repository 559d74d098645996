"""The E-step, elementwise in a basis in which both covariances are diagonal.

With `V' T_eps V = I`, `V' T_mu V = diag(l)` and `z = V'ybar`, the posterior of a person with m images of mean ybar is

    E[mu] = V^-T (m l / (1 + m l)) z        Cov[mu] = Cov[eps_j] = V^-T diag(l / (1 + m l)) V^-1

and `eps_ij = (x_ij - ybar) + (ybar - mu)`. No number of images needs an inverse of its own. V has no derivative if two
values are equal, so `grad` treats the model as a constant.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks
from jaxface.joint_bayes.model import JointBayes
from jaxface.joint_bayes.stats import GroupedStats, numbers_of_images, rows_about
from jaxface.linalg import products, psd, spectral
from jaxface.linalg.spectral import PairBasis

__all__ = ["EStep", "approximate", "full"]

_BLOCK_SIZE = 4096  # rows at a time, where there are more


class Moments(NamedTuple):
    """Posterior second moments, summed, about the mean of the model."""

    mean: jax.Array  # [d], of the model
    identity: jax.Array  # [d, d], sum over people of E[mu mu']
    noise: jax.Array  # [d, d], sum over images of E[eps eps']
    num_people: jax.Array  # []
    num_images: jax.Array  # []


class RowSums(NamedTuple):
    """Sums over the rows of statistics, in the basis."""

    identity: jax.Array  # [d, d], of E[mu] E[mu]'
    noise: jax.Array  # [d, d], of m (ybar - E[mu]) (ybar - E[mu])'
    between: jax.Array  # [], of m z^2 / (1 + m l)


EStep = Callable[[JointBayes, GroupedStats], tuple[Moments, jax.Array]]  # `full` or `approximate`


def full(model: JointBayes, stats: GroupedStats) -> tuple[Moments, jax.Array]:
    """Moments with posterior covariances, and the log-likelihood at `model`."""
    return _e_step(model, stats, with_covariance=True)


def approximate(model: JointBayes, stats: GroupedStats) -> tuple[Moments, jax.Array]:
    """The paper's form (3): means only. EM then descends (6), not the likelihood, and degenerates with few images."""
    return _e_step(model, stats, with_covariance=False)


def identity(model: JointBayes, total: ArrayLike, count: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean `[d]` and covariance `[d, d]` of mu for a person with `count` images that sum to `total` `[d]`.

    Differentiable in `total`; the model is treated as a constant.
    """
    checks.floating(total=total)
    model, count = jax.lax.stop_gradient(model), numbers_of_images("count", count)
    basis = diagonal_basis(model)
    z = (jnp.asarray(total) - count * model.mean) @ basis.vectors
    shrunk = basis.values / (1 + count * basis.values)
    return (shrunk * z) @ basis.inverse, basis.inverse.T @ (shrunk[:, None] * basis.inverse)


def diagonal_basis(model: JointBayes) -> PairBasis:
    """V and l of the model; values that rounding makes negative are set to zero, since T_mu is semidefinite."""
    basis = spectral.diagonalize_pair(model.identity_cov, model.noise_cov)
    return basis._replace(values=jnp.maximum(basis.values, 0))


def _e_step(model: JointBayes, stats: GroupedStats, *, with_covariance: bool) -> tuple[Moments, jax.Array]:
    model = jax.lax.stop_gradient(model)
    stats = stats._replace(
        count=numbers_of_images("the count of stats", stats.count),
        row_count=numbers_of_images("the row_count of stats", stats.row_count),
    )
    basis = diagonal_basis(model)
    # Statistics are stored as columns here, so that the moments are row-major products (see linalg.products).
    whitened_basis = products.transposed_copy(basis.vectors)
    identity_moment, noise_moment, between = _row_sums(basis, stats, model.mean, whitened_basis)
    if with_covariance:
        values = basis.values[:, None]
        spread = values / (1 + stats.count[None, :] * values)  # [d, g]
        identity_moment += jnp.diag(spread @ stats.num_people)
        noise_moment += jnp.diag(spread @ (stats.num_people * stats.count))
    moments = Moments(
        mean=model.mean,
        identity=_from_basis(identity_moment, basis),
        noise=stats.within + _from_basis(noise_moment, basis),
        num_people=stats.num_people.sum(),
        num_images=(stats.num_people * stats.count).sum(),
    )
    return moments, _log_likelihood(basis, stats, whitened_basis, between)


def _row_sums(basis: PairBasis, stats: GroupedStats, mean: jax.Array, whitened_basis: jax.Array) -> RowSums:
    """All rows at once, or many in blocks that stay in the cache of a CPU."""
    values = basis.values[:, None]

    def sums(rows: jax.Array, row_count: jax.Array) -> RowSums:
        z = whitened_basis @ rows.T  # [d, r]
        residual = z / (1 + row_count[None, :] * values)  # ybar - E[mu]
        mu = row_count[None, :] * values * residual
        eps = jnp.sqrt(row_count)[None, :] * residual  # m images share the offset
        return RowSums(mu @ mu.T, eps @ eps.T, (z * residual).sum(axis=0) @ row_count)

    if len(stats.rows) <= _BLOCK_SIZE:
        return sums(rows_about(stats, mean), stats.row_count)

    def add(total: RowSums, block: tuple[jax.Array, jax.Array, jax.Array], valid: jax.Array) -> RowSums:
        rows = rows_about(stats._replace(rows=block[0], row_unit=block[1]), mean)
        found = sums(rows, jnp.where(valid, block[2], 0))  # a row of no images adds nothing
        return RowSums(*(a + b for a, b in zip(total, found, strict=True)))

    nothing = jnp.zeros_like(whitened_basis)
    zero = RowSums(nothing, nothing, nothing[0, 0])
    return blocks.fold_rows(add, zero, (stats.rows, stats.row_unit, stats.row_count), block_size=_BLOCK_SIZE)


def _from_basis(moment: jax.Array, basis: PairBasis) -> jax.Array:
    """`V^-T M V^-1`, with V^-1 = Q'L' of the Cholesky factor and never a product with T_eps."""
    return psd.symmetrize(basis.inverse.T @ moment @ basis.inverse)


def _log_likelihood(basis: PairBasis, stats: GroupedStats, whitened_basis: jax.Array, between: jax.Array) -> jax.Array:
    """`-1/2 [k d log 2 pi + k log|T_eps| + tr V'S_w V + sum_ij log(1 + m_i l_j) + m_i z_ij^2 / (1 + m_i l_j)]`."""
    d = len(whitened_basis)
    num_images = (stats.num_people * stats.count).sum()
    couplings = stats.num_people @ jnp.log1p(stats.count[:, None] * basis.values[None, :]).sum(axis=1)
    within = ((whitened_basis @ stats.within) * whitened_basis).sum()
    constant = num_images * d * jnp.log(jnp.asarray(2 * jnp.pi, between.dtype))
    return -(constant + num_images * basis.log_det + couplings + within + between) / 2
