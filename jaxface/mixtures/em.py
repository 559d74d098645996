"""Expectation maximisation, for mixtures of probabilistic CCA and of Gaussians alike.

An M-step is a regression of every view on [z; 1], the responsibilities being weights, and Psi is what it leaves over:

    Psi = sum g E[(v - mu - W z)(v - mu - W z)'] / sum g

which is (35), (36) for any mu and W; diagonal noise takes the diagonal of it. The paper does not say in which order
(31)-(36) are done. `joint` solves for mu and W together and raises the likelihood most; `sequential` takes mu with the
old W, then W. Both are monotone and have the same fixed points. W = 0 is one of them: never start there.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo, loops
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.linalg import scaling, spectral
from jaxface.linalg.psd import symmetrize
from jaxface.linalg.small_cholesky import inverse, inverse_factor
from jaxface.mixtures import stats
from jaxface.mixtures.pcca import PCCAMixture
from jaxface.mixtures.stats import Moments, Rows, ViewMoments, safe
from jaxface.mixtures.views import Mixture, View, diagonal, in_units, is_full, typical_variance, varies

__all__ = ["fit", "joint", "m_step", "sequential"]

M = TypeVar("M", bound=Mixture)
# From the old views and the moments to views with new means and loadings; the noise is left as it is.
Regression = Callable[[tuple[View, ...], Moments], tuple[View, ...]]

# A component that holds less than this part of the samples is empty.
_EMPTY = 1e-8
# Squared distances in units of the noise stay below one over this many units of rounding, or nothing is left of u.
_RESOLUTION = 16


# Powers of two whose inverses are in range too.
_LARGEST_POWER = 120


class Repairs(NamedTuple):
    """What an M-step did so that the model stays valid."""

    jitter: jax.Array  # [v], the largest floor that a variance of each view needed; 0 when none
    num_empty: jax.Array  # int32 [], components re-seeded


class Donors(NamedTuple):
    """Where each component comes from."""

    source: jax.Array  # int32 [k], itself unless it is empty
    log_weights: jax.Array  # [k]
    steps: jax.Array  # [k], how far to move away, 0 for itself
    num_empty: jax.Array  # int32 []


def joint(views: tuple[View, ...], moments: Moments) -> tuple[View, ...]:
    """The mean and W together: `W = Cov[v, z] Cov[z]^-1`, `mu = E[v] - W E[z]`."""
    weight = safe(moments.weight)
    z = moments.latent / weight[:, None]
    precision = _precision(moments.latent_second / weight[:, None, None] - z[:, :, None] * z[:, None, :])

    def of_view(view: View, sums: ViewMoments) -> View:
        r = sums.first / weight[:, None]
        loadings = (sums.cross / weight[:, None, None] - r[:, :, None] * z[:, None, :]) @ precision
        return View(sums.about + r - _times(loadings, z), loadings, view.noise)

    return tuple(of_view(*pair) for pair in zip(views, moments.views, strict=True))


def sequential(views: tuple[View, ...], moments: Moments) -> tuple[View, ...]:
    """(31)-(34) in this order: mu with the old W, then W with the new mu."""
    weight = safe(moments.weight)
    precision = _precision(moments.latent_second / weight[:, None, None])

    def of_view(view: View, sums: ViewMoments) -> View:
        move = (sums.first - _times(view.loadings, moments.latent)) / weight[:, None]
        cross = sums.cross - move[:, :, None] * moments.latent[:, None, :]
        return View(sums.about + move, cross / weight[:, None, None] @ precision, view.noise)

    return tuple(of_view(*pair) for pair in zip(views, moments.views, strict=True))


def residual(view: View, moments: Moments, sums: ViewMoments) -> jax.Array:
    """`sum g E[(r - W z)(r - W z)']` for r about the means of `sums`: `[k, n, n]`, or its diagonal `[k, n]`."""
    w = view.loadings
    if is_full(view.noise):
        shared = w @ sums.cross.mT
        return sums.second - shared - shared.mT + w @ moments.latent_second @ w.mT
    return sums.second + ((w @ moments.latent_second - 2 * sums.cross) * w).sum(axis=2)


def m_step(model: M, moments: Moments, *, regression: Regression = joint, floor: float = 1e-6) -> tuple[M, Repairs]:
    """(30)-(36), from the moments at `model`; floors and empty components as in `fit`."""
    checks.positive("floor", floor)
    views = regression(model.views, moments)
    about = stats.recenter(moments, tuple(view.mean for view in views))
    donors = _donors(moments.weight)
    width = sum(view.mean.shape[1] for view in views)
    repaired, jitters = [], []
    for view, sums in zip(views, about.views, strict=True):
        noise = _over(residual(view, moments, sums), moments.weight)
        mean, loadings, noise = (leaf[donors.source] for leaf in (view.mean, view.loadings, noise))
        noise, jitter = _floored(noise, _least(moments, sums, floor)[donors.source])
        # One deviation in all dimensions together: a copy that is farther away would find no samples.
        apart = jnp.sqrt(diagonal(noise) / width) * donors.steps[:, None]
        repaired.append(View(mean + apart, loadings, noise))
        jitters.append(jitter)
    return model.with_views(donors.log_weights, tuple(repaired)), Repairs(jnp.stack(jitters), donors.num_empty)


def update(
    model: M, rows: Rows, factors: jax.Array | None = None, *, regression: Regression, floor: float
) -> tuple[M, jax.Array, Repairs]:
    """One step on samples (times `factors` `[n]`): the new model, the log-likelihood of the old one, the repairs."""
    moments, log_likelihood = stats.collect(model.log_weights, model.views, rows, factors)
    model, repairs = m_step(model, moments, regression=regression, floor=floor)
    return model, log_likelihood, repairs


def fit(
    x: ArrayLike,
    y: ArrayLike,
    init: PCCAMixture,
    *,
    num_iters: int,
    tol: float = 0.0,
    weights: ArrayLike | None = None,
    regression: Regression = joint,
    floor: float = 1e-6,
    block_size: int = 1024,
) -> tuple[PCCAMixture, FitInfo]:
    """EM on pairs x `[s, n]`, y `[s, m]` from `init`; entry t of the objective trace is (12) before step t.

    `weights` `[s]` count a pair more or less often. `floor` is the least noise, relative to the variance of the
    dimension over all pairs (full noise: of any direction, in these units); float32 may need more, to resolve a
    component of few pairs. Where the last step needed it, it is the jitter and the status is RANK_DEFICIENT: the
    likelihood has no maximum. A component without pairs takes a part of the heaviest one and counts as replaced; where
    the last step had one the status is EMPTY_COMPONENT. Where a variance leaves the range of its type, as that of
    float32 data near 1e20 or 1e-20 does, the status is NON_FINITE.
    """
    checks.positive("floor", floor)
    rows = stats.split(init, (x, y), weights, block_size)
    return fit_rows(rows, init, num_iters=num_iters, tol=tol, regression=regression, floor=floor)


@partial(jax.jit, static_argnames=("num_iters", "tol", "regression", "floor"))
def fit_rows(
    rows: Rows, init: M, *, num_iters: int, tol: float, regression: Regression, floor: float
) -> tuple[M, FitInfo]:
    """`fit` of samples in blocks, for any mixture; data and start meet in the wider type."""
    dtype = jnp.result_type(rows.values, *jax.tree.leaves(init))
    rows, init = jax.tree.map(lambda leaf: leaf.astype(dtype), (rows, init))
    powers = _powers(rows, init)
    by_dimension = _by_dimension(init, powers)
    factors = scaling.shifted(jnp.ones(by_dimension.shape, dtype), -by_dimension)
    init = _in_units(init, powers)
    none = jnp.zeros((), jnp.int32)

    def step(state: tuple[M, Repairs, jax.Array]) -> tuple[tuple[M, Repairs, jax.Array], jax.Array]:
        model, log_likelihood, repairs = update(state[0], rows, factors, regression=regression, floor=floor)
        return (model, repairs, state[2] + repairs.num_empty), log_likelihood

    start = (init, Repairs(jnp.zeros(len(init.views), dtype), none), none)
    (model, last, replaced), trace = loops.iterate(step, start, num_iters=num_iters, tol=tol)
    log_units = math.log(2) * by_dimension.sum().astype(dtype)
    model, jitter = _in_units(model, -powers), scaling.shifted(last.jitter, 2 * powers).max()
    of_components = fitinfo.diagnose(
        (last.num_empty > 0, Status.EMPTY_COMPONENT), ((last.jitter > 0).any(), Status.RANK_DEFICIENT)
    )
    # NON_FINITE outranks the rest: with NaN, or variances that are out of range, the other statuses mean nothing.
    is_lost = ~is_in_range(model) | (trace.status == Status.NON_FINITE)
    return model, fitinfo.iterative(
        status=fitinfo.diagnose((is_lost, Status.NON_FINITE), otherwise=fitinfo.worst(trace.status, of_components)),
        num_iters=trace.num_iters,
        objective=trace.objective - rows.weights.sum() * log_units,
        jitter=jitter,
        num_replaced=replaced,
    )


def is_in_range(model: Mixture) -> jax.Array:
    """Whether all parameters are finite and no variance has vanished in the rounding of its type."""
    least = [diagonal(view.noise).min(initial=jnp.inf) for view in model.views]
    tiny = float(jnp.finfo(least[0].dtype).tiny)
    return fitinfo.all_finite(model.views) & (jnp.stack(least) >= tiny).all() & ~jnp.isnan(model.log_weights).any()


def _powers(rows: Rows, init: Mixture) -> jax.Array:
    """A power of two int32 `[v]` for each view that brings its samples to ordinary size; 0 where they have it."""
    found, start = [], 0
    for view in init.views:
        part = rows.values[:, :, start : (start := start + view.mean.shape[1])]
        center = jax.nn.softmax(init.log_weights) @ view.mean
        # A constant view deviates from its mean by rounding, which is no size.
        rounding = 64 * float(jnp.finfo(part.dtype).eps) * jnp.abs(part)
        found.append(scaling.exponent(jnp.maximum(jnp.abs(part - center[None, None, :]), rounding)))
    return jnp.clip(jnp.stack(found), -_LARGEST_POWER, _LARGEST_POWER)


def _by_dimension(model: Mixture, powers: jax.Array) -> jax.Array:
    """The powers of the views `[v]` for all of their dimensions `[n]`."""
    widths = [view.mean.shape[1] for view in model.views]
    return jnp.concatenate([jnp.full(width, power) for width, power in zip(widths, powers, strict=True)])


def _in_units(model: M, powers: jax.Array) -> M:
    """The model with view v in units of `2^powers[v]`."""
    views = tuple(in_units(view, power) for view, power in zip(model.views, powers, strict=True))
    return model.with_views(model.log_weights, views)


def _donors(weight: jax.Array) -> Donors:
    """The r-th empty component becomes a copy of the r-th heaviest and takes a part of its weight."""
    share = weight / safe(weight.sum())
    empty = share <= _EMPTY  # false for NaN, which is no lack of samples
    num_alive = jnp.maximum((~empty).sum(), 1)
    turn = jnp.cumsum(empty) - 1
    source = jnp.where(empty, jnp.argsort(-share)[turn % num_alive], jnp.arange(share.shape[0]))
    parts = jnp.zeros_like(share).at[source].add(1)
    # Several copies of one component move apart, one step each.
    steps = jnp.where(empty, 1 + turn // num_alive, 0).astype(share.dtype)
    return Donors(source, jnp.log(share[source] / parts[source]), steps, empty.sum().astype(jnp.int32))


def _least(moments: Moments, sums: ViewMoments, floor: float) -> jax.Array:
    """The least noise `[k, n]`: `floor` times the variance of the dimension over all samples, or what can be resolved.

    An E-step takes distances from the mean of all samples. Those of a component's own stay in the range of the dtype
    with noise of `n _RESOLUTION eps` times its squares about there: float32 needs it where a component has few samples.
    Where a dimension is constant, the mean variance of the view stands for its own, and in a constant view its square.
    """
    number = safe(moments.weight.sum())
    share = moments.weight / number
    center = share @ sums.about
    about = sums.about - center[None, :]
    second = diagonal(sums.second) + (2 * sums.first + moments.weight[:, None] * about) * about
    mean = share @ about + sums.first.sum(axis=0) / number
    variance = second.sum(axis=0) / number - mean**2
    squares = _RESOLUTION * float(jnp.finfo(variance.dtype).eps) * _over(second, moments.weight)
    variance = jnp.where(varies(variance, center), variance, typical_variance(variance, center))
    return jnp.maximum(floor * variance[None, :], variance.shape[0] * squares)


def _floored(noise: jax.Array, least: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The likeliest noise with variances of at least `least` `[k, n]`, in every direction where it is full.

    In units of the floor, `F^-1/2 Psi F^-1/2` with `F = diag(least)`, that is the one with eigenvalues of at least 1.
    """
    if not is_full(noise):
        low = noise < least
        return jnp.where(low, least, noise), jnp.where(low, least, 0).max()
    noise, root = symmetrize(noise), jnp.sqrt(least)
    units = root[:, :, None] * root[:, None, :]
    white = jax.lax.stop_gradient(noise / units)
    # The trace of the inverse is at least that of the lowest eigenvalue; NaN where there is no factor.
    is_high = ((inverse_factor(white) ** 2).sum(axis=(1, 2)) <= 1).all()
    clipped, low = jax.lax.cond(is_high, lambda a: (a, jnp.zeros(len(a), bool)), _clipped, white)
    return jnp.where(low[:, None, None], clipped * units, noise), jnp.where(low, least.max(axis=1), 0).max()


def _clipped(white: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Eigenvalues of `[k, n, n]` of at least 1, and where one was less."""
    values, vectors = jax.lax.map(spectral.eigh, white)
    return (vectors * jnp.maximum(values, 1)[:, None, :]) @ vectors.mT, (values < 1).any(axis=1)


def _precision(second: jax.Array) -> jax.Array:
    """The inverse of second moments of z `[k, d, d]`, with a ridge of sqrt(eps) where one is nearly singular.

    In exact arithmetic none is. Those of a component without samples are zero: its loadings become zero and not NaN.
    """
    d, eps = second.shape[1], float(jnp.finfo(second.dtype).eps)
    least = safe(eps**0.5 * jnp.trace(second, axis1=1, axis2=2) / max(d, 1))
    second = symmetrize(second)
    pivots = jnp.diagonal(inverse_factor(jax.lax.stop_gradient(second)), axis1=1, axis2=2)
    lowest = pivots.max(axis=1, initial=0) ** -2
    # It fades as the lowest pivot grows to twice `least`: a ridge must not come and go from step to step.
    ridge = jnp.where(jnp.isnan(lowest), least, jnp.clip(2 * least - lowest, 0, least))  # NaN: no factor at all
    return inverse(second + ridge[:, None, None] * jnp.eye(d, dtype=second.dtype)[None])


def _over(sums: jax.Array, weight: jax.Array) -> jax.Array:
    """Sums `[k, ...]` for one sample on average."""
    return sums / safe(weight).reshape(-1, *[1] * (sums.ndim - 1))


def _times(a: jax.Array, b: jax.Array) -> jax.Array:
    """`A_k b_k` `[k, n]`."""
    return jnp.einsum("knd,kd->kn", a, b)
