"""Expectation maximisation, for mixtures of probabilistic CCA and of Gaussians alike.

An M-step is a regression of every view on [z; 1] with the responsibilities g as weights; Psi is the residual covariance

    Psi = sum g E[(v - mu - W z)(v - mu - W z)'] / sum g

This is (35), (36) for any mu and W; diagonal noise takes its diagonal. The paper leaves the order of (31)-(36) open.
`joint` solves for mu and W together and raises the likelihood most; `sequential` updates mu with the old W, then W.
Both are monotone and have the same fixed points. W = 0 is one of them: never start there.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo, loops, machine
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.linalg import scaling
from jaxface.linalg.psd import symmetrize
from jaxface.linalg.small_cholesky import inverse, inverse_factor
from jaxface.mixtures import stats
from jaxface.mixtures.patterns import Samples, are_connected, to_blocks
from jaxface.mixtures.pcca import PCCAMixture
from jaxface.mixtures.repairs import is_empty, least_noise, raise_noise, reseed
from jaxface.mixtures.stats import Moments, ViewMoments, positive_floor
from jaxface.mixtures.views import (
    Mixture,
    View,
    batched_matvec,
    diagonal,
    in_units,
    is_full,
)

__all__ = ["fit", "joint", "m_step", "sequential"]

M = TypeVar("M", bound=Mixture)
# From the old views and the moments to views with new means and loadings; the noise stays the same.
Regression = Callable[[tuple[View, ...], Moments], tuple[View, ...]]

# Powers of two up to this one have an inverse in float32, too.
_LARGEST_POWER = 120


class Repairs(NamedTuple):
    """Repairs made in an M-step so that the model stays valid."""

    jitter: jax.Array  # [v], the largest floor that a variance of each view was raised to; 0 when none
    num_empty: jax.Array  # int32 [], components re-seeded
    num_unseen: jax.Array  # int32 [], views of the other components that none of their samples has: they stay


def joint(views: tuple[View, ...], moments: Moments) -> tuple[View, ...]:
    """The mean and W together: `W = Cov[v, z] Cov[z]^-1`, `mu = E[v] - W E[z]`."""

    def of_view(view: View, sums: ViewMoments) -> View:
        weight = positive_floor(sums.weight)
        z, r = sums.latent / weight[:, None], sums.first / weight[:, None]
        precision = _precision(sums.latent_second / weight[:, None, None] - z[:, :, None] * z[:, None, :])
        loadings = (sums.cross / weight[:, None, None] - r[:, :, None] * z[:, None, :]) @ precision
        return View(sums.center + r - batched_matvec(loadings, z), loadings, view.noise)

    return tuple(of_view(*pair) for pair in zip(views, moments.views, strict=True))


def sequential(views: tuple[View, ...], moments: Moments) -> tuple[View, ...]:
    """(31)-(34) in this order: mu with the old W, then W with the new mu."""

    def of_view(view: View, sums: ViewMoments) -> View:
        weight = positive_floor(sums.weight)
        precision = _precision(sums.latent_second / weight[:, None, None])
        move = (sums.first - batched_matvec(view.loadings, sums.latent)) / weight[:, None]
        cross = sums.cross - move[:, :, None] * sums.latent[:, None, :]
        return View(sums.center + move, cross / weight[:, None, None] @ precision, view.noise)

    return tuple(of_view(*pair) for pair in zip(views, moments.views, strict=True))


def residual(view: View, sums: ViewMoments) -> jax.Array:
    """`sum g E[(r - W z)(r - W z)']` for r about the means of `sums`: `[k, n, n]`, or its diagonal `[k, n]`."""
    w = view.loadings
    if is_full(view.noise):
        shared = w @ sums.cross.mT
        return sums.second - shared - shared.mT + w @ sums.latent_second @ w.mT
    return sums.second + ((w @ sums.latent_second - 2 * sums.cross) * w).sum(axis=2)


def m_step(model: M, moments: Moments, *, regression: Regression = joint, floor: float = 1e-6) -> tuple[M, Repairs]:
    """(30)-(36), from the moments at `model`; floors and empty components are treated as in `fit`."""
    checks.positive("floor", floor)
    views = regression(model.views, moments)
    recentered = stats.recenter(moments, tuple(view.mean for view in views))
    donors = reseed(moments.weight)
    width = sum(view.mean.shape[1] for view in views)
    repaired, jitters, num_unseen = [], [], jnp.zeros((), jnp.int32)
    for view, old, sums in zip(views, model.views, recentered.views, strict=True):
        new = view._replace(noise=stats.mean_of(residual(view, sums), sums.weight))
        # Samples of the component that all lack this view say nothing about its parameters.
        unseen = is_empty(sums.weight, moments.weight) & ~is_empty(moments.weight, moments.weight)
        kept = jax.tree.map(lambda a, b, at=unseen: jnp.where(at.reshape(-1, *[1] * (a.ndim - 1)), a, b), old, new)
        mean, loadings, noise = (leaf[donors.source] for leaf in kept)
        noise, jitter = raise_noise(noise, least_noise(sums, floor)[donors.source])
        # Move the copy by one standard deviation in total, not per dimension; farther out it would attract no samples.
        move = jnp.sqrt(diagonal(noise) / width) * donors.steps[:, None]
        repaired.append(View(mean + move, loadings, noise))
        jitters.append(jitter)
        num_unseen += unseen.sum().astype(jnp.int32)
    repairs = Repairs(jnp.stack(jitters), donors.num_empty, num_unseen)
    return model.with_views(donors.log_weights, tuple(repaired)), repairs


def update(
    model: M, samples: Samples, factors: jax.Array | None = None, *, regression: Regression, floor: float
) -> tuple[M, jax.Array, Repairs]:
    """One step on samples (times `factors` `[n]`): the new model, the log-likelihood of the old one, the repairs."""
    moments, log_likelihood = stats.e_step_blocks(model.log_weights, model.views, samples, factors)
    model, repairs = m_step(model, moments, regression=regression, floor=floor)
    return model, log_likelihood, repairs


def fit(
    x: ArrayLike,
    y: ArrayLike,
    init: PCCAMixture,
    *,
    num_iters: int,
    tol: float = 0.0,
    sample_weights: ArrayLike | None = None,
    regression: Regression = joint,
    floor: float = 1e-6,
    block_size: int = 1024,
) -> tuple[PCCAMixture, FitInfo]:
    """EM on pairs x `[s, n]`, y `[s, m]` from `init`; entry t of the objective trace is (12) before step t.

    num_iters       steps of EM
    tol             stop where a step gains less, relative to the objective; 0 makes every step
    sample_weights  `[s]`, how often each pair counts; None counts each pair once
    regression      `joint` or `sequential`
    floor           least noise, relative to the variance of the dimension over all pairs; for full noise the same holds
                    in every direction. float32 may need more where a component has few pairs
    block_size      pairs in flight; the result does not depend on it

    Where the last step raised noise to its floor, that floor is the jitter and the status is RANK_DEFICIENT: the
    likelihood has no maximum. A component without pairs restarts as a copy of the heaviest one, takes a part of its
    weight and counts as replaced; where the last step did so the status is EMPTY_COMPONENT. Where a variance leaves the
    range of its type, as with float32 data near 1e20 or 1e-20, the status is NON_FINITE.
    """
    checks.positive("floor", floor)
    samples = to_blocks(init, (x, y), sample_weights, block_size)
    return fit_blocks(samples, init, num_iters=num_iters, tol=tol, regression=regression, floor=floor)


@partial(jax.jit, static_argnames=("num_iters", "tol", "regression", "floor"))
def fit_blocks(
    samples: Samples, init: M, *, num_iters: int, tol: float, regression: Regression, floor: float
) -> tuple[M, FitInfo]:
    """`fit` of samples in blocks, for any mixture; data and start are cast to the wider of their types."""
    dtype = jnp.result_type(*jax.tree.leaves((samples, init)))
    samples, init = jax.tree.map(lambda leaf: leaf.astype(dtype), (samples, init))
    powers = _powers(samples, init)
    by_dimension = _by_dimension(init, powers)
    factors = scaling.shifted(jnp.ones(by_dimension.shape, dtype), -by_dimension)
    init = _in_units(init, powers)
    none = jnp.zeros((), jnp.int32)

    def step(state: tuple[M, Repairs, jax.Array]) -> tuple[tuple[M, Repairs, jax.Array], jax.Array]:
        model, log_likelihood, repairs = update(state[0], samples, factors, regression=regression, floor=floor)
        return (model, repairs, state[2] + repairs.num_empty), log_likelihood

    start = (init, Repairs(jnp.zeros(len(init.views), dtype), none, none), none)
    (model, last, replaced), trace = loops.iterate(step, start, num_iters=num_iters, tol=tol)
    is_identified = are_connected(samples, len(init.views)) | (init.views[0].loadings.shape[2] == 0)
    model, jitter = _in_units(model, -powers), scaling.shifted(last.jitter, 2 * powers).max()
    of_components = fitinfo.diagnose(
        (last.num_empty + last.num_unseen > 0, Status.EMPTY_COMPONENT),
        (~is_identified, Status.UNIDENTIFIED),
        ((last.jitter > 0).any(), Status.RANK_DEFICIENT),
    )
    # NON_FINITE outranks the rest: with NaN, or variances that are out of range, the other statuses mean nothing.
    is_lost = ~is_in_range(model) | (trace.status == Status.NON_FINITE)
    return model, fitinfo.iterative(
        status=fitinfo.diagnose((is_lost, Status.NON_FINITE), otherwise=fitinfo.worst(trace.status, of_components)),
        num_iters=trace.num_iters,
        objective=trace.objective - _log_units(samples, init, powers),
        jitter=jitter,
        num_replaced=replaced,
    )


def is_in_range(model: Mixture) -> jax.Array:
    """Whether all parameters are finite and no variance has vanished in the rounding of its type."""
    least = [diagonal(view.noise).min(initial=jnp.inf) for view in model.views]
    tiny = machine.tiny(least[0].dtype)
    return fitinfo.all_finite(model.views) & (jnp.stack(least) >= tiny).all() & ~jnp.isnan(model.log_weights).any()


def _powers(samples: Samples, init: Mixture) -> jax.Array:
    """A power of two int32 `[v]` for each view that scales its samples to ordinary size; 0 where they have it."""
    powers = []
    for v, view in enumerate(init.views):
        center = jax.nn.softmax(init.log_weights) @ view.mean
        sizes = []
        for pattern, group in zip(samples.patterns, samples.groups, strict=True):
            if v in pattern:
                start = sum(init.views[other].mean.shape[1] for other in pattern if other < v)
                part = group.values[:, :, start : start + view.mean.shape[1]]
                # The deviations of a constant view are rounding and say nothing about its size.
                rounding = 64 * machine.eps(part.dtype) * jnp.abs(part)
                sizes.append(jnp.maximum(jnp.abs(part - center[None, None, :]), rounding))
        powers.append(scaling.exponent(*sizes) if sizes else jnp.zeros((), jnp.int32))
    return jnp.clip(jnp.stack(powers), -_LARGEST_POWER, _LARGEST_POWER)


def _log_units(samples: Samples, init: Mixture, powers: jax.Array) -> jax.Array:
    """The log-likelihood of samples in units of `2^powers` minus that in the units of the data."""
    parts = []
    for pattern, group in zip(samples.patterns, samples.groups, strict=True):
        shift = jnp.stack([init.views[v].mean.shape[1] * powers[v] for v in pattern]).sum()
        total = group.sample_weights.sum()
        parts.append(total * (math.log(2) * shift.astype(total.dtype)))
    return jnp.stack(parts).sum()


def _by_dimension(model: Mixture, powers: jax.Array) -> jax.Array:
    """The powers of the views `[v]` for all of their dimensions `[n]`."""
    widths = [view.mean.shape[1] for view in model.views]
    return jnp.concatenate([jnp.full(width, power) for width, power in zip(widths, powers, strict=True)])


def _in_units(model: M, powers: jax.Array) -> M:
    """The model with view v in units of `2^powers[v]`."""
    views = tuple(in_units(view, power) for view, power in zip(model.views, powers, strict=True))
    return model.with_views(model.log_weights, views)


def _precision(second: jax.Array) -> jax.Array:
    """The inverse of second moments of z `[k, d, d]`, with a relative ridge of sqrt(eps) where one is nearly singular.

    In exact arithmetic none is singular. A component without samples has moments of zero; with the ridge its loadings
    become zero and not NaN.
    """
    d, eps = second.shape[1], machine.eps(second.dtype)
    least = positive_floor(eps**0.5 * jnp.trace(second, axis1=1, axis2=2) / max(d, 1))
    second = symmetrize(second)
    pivots = jnp.diagonal(inverse_factor(jax.lax.stop_gradient(second)), axis1=1, axis2=2)
    lowest = pivots.max(axis=1, initial=0) ** -2
    # The ridge fades out continuously, so that it does not switch on and off between steps.
    ridge = jnp.where(jnp.isnan(lowest), least, jnp.clip(2 * least - lowest, 0, least))  # NaN: no Cholesky factor
    return inverse(second + ridge[:, None, None] * jnp.eye(d, dtype=second.dtype)[None])
