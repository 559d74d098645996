"""k-means: Lloyd's iteration on `sum_i min_k |x_i - c_k|^2`, with k-means++ or random starts and vmapped restarts."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo, loops, machine, prng, search
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.pytree import member, params
from jaxface.linalg import distances, scaling, scatter

__all__ = ["Init", "KMeans", "assign", "fit", "fit_restarts", "init_plus_plus", "init_random", "update"]


@params
class KMeans:
    """Cluster centres."""

    centers: jax.Array  # [k, d]


class Assignment(NamedTuple):
    """Nearest centre of every sample."""

    labels: jax.Array  # int32 [n]
    squared: jax.Array  # [n], squared distance to it


class _Run(NamedTuple):
    """Result of one run of Lloyd's iteration."""

    clusters: KMeans
    info: FitInfo
    inertia: jax.Array  # [], of these clusters in the unit of the run; the trace ends one step before


# `init(key, x, *, num_clusters)`: the centres that a run starts from.
Init = Callable[..., KMeans]


def init_plus_plus(key: jax.Array, x: ArrayLike, *, num_clusters: int) -> KMeans:
    """k-means++: each further centre is a sample, drawn with probability proportional to its squared distance."""
    return _init_plus_plus(key, _checked(x, num_clusters), num_clusters=num_clusters)


@partial(jax.jit, static_argnames="num_clusters")
def _init_plus_plus(key: jax.Array, x: jax.Array, *, num_clusters: int) -> KMeans:
    n, power = x.shape[0], scaling.exponent(x)
    x = scaling.shifted(x, -power)
    first, rest = jax.random.split(key)

    def draw(squared: jax.Array, step_key: jax.Array) -> tuple[jax.Array, jax.Array]:
        # If every sample lies on a centre (duplicates), the draw is uniform.
        probability = jnp.where(squared.sum() > 0, squared, jnp.ones_like(squared))
        center = x[jax.random.categorical(step_key, jnp.log(probability))]
        return jnp.minimum(squared, ((x - center[None, :]) ** 2).sum(axis=1)), center

    start = x[jax.random.randint(first, (), 0, n)]
    squared = ((x - start[None, :]) ** 2).sum(axis=1)
    _, others = jax.lax.scan(draw, squared, jax.random.split(rest, num_clusters)[1:])
    centers = scaling.shifted(jnp.concatenate([start[None, :], others]), power)
    return KMeans(centers=jnp.where(jnp.isfinite(x).all(), centers, jnp.nan))  # NaN distances define no draw


def init_random(key: jax.Array, x: ArrayLike, *, num_clusters: int) -> KMeans:
    """`num_clusters` different samples, all equally likely."""
    x = _checked(x, num_clusters)
    return KMeans(centers=x[jax.random.choice(key, x.shape[0], (num_clusters,), replace=False)])


def assign(clusters: KMeans, x: ArrayLike) -> Assignment:
    """Nearest centre of each row of x `[n, d]`; ties go to the lowest index.

    Rows with NaN are refused; inside a transformation, where values are unknown, their label is -1.
    """
    checks.shapes(centers=(clusters.centers, "k d"), x=(x, "n d"))
    checks.floating(x=x)
    checks.finite(centers=clusters.centers, x=x)
    x, centers = jnp.asarray(x), jnp.asarray(clusters.centers)
    power = scaling.exponent(x, centers)
    nearest = _assign(scaling.shifted(centers, -power), scaling.shifted(x, -power))
    return nearest._replace(squared=scaling.shifted(nearest.squared, 2 * power))


def update(clusters: KMeans, x: ArrayLike) -> tuple[KMeans, jax.Array, jax.Array]:
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
    # Sum differences from the old centre: far from the origin, sums of the samples would lose their digits.
    move = jax.ops.segment_sum(x - centers[labels], labels, k) / jnp.maximum(count, 1)[:, None]
    mean = centers + move
    empty = count == 0
    _, farthest = jax.lax.top_k(squared, k)
    turn = jnp.clip(jnp.cumsum(empty) - 1, 0, k - 1)
    return jnp.where(empty[:, None], x[farthest[turn]], mean), squared.sum(), empty.sum().astype(jnp.int32)


def fit(x: ArrayLike, init: KMeans, *, num_iters: int, tol: float = 0.0) -> tuple[KMeans, FitInfo]:
    """Lloyd's iteration on x `[n, d]` from `init`; the objective trace is the inertia of each assignment.

    An empty cluster moves to a sample that is far from its centre and counts as replaced. If a cluster of the result is
    empty, as with fewer different samples than clusters, the status is EMPTY_COMPONENT.
    """
    checks.shapes(x=(x, "n d"), centers=(init.centers, "k d"))
    x = _checked(x, init.centers.shape[0])
    return _fit(x, KMeans(centers=jnp.asarray(init.centers, x.dtype)), num_iters=num_iters, tol=tol)


def fit_restarts(
    key: jax.Array,
    x: ArrayLike,
    *,
    num_clusters: int,
    num_restarts: int,
    num_iters: int,
    tol: float = 0.0,
    init: Init = init_plus_plus,
) -> tuple[KMeans, FitInfo]:
    """The run of lowest final inertia out of `num_restarts`, the first among equals, in one vmapped call."""
    x = _checked(x, num_clusters)
    checks.at_least("num_restarts", num_restarts, 1)
    keys = prng.member_keys(key, num_restarts)
    return _fit_restarts(keys, x, init=init, num_clusters=num_clusters, num_iters=num_iters, tol=tol)


def _checked(x: ArrayLike, num_clusters: int) -> jax.Array:
    n = checks.samples(x=(x, "n d"))["n"]
    checks.at_least("num_clusters", num_clusters, 1)
    checks.at_most("num_clusters", num_clusters, n, "the number of samples")
    return jnp.asarray(x)


def _iterate(x: jax.Array, init: KMeans, num_iters: int, tol: float) -> _Run:
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
    return _Run(KMeans(centers=centers), info, squared.sum())


def _in_unit_of_data(run: _Run, power: jax.Array) -> tuple[KMeans, FitInfo]:
    """Clusters and report in the unit of the data instead of `2^power`; an inertia out of range is NON_FINITE."""
    objective = scaling.shifted(run.info.objective, 2 * power)
    status = fitinfo.diagnose((jnp.isinf(objective).any(), Status.NON_FINITE), otherwise=run.info.status)
    centers = scaling.shifted(run.clusters.centers, power)
    return KMeans(centers=centers), run.info._replace(status=status, objective=objective)


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
    runs = jax.vmap(lambda start: _iterate(x, start, num_iters, tol))(starts)
    # Restarts that reach the same partition differ only by rounding; take the first, so that the choice is
    # deterministic.
    rounding = 32 * machine.eps(x.dtype) * (scatter.total_factor(x) ** 2).sum()
    best = member(runs, jnp.argmax(runs.inertia <= runs.inertia.min() + rounding))
    return _in_unit_of_data(best, power)
