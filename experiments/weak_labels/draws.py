"""Random groupings of a set of faces; every method is fitted to all of them in one compiled call."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import recognition
from experiments.common.inputs import Vectors
from experiments.weak_labels import joint, methods
from experiments.weak_labels.methods import Method
from jaxface.core import search
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import FitInfo, Status, raise_if_failed
from jaxface.data import groups, splits
from jaxface.data.splits import Split
from jaxface.joint_bayes import ScoringBasis
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
    refitted: int = 0  # draws with dependent images
    first: Any = None  # the map of the first draw, from the vectors that the method works on
    score: Callable[..., jax.Array] | None = None  # of a method that compares images by another score than distance
    fitted: Any = None  # the maps of all draws where the score needs them


def problem(config: ConfigDict, vectors: Vectors) -> Problem:
    """Splits the vectors, `num_train` of a person for training."""
    part = splits.k_shot(vectors.ids, num_train=config.num_train, rng=np.random.default_rng(config.seed))[0]
    return problem_of(jnp.asarray(vectors.x), vectors.ids, splits.of_parts(part))


def check_dimensions(config: ConfigDict, task: Problem) -> None:
    """Refuses linear NP-PER where no direction is constant within all groups: on vectors of few dimensions."""
    if not {"np_per", "np_per_joint_bayes"} & {*config.methods, *config.clustering.methods}:
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
    train = np.asarray(x)[split.train]
    span = np.linalg.qr(train.T)[0]
    squared = np.asarray(distances.squared_distance_matrix(train, train))
    scale = float(np.sqrt(np.median(squared[np.triu_indices(len(train), 1)])))
    return Problem(x, x @ jnp.asarray(span), jnp.asarray(ids), split, scale, jnp.asarray(span))


def random_draws(config: ConfigDict, task: Problem, size: int, *, seed: int = 0) -> Draws:
    """`num_draws` random groupings into groups of `size` images of one person; one where groups are all images."""
    rng = np.random.default_rng((config.seed, size, seed))
    train_ids = np.asarray(task.ids)[task.split.train]
    num_draws = 1 if (np.bincount(train_ids) == size).all() else config.num_draws
    drawn = groups.random_groups(train_ids, group_size=size, rng=rng, num_draws=num_draws)
    kept, group_ids = groups.kept_rows(drawn)
    return Draws(task.split.train[kept], group_ids, int(group_ids.max()) + 1)


def embed(task: Problem, draws: Draws, method: Method, setting: methods.Setting) -> Embedded:
    """Every image after a method was fitted to each draw."""
    x, draws = _view_of(task, draws, method)
    fitted, info = fit_draws(method, setting, x, draws.rows, draws.groups, num_groups=draws.num_groups)
    z, refitted = embed_draws(fitted, x, transform=method.transform), 0
    if method.refit is not None:
        failed = np.flatnonzero(np.asarray(info.status) == Status.RANK_DEFICIENT)
        for draw in failed:
            again, report = method.refit(setting, x[draws.rows[draw]], draws.groups[draw], num_groups=draws.num_groups)
            raise_if_failed(report, f"{method.title}, draw {draw}")
            z = z.at[draw].set(_embed(again, x, transform=method.transform))
            if draw == 0 or method.score is not None:  # other maps are not read again
                fitted = jax.tree.map(lambda leaves, leaf, draw=draw: leaves.at[draw].set(leaf), fitted, again)
        refitted = len(failed)
        info = info._replace(status=jnp.where(info.status == Status.RANK_DEFICIENT, Status.OK, info.status))
    raise_if_failed(info, method.title)
    first = jax.tree.map(lambda leaf: leaf[0], fitted)
    return Embedded(z, refitted, first, method.score, fitted if method.score is not None else None)


def of_vectors(task: Problem, method: Method, fitted: Any) -> Any:
    """The map of a method on the vectors themselves, from its map of what it works on."""
    if not method.is_linear or task.span is None:
        return fitted
    onto_span = LinearMap(mean=jnp.zeros(task.span.shape[0], task.span.dtype), basis=task.span)
    return joint.after(onto_span, fitted) if isinstance(fitted, ScoringBasis) else compose(onto_span, fitted)


def choose_setting(config: ConfigDict, task: Problem, draws: Draws, method: Method) -> dict[str, jax.Array]:
    """The setting under which groups of the first draw, held out in turn, stay together best."""
    x, draws = _view_of(task, draws, method)
    grid = methods.grid(method, task.scale, widest(x, draws, method), config)
    if not grid:
        return {}
    settings = {name: jnp.asarray(values, x.dtype) for name, values in grid.items()}
    rows, group_ids = draws.rows[0], draws.groups[0]
    rng = np.random.default_rng(config.seed)
    options = {"num_folds": config.num_folds, "transform": method.transform, "score": method.score}
    error = held_out.errors(method.fit, settings, x[rows], group_ids, rng=rng, **options)
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


def widest(x: jax.Array, draws: Draws, method: Method) -> int:
    """Most PCA axes of RCA: those in which the scatter within groups has full rank."""
    within = draws.rows.shape[1] - draws.num_groups
    return min(within, x.shape[1]) if method.is_linear else within


def errors(task: Problem, draws: Draws, embedded: Embedded, *, gallery: str) -> np.ndarray:
    """Identification error `[m]`; the gallery is the grouped images of each draw, or all training images."""
    train = task.split.train
    known = draws.rows if gallery == "grouped" else np.broadcast_to(train, (len(draws.rows), len(train)))
    if embedded.score is None:
        return np.asarray(nearest_errors(embedded.z, task.ids, known, task.split.test))
    return np.asarray(
        _score_errors(embedded.fitted, embedded.z, task.ids, known, task.split.test, score=embedded.score)
    )


@partial(jax.jit, static_argnames=("method", "num_groups"))
def fit_draws(
    method: Method, setting: Mapping[str, Any], x: jax.Array, rows: jax.Array, group_ids: jax.Array, *, num_groups: int
) -> tuple[Any, FitInfo]:
    """One fit for each draw, in one program."""

    def fit(chosen: jax.Array, group: jax.Array) -> tuple[Any, FitInfo]:
        return method.fit(setting, x[chosen], group, num_groups=num_groups)

    return jax.vmap(fit)(rows, group_ids)


@partial(jax.jit, static_argnames="transform")
def _embed(fitted: Any, x: jax.Array, *, transform: Callable[..., jax.Array]) -> jax.Array:
    return each_row(transform, fitted, x)


@partial(jax.jit, static_argnames="transform")
def embed_draws(fitted: Any, x: jax.Array, *, transform: Callable[..., jax.Array] = transform) -> jax.Array:
    """Coordinates `[m, n, r]` of x `[n, d]` by m maps, one after the other."""
    return jax.lax.map(lambda one: _embed(one, x, transform=transform), fitted)


@jax.jit
def nearest_errors(z: jax.Array, ids: jax.Array, gallery: jax.Array, probes: jax.Array) -> jax.Array:
    """Nearest-neighbour error `[m]` of coordinates z `[m, n, r]`, for galleries `[m, k]` and probes `[q]` of rows."""

    def error(coordinates: jax.Array, known: jax.Array) -> jax.Array:
        return recognition.error(coordinates[known], ids[known], coordinates[probes], ids[probes])

    return jax.vmap(error)(z, gallery)


@partial(jax.jit, static_argnames="score")
def _score_errors(
    fitted: Any, z: jax.Array, ids: jax.Array, gallery: jax.Array, probes: jax.Array, *, score: Callable[..., jax.Array]
) -> jax.Array:
    """Share of probes whose best score `[m]` is with an image of somebody else."""

    def error(draw: tuple[Any, jax.Array, jax.Array]) -> jax.Array:
        one, coordinates, known = draw
        best = search.first_min(-score(one, coordinates[known], coordinates[probes]).T)
        return (ids[known][best] != ids[probes]).mean(dtype=z.dtype)

    return jax.lax.map(error, (fitted, z, gallery))
