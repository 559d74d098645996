"""k-means: Lloyd's iteration on `sum_i min_k |x_i - c_k|^2`, with k-means++ or random starts and vmapped restarts."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxface.core import checks, fitinfo, loops, prng
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.pytree import member, params
from jaxface.linalg import distances, scatter


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
    inertia: jax.Array  # [], of these clusters; the trace ends one step before


Init = Callable[..., KMeans]


def init_plus_plus(key: jax.Array, x: jax.Array, *, num_clusters: int) -> KMeans:
    """k-means++: each further centre is a sample drawn with probability proportional to its squared distance."""
    x = _checked(x, num_clusters)
    n = x.shape[0]
    first, rest = jax.random.split(key)

    def draw(squared: jax.Array, step_key: jax.Array) -> tuple[jax.Array, jax.Array]:
        # Where every sample lies on a centre already (duplicates), the draw is uniform.
        weights = jnp.where(squared.sum() > 0, squared, jnp.ones_like(squared))
        center = x[jax.random.categorical(step_key, jnp.log(weights))]
        return jnp.minimum(squared, ((x - center[None, :]) ** 2).sum(axis=1)), center

    start = x[jax.random.randint(first, (), 0, n)]
    squared = ((x - start[None, :]) ** 2).sum(axis=1)
    _, others = jax.lax.scan(draw, squared, jax.random.split(rest, num_clusters)[1:])
    return KMeans(centers=jnp.concatenate([start[None, :], others]))


def init_random(key: jax.Array, x: jax.Array, *, num_clusters: int) -> KMeans:
    """`num_clusters` different samples, all equally likely."""
    x = _checked(x, num_clusters)
    return KMeans(centers=x[jax.random.choice(key, x.shape[0], (num_clusters,), replace=False)])


def assign(clusters: KMeans, x: jax.Array) -> Assignment:
    """Nearest centre of each row of x `[n, d]`; ties go to the lowest index."""
    squared = distances.squared_distance_matrix(x, clusters.centers)
    return Assignment(distances.first_min(squared), squared.min(axis=1))


def predict(clusters: KMeans, x: jax.Array) -> jax.Array:
    """Index of the centre nearest to one vector `[d]`."""
    return assign(clusters, x[None, :]).labels[0]


def update(clusters: KMeans, x: jax.Array) -> tuple[KMeans, jax.Array, jax.Array]:
    """One Lloyd step: `(new centres, inertia of the old ones, number of re-seeded clusters)`.

    The r-th empty cluster moves to the sample that is r-th farthest from its centre.
    """
    k = clusters.centers.shape[0]
    x = jnp.asarray(x)
    labels, squared = assign(clusters, x)
    count = jax.ops.segment_sum(jnp.ones_like(squared), labels, k)
    # How far the mean lies from the old centre: far from the origin the sums themselves would lose their digits.
    move = jax.ops.segment_sum(x - clusters.centers[labels], labels, k) / jnp.maximum(count, 1)[:, None]
    mean = clusters.centers + move
    empty = count == 0
    _, farthest = jax.lax.top_k(squared, k)
    turn = jnp.clip(jnp.cumsum(empty) - 1, 0, k - 1)
    centers = jnp.where(empty[:, None], x[farthest[turn]], mean)
    return KMeans(centers=centers), squared.sum(), empty.sum().astype(jnp.int32)


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
    n = checks.shapes(x=(x, "n d"))["n"]
    checks.floating(x=x)
    checks.finite(x=x)
    checks.at_least("num_clusters", num_clusters, 1)
    checks.at_most("num_clusters", num_clusters, n, "the number of samples")
    return jnp.asarray(x)


def _iterate(x: jax.Array, init: KMeans, num_iters: int, tol: float) -> _Ended:
    def step(state: tuple[KMeans, jax.Array]) -> tuple[tuple[KMeans, jax.Array], jax.Array]:
        clusters, replaced = state
        clusters, inertia, empty = update(clusters, x)
        return (clusters, replaced + empty), inertia

    (clusters, replaced), trace = loops.iterate(step, (init, jnp.zeros((), jnp.int32)), num_iters=num_iters, tol=tol)
    labels, squared = assign(clusters, x)
    used = jax.ops.segment_max(jnp.ones_like(labels), labels, clusters.centers.shape[0]) > 0
    status = jnp.where(used.all(), int(Status.OK), int(Status.EMPTY_COMPONENT))
    info = fitinfo.closed_form(dtype=x.dtype, status=fitinfo.worst(trace.status, status), objective=trace.objective)
    return _Ended(clusters, info._replace(num_iters=trace.num_iters, num_replaced=replaced), squared.sum())


@partial(jax.jit, static_argnames=("num_iters", "tol"))
def _fit(x: jax.Array, init: KMeans, *, num_iters: int, tol: float) -> tuple[KMeans, FitInfo]:
    ended = _iterate(x, init, num_iters, tol)
    return ended.clusters, ended.info


@partial(jax.jit, static_argnames=("init", "num_clusters", "num_iters", "tol"))
def _fit_restarts(
    keys: jax.Array, x: jax.Array, *, init: Init, num_clusters: int, num_iters: int, tol: float
) -> tuple[KMeans, FitInfo]:
    starts = jax.vmap(lambda key: init(key, x, num_clusters=num_clusters))(keys)
    ended = jax.vmap(lambda start: _iterate(x, start, num_iters, tol))(starts)
    # Restarts that end in one partition differ by rounding; the first of them is taken, so rounding decides nothing.
    rounding = 32 * float(jnp.finfo(x.dtype).eps) * (scatter.total_factor(x) ** 2).sum()
    return member((ended.clusters, ended.info), jnp.argmax(ended.inertia <= ended.inertia.min() + rounding))
