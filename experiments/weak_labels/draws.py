"""Random groupings of a set of faces; every method is fitted to all of them in one compiled call."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import recognition
from experiments.common.inputs import Vectors
from experiments.weak_labels import methods
from experiments.weak_labels.methods import METHODS, Method
from jaxface.core import search
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import FitInfo, Status, raise_if_failed
from jaxface.data import groups, splits
from jaxface.data.splits import Split
from jaxface.linalg import distances
from jaxface.subspace import LinearMap, compose, held_out, transform


class Problem(NamedTuple):
    """Vectors, whom they show, and which of them train and are probed."""

    x: jax.Array  # [n, d], encoded images
    coordinates: jax.Array  # [n, t], in an orthonormal basis of the span of the t training images
    ids: jax.Array  # [n]
    split: Split
    scale: float  # median distance of training images
    span: jax.Array | None = None  # [d, t], the basis of the coordinates


class Draws(NamedTuple):
    """Groupings of the training images; all have the same number of groups and of grouped images."""

    rows: np.ndarray  # [m, k], grouped rows of the problem
    groups: np.ndarray  # [m, k], dense
    num_groups: int


class Embedded(NamedTuple):
    """The images after a method was fitted to all draws."""

    z: jax.Array  # [m, n, r], every image after the projection
    refitted: int  # draws with dependent images
    first: Any = None  # the map of the first draw, from the vectors that the method works on


def problem(config: ConfigDict, vectors: Vectors) -> Problem:
    """Splits the vectors, `num_train` of a person for training."""
    part = splits.k_shot(vectors.ids, num_train=config.num_train, rng=np.random.default_rng(config.seed))[0]
    return problem_of(jnp.asarray(vectors.x), vectors.ids, splits.of_parts(part))


def check_dimensions(config: ConfigDict, task: Problem) -> None:
    """Refuses linear NP-PER where no direction is constant within all groups: on vectors of few dimensions."""
    if "np_per" not in {*config.methods, *config.clustering.methods}:
        return
    for size in config.group_sizes:
        drawn = random_draws(config, task, size)
        if not has_null_space(task, drawn):
            raise ValueError(
                f"np_per needs vectors with more dimensions than {drawn.rows.shape[1] - drawn.num_groups}, the grouped "
                f"images less the groups of {size}; these have {task.x.shape[1]}. Leave np_per out of config.methods "
                "and config.clustering.methods, as configs/weak_labels.py:embeddings does, or take fewer people."
            )


def has_null_space(task: Problem, draws: Draws) -> bool:
    """Whether some direction may be constant within all groups."""
    return draws.rows.shape[1] - draws.num_groups < task.x.shape[1]


def problem_of(x: jax.Array, ids: np.ndarray, split: Split) -> Problem:
    """The problem of vectors `[n, d]` and a split of them."""
    train = split.train
    span = np.linalg.qr(np.asarray(x)[train].T)[0]
    squared = np.asarray(distances.squared_distance_matrix(x[train], x[train]))
    scale = float(np.sqrt(np.median(squared[np.triu_indices(len(train), 1)])))
    return Problem(x, x @ jnp.asarray(span), jnp.asarray(ids), split, scale, jnp.asarray(span))


def random_draws(config: ConfigDict, task: Problem, size: int, *, seed: int = 0) -> Draws:
    """`num_draws` random groupings into groups of `size` images of one person."""
    rng = np.random.default_rng((config.seed, size, seed))
    train_ids = np.asarray(task.ids)[task.split.train]
    drawn = groups.random_groups(train_ids, group_size=size, rng=rng, num_draws=config.num_draws)
    kept, group_ids = groups.kept_rows(drawn)
    return Draws(task.split.train[kept], group_ids, int(group_ids.max()) + 1)


def embed(task: Problem, draws: Draws, method: Method, setting: methods.Setting) -> Embedded:
    """Every image after a method was fitted to each draw."""
    x, draws = _view_of(task, draws, method)
    fitted, info = _fit_draws(method, setting, x, draws.rows, draws.groups, num_groups=draws.num_groups)
    z, refitted = _embed_draws(fitted, x), 0
    first = jax.tree.map(lambda leaf: leaf[0], fitted)
    if method.refit is not None:
        failed = np.flatnonzero(np.asarray(info.status) == Status.RANK_DEFICIENT)
        for draw in failed:
            again, report = method.refit(setting, x[draws.rows[draw]], draws.groups[draw], num_groups=draws.num_groups)
            raise_if_failed(report, f"{method.title}, draw {draw}")
            z = z.at[draw].set(_embed(again, x))
            first = again if draw == 0 else first
        refitted = len(failed)
        info = info._replace(status=jnp.where(info.status == Status.RANK_DEFICIENT, Status.OK, info.status))
    raise_if_failed(info, method.title)
    return Embedded(z, refitted, first)


def of_vectors(task: Problem, method: Method, fitted: Any) -> Any:
    """The map of a method on the vectors themselves, from its map of what it works on."""
    if not method.is_linear or task.span is None:
        return fitted
    onto_span = LinearMap(mean=jnp.zeros(task.span.shape[0], task.span.dtype), basis=task.span)
    return compose(onto_span, fitted)


def choose_setting(config: ConfigDict, task: Problem, draws: Draws, method: Method) -> dict[str, jax.Array]:
    """The setting under which groups of the first draw, held out in turn, stay together best."""
    x, draws = _view_of(task, draws, method)
    widest = _widest(x, draws, method)
    grid = methods.grid(method, task.scale, widest, config)
    if not grid:
        return {}
    settings = {name: jnp.asarray(values, x.dtype) for name, values in grid.items()}
    rows, group_ids = draws.rows[0], draws.groups[0]
    rng = np.random.default_rng(config.seed)
    error = held_out.errors(method.fit, settings, x[rows], group_ids, num_folds=config.num_folds, rng=rng)
    best = int(np.argmin(error))
    return {name: values[best] for name, values in settings.items()}


def _view_of(task: Problem, draws: Draws, method: Method) -> tuple[jax.Array, Draws]:
    """The vectors a method works on, and people in place of groups where it knows them."""
    x = task.coordinates if method.is_linear else task.x
    if not method.uses_names:
        return x, draws
    ids = np.asarray(task.ids)[draws.rows]
    people = np.unique(ids, return_inverse=True)[1].reshape(ids.shape).astype(np.int32)
    return x, Draws(draws.rows, people, int(people.max()) + 1)


def _widest(x: jax.Array, draws: Draws, method: Method) -> int:
    """Most PCA axes of RCA: those in which the scatter within groups has full rank."""
    within = draws.rows.shape[1] - draws.num_groups
    return min(within, x.shape[1]) if method.is_linear else within


def errors(task: Problem, draws: Draws, z: jax.Array, *, gallery: str) -> np.ndarray:
    """Nearest-neighbour error `[m]`; the gallery is the grouped images of each draw, or all training images."""
    train = task.split.train
    known = draws.rows if gallery == "grouped" else np.broadcast_to(train, (len(draws.rows), len(train)))
    return np.asarray(_errors(z, task.ids, known, task.split.test))


def width_errors(task: Problem, draws: Draws) -> dict[str, np.ndarray]:
    """RCA's error `[widths]` on probes and on its own training images against the number of PCA axes."""
    widest = _widest(task.coordinates, draws, METHODS["rca"])
    widths = np.unique(np.round(np.geomspace(2, widest, 14)).astype(int))
    few = Draws(draws.rows[:10], draws.groups[:10], draws.num_groups)
    setting = {"width": jnp.asarray(float(widest))}
    fitted, _ = _fit_draws(METHODS["rca"], setting, task.coordinates, few.rows, few.groups, num_groups=few.num_groups)
    z = _embed_draws(fitted, task.coordinates)
    at_widths = [_errors_at_width(z, task.ids, few.rows, task.split.test, width) for width in widths]
    of_probes, of_training = (np.array(column) for column in zip(*at_widths, strict=True))
    return {"widths": widths, "probe error": of_probes, "training error": of_training}


def ridge_errors(task: Problem, draws: Draws) -> dict[str, np.ndarray]:
    """Ridge RCA's error `[ridges]`, and how far its distances are from those of NP-PER, as the ridge vanishes.

    The gap is NaN on vectors of few dimensions, which have no NP-PER.
    """
    few = Draws(draws.rows[:10], draws.groups[:10], draws.num_groups)
    target = None
    if has_null_space(task, draws):
        limit, _ = _fit_draws(METHODS["np_per"], {}, task.coordinates, few.rows, few.groups, num_groups=few.num_groups)
        target = _embed_draws(limit, task.coordinates)
    ridges = np.geomspace(1e-8, 10, 10)
    error, gap = [], []
    for ridge in ridges:
        setting = {"ridge": jnp.asarray(ridge, task.x.dtype)}
        fitted, _ = _fit_draws(
            METHODS["ridge_rca"], setting, task.coordinates, few.rows, few.groups, num_groups=few.num_groups
        )
        z = _embed_draws(fitted, task.coordinates)
        error.append(errors(task, few, z, gallery="grouped").mean())
        gaps = [] if target is None else [_disagreement(z[k, rows], target[k, rows]) for k, rows in enumerate(few.rows)]
        gap.append(np.mean(gaps) if gaps else np.nan)
    return {"ridges": ridges, "ridge error": np.array(error), "gap": np.array(gap)}


@partial(jax.jit, static_argnames=("method", "num_groups"))
def _fit_draws(
    method: Method, setting: Mapping[str, Any], x: jax.Array, rows: jax.Array, group_ids: jax.Array, *, num_groups: int
) -> tuple[Any, FitInfo]:
    """One fit for each draw, in one program."""

    def fit(chosen: jax.Array, group: jax.Array) -> tuple[Any, FitInfo]:
        return method.fit(setting, x[chosen], group, num_groups=num_groups)

    return jax.vmap(fit)(rows, group_ids)


@jax.jit
def _embed(fitted: Any, x: jax.Array) -> jax.Array:
    return each_row(transform, fitted, x)


@jax.jit
def _embed_draws(fitted: Any, x: jax.Array) -> jax.Array:
    return jax.lax.map(lambda one: _embed(one, x), fitted)


@jax.jit
def _errors(z: jax.Array, ids: jax.Array, gallery: jax.Array, probes: jax.Array) -> jax.Array:
    def error(coordinates: jax.Array, known: jax.Array) -> jax.Array:
        return recognition.error(coordinates[known], ids[known], coordinates[probes], ids[probes])

    return jax.vmap(error)(z, gallery)


@jax.jit
def _errors_at_width(
    z: jax.Array, ids: jax.Array, gallery: jax.Array, probes: jax.Array, width: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Mean error of probes, and of training images each left out of the gallery, in the leading coordinates."""
    leading = jnp.where(jnp.arange(z.shape[-1]) < width, z, 0)

    def of_training(coordinates: jax.Array, known: jax.Array) -> jax.Array:
        squared = distances.squared_distance_matrix(coordinates[known], coordinates[known])
        nearest = search.first_min(squared + jnp.diag(jnp.full(len(known), jnp.inf, z.dtype)))
        return (ids[known][nearest] != ids[known]).mean(dtype=z.dtype)

    return _errors(leading, ids, gallery, probes).mean(), jax.vmap(of_training)(leading, gallery).mean()


def _disagreement(a: jax.Array, b: jax.Array) -> float:
    """Relative gap between two sets of squared distances, each in units of its mean."""
    first, second = (np.asarray(distances.squared_distance_matrix(z, z)) for z in (a, b))
    return float(np.abs(first / first.mean() - second / second.mean()).mean())
