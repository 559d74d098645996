"""The objective that EM ascends, and the functions of the paper's supplement by number.

`log_likelihood` and `penalized_objective` use Cholesky factors and are differentiable in the model; the E-steps compute
the same likelihood faster, in a basis that is not.
"""

import jax
import jax.numpy as jnp

from jaxface.core import checks, machine
from jaxface.joint_bayes.model import JointBayes
from jaxface.joint_bayes.stats import GroupedStats, grouped, num_images, rows_about
from jaxface.linalg import psd
from jaxface.linalg.class_stats import Stats

__all__ = ["eq6", "eq11", "eq19", "log_likelihood", "penalized_objective"]

_BLOCK_SIZE = 256  # people with different numbers of images or weights, a covariance each


def log_likelihood(model: JointBayes, stats: Stats) -> jax.Array:
    """`sum_i log p(x_i1 ... x_im | model)` in nats.

    With `C_i = T_eps + m_i T_mu` it is
    `-1/2 [k d log 2 pi + (k - n) log|T_eps| + tr T_eps^-1 S_w + sum_i log|C_i| + m_i ybar_i'C_i^-1 ybar_i]`.
    With weights m is the sum of weights of a person, k the number of images, and `d/2 sum log q` is added;
    differentiable in weights above zero.
    """
    return _log_likelihood(model, grouped(stats))


def penalized_objective(
    model: JointBayes, stats: Stats, prior: JointBayes, prior_weight: jax.Array | float
) -> jax.Array:
    """`(1 - w) log p(X | T) - w [n KL(S_mu || T_mu) + k KL(S_eps || T_eps)]`, the objective of EM with M-step (5)."""
    checks.between("prior_weight", prior_weight, 0.0, 1.0)
    people = grouped(stats)
    return (1 - prior_weight) * _log_likelihood(model, people) - prior_weight * divergence(model, prior, people)


def divergence(model: JointBayes, prior: JointBayes, stats: GroupedStats) -> jax.Array:
    """`n KL(N(0, S_mu) || N(0, T_mu)) + k KL(N(0, S_eps) || N(0, T_eps))`, the prior first."""
    n, k = stats.num_people.sum(), num_images(stats)
    identity = gaussian_divergence(prior.identity_cov, model.identity_cov)
    return n * identity + k * gaussian_divergence(prior.noise_cov, model.noise_cov)


def gaussian_divergence(source: jax.Array, target: jax.Array) -> jax.Array:
    """`KL(N(0, S) || N(0, T)) = (tr T^-1 S - log|T^-1 S| - d) / 2`.

    If one of them is rank-deficient, as an identity covariance may be, both get the same small ridge. Directions in the
    null space of both then contribute nothing, and a direction of S outside T costs much but not infinitely much.
    """
    d, scale = source.shape[0], jnp.maximum(jnp.trace(source), jnp.trace(target))
    eps = machine.eps(source.dtype)

    def has_full_rank(cov: jax.Array) -> jax.Array:
        cov = jax.lax.stop_gradient(cov)
        return psd.least_eigenvalue(psd.cholesky(cov)) > d * eps * jnp.trace(cov)  # false for NaN

    # Rounding enters as eps / ridge and bias as the ridge itself. Two zero matrices agree for every ridge.
    ridge = jnp.where(scale > 0, eps ** (2 / 3) * scale, 1)
    lift = jnp.where(has_full_rank(source) & has_full_rank(target), 0, ridge) * jnp.eye(d, dtype=source.dtype)
    source, target = source + lift, target + lift
    return (jnp.trace(psd.solve(target, source)) - psd.log_det(source) + psd.log_det(target) - d) / 2


def eq6(
    mu: jax.Array, eps: jax.Array, psi: jax.Array, gamma: jax.Array, *, prior: JointBayes, prior_weight: float
) -> jax.Array:
    """(6) `tr (MM' + n lambda S_mu) Psi^-1 + tr (EE' + k lambda S_eps) Gamma^-1 + n log|Psi| + k log|Gamma|`.

    M holds `mu` `[n, d]` of n people and E `eps` `[k, d]` of k images; `lambda = w / (1 - w)` of a prior weight w < 1.
    The approximate EM descends it, at `Psi = T_mu / (1 - w)` and `Gamma = T_eps / (1 - w)`. The printed `k |Gamma|`
    lacks the logarithm.
    """
    n, k, ratio = mu.shape[0], eps.shape[0], _lambda(prior_weight)
    about_psi = mu.T @ mu + n * ratio * prior.identity_cov
    about_gamma = eps.T @ eps + k * ratio * prior.noise_cov
    fit = jnp.trace(psd.solve(psi, about_psi)) + jnp.trace(psd.solve(gamma, about_gamma))
    return fit + n * psd.log_det(psi) + k * psd.log_det(gamma)


def eq11(mu: jax.Array, eps: jax.Array, *, prior: JointBayes, prior_weight: float) -> jax.Array:
    """(11) `n log|MM'/n + lambda S_mu| + k log|EE'/k + lambda S_eps|`: the minimum of (6), less (n + k) d."""
    n, k, ratio = mu.shape[0], eps.shape[0], _lambda(prior_weight)
    psi = mu.T @ mu / n + ratio * prior.identity_cov
    gamma = eps.T @ eps / k + ratio * prior.noise_cov
    return n * psd.log_det(psi) + k * psd.log_det(gamma)


def eq19(
    mu: jax.Array,
    eps: jax.Array,
    psi: jax.Array,
    gamma: jax.Array,
    counts: jax.Array,
    *,
    prior: JointBayes,
    prior_weight: float,
) -> jax.Array:
    """(19): (6) with `(k - n) log|Gamma| + sum_i log|m_i Psi + Gamma|` for log-determinants; `counts` `[n]` are m_i.

    It belongs to the M-step (7) with covariances; for the M-step (5) add `lambda (n log|Psi| + k log|Gamma|)`.
    """
    n, k = mu.shape[0], eps.shape[0]
    first = eq6(mu, eps, psi, gamma, prior=prior, prior_weight=prior_weight)
    coupled = jax.vmap(lambda m: psd.log_det(m * psi + gamma))(counts).sum()
    return first - n * psd.log_det(psi) - k * psd.log_det(gamma) + (k - n) * psd.log_det(gamma) + coupled


def _lambda(prior_weight: float) -> float:
    checks.between("prior_weight", prior_weight, 0.0, 1.0, closed_high=False)
    return prior_weight / (1 - prior_weight)


@jax.jit
def _log_likelihood(model: JointBayes, stats: GroupedStats) -> jax.Array:
    d = model.mean.shape[0]
    n, k = stats.num_people.sum(), num_images(stats)
    # The row of a person without images is zero, and the root has no derivative there.
    root = jnp.sqrt(jnp.where(stats.row_count == 0, 1, stats.row_count))
    weighted = rows_about(stats, model.mean) * root[:, None]
    if len(stats.rows) == len(stats.count):  # one row a group, in the same order
        rows_of_group = weighted[:, None, :]
    else:
        own = stats.count[:, None] == stats.row_count[None, :]
        rows_of_group = jnp.where(own[:, :, None], weighted[None, :, :], 0)

    def of_group(count: jax.Array, people: jax.Array, scaled: jax.Array) -> jax.Array:
        """People with `count` images: their mean has covariance `(T_eps + m T_mu) / m`."""
        cov = model.noise_cov + count * model.identity_cov
        return people * psd.log_det(cov) + (scaled * psd.solve(cov, scaled.T).T).sum()

    groups = (stats.count, stats.num_people, rows_of_group)
    if len(stats.count) > _BLOCK_SIZE:  # as with a weight for each image; a matrix for each person at once is too much
        between = jax.lax.map(lambda group: of_group(*group), groups, batch_size=_BLOCK_SIZE).sum()
    else:
        between = jax.vmap(of_group)(*groups).sum()
    within = (k - n) * psd.log_det(model.noise_cov) + jnp.trace(psd.solve(model.noise_cov, stats.within))
    unweighted = -(k * d * jnp.log(jnp.asarray(2 * jnp.pi, weighted.dtype)) + within + between) / 2
    return unweighted if stats.log_weight is None else unweighted + d * stats.log_weight / 2
