"""Low-rank identity: `T_mu = F F'` with F `[d, r]` and any T_eps, by PX-EM.

EM never turns the range of a low-rank T_mu; the regression of the images on the factors does. An image of person i is
`x_ij = mean + F h_i + eps_ij` with `h_i ~ N(0, I)`. A step takes one Cholesky factor of T_eps and an eigenproblem of
r x r, where `em` takes one of d x d.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from jaxface.core import checks, fitinfo, loops
from jaxface.core.fitinfo import FitInfo
from jaxface.joint_bayes import em, posterior
from jaxface.joint_bayes.model import JointBayes
from jaxface.joint_bayes.stats import GroupedStats, grouped, mean_weight, num_images
from jaxface.linalg import psd, spectral
from jaxface.linalg.class_stats import Stats

__all__ = ["fit_low_rank"]


class Factors(NamedTuple):
    """Both covariances."""

    root: jax.Array  # [d, r], F
    noise_cov: jax.Array  # [d, d], T_eps


class Whitened(NamedTuple):
    """F turned within its range, so that `F'T_eps^-1 F = diag(l)`, and the Cholesky factor L of T_eps."""

    root: jax.Array  # [d, r], F
    white: jax.Array  # [d, r], L^-1 F
    values: jax.Array  # [r], l, descending
    lower: jax.Array  # [d, d], L


class RowSums(NamedTuple):
    """Sums over the rows of statistics, for E[h] = m b / (1 + m l) with `b = F'T_eps^-1 ybar` and e = ybar - F E[h]."""

    latent: jax.Array  # [r, r], of E[h] E[h]'
    weighted: jax.Array  # [r, r], of m E[h] E[h]'
    cross: jax.Array  # [d, r], of m e E[h]'
    noise: jax.Array  # [d, d], of m e e'
    between: jax.Array  # [], of m ybar'(T_eps + m T_mu)^-1 ybar


def fit_low_rank(
    stats: Stats, init: JointBayes, *, rank: int, num_iters: int, tol: float = 0.0, floor: float = 1e-6
) -> tuple[JointBayes, FitInfo]:
    """The most likely model whose T_mu has at most `rank` directions, which the fit may turn anywhere.

    It starts from the `rank` directions of `init` with the largest ratios of T_mu to T_eps, and keeps the mean. There
    is no prior. `floor` and the statuses are those of `em.fit`; with `rank` = d the fit is that of
    `em.fit(..., e_step=posterior.expanded)`. Gradients are stopped.
    """
    stats, init, _ = em.checked_problem(stats, init, None, 0.0, e_step=posterior.expanded)
    checks.at_least("rank", rank, 1)
    checks.at_most("rank", rank, len(init.mean), "the dimension")
    checks.positive("floor", floor)
    return fit_grouped(grouped(stats), init, rank=rank, num_iters=num_iters, tol=tol, floor=floor)


@partial(jax.jit, static_argnames=("rank", "num_iters", "tol", "floor"))
def fit_grouped(
    stats: GroupedStats, init: JointBayes, *, rank: int, num_iters: int, tol: float, floor: float
) -> tuple[JointBayes, FitInfo]:
    """`fit_low_rank` of grouped statistics, jitted."""
    stats, init = jax.lax.stop_gradient((posterior.whole_numbers(stats), init))
    pivot = em.least_pivot(stats.within)

    def step(state: tuple[Factors, jax.Array]) -> tuple[tuple[Factors, jax.Array], jax.Array]:
        factors, objective, added = update(state[0], stats, init.mean, floor=floor, within_pivot=pivot)
        return (factors, jnp.maximum(state[1], added)), objective

    basis = posterior.diagonal_basis(init)
    root = (basis.inverse.T * jnp.sqrt(basis.values)[None, :])[:, :rank]
    start = (Factors(root, init.noise_cov), jnp.zeros((), root.dtype))
    (factors, jitter), trace = loops.iterate(step, start, num_iters=num_iters, tol=tol)
    of_problem = em.diagnosis(stats, init, None, jnp.zeros((), root.dtype), jitter)
    status = fitinfo.worst(trace.status, of_problem)
    model = JointBayes(mean=init.mean, identity_cov=factors.root @ factors.root.T, noise_cov=factors.noise_cov)
    return model, fitinfo.iterative(status=status, num_iters=trace.num_iters, objective=trace.objective, jitter=jitter)


def update(
    factors: Factors, stats: GroupedStats, mean: jax.Array, *, floor: float, within_pivot: jax.Array | float = 0.0
) -> tuple[Factors, jax.Array, jax.Array]:
    """One step of PX-EM: the new factors, the log-likelihood at the old ones, and the ridge added to T_eps.

    With `K = sum_i E[hh'] / n`, `H = sum_i m_i E[hh']` and `C = sum_ij E[eps h']` it is `F + C H^-1` times the Cholesky
    factor of K, and `T_eps = (sum_ij E[eps eps'] - C H^-1 C') / k`. Gradients are stopped.
    """
    factors, stats, mean = jax.lax.stop_gradient((factors, stats, mean))
    known = _whitened(factors)
    sums = _row_sums(known, stats, mean)
    spread = 1 / (1 + stats.count[None, :] * known.values[:, None])  # [r, g], variances of h
    of_people, of_images = spread @ stats.num_people, spread @ (stats.num_people * stats.count)
    n, k = stats.num_people.sum(), num_images(stats)
    weighted, cross = sums.weighted + jnp.diag(of_images), sums.cross - known.root * of_images[None, :]
    gain = psd.solve(weighted, cross.T).T
    root = (known.root + gain) @ psd.cholesky((sums.latent + jnp.diag(of_people)) / n)
    explained = (known.root * of_images[None, :]) @ known.root.T - gain @ cross.T
    noise = psd.symmetrize(stats.within + sums.noise + explained) / k
    scale = (jnp.trace(noise) + mean_weight(stats) * (root**2).sum()) / len(mean)
    least = jnp.asarray(within_pivot / k)  # T_eps is at least S_w / k
    noise, jitter = em.floored(noise, scale, jnp.asarray(floor, noise.dtype), least)
    return Factors(root, noise), _log_likelihood(known, stats, sums.between), jitter


def _whitened(factors: Factors) -> Whitened:
    lower = psd.cholesky(factors.noise_cov)
    white = solve_triangular(lower, factors.root, lower=True)
    values, rotation = spectral.eigh(white.T @ white)
    return Whitened(factors.root @ rotation, white @ rotation, jnp.maximum(values, 0), lower)


def _row_sums(known: Whitened, stats: GroupedStats, mean: jax.Array) -> RowSums:
    def sums(rows: jax.Array, row_count: jax.Array) -> RowSums:
        z = solve_triangular(known.lower, rows.T, lower=True)  # [d, rows]
        h = row_count[None, :] * (known.white.T @ z) / (1 + row_count[None, :] * known.values[:, None])
        scaled_h = jnp.sqrt(row_count)[None, :] * h
        e = jnp.sqrt(row_count)[None, :] * (rows.T - known.root @ h)
        # The smallest value over h, so that nothing cancels.
        between = ((z - known.white @ h) ** 2).sum(axis=0) @ row_count + (h**2).sum()
        return RowSums(h @ h.T, scaled_h @ scaled_h.T, e @ scaled_h.T, e @ e.T, between)

    d, r = known.root.shape
    small, tall, square, one = (jnp.zeros(shape, known.root.dtype) for shape in ((r, r), (d, r), (d, d), ()))
    zero = RowSums(latent=small, weighted=small, cross=tall, noise=square, between=one)
    return posterior.sum_rows(sums, zero, stats, mean)


def _log_likelihood(known: Whitened, stats: GroupedStats, between: jax.Array) -> jax.Array:
    """`-1/2 [k d log 2 pi + k log|T_eps| + tr T_eps^-1 S_w + sum_ia log(1 + m_i l_a) + between]`.

    With weights also `d L / 2`, where L is the sum of log weights.
    """
    k = num_images(stats)
    couplings = stats.num_people @ jnp.log1p(stats.count[:, None] * known.values[None, :]).sum(axis=1)
    half = solve_triangular(known.lower, stats.within, lower=True)
    within = jnp.trace(solve_triangular(known.lower, half.T, lower=True))
    log_det = 2 * jnp.log(jnp.diagonal(known.lower)).sum()
    constant = k * len(known.lower) * jnp.log(jnp.asarray(2 * jnp.pi, between.dtype))
    unweighted = -(constant + k * log_det + couplings + within + between) / 2
    return unweighted if stats.log_weight is None else unweighted + len(known.lower) * stats.log_weight / 2
