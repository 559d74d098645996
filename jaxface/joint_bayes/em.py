"""Expectation maximisation with a source model as prior.

Each step ascends `(1 - w) log p(X | T) - w [n KL(N(0, S_mu) || N(0, T_mu)) + k KL(N(0, S_eps) || N(0, T_eps))]` with n
people, k images and `w = lambda / (1 + lambda)`: the trace of a fit, finite for every w in [0, 1]. The prior counts as
lambda n people, so it never fades as target data grow; choose w for each amount of data (`transfer`).

Every E-step works in a basis of eigenvectors, so gradients of fits are stopped; `objectives` may be differentiated.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import checks, fitinfo, loops
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.joint_bayes import objectives, posterior
from jaxface.joint_bayes.model import JointBayes
from jaxface.joint_bayes.posterior import EStep, Moments
from jaxface.joint_bayes.stats import Rows, Stats, about, by_person, numbers_of_images, recenter, rows_of
from jaxface.linalg import psd, spectral

__all__ = ["fit", "fit_rows", "init"]


class Floored(NamedTuple):
    """A covariance and the ridge that it needed."""

    cov: jax.Array  # [d, d]
    jitter: jax.Array  # [], 0 when none


def init(stats: Stats, *, ridge: float = 1e-3) -> JointBayes:
    """Moment estimate: within-person scatter for T_eps, what the scatter between people has beyond it for T_mu.

    `ridge` is added relative to the mean eigenvalue, so both are positive definite where any two images differ. Where
    nobody has two images the split is unknown and half of the total goes to each. Gradients are stopped.
    """
    checks.positive("ridge", ridge)
    stats = recenter(jax.lax.stop_gradient(stats))
    rows = by_person(stats)
    n, k = rows.num_people.sum(), rows.count.sum()
    freedom = k - n
    effective = (k - (rows.count**2).sum() / jnp.maximum(k, 1)) / jnp.maximum(n - 1, 1)
    noise = rows.within / jnp.maximum(freedom, 1)
    between = (stats.second_moment - rows.within) / jnp.maximum(n - 1, 1)
    total = stats.second_moment / jnp.maximum(k, 1)
    has_pairs = freedom > 0
    noise = jnp.where(has_pairs, noise, total / 2)
    identity = jnp.where(has_pairs, (between - noise) / jnp.maximum(effective, 1), total / 2)
    return JointBayes(
        mean=stats.shift,
        identity_cov=_with_ridge(_positive_part(identity), ridge, total),
        noise_cov=_with_ridge(psd.symmetrize(noise), ridge, total),
    )


def m_step(moments: Moments, prior: JointBayes | None, weight: jax.Array | float) -> tuple[jax.Array, jax.Array]:
    """(5): `T = w S + (1 - w) E[. .'] / number`, both covariances."""
    for name, number in (("num_people", moments.num_people), ("num_images", moments.num_images)):
        if checks.is_concrete(number):  # differentiable otherwise; an E-step makes NaN of wrong counts
            numbers_of_images(f"{name} of moments", number)
    identity = moments.identity / moments.num_people
    noise = moments.noise / moments.num_images
    if prior is None:
        return identity, noise
    mix = partial(_mix, weight=weight)
    return mix(prior.identity_cov, identity), mix(prior.noise_cov, noise)


def update(
    model: JointBayes,
    rows: Rows,
    prior: JointBayes | None,
    weight: jax.Array | float,
    *,
    e_step: EStep,
    floor: float,
    within_pivot: jax.Array | float = 0.0,
) -> tuple[JointBayes, jax.Array, jax.Array]:
    """One EM step: the new model, the objective at the old one, and the ridge that the noise needed.

    `within_pivot` is the least Cholesky pivot of S_w where it is known, which may save a factorisation. Gradients are
    stopped.
    """
    model, rows, prior, weight, within_pivot = jax.lax.stop_gradient((model, rows, prior, weight, within_pivot))
    moments, log_likelihood = e_step(model, rows)
    identity, noise = m_step(moments, prior, weight)
    # w = 1 gives the source back as it is.
    relative = jnp.where(jnp.asarray(weight) < 1, jnp.asarray(floor, noise.dtype), 0)
    # Pivots grow with the matrix, and T_eps is at least (1 - w) S_w / k.
    least = jnp.asarray((1 - weight) * within_pivot / moments.num_images)
    noise, jitter = _floored(noise, identity, relative, least)
    objective = log_likelihood
    if prior is not None:
        penalty = objectives.divergence(model, prior, rows)
        objective = (1 - weight) * log_likelihood - jnp.where(jnp.asarray(weight) > 0, weight * penalty, 0)
    return JointBayes(mean=model.mean, identity_cov=identity, noise_cov=noise), objective, jitter


def fit(
    stats: Stats,
    init: JointBayes,
    *,
    prior: JointBayes | None = None,
    weight: jax.Array | float = 0.0,
    num_iters: int,
    tol: float = 0.0,
    e_step: EStep = posterior.full,
    floor: float = 1e-6,
) -> tuple[JointBayes, FitInfo]:
    """EM from `init`, whose mean is kept: people deviate from it.

    `weight` is w = lambda / (1 + lambda) of the source model `prior`; w = 1 returns its covariances exactly. `floor` is
    the least pivot of T_eps relative to the mean variance of an image, and never less than d roundings: where T_eps
    falls below, a ridge of that size is added and reported as jitter. With w = 0 and fewer directions that vary within
    people than exist the status is RANK_DEFICIENT, for the likelihood has no maximum then. Entry t of the objective
    trace is its value before step t. Gradients are stopped.
    """
    if np.shape(weight) != ():
        raise ValueError(f"weight must be one number; got shape {np.shape(weight)}. transfer.fit_path takes several.")
    stats, init, prior = checked_problem(stats, init, prior, weight)
    checks.positive("floor", floor)
    return fit_rows(rows_of(stats), init, prior, weight, num_iters=num_iters, tol=tol, e_step=e_step, floor=floor)


@partial(jax.jit, static_argnames=("num_iters", "tol", "e_step", "floor"))
def fit_rows(
    rows: Rows,
    init: JointBayes,
    prior: JointBayes | None,
    weight: jax.Array | float,
    *,
    num_iters: int,
    tol: float,
    e_step: EStep,
    floor: float,
) -> tuple[JointBayes, FitInfo]:
    """`fit` of statistics in rows, jitted; `transfer` vmaps it over weights."""
    weight = jnp.asarray(weight, rows.rows.dtype)
    rows, init, prior, weight = jax.lax.stop_gradient((rows, init, prior, weight))
    within_pivot = _least_pivot(rows.within)

    def step(state: tuple[JointBayes, jax.Array]) -> tuple[tuple[JointBayes, jax.Array], jax.Array]:
        model, jitter = state
        model, objective, added = update(
            model, rows, prior, weight, e_step=e_step, floor=floor, within_pivot=within_pivot
        )
        return (model, jnp.maximum(jitter, added)), objective

    start = (init, jnp.zeros((), rows.rows.dtype))
    (model, jitter), trace = loops.iterate(step, start, num_iters=num_iters, tol=tol)
    status = fitinfo.worst(trace.status, _diagnosis(rows, init, prior, weight, jitter))
    return model, fitinfo.iterative(status=status, num_iters=trace.num_iters, objective=trace.objective, jitter=jitter)


def _diagnosis(
    rows: Rows, init: JointBayes, prior: JointBayes | None, weight: jax.Array, jitter: jax.Array
) -> jax.Array:
    """What the counts and covariances say about the problem itself."""
    alone = weight <= 0
    single = jnp.where(rows.num_people > 0, rows.count, 0).max() <= 1
    people = rows.num_people.sum()
    # The likelihood grows without bound as T_eps vanishes where no image differs from its person's mean.
    scale = jnp.trace(rows.within) + (rows.row_count[:, None] * about(rows, init.mean) ** 2).sum()
    unbounded = alone & ((jitter > 0) | ~_definite(rows.within, scale))
    given = [init.noise_cov] if prior is None else [init.noise_cov, prior.noise_cov]
    definite = jnp.stack([_definite(cov, jnp.trace(cov)) for cov in given]).all()

    # Sums of squares near the smallest number of the type have lost their digits, and lesser ones are zero.
    least = float(jnp.finfo(scale.dtype).tiny) / float(jnp.finfo(scale.dtype).eps)
    sizes = jnp.stack([scale, *(jnp.trace(cov) for cov in given)])
    has_digits = ((sizes == 0) | (sizes > least)).all()
    is_lost = ~(has_digits & fitinfo.all_finite((rows, init, prior)))
    unidentified = (alone & (single | (people < 2))) | ((people < 1) & (weight < 1))
    return fitinfo.diagnose(
        (unidentified, Status.UNIDENTIFIED),
        (is_lost, Status.NON_FINITE),
        (~definite, Status.NOT_PSD),
        (unbounded, Status.RANK_DEFICIENT),
    )


def _definite(a: jax.Array, scale: jax.Array) -> jax.Array:
    """Whether every Cholesky pivot stands out of the rounding of a matrix with the trace `scale`."""
    return _least_pivot(a) > a.shape[0] * float(jnp.finfo(a.dtype).eps) * scale  # false for NaN


def _mix(source: jax.Array, target: jax.Array, *, weight: jax.Array | float) -> jax.Array:
    # w = 1 gives the source to the last bit, whatever the target.
    return jnp.where(jnp.asarray(weight) < 1, weight * source + (1 - weight) * target, source)


def _floored(noise: jax.Array, identity: jax.Array, floor: jax.Array, least: jax.Array) -> Floored:
    """Adds a ridge where the smallest Cholesky pivot falls below `floor` times the mean variance of an image.

    No pivot is smaller than `least`; where that is enough they are not computed.
    """
    d = noise.shape[0]
    # A ridge below the rounding of the factorisation would not mend it.
    floor = jnp.where(floor > 0, jnp.maximum(floor, d * float(jnp.finfo(noise.dtype).eps)), 0)
    scale = (jnp.trace(noise) + jnp.trace(identity)) / d
    # Comparisons are false for NaN, where a factorisation failed.
    pivot = jax.lax.cond(least >= floor * scale, lambda: least, lambda: _least_pivot(noise))
    jitter = jnp.where((pivot >= floor * scale) | (floor == 0), 0, floor * scale)
    return Floored(noise + jitter * jnp.eye(d, dtype=noise.dtype), jitter)


def _least_pivot(a: jax.Array) -> jax.Array:
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
    stats: Stats, init: JointBayes, prior: JointBayes | None, weight: jax.Array | float
) -> tuple[Stats, JointBayes, JointBayes | None]:
    """The problem in one dtype: shapes that agree, two people at least, w in [0, 1], and a prior where w is not 0."""
    arguments = {"sum": (stats.sum, "c d"), "count": (stats.count, "c")} | _axes("init", init)
    if prior is not None:
        arguments |= _axes("prior", prior)
    checks.shapes(**arguments)
    checks.floating(**{name: value for name, (value, _) in arguments.items() if name != "count"})
    if checks.is_concrete(stats.count) and (present := int((np.asarray(stats.count) > 0).sum())) < 2:
        raise ValueError(f"stats must hold images of at least two people; got {present}. An identity needs others.")
    if prior is None and checks.is_concrete(weight) and bool(np.any(np.asarray(weight) != 0)):
        raise ValueError(f"weight must be 0 without a prior; got {weight}. Give the source model as prior.")
    checks.between("weight", weight, 0.0, 1.0)
    dtype = jnp.result_type(*jax.tree.leaves((stats, init, prior)))
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), (stats, init, prior))


def _axes(name: str, model: JointBayes) -> dict[str, tuple[jax.Array, str]]:
    specs = {"mean": "d", "identity_cov": "d d", "noise_cov": "d d"}
    return {f"{name}_{field}": (getattr(model, field), spec) for field, spec in specs.items()}
