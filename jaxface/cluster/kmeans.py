"""k-means: Lloyd's iteration on `sum_i min_k |x_i - c_k|^2`, with k-means++ or random starts and vmapped restarts."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxface.core import checks, fitinfo, loops, machine, prng, search
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.pytree import member, params
from jaxface.linalg import distances, scaling, scatter

__all__ = ["Init", "KMeans", "assign", "fit", "fit_restarts", "init_plus_plus", "init_random", "predict", "update"]


@params
class KMeans:
    """Cluster centres."""

    centers: jax.Array  # [k, d]


class Assignment(NamedTuple):
    """Nearest centre of every sample."""

    labels: jax.Array  # int32 [n]
    squared: jax.Array  # [n], squared distance to it


class _Ended(NamedTuple):
    """What an iteration came to."""

    clusters: KMeans
    info: FitInfo
    inertia: jax.Array  # [], of these clusters in the unit of the iteration; the trace ends one step before


Init = Callable[..., KMeans]


def init_plus_plus(key: jax.Array, x: jax.Array, *, num_clusters: int) -> KMeans:
    """k-means++: each further centre is a sample drawn with probability proportional to its squared distance."""
    x = _checked(x, num_clusters)
    n, power = x.shape[0], scaling.exponent(x)
    x = scaling.shifted(x, -power)
    first, rest = jax.random.split(key)

    def draw(squared: jax.Array, step_key: jax.Array) -> tuple[jax.Array, jax.Array]:
        # Where every sample lies on a centre already (duplicates), the draw is uniform.
        weights = jnp.where(squared.sum() > 0, squared, jnp.ones_like(squared))
        center = x[jax.random.categorical(step_key, jnp.log(weights))]
        return jnp.minimum(squared, ((x - center[None, :]) ** 2).sum(axis=1)), center

    start = x[jax.random.randint(first, (), 0, n)]
    squared = ((x - start[None, :]) ** 2).sum(axis=1)
    _, others = jax.lax.scan(draw, squared, jax.random.split(rest, num_clusters)[1:])
    centers = scaling.shifted(jnp.concatenate([start[None, :], others]), power)
    return KMeans(centers=jnp.where(jnp.isfinite(x).all(), centers, jnp.nan))  # a distance that is NaN draws nothing


def init_random(key: jax.Array, x: jax.Array, *, num_clusters: int) -> KMeans:
    """`num_clusters` different samples, all equally likely."""
    x = _checked(x, num_clusters)
    return KMeans(centers=x[jax.random.choice(key, x.shape[0], (num_clusters,), replace=False)])


def assign(clusters: KMeans, x: jax.Array) -> Assignment:
    """Nearest centre of each row of x `[n, d]`; ties go to the lowest index.

    Rows with NaN are refused; inside a transformation, where values cannot be looked at, their label is -1.
    """
    checks.shapes(centers=(clusters.centers, "k d"), x=(x, "n d"))
    checks.floating(x=x)
    checks.finite(centers=clusters.centers, x=x)
    x, centers = jnp.asarray(x), jnp.asarray(clusters.centers)
    power = scaling.exponent(x, centers)
    found = _assign(scaling.shifted(centers, -power), scaling.shifted(x, -power))
    return found._replace(squared=scaling.shifted(found.squared, 2 * power))


def predict(clusters: KMeans, x: jax.Array) -> jax.Array:
    """Index of the centre nearest to one vector `[d]`; NaN as in `assign`."""
    checks.shapes(x=(x, "d"))
    checks.floating(x=x)
    return assign(clusters, jnp.asarray(x)[None, :]).labels[0]


def update(clusters: KMeans, x: jax.Array) -> tuple[KMeans, jax.Array, jax.Array]:
    """One Lloyd step: `(new centres, inertia of the old ones, number of re-seeded clusters)`.

    The r-th empty cluster moves to the sample that is r-th farthest from its centre.
    """
    checks.shapes(centers=(clusters.centers, "k d"), x=(x, "n d"))
    x = _checked(x, clusters.centers.shape[0])
    power = scaling.exponent(x, clusters.centers)
    centers, inertia, num_empty = _update(scaling.shifted(clusters.centers, -power), scaling.shifted(x, -power))
    return KMeans(centers=scaling.shifted(centers, power)), scaling.shifted(inertia, 2 * power), num_empty


def _assign(centers: jax.Array, x: jax.Array) -> Assignment:
    """`assign` of numbers of ordinary size."""
    squared = distances.ordinary_squared_distances(x, centers)
    least = squared.min(axis=1)
    return Assignment(jnp.where(jnp.isnan(least), -1, search.first_min(squared)), least)


def _update(centers: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """`update` of numbers of ordinary size."""
    k = centers.shape[0]
    labels, squared = _assign(centers, x)
    count = jax.ops.segment_sum(jnp.ones_like(squared), labels, k)
    # How far the mean lies from the old centre: far from the origin the sums themselves would lose their digits.
    move = jax.ops.segment_sum(x - centers[labels], labels, k) / jnp.maximum(count, 1)[:, None]
    mean = centers + move
    empty = count == 0
    _, farthest = jax.lax.top_k(squared, k)
    turn = jnp.clip(jnp.cumsum(empty) - 1, 0, k - 1)
    return jnp.where(empty[:, None], x[farthest[turn]], mean), squared.sum(), empty.sum().astype(jnp.int32)


def fit(x: jax.Array, init: KMeans, *, num_iters: int, tol: float = 0.0) -> tuple[KMeans, FitInfo]:
    """Lloyd's iteration on x `[n, d]` from `init`; the objective trace is the inertia of each assignment.

    A cluster without samples moves to one far from its centre and counts as replaced; where the result leaves one
    without samples, as with fewer different samples than clusters, the status is EMPTY_COMPONENT.
    """
    checks.shapes(x=(x, "n d"), centers=(init.centers, "k d"))
    x = _checked(x, init.centers.shape[0])
    return _fit(x, KMeans(centers=jnp.asarray(init.centers, x.dtype)), num_iters=num_iters, tol=tol)


def fit_restarts(
    key: jax.Array,
    x: jax.Array,
    *,
    num_clusters: int,
    num_restarts: int,
    num_iters: int,
    tol: float = 0.0,
    init: Init = init_plus_plus,
) -> tuple[KMeans, FitInfo]:
    """The restart of lowest final inertia out of `num_restarts`, the first among equals, in one vmapped call."""
    x = _checked(x, num_clusters)
    checks.at_least("num_restarts", num_restarts, 1)
    keys = prng.member_keys(key, num_restarts)
    return _fit_restarts(keys, x, init=init, num_clusters=num_clusters, num_iters=num_iters, tol=tol)


def _checked(x: jax.Array, num_clusters: int) -> jax.Array:
    n = checks.samples(x=(x, "n d"))["n"]
    checks.at_least("num_clusters", num_clusters, 1)
    checks.at_most("num_clusters", num_clusters, n, "the number of samples")
    return jnp.asarray(x)


def _iterate(x: jax.Array, init: KMeans, num_iters: int, tol: float) -> _Ended:
    """The iteration on numbers of ordinary size."""

    def step(state: tuple[jax.Array, jax.Array]) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        centers, inertia, empty = _update(state[0], x)
        return (centers, state[1] + empty), inertia

    start = init.centers, jnp.zeros((), jnp.int32)
    (centers, replaced), trace = loops.iterate(step, start, num_iters=num_iters, tol=tol)
    labels, squared = _assign(centers, x)
    used = jax.ops.segment_max(jnp.ones_like(labels), labels, centers.shape[0]) > 0
    is_lost = trace.status == Status.NON_FINITE
    cases = (is_lost, Status.NON_FINITE), (~used.all(), Status.EMPTY_COMPONENT)
    info = fitinfo.iterative(
        status=fitinfo.diagnose(*cases, otherwise=trace.status),
        num_iters=trace.num_iters,
        objective=trace.objective,
        num_replaced=replaced,
    )
    return _Ended(KMeans(centers=centers), info, squared.sum())


def _in_unit_of_data(ended: _Ended, power: jax.Array) -> tuple[KMeans, FitInfo]:
    """Clusters and report from the unit `2^power`; an inertia that has no number there is NON_FINITE."""
    objective = scaling.shifted(ended.info.objective, 2 * power)
    status = fitinfo.diagnose((jnp.isinf(objective).any(), Status.NON_FINITE), otherwise=ended.info.status)
    centers = scaling.shifted(ended.clusters.centers, power)
    return KMeans(centers=centers), ended.info._replace(status=status, objective=objective)


@partial(jax.jit, static_argnames=("num_iters", "tol"))
def _fit(x: jax.Array, init: KMeans, *, num_iters: int, tol: float) -> tuple[KMeans, FitInfo]:
    power = scaling.exponent(x, init.centers)
    x, init = jax.tree.map(lambda leaf: scaling.shifted(leaf, -power), (x, init))
    return _in_unit_of_data(_iterate(x, init, num_iters, tol), power)


@partial(jax.jit, static_argnames=("init", "num_clusters", "num_iters", "tol"))
def _fit_restarts(
    keys: jax.Array, x: jax.Array, *, init: Init, num_clusters: int, num_iters: int, tol: float
) -> tuple[KMeans, FitInfo]:
    starts = jax.vmap(lambda key: init(key, x, num_clusters=num_clusters))(keys)
    power = scaling.exponent(x, starts.centers)
    x, starts = jax.tree.map(lambda leaf: scaling.shifted(leaf, -power), (x, starts))
    ended = jax.vmap(lambda start: _iterate(x, start, num_iters, tol))(starts)
    # Restarts that end in one partition differ by rounding; the first of them is taken, so rounding decides nothing.
    rounding = 32 * machine.eps(x.dtype) * (scatter.total_factor(x) ** 2).sum()
    best = member(ended, jnp.argmax(ended.inertia <= ended.inertia.min() + rounding))
    return _in_unit_of_data(best, power)
