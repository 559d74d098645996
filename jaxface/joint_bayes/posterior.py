"""The E-step, elementwise in the basis where both covariances are diagonal.

With `V' T_eps V = I`, `V' T_mu V = diag(l)` and `z = V'ybar`, the posterior of a person with m images of mean ybar is

    E[mu] = V^-T (m l / (1 + m l)) z        Cov[mu] = Cov[eps_j] = V^-T diag(l / (1 + m l)) V^-1

and `eps_ij = (x_ij - ybar) + (ybar - mu)`. No matrix is inverted for any number of images. V has no
derivative where values are equal, so to `grad` the model is a constant here.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxface.core import checks
from jaxface.joint_bayes.model import JointBayes
from jaxface.joint_bayes.stats import Rows, about, numbers_of_images
from jaxface.linalg import products, psd, spectral
from jaxface.linalg.spectral import PairBasis

__all__ = ["EStep", "approximate", "full"]


class Moments(NamedTuple):
    """Posterior second moments, summed."""

    identity: jax.Array  # [d, d], sum over people of E[mu mu']
    noise: jax.Array  # [d, d], sum over images of E[eps eps']
    num_people: jax.Array  # []
    num_images: jax.Array  # []


EStep = Callable[[JointBayes, Rows], tuple[Moments, jax.Array]]


def full(model: JointBayes, rows: Rows) -> tuple[Moments, jax.Array]:
    """Moments with posterior covariances, and the log-likelihood at `model`."""
    return _e_step(model, rows, with_covariance=True)


def approximate(model: JointBayes, rows: Rows) -> tuple[Moments, jax.Array]:
    """The paper's form (3): means only. It descends (6) and not the likelihood, and degenerates with few images."""
    return _e_step(model, rows, with_covariance=False)


def identity(model: JointBayes, total: jax.Array, count: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean `[d]` and covariance `[d, d]` of mu for a person with `count` images that sum to `total` `[d]`.

    Differentiable in `total`; the model counts as constant.
    """
    checks.floating(total=total)
    model, count = jax.lax.stop_gradient(model), numbers_of_images("count", count)
    basis = diagonal_basis(model)
    z = (total - count * model.mean) @ basis.vectors
    shrunk = basis.values / (1 + count * basis.values)
    return (shrunk * z) @ basis.inverse, basis.inverse.T @ (shrunk[:, None] * basis.inverse)


def diagonal_basis(model: JointBayes) -> PairBasis:
    """V and l of the model; rounding below zero is cut off, for T_mu is positive semidefinite."""
    basis = spectral.diagonalize_pair(model.identity_cov, model.noise_cov)
    return basis._replace(values=jnp.maximum(basis.values, 0))


def _e_step(model: JointBayes, rows: Rows, *, with_covariance: bool) -> tuple[Moments, jax.Array]:
    model = jax.lax.stop_gradient(model)
    rows = rows._replace(
        count=numbers_of_images("the count of rows", rows.count),
        row_count=numbers_of_images("the row_count of rows", rows.row_count),
    )
    basis = diagonal_basis(model)
    values = basis.values[:, None]
    # Rows of statistics are columns here, for their moments are products of rows then: see linalg.products.
    forms = products.turned(basis.vectors)
    z = forms @ about(rows, model.mean).T  # [d, r]
    residual = z / (1 + rows.row_count[None, :] * values)  # ybar - E[mu]
    mu = rows.row_count[None, :] * values * residual
    eps = jnp.sqrt(rows.row_count)[None, :] * residual  # m images share the offset
    identity_moment = mu @ mu.T
    noise_moment = eps @ eps.T
    if with_covariance:
        spread = values / (1 + rows.count[None, :] * values)  # [d, g]
        identity_moment += jnp.diag(spread @ rows.num_people)
        noise_moment += jnp.diag(spread @ (rows.num_people * rows.count))
    moments = Moments(
        identity=_from_basis(identity_moment, basis),
        noise=rows.within + _from_basis(noise_moment, basis),
        num_people=rows.num_people.sum(),
        num_images=(rows.num_people * rows.count).sum(),
    )
    return moments, _log_likelihood(basis, rows, forms, z * residual)


def _from_basis(moment: jax.Array, basis: PairBasis) -> jax.Array:
    """`V^-T M V^-1`, with V^-1 = Q'L' of the Cholesky factor and never a product with T_eps."""
    return psd.symmetrize(basis.inverse.T @ moment @ basis.inverse)


def _log_likelihood(basis: PairBasis, rows: Rows, forms: jax.Array, shrunk: jax.Array) -> jax.Array:
    """`-1/2 [k d log 2 pi + k log|T_eps| + tr V'S_w V + sum_ij log(1 + m_i l_j) + m_i z_ij^2 / (1 + m_i l_j)]`."""
    d = len(forms)
    num_images = (rows.num_people * rows.count).sum()
    couplings = rows.num_people @ jnp.log1p(rows.count[:, None] * basis.values[None, :]).sum(axis=1)
    within = ((forms @ rows.within) * forms).sum()
    between = shrunk.sum(axis=0) @ rows.row_count
    constant = num_images * d * jnp.log(jnp.asarray(2 * jnp.pi, shrunk.dtype))
    return -(constant + num_images * basis.log_det + couplings + within + between) / 2
