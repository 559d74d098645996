"""Expectation maximisation with a source model as prior.

Each step ascends `(1 - w) log p(X | T) - w [n KL(N(0, S_mu) || N(0, T_mu)) + k KL(N(0, S_eps) || N(0, T_eps))]` with n
people, k images and the prior weight `w = lambda / (1 + lambda)`. A fit reports the trace of this objective, which is
finite for every w in [0, 1]. The prior counts as lambda n people, so its influence does not fade as target data grow:
choose w for each amount of data (`transfer`). Images may have weights (see `stats`): the divisor of T_eps stays their
number k, because a weight is a precision and no number of repetitions.

Every E-step works in a basis of eigenvectors, so gradients of fits are stopped; `objectives` may be differentiated.
"""

import dataclasses
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo, loops, machine
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.program import program
from jaxface.joint_bayes import moment_start, objectives, posterior
from jaxface.joint_bayes.counts import numbers_of_images
from jaxface.joint_bayes.model import JointBayes, LowRankJointBayes
from jaxface.joint_bayes.posterior import EStep, Moments
from jaxface.joint_bayes.stats import GroupedStats, grouped, mean_weight, num_images, rows_about
from jaxface.linalg import psd, spectral
from jaxface.linalg.class_stats import Stats

__all__ = ["fit", "fit_grouped", "init"]


class Floored(NamedTuple):
    """A covariance and the ridge that it needed."""

    cov: jax.Array  # [d, d]
    jitter: jax.Array  # [], 0 when none


def init(stats: Stats, *, ridge: float = 1e-3) -> JointBayes:
    """Moment estimate: within-person scatter for T_eps, the excess of the scatter between people over it for T_mu.

    `ridge` is relative to the mean eigenvalue and makes both positive definite if any two images differ. If nobody has
    two images, each gets half of the total: only different weights could determine the split. Gradients are stopped.
    """
    checks.positive("ridge", ridge)
    found = moment_start.moments_of(stats)
    return JointBayes(
        mean=found.mean,
        identity_cov=_with_ridge(_positive_part(found.identity), ridge, found.of_people),
        noise_cov=_with_ridge(psd.symmetrize(found.noise), ridge, found.of_images),
    )


def m_step(moments: Moments, prior: JointBayes | None, prior_weight: jax.Array | float) -> JointBayes:
    """(5): `T = w S + (1 - w) E[. .'] / number`, both covariances; the mean is that of the moments."""
    for name, number in (("num_people", moments.num_people), ("num_images", moments.num_images)):
        if checks.is_concrete(number):  # under a transformation the E-step has turned wrong counts into NaN
            numbers_of_images(f"{name} of moments", number)
    identity = moments.identity / moments.num_people
    noise = moments.noise / moments.num_images
    if prior is not None:
        identity = _mix(prior.identity_cov, identity, prior_weight)
        noise = _mix(prior.noise_cov, noise, prior_weight)
    return JointBayes(mean=moments.mean, identity_cov=identity, noise_cov=noise)


def update(
    model: JointBayes,
    stats: GroupedStats,
    prior: JointBayes | None,
    prior_weight: jax.Array | float,
    *,
    e_step: EStep,
    floor: float,
    within_pivot: jax.Array | float = 0.0,
) -> tuple[JointBayes, jax.Array, jax.Array]:
    """One EM step: the new model, the objective at the old one, and the ridge added to the noise covariance.

    `within_pivot` is the least Cholesky pivot of S_w if it is known, which may save a factorisation. Gradients are
    stopped.
    """
    arguments = (model, stats, prior, prior_weight, within_pivot)
    model, stats, prior, prior_weight, within_pivot = jax.lax.stop_gradient(arguments)
    moments, log_likelihood = e_step(model, stats)
    new = m_step(moments, prior, prior_weight)
    # With w = 1 the source is returned unchanged, without a floor.
    relative = jnp.where(jnp.asarray(prior_weight) < 1, jnp.asarray(floor, new.noise_cov.dtype), 0)
    # Pivots grow with the matrix, and T_eps is at least (1 - w) S_w / k.
    least = jnp.asarray((1 - prior_weight) * within_pivot / moments.num_images)
    scale = (jnp.trace(new.noise_cov) + mean_weight(stats) * jnp.trace(new.identity_cov)) / len(new.mean)
    noise, jitter = floored(new.noise_cov, scale, relative, least)
    objective = log_likelihood
    if prior is not None:
        penalty = objectives.divergence(model, prior, stats)
        weighted = jnp.where(jnp.asarray(prior_weight) > 0, prior_weight * penalty, 0)
        objective = (1 - prior_weight) * log_likelihood - weighted
    return dataclasses.replace(new, noise_cov=noise), objective, jitter


def fit(
    stats: Stats,
    init: JointBayes,
    *,
    prior: JointBayes | None = None,
    prior_weight: jax.Array | float = 0.0,
    num_iters: int,
    tol: float = 0.0,
    e_step: EStep = posterior.full,
    floor: float = 1e-6,
) -> tuple[JointBayes, FitInfo]:
    """EM from `init`, whose mean is kept: people deviate from it.

    `prior_weight` is w = lambda / (1 + lambda) of the source model `prior`; w = 1 returns its covariances exactly.
    `floor` is the least pivot of T_eps relative to the mean variance of an image, at least d eps: if a pivot is
    smaller, a ridge of that size is added and reported as jitter. If w = 0 and the images of a person do not vary in
    every direction, the likelihood has no maximum and the status is RANK_DEFICIENT. If w = 0 and every person has one
    image, it is UNIDENTIFIED, unless the images have weights that differ. Gradients are stopped.

    Without a prior `e_step=posterior.expanded` (PX-EM) reaches the maximum in a fraction of the steps.
    """
    if np.shape(prior_weight) != ():
        raise ValueError(
            f"prior_weight must be one number; got shape {np.shape(prior_weight)}. transfer.fit_path takes several."
        )
    stats, init, prior = checked_problem(stats, init, prior, prior_weight, e_step=e_step)
    checks.positive("floor", floor)
    return fit_grouped(
        grouped(stats), init, prior, prior_weight, num_iters=num_iters, tol=tol, e_step=e_step, floor=floor
    )


@partial(jax.jit, static_argnames=("num_iters", "tol", "e_step", "floor"))
def fit_grouped(
    stats: GroupedStats,
    init: JointBayes,
    prior: JointBayes | None,
    prior_weight: jax.Array | float,
    *,
    num_iters: int,
    tol: float,
    e_step: EStep,
    floor: float,
) -> tuple[JointBayes, FitInfo]:
    """`fit` of grouped statistics, jitted; `transfer` vmaps it over prior weights."""
    prior_weight = jnp.asarray(prior_weight, stats.rows.dtype)
    stats, init, prior, prior_weight = jax.lax.stop_gradient((stats, init, prior, prior_weight))
    within_pivot = least_pivot(stats.within)

    def step(state: tuple[JointBayes, jax.Array]) -> tuple[tuple[JointBayes, jax.Array], jax.Array]:
        model, jitter = state
        model, objective, added = update(
            model, stats, prior, prior_weight, e_step=e_step, floor=floor, within_pivot=within_pivot
        )
        return (model, jnp.maximum(jitter, added)), objective

    start = (init, jnp.zeros((), stats.rows.dtype))
    (model, jitter), trace = loops.iterate(step, start, num_iters=num_iters, tol=tol)
    status = fitinfo.worst(trace.status, diagnosis(stats, init, prior, prior_weight, jitter))
    return model, fitinfo.iterative(status=status, num_iters=trace.num_iters, objective=trace.objective, jitter=jitter)


def diagnosis(
    stats: GroupedStats,
    init: JointBayes | LowRankJointBayes,
    prior: JointBayes | None,
    prior_weight: jax.Array,
    jitter: jax.Array,
) -> jax.Array:
    """The status of the problem itself, by its counts and covariances."""
    has_no_prior = prior_weight <= 0
    people, k = stats.num_people.sum(), num_images(stats)
    smallest, largest = (
        jnp.where(stats.num_people > 0, stats.count, jnp.inf).min(),
        jnp.where(stats.num_people > 0, stats.count, 0).max(),
    )
    # One image a person: T_mu + T_eps / q tells the two apart if q takes several values.
    single = (k <= people) & (largest <= smallest * (1 + 8 * machine.eps(stats.rows.dtype)))
    # The likelihood grows without bound as T_eps vanishes in a direction in which nobody's several images differ.
    squares = (stats.row_count[:, None] * rows_about(stats, init.mean) ** 2).sum(axis=0)
    # Rounding is that of the sums before the mean was subtracted.
    within_is_definite = psd.exceeds_rounding(stats.within, jnp.diagonal(stats.within) + squares)
    unbounded = has_no_prior & ((jitter > 0) | (k > people) & ~within_is_definite)
    covariances = [init.noise_cov] if prior is None else [init.noise_cov, prior.noise_cov]
    definite = jnp.stack([psd.exceeds_rounding(cov, jnp.diagonal(cov)) for cov in covariances]).all()

    # Sums of squares near the smallest number of the dtype have lost their digits; smaller ones are zero.
    scale = jnp.trace(stats.within) + squares.sum()
    least = machine.tiny(scale.dtype) / machine.eps(scale.dtype)
    sizes = jnp.stack([scale, *(jnp.trace(cov) for cov in covariances)])
    has_digits = ((sizes == 0) | (sizes > least)).all()
    is_lost = ~(has_digits & fitinfo.all_finite((stats, init, prior)))
    unidentified = (has_no_prior & (single | (people < 2))) | ((people < 1) & (prior_weight < 1))
    return fitinfo.diagnose(
        (unidentified, Status.UNIDENTIFIED),
        (is_lost, Status.NON_FINITE),
        (~definite, Status.NOT_PSD),
        (unbounded, Status.RANK_DEFICIENT),
    )


def _mix(source: jax.Array, target: jax.Array, prior_weight: jax.Array | float) -> jax.Array:
    # w = 1 gives the source to the last bit, whatever the target.
    mixed = prior_weight * source + (1 - prior_weight) * target
    return jnp.where(jnp.asarray(prior_weight) < 1, mixed, source)


@program
def floored(noise: jax.Array, scale: jax.Array, floor: jax.Array, least: jax.Array) -> Floored:
    """Adds a ridge where the smallest Cholesky pivot falls below `floor` times `scale`, the mean variance of an image.

    `least` is a lower bound of the pivots; if the bound suffices, they are not computed.
    """
    d = noise.shape[0]
    # A ridge below the rounding of the factorisation would have no effect.
    floor = jnp.where(floor > 0, jnp.maximum(floor, d * machine.eps(noise.dtype)), 0)
    # A failed factorisation gives NaN, for which comparisons are false.
    pivot = jax.lax.cond(least >= floor * scale, lambda: least, lambda: least_pivot(noise))
    jitter = jnp.where((pivot >= floor * scale) | (floor == 0), 0, floor * scale)
    return Floored(noise + jitter * jnp.eye(d, dtype=noise.dtype), jitter)


def least_pivot(a: jax.Array) -> jax.Array:
    """The least squared pivot of the Cholesky factor; NaN where a matrix is not positive definite."""
    return (jnp.diagonal(psd.cholesky(a)) ** 2).min()


def _positive_part(a: jax.Array) -> jax.Array:
    values, vectors = spectral.eigh(a)
    return (vectors * jnp.maximum(values, 0)[None, :]) @ vectors.T


def _with_ridge(a: jax.Array, ridge: float, scale: jax.Array) -> jax.Array:
    """`A + ridge (tr scale / d) I`: relative to a matrix that cannot be zero."""
    d = a.shape[0]
    return a + ridge * (jnp.trace(scale) / d) * jnp.eye(d, dtype=a.dtype)


def checked_problem(
    stats: Stats, init: JointBayes, prior: JointBayes | None, prior_weights: ArrayLike, *, e_step: EStep
) -> tuple[Stats, JointBayes, JointBayes | None]:
    """The problem in one dtype: shapes that agree, two people at least, w in [0, 1], and a prior where w is not 0."""
    if prior is not None and e_step is posterior.expanded:
        raise ValueError(
            "prior must be None with e_step=posterior.expanded; got a source model. PX-EM mixed with a prior would "
            "let the objective fall: use e_step=posterior.full, which converges quickly with a prior."
        )
    arguments = {"sum": (stats.sum, "c d"), "count": (stats.count, "c")} | axes_of("init", init)
    if prior is not None:
        arguments |= axes_of("prior", prior)
    checks.shapes(**arguments)
    checks.floating(**{name: value for name, (value, _) in arguments.items() if name != "count"})
    at_least_two_people(stats)
    if prior is None and checks.is_concrete(prior_weights) and bool(np.any(np.asarray(prior_weights) != 0)):
        raise ValueError(
            f"prior_weight must be 0 without a prior; got {prior_weights}. Give the source model as prior."
        )
    checks.between("prior_weight", prior_weights, 0.0, 1.0)
    dtype = jnp.result_type(*jax.tree.leaves((stats, init, prior)))
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), (stats, init, prior))


def at_least_two_people(stats: Stats) -> None:
    """Refuses statistics of fewer people, where the counts are known."""
    if checks.is_concrete(stats.count) and (num_people := int((np.asarray(stats.count) > 0).sum())) < 2:
        raise ValueError(
            f"stats must hold images of at least two people; got {num_people}. Add people: differences between them "
            "determine the identity covariance."
        )


def axes_of(name: str, model: JointBayes) -> dict[str, tuple[jax.Array, str]]:
    """The fields of a model with their axes, for `checks.shapes`; messages call it `name`."""
    specs = {"mean": "d", "identity_cov": "d d", "noise_cov": "d d"}
    return {f"{name}_{field}": (getattr(model, field), spec) for field, spec in specs.items()}
