"""The E-step, elementwise in a basis in which both covariances are diagonal.

With `V' T_eps V = I`, `V' T_mu V = diag(l)` and `z = V'ybar`, the posterior of a person with m images of mean ybar is

    E[mu] = V^-T (m l / (1 + m l)) z        Cov[mu] = Cov[eps_j] = V^-T diag(l / (1 + m l)) V^-1

and `eps_ij = (x_ij - ybar) + (ybar - mu)`. No number of images needs an inverse of its own. V has no derivative if two
values are equal, so `grad` treats the model as a constant. Of images with weights m is the sum of weights, ybar the
weighted mean, and the sum of E[eps eps'] a weighted one.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks
from jaxface.joint_bayes.counts import checked_weights, numbers_of_images
from jaxface.joint_bayes.model import JointBayes
from jaxface.joint_bayes.stats import GroupedStats, num_images, rows_about
from jaxface.linalg import distances, products, psd, spectral
from jaxface.linalg.spectral import PairBasis

__all__ = ["EStep", "approximate", "expanded", "full"]

S = TypeVar("S", bound=tuple[jax.Array, ...])

_BLOCK_SIZE = 4096  # rows at a time, where there are more


class Moments(NamedTuple):
    """Posterior second moments, summed, about the mean of the model."""

    mean: jax.Array  # [d], of the model
    identity: jax.Array  # [d, d], sum over people of E[mu mu']
    noise: jax.Array  # [d, d], (weighted) sum over images of E[eps eps']
    num_people: jax.Array  # []
    num_images: jax.Array  # []


EStep = Callable[[JointBayes, GroupedStats], tuple[Moments, jax.Array]]  # `full`, `approximate` or `expanded`


def full(model: JointBayes, stats: GroupedStats) -> tuple[Moments, jax.Array]:
    """Moments with posterior covariances, and the log-likelihood at `model`."""
    return _e_step(model, stats, with_covariance=True)


def approximate(model: JointBayes, stats: GroupedStats) -> tuple[Moments, jax.Array]:
    """The paper's form (3): means only. EM then descends (6), not the likelihood, and degenerates with few images."""
    return _e_step(model, stats, with_covariance=False)


def expanded(model: JointBayes, stats: GroupedStats) -> tuple[Moments, jax.Array]:
    """Moments of `R mu` and of `x - R mu` at their best R: the M-step of PX-EM, for fits without a prior.

    The expanded model is `x = R mu + eps`. At R = I, where the posterior is that of `full`, R is the regression of the
    images on mu: with `H = sum_i m_i E[mu mu']` and `C = sum_ij E[eps mu']` it is `R = I + C H^-1`, and

        sum_i E[R mu mu' R'] = R (sum_i E[mu mu']) R'        sum_ij E[(x - R mu)(...)'] = sum_ij E[eps eps'] - C H^-1 C'

    C is zero at a fixed point of EM, so that both have the same ones. Directions that T_mu lacks come in by rounding
    and then grow: `factors.fit_low_rank` keeps a rank.
    """
    model, stats = jax.lax.stop_gradient(model), whole_numbers(stats)
    basis = diagonal_basis(model)
    whitened_basis = products.transposed_copy(basis.vectors)
    plain, once, twice = powers = _powers(basis, stats, model.mean, whitened_basis, num=3)
    # In units of the deviation of mu, sqrt(l), nothing is divided by an l of zero.
    deviation = jnp.sqrt(basis.values)
    shrunk = 1 / (1 + stats.count[None, :] * basis.values[:, None])  # [d, g]
    of_people, of_images = shrunk @ stats.num_people, shrunk @ (stats.num_people * stats.count)
    latent = deviation[:, None] * once * deviation[None, :] + jnp.diag(of_people)
    weighted = deviation[:, None] * twice * deviation[None, :] + jnp.diag(of_images)
    cross = once * deviation[None, :] - jnp.diag(deviation * of_images)
    gain = psd.solve(weighted, cross.T).T
    root = jnp.diag(deviation) + gain
    identity_moment = root @ latent @ root.T
    noise_moment = plain + jnp.diag(basis.values * of_images) - gain @ cross.T
    moments = _moments(model, stats, basis, identity_moment, noise_moment)
    return moments, _log_likelihood(basis, stats, whitened_basis, powers)


def identity(model: JointBayes, total: ArrayLike, count: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean `[d]` and covariance `[d, d]` of mu for a person with `count` images that sum to `total` `[d]`.

    Of images with weights `total` is the weighted sum and `count` the sum of weights. Differentiable in both; the model
    is treated as a constant.
    """
    checks.floating(total=total)
    model = jax.lax.stop_gradient(model)
    count = checked_weights("count", count, jnp.result_type(total, model.mean))
    basis = diagonal_basis(model)
    z = (jnp.asarray(total) - count * model.mean) @ basis.vectors
    shrunk = basis.values / (1 + count * basis.values)
    return (shrunk * z) @ basis.inverse, basis.inverse.T @ (shrunk[:, None] * basis.inverse)


def diagonal_basis(model: JointBayes) -> PairBasis:
    """V and l of the model; values that rounding makes negative are set to zero, since T_mu is semidefinite."""
    basis = spectral.diagonalize_pair(model.identity_cov, model.noise_cov)
    return basis._replace(values=jnp.maximum(basis.values, 0))


def whole_numbers(stats: GroupedStats) -> GroupedStats:
    """The statistics themselves; counts that are no numbers of images are refused or become NaN.

    If the images have weights, the number of images K must be whole, and sums of weights at least zero.
    """
    if stats.num_images is not None:
        return stats._replace(
            count=checked_weights("the count of stats", stats.count, stats.rows.dtype),
            row_count=checked_weights("the row_count of stats", stats.row_count, stats.rows.dtype),
            num_images=numbers_of_images("the num_images of stats", stats.num_images),
        )
    return stats._replace(
        count=numbers_of_images("the count of stats", stats.count),
        row_count=numbers_of_images("the row_count of stats", stats.row_count),
    )


def _e_step(model: JointBayes, stats: GroupedStats, *, with_covariance: bool) -> tuple[Moments, jax.Array]:
    model, stats = jax.lax.stop_gradient(model), whole_numbers(stats)
    basis = diagonal_basis(model)
    # Statistics are stored as columns here, so that the moments are row-major products (see linalg.products).
    whitened_basis = products.transposed_copy(basis.vectors)
    noise_moment, once = powers = _powers(basis, stats, model.mean, whitened_basis, num=2)
    values = basis.values[:, None]
    identity_moment = values * once * values.T
    if with_covariance:
        spread = values / (1 + stats.count[None, :] * values)  # [d, g]
        identity_moment += jnp.diag(spread @ stats.num_people)
        noise_moment += jnp.diag(spread @ (stats.num_people * stats.count))
    moments = _moments(model, stats, basis, identity_moment, noise_moment)
    return moments, _log_likelihood(basis, stats, whitened_basis, powers)


def _moments(
    model: JointBayes, stats: GroupedStats, basis: PairBasis, identity_moment: jax.Array, noise_moment: jax.Array
) -> Moments:
    """Moments from their sums over rows in the basis."""
    return Moments(
        mean=model.mean,
        identity=_from_basis(identity_moment, basis),
        noise=stats.within + _from_basis(noise_moment, basis),
        num_people=stats.num_people.sum(),
        num_images=num_images(stats),
    )


def _powers(
    basis: PairBasis, stats: GroupedStats, mean: jax.Array, whitened_basis: jax.Array, *, num: int
) -> tuple[jax.Array, ...]:
    """Sums `[d, d]` over the rows of `m^p e e'` in the basis, for p = 0 to num - 1.

    `e = sqrt(m) (ybar - E[mu]) = sqrt(m) z / (1 + m l)`, since m images share the offset; `E[mu] = sqrt(m) l e`.
    """
    values = basis.values[:, None]

    def sums(rows: jax.Array, row_count: jax.Array) -> tuple[jax.Array, ...]:
        root = distances.safe_sqrt(row_count)[None, :]
        offset = (whitened_basis @ rows.T) * (root / (1 + row_count[None, :] * values))  # [d, r]
        powers = [root**p * offset for p in range(num)]
        return tuple(power @ power.T for power in powers)

    return sum_rows(sums, (jnp.zeros_like(whitened_basis),) * num, stats, mean)


def sum_rows(sums: Callable[[jax.Array, jax.Array], S], zero: S, stats: GroupedStats, mean: jax.Array) -> S:
    """`sums(rows, row_count)` of all rows about `mean` at once, or of many in blocks that stay in the cache of a CPU.

    `sums` returns a tree of arrays like `zero`; a row of no images adds nothing to them.
    """
    if len(stats.rows) <= _BLOCK_SIZE:
        return sums(rows_about(stats, mean), stats.row_count)

    def add(total: S, block: tuple[jax.Array, jax.Array, jax.Array], valid: jax.Array) -> S:
        rows = rows_about(stats._replace(rows=block[0], row_unit=block[1]), mean)
        return jax.tree.map(jnp.add, total, sums(rows, jnp.where(valid, block[2], 0)))

    return blocks.fold_rows(add, zero, (stats.rows, stats.row_unit, stats.row_count), block_size=_BLOCK_SIZE)


def _from_basis(moment: jax.Array, basis: PairBasis) -> jax.Array:
    """`V^-T M V^-1`, with V^-1 = Q'L' of the Cholesky factor and never a product with T_eps."""
    return psd.symmetrize(basis.inverse.T @ moment @ basis.inverse)


def _log_likelihood(
    basis: PairBasis, stats: GroupedStats, whitened_basis: jax.Array, powers: tuple[jax.Array, ...]
) -> jax.Array:
    """`-1/2 [k d log 2 pi + k log|T_eps| + tr V'S_w V + sum_ij log(1 + m_i l_j) + m_i z_ij^2 / (1 + m_i l_j)]`.

    The last sum is that of `(1 + m_i l_j) e_ij^2`, on the diagonals of `powers`. With weights also `d L / 2`, where L
    is the sum of log weights.
    """
    d, k = len(whitened_basis), num_images(stats)
    between = jnp.trace(powers[0]) + basis.values @ jnp.diagonal(powers[1])
    couplings = stats.num_people @ jnp.log1p(stats.count[:, None] * basis.values[None, :]).sum(axis=1)
    within = ((whitened_basis @ stats.within) * whitened_basis).sum()
    constant = k * d * jnp.log(jnp.asarray(2 * jnp.pi, between.dtype))
    unweighted = -(constant + k * basis.log_det + couplings + within + between) / 2
    return unweighted if stats.log_weight is None else unweighted + d * stats.log_weight / 2
