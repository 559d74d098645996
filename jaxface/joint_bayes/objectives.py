"""What EM ascends, and the functions of the paper's supplement by number.

`log_likelihood` and `penalized_objective` are made of Cholesky factors and may be differentiated in the model; the
E-steps compute the same likelihood faster, in a basis that may not.
"""

import jax
import jax.numpy as jnp

from jaxface.core import checks
from jaxface.joint_bayes.model import JointBayes
from jaxface.joint_bayes.stats import Rows, Stats, about, rows_of
from jaxface.linalg import psd

__all__ = ["log_likelihood", "penalized_objective"]


def log_likelihood(model: JointBayes, stats: Stats) -> jax.Array:
    """`sum_i log p(x_i1 ... x_im | model)` in nats.

    With `C_i = T_eps + m_i T_mu` it is
    `-1/2 [k d log 2 pi + (k - n) log|T_eps| + tr T_eps^-1 S_w + sum_i log|C_i| + m_i ybar_i'C_i^-1 ybar_i]`.
    """
    return _log_likelihood(model, rows_of(stats))


def penalized_objective(model: JointBayes, stats: Stats, prior: JointBayes, weight: jax.Array | float) -> jax.Array:
    """`(1 - w) log p(X | T) - w [n KL(S_mu || T_mu) + k KL(S_eps || T_eps)]`: what EM with the M-step (5) ascends."""
    checks.between("weight", weight, 0.0, 1.0)
    rows = rows_of(stats)
    return (1 - weight) * _log_likelihood(model, rows) - weight * divergence(model, prior, rows)


def divergence(model: JointBayes, prior: JointBayes, rows: Rows) -> jax.Array:
    """`n KL(N(0, S_mu) || N(0, T_mu)) + k KL(N(0, S_eps) || N(0, T_eps))`, the prior first."""
    n, k = rows.num_people.sum(), (rows.num_people * rows.count).sum()
    identity = gaussian_divergence(prior.identity_cov, model.identity_cov)
    return n * identity + k * gaussian_divergence(prior.noise_cov, model.noise_cov)


def gaussian_divergence(source: jax.Array, target: jax.Array) -> jax.Array:
    """`KL(N(0, S) || N(0, T)) = (tr T^-1 S - log|T^-1 S| - d) / 2`.

    Where one of them is rank-deficient, as an identity covariance may be, both get the same small ridge: directions
    that neither has then contribute nothing, and one that S alone has costs much but not infinitely much.
    """
    d, scale = source.shape[0], jnp.maximum(jnp.trace(source), jnp.trace(target))
    eps = float(jnp.finfo(source.dtype).eps)

    def has_full_rank(cov: jax.Array) -> jax.Array:
        return jnp.diagonal(psd.cholesky(cov)).min() ** 2 > d * eps * jnp.trace(cov)  # false for NaN

    # Rounding enters as eps / ridge and the bias as the ridge itself. Two matrices of zeros agree, whatever is added.
    ridge = jnp.where(scale > 0, eps ** (2 / 3) * scale, 1)
    lift = jnp.where(has_full_rank(source) & has_full_rank(target), 0, ridge) * jnp.eye(d, dtype=source.dtype)
    source, target = source + lift, target + lift
    return (jnp.trace(psd.solve(target, source)) - psd.log_det(source) + psd.log_det(target) - d) / 2


def eq6(
    identities: jax.Array,
    deviations: jax.Array,
    psi: jax.Array,
    gamma: jax.Array,
    *,
    prior: JointBayes,
    strength: float,
) -> jax.Array:
    """(6) `tr (MM' + n lambda S_mu) Psi^-1 + tr (EE' + k lambda S_eps) Gamma^-1 + n log|Psi| + k log|Gamma|`.

    M: `identities` `[n, d]`, E: `deviations` `[k, d]`, lambda: `strength`. The approximate EM descends it, at
    `Psi = T_mu / (1 - w)` and `Gamma = T_eps / (1 - w)`; the printed `k |Gamma|` lacks the logarithm.
    """
    n, k = identities.shape[0], deviations.shape[0]
    about_psi = identities.T @ identities + n * strength * prior.identity_cov
    about_gamma = deviations.T @ deviations + k * strength * prior.noise_cov
    fit = jnp.trace(psd.solve(psi, about_psi)) + jnp.trace(psd.solve(gamma, about_gamma))
    return fit + n * psd.log_det(psi) + k * psd.log_det(gamma)


def eq11(identities: jax.Array, deviations: jax.Array, *, prior: JointBayes, strength: float) -> jax.Array:
    """(11) `n log|MM'/n + lambda S_mu| + k log|EE'/k + lambda S_eps|`: (6) at its best, less (n + k) d."""
    n, k = identities.shape[0], deviations.shape[0]
    psi = identities.T @ identities / n + strength * prior.identity_cov
    gamma = deviations.T @ deviations / k + strength * prior.noise_cov
    return n * psd.log_det(psi) + k * psd.log_det(gamma)


def eq19(
    identities: jax.Array,
    deviations: jax.Array,
    psi: jax.Array,
    gamma: jax.Array,
    counts: jax.Array,
    *,
    prior: JointBayes,
    strength: float,
) -> jax.Array:
    """(19): (6) with `(k - n) log|Gamma| + sum_i log|m_i Psi + Gamma|` for log-determinants; `counts` `[n]` are m_i.

    It belongs to the M-step (7) with covariances; for the M-step (5) add `lambda (n log|Psi| + k log|Gamma|)`.
    """
    n, k = identities.shape[0], deviations.shape[0]
    first = eq6(identities, deviations, psi, gamma, prior=prior, strength=strength)
    coupled = jax.vmap(lambda m: psd.log_det(m * psi + gamma))(counts).sum()
    return first - n * psd.log_det(psi) - k * psd.log_det(gamma) + (k - n) * psd.log_det(gamma) + coupled


@jax.jit
def _log_likelihood(model: JointBayes, rows: Rows) -> jax.Array:
    d = model.mean.shape[0]
    n, k = rows.num_people.sum(), (rows.num_people * rows.count).sum()
    weighted = about(rows, model.mean) * jnp.sqrt(rows.row_count)[:, None]
    if len(rows.rows) == len(rows.count):  # one row a group, and in the same order
        rows_of_group = weighted[:, None, :]
    else:
        own = rows.count[:, None] == rows.row_count[None, :]
        rows_of_group = jnp.where(own[:, :, None], weighted[None, :, :], 0)

    def of_group(count: jax.Array, people: jax.Array, scaled: jax.Array) -> jax.Array:
        """People with `count` images: their mean has covariance `(T_eps + m T_mu) / m`."""
        cov = model.noise_cov + count * model.identity_cov
        return people * psd.log_det(cov) + (scaled * psd.solve(cov, scaled.T).T).sum()

    between = jax.vmap(of_group)(rows.count, rows.num_people, rows_of_group).sum()
    within = (k - n) * psd.log_det(model.noise_cov) + jnp.trace(psd.solve(model.noise_cov, rows.within))
    return -(k * d * jnp.log(jnp.asarray(2 * jnp.pi, weighted.dtype)) + within + between) / 2
