"""How much an image counts: weights that follow from a quality, and how to learn them.

A weight q is a precision: `x_ij = mean + mu_i + eps_ij` with `eps_ij ~ N(0, T_eps / q_ij)`. A quality u of an image,
such as the logarithm of its sharpness, says which images are alike; how much they count is learned:

    images --bin_edges, bins_of--> bins --collect_bins--> Stats of each bin --weighted--> Stats with any weights
    exponents, fit_candidates   q = exp(alpha (u - mean of u)): alpha by the likelihood of held-out people
    fit_weights                 a free weight for each bin by ECM: maximum likelihood

The statistics of a bin are ordinary `Stats` with a leading axis b. The statistics for any weights are linear in them,
so no candidate needs another pass over the images. (c q, c T_eps) is the same model, so learned weights have the
geometric mean 1 over the training images: T_eps is the noise of a typical one.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo, loops
from jaxface.core.fitinfo import FitInfo
from jaxface.joint_bayes import em, posterior
from jaxface.joint_bayes.counts import checked_weights
from jaxface.joint_bayes.model import JointBayes
from jaxface.joint_bayes.posterior import EStep
from jaxface.joint_bayes.stats import by_person, collect
from jaxface.linalg import psd
from jaxface.linalg.class_stats import Stats, images_of, recenter

__all__ = [
    "WeightedModel",
    "bin_edges",
    "bin_means",
    "bins_of",
    "collect_bins",
    "exponents",
    "fit_candidates",
    "fit_weights",
    "rounded",
    "weighted",
]


class WeightChoice(NamedTuple):
    """The candidate that held-out people prefer."""

    model: JointBayes
    weights: jax.Array  # [b], of a bin
    chosen: jax.Array  # int32 [], place among the candidates
    values: jax.Array  # [p], log-likelihood of the held-out people under each candidate


class WeightedModel(NamedTuple):
    """A model, and how much an image of each bin counts."""

    model: JointBayes
    weights: jax.Array  # [b]


def bin_edges(quality: ArrayLike, *, num_bins: int = 8) -> np.ndarray:
    """The inner edges `[num_bins - 1]` of bins with equal numbers of images, from qualities `[n]`; on the host."""
    checks.shapes(quality=(quality, "n"))
    checks.at_least("num_bins", num_bins, 2)
    checks.at_least("the number of qualities", np.size(quality), num_bins, "one for each bin")
    checks.finite(quality=quality)
    values = checks.real("quality", quality).astype(np.float64)
    return np.quantile(values, np.arange(1, num_bins) / num_bins)


def bins_of(quality: ArrayLike, edges: ArrayLike) -> np.ndarray:
    """The bin of each quality `[n]`, int32 in [0, len(edges)]; an image on an edge belongs to the upper bin."""
    checks.shapes(quality=(quality, "n"), edges=(edges, "e"))
    checks.finite(quality=quality, edges=edges)
    values, bounds = checks.real("quality", quality), checks.real("edges", edges)
    if (np.diff(bounds) < 0).any():
        raise ValueError("edges must not fall; bin_edges gives such edges.")
    return np.searchsorted(bounds, values, side="right").astype(np.int32)


def bin_means(quality: ArrayLike, bins: ArrayLike, *, num_bins: int) -> np.ndarray:
    """The mean quality `[num_bins]` of each bin from qualities and bins `[n]`; empty bins get the overall mean."""
    checks.shapes(quality=(quality, "n"), bins=(bins, "n"))
    checks.finite(quality=quality)
    bins = np.asarray(checks.dense_labels("bins", bins, num_bins))
    values = checks.real("quality", quality).astype(np.float64)
    number = np.bincount(bins, minlength=num_bins)
    total = np.bincount(bins, values, minlength=num_bins)
    return np.where(number > 0, total / np.maximum(number, 1), values.mean() if values.size else 0.0)


def rounded(weights: ArrayLike, *, num_levels: int = 32) -> jax.Array:
    """Weights `[n]` on `num_levels` levels of equal ratio, from the smallest above zero to the largest; zeros stay.

    `set_llr_matrix` of single images needs a GEMM for each different weight. Over a range of 1 to 100, 32 levels change
    ratios by 3 % and 64 by 1.4 % (root mean square).
    """
    checks.shapes(weights=(weights, "n"))
    checks.floating(weights=weights)
    checks.at_least("num_levels", num_levels, 2)
    weights = checked_weights("weights", weights, jnp.asarray(weights).dtype)
    is_kept = weights > 0
    logs = jnp.log(jnp.where(is_kept, weights, 1))
    low = jnp.where(is_kept, logs, jnp.inf).min(initial=jnp.inf)
    high = jnp.where(is_kept, logs, -jnp.inf).max(initial=-jnp.inf)
    step = jnp.where(high > low, (high - low) / (num_levels - 1), 1)
    return jnp.where(is_kept, jnp.exp(low + step * jnp.round((logs - low) / step)), weights)


def collect_bins(
    x: ArrayLike, ids: ArrayLike, bins: ArrayLike, *, num_people: int, num_bins: int, shift: ArrayLike
) -> Stats:
    """The statistics of the images of each bin, `Stats` with the leading axis b.

    x, ids, shift   as in `stats.collect`: images `[n, d]`, dense people `[n]` with -1 for rows to leave out, `[d]`
    bins            `[n]`, int in [0, num_bins)
    """
    checks.shapes(x=(x, "n d"), ids=(ids, "n"), bins=(bins, "n"))
    checks.at_least("num_bins", num_bins, 1)
    bins = checks.dense_labels("bins", bins, num_bins)
    ids = jnp.asarray(checks.dense_labels("ids", ids, num_people, padding=True))
    parts = [collect(x, jnp.where(bins == b, ids, -1), num_people=num_people, shift=shift) for b in range(num_bins)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *parts)


def weighted(bins: Stats, weights: ArrayLike) -> Stats:
    """The statistics in which an image of bin b has the weight `weights[b]`, from those of `collect_bins`."""
    checks.shapes(sum=(bins.sum, "b c d"), weights=(weights, "b"))
    weights = checked_weights("weights", weights, bins.sum.dtype)
    is_kept, number = (weights != 0).astype(weights.dtype), images_of(bins)
    log_weight = number.sum(axis=1) @ jnp.log(jnp.where(weights == 0, 1, weights))
    if bins.log_weight is not None:  # the images of a bin had weights of their own
        log_weight += is_kept @ bins.log_weight
    return Stats(
        count=weights @ bins.count,
        sum=jnp.tensordot(weights, bins.sum, 1),
        second_moment=jnp.tensordot(weights, bins.second_moment, 1),
        shift=bins.shift[0],
        num_images=is_kept @ number,
        log_weight=log_weight,
    )


def exponents(bins: Stats, quality: ArrayLike, alphas: ArrayLike) -> jax.Array:
    """Candidates `[p, b]`: `q = exp(alpha (u - ubar))` for `alphas` `[p]` and the mean quality `[b]` of each bin.

    ubar is the mean over the training images, so that their weights have the geometric mean 1; alpha = 0 is the model
    without weights.
    """
    checks.shapes(sum=(bins.sum, "b c d"), quality=(quality, "b"), alphas=(alphas, "p"))
    checks.finite(quality=quality, alphas=alphas)
    number = images_of(bins).sum(axis=1)
    quality = jnp.asarray(quality, number.dtype)
    deviation = quality - (number @ quality) / jnp.maximum(number.sum(), 1)
    return jnp.exp(jnp.asarray(alphas, number.dtype)[:, None] * deviation[None, :])


def fit_candidates(
    bins: Stats,
    held_out: Stats,
    candidates: ArrayLike,
    *,
    num_iters: int,
    tol: float = 0.0,
    e_step: EStep = posterior.full,
    floor: float = 1e-6,
) -> tuple[WeightChoice, FitInfo]:
    """One fit for each candidate `[p, b]` of the weights of the bins; the likelihood of held-out people chooses.

    bins, held_out  statistics of `collect_bins` of the training people and of others, with the same bins
    num_iters, tol, e_step, floor  of every fit, as in `em.fit`; a fit starts at its own weighted moments

    The report has the leading axis p. Candidates are fitted one after the other, so that only one is in memory.
    Gradients are stopped.
    """
    checks.shapes(sum=(bins.sum, "b c d"), held_out_sum=(held_out.sum, "b h d"), candidates=(candidates, "p b"))
    candidates = checked_weights("candidates", candidates, bins.sum.dtype)
    checks.positive("floor", floor)
    return _fit_candidates(bins, held_out, candidates, num_iters=num_iters, tol=tol, e_step=e_step, floor=floor)


@partial(jax.jit, static_argnames=("num_iters", "tol", "e_step", "floor"))
def _fit_candidates(
    bins: Stats, held_out: Stats, candidates: jax.Array, *, num_iters: int, tol: float, e_step: EStep, floor: float
) -> tuple[WeightChoice, FitInfo]:
    bins, held_out, candidates = jax.lax.stop_gradient((bins, held_out, candidates))

    def fit_with(weights: jax.Array) -> tuple[JointBayes, FitInfo, jax.Array]:
        stats = recenter(weighted(bins, weights))
        model, info = em.fit(stats, em.init(stats), num_iters=num_iters, tol=tol, e_step=e_step, floor=floor)
        return model, info, posterior.full(model, by_person(weighted(held_out, weights)))[1]

    models, info, values = jax.lax.map(fit_with, candidates)
    chosen = jnp.argmax(jnp.where(jnp.isfinite(values), values, -jnp.inf)).astype(jnp.int32)
    model, weights = jax.tree.map(lambda leaf: leaf[chosen], (models, candidates))
    return WeightChoice(model, weights, chosen, values), info


def fit_weights(
    bins: Stats, init: JointBayes, *, num_iters: int, tol: float = 0.0, floor: float = 1e-6
) -> tuple[WeightedModel, FitInfo]:
    """The most likely model and weight of each bin, by ECM. It starts at `init`, whose mean stays, and at weights of 1.

    The objective never falls. A bin without images keeps the weight 1. `floor` and the statuses are those of `em.fit`.
    Gradients are stopped.
    """
    checks.shapes(sum=(bins.sum, "b c d"), mean=(init.mean, "d"))
    checks.positive("floor", floor)
    flat = weighted(bins, jnp.ones(len(bins.sum), bins.sum.dtype))
    _, init, _ = em.checked_problem(flat, init, None, 0.0, e_step=posterior.full)
    return _fit_weights(bins, init, num_iters=num_iters, tol=tol, floor=floor)


@partial(jax.jit, static_argnames=("num_iters", "tol", "floor"))
def _fit_weights(
    bins: Stats, init: JointBayes, *, num_iters: int, tol: float, floor: float
) -> tuple[WeightedModel, FitInfo]:
    bins, init = jax.lax.stop_gradient((bins, init))
    about_mean = jax.vmap(recenter, in_axes=(0, None))(bins, init.mean)

    def step(state: tuple[WeightedModel, jax.Array]) -> tuple[tuple[WeightedModel, jax.Array], jax.Array]:
        fitted, objective, added = ecm_step(state[0], about_mean, floor=floor)
        return (fitted, jnp.maximum(state[1], added)), objective

    zero = jnp.zeros((), init.mean.dtype)
    start = (WeightedModel(init, jnp.ones(len(bins.sum), init.mean.dtype)), zero)
    (fitted, jitter), trace = loops.iterate(step, start, num_iters=num_iters, tol=tol)
    rows = by_person(weighted(about_mean, fitted.weights))
    status = fitinfo.worst(trace.status, em.diagnosis(rows, fitted.model, None, zero, jitter))
    return fitted, fitinfo.iterative(status=status, num_iters=trace.num_iters, objective=trace.objective, jitter=jitter)


def ecm_step(fitted: WeightedModel, bins: Stats, *, floor: float) -> tuple[WeightedModel, jax.Array, jax.Array]:
    """One step: the new model and weights, the log-likelihood at the old ones, and the ridge added to T_eps.

    With `R_b = sum over images of bin b of E[eps eps']`, about the mean of the model:
    `T_eps = sum_b q_b R_b / K`, then `q_b = n_b d / tr T_eps^-1 R_b`, then the geometric mean 1. Gradients are stopped.
    """
    (model, weights), bins = jax.lax.stop_gradient((fitted, bins))
    rows = by_person(weighted(bins, weights))
    moments, log_likelihood = posterior.full(model, rows)
    noises, number = noise_of_bins(model, weights, bins), images_of(bins).sum(axis=1)
    d, k = len(model.mean), number.sum()
    noise = psd.symmetrize(jnp.tensordot(weights, noises, 1)) / k
    identity = moments.identity / moments.num_people
    scale = (jnp.trace(noise) + (weights @ number) / k * jnp.trace(identity)) / d
    noise, jitter = em.floored(noise, scale, jnp.asarray(floor, noise.dtype), jnp.zeros_like(scale))
    sizes = jnp.trace(psd.solve(noise, jnp.concatenate(noises, axis=1)).reshape(d, -1, d), axis1=0, axis2=2)
    free = jnp.where(number > 0, number * d / jnp.where(number > 0, sizes, 1), 1)
    mean = jnp.exp((number @ jnp.log(free)) / k)  # geometric
    # An empty bin stays at 1.
    new = jnp.where(number > 0, free / mean, 1)
    model = JointBayes(mean=model.mean, identity_cov=identity, noise_cov=noise / mean)
    return WeightedModel(model, new), log_likelihood, jitter


def noise_of_bins(model: JointBayes, weights: jax.Array, bins: Stats) -> jax.Array:
    """`R_b` `[b, d, d]`, the sum of E[eps eps'] over the images of a bin, unweighted; `bins` are about the mean.

    `R_b = M_b - sum_i (s_ib E[mu_i]' + E[mu_i] s_ib') + sum_i n_ib E[mu_i mu_i']`.
    """
    stats, basis = weighted(bins, weights), posterior.diagonal_basis(model)
    shrunk = basis.values[None, :] / (1 + stats.count[:, None] * basis.values[None, :])  # [c, d], variances of mu
    mu = (shrunk * (stats.sum @ basis.vectors)) @ basis.inverse

    def of_bin(bin_stats: Stats) -> jax.Array:
        cross = bin_stats.sum.T @ mu
        spread = basis.inverse.T @ ((bin_stats.count @ shrunk)[:, None] * basis.inverse)
        square = mu.T @ (bin_stats.count[:, None] * mu)
        return psd.symmetrize(bin_stats.second_moment - cross - cross.T + square + spread)

    return jax.lax.map(of_bin, bins)
