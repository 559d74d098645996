"""Curves of the study: RCA against the width of its PCA and against a ridge, and what groups miss of the scatter."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.weak_labels import draws
from experiments.weak_labels.draws import Draws, Embedded, Problem
from experiments.weak_labels.methods import METHODS
from jaxface.core import search
from jaxface.data import groups, pairs, synthetic
from jaxface.linalg import distances
from jaxface.subspace import group_scatter


def width_errors(task: Problem, drawn: Draws) -> dict[str, np.ndarray]:
    """RCA's error `[widths]` on probes and on its own training images against the number of PCA axes."""
    widest = draws.widest(task.coordinates, drawn, METHODS["rca"])
    widths = np.unique(np.round(np.geomspace(2, widest, 14)).astype(int))
    few = _few(drawn)
    setting = {"width": jnp.asarray(float(widest))}
    fitted, _ = draws.fit_draws(
        METHODS["rca"], setting, task.coordinates, few.rows, few.groups, num_groups=few.num_groups
    )
    z = draws.embed_draws(fitted, task.coordinates)
    at_widths = [_errors_at_width(z, task.ids, few.rows, task.split.test, width) for width in widths]
    of_probes, of_training = (np.array(column) for column in zip(*at_widths, strict=True))
    return {"widths": widths, "probe error": of_probes, "training error": of_training}


def ridge_errors(task: Problem, drawn: Draws) -> dict[str, np.ndarray]:
    """Ridge RCA's error `[ridges]`, and how far its distances are from those of NP-PER, as the ridge vanishes.

    The gap is NaN on vectors of few dimensions, which have no NP-PER.
    """
    few = _few(drawn)
    target = None
    if draws.has_null_space(task, drawn):
        limit, _ = draws.fit_draws(
            METHODS["np_per"], {}, task.coordinates, few.rows, few.groups, num_groups=few.num_groups
        )
        target = draws.embed_draws(limit, task.coordinates)
    ridges = np.geomspace(1e-8, 10, 10)
    error, gap = [], []
    for ridge in ridges:
        setting = {"ridge": jnp.asarray(ridge, task.x.dtype)}
        fitted, _ = draws.fit_draws(
            METHODS["ridge_rca"], setting, task.coordinates, few.rows, few.groups, num_groups=few.num_groups
        )
        z = draws.embed_draws(fitted, task.coordinates)
        error.append(draws.errors(task, few, Embedded(z), gallery="grouped").mean())
        gaps = [] if target is None else [_disagreement(z[k, rows], target[k, rows]) for k, rows in enumerate(few.rows)]
        gap.append(np.mean(gaps) if gaps else np.nan)
    return {"ridges": ridges, "ridge error": np.array(error), "gap": np.array(gap)}


def scatter_errors(config: ConfigDict, task: Problem) -> dict[str, np.ndarray]:
    """(12) against group size, on all images of the study and on simulated ones, of which there are many a person.

    `expected` is the mean over random groupings, (R - C) / (n - C). The images that are left when those of a person are
    cut into groups form a smaller group.
    """
    rng = np.random.default_rng((config.seed, 12))
    ids = np.asarray(task.ids)
    rows = pairs.limited(ids, max_rows=int(np.bincount(ids).min()))
    made = synthetic.gaussian_identities(rng, num_people=10, images_per_person=config.scatter.num_simulated, dim=16)
    sets = {"": (task.x[rows], ids[rows]), "simulated ": (jnp.asarray(made.features), made.ids)}
    return {
        f"{name}{key}": values
        for name, (x, people) in sets.items()
        for key, values in _scatter_errors(x, people, rng, num_draws=config.scatter.num_draws).items()
    }


def _scatter_errors(x: jax.Array, ids: np.ndarray, rng: np.random.Generator, *, num_draws: int) -> dict[str, Any]:
    most, num_people = int(np.bincount(ids).max()), int(ids.max()) + 1
    sizes = np.unique([*2 ** np.arange(int(np.log2(most)) + 1), most])
    error = partial(group_scatter.scatter_error, labels=ids, num_groups=len(ids), num_classes=num_people)
    of_draws = jax.jit(jax.vmap(error, in_axes=(None, 0)))
    missed, shape, expected = [], [], []
    for size in sizes:
        drawn = groups.random_groups(ids, group_size=int(size), min_size=1, rng=rng, num_draws=num_draws)
        found = of_draws(x, drawn)
        missed.append(np.asarray(found.missed))
        shape.append(np.asarray(found.shape))
        expected.append((int(drawn.max()) + 1 - num_people) / (len(ids) - num_people))
    return {"sizes": sizes, "missed": np.array(missed), "shape": np.array(shape), "expected": np.array(expected)}


def _few(drawn: Draws) -> Draws:
    """Ten of the groupings: a curve has many points."""
    return Draws(drawn.rows[:10], drawn.groups[:10], drawn.num_groups)


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

    return draws.nearest_errors(leading, ids, gallery, probes).mean(), jax.vmap(of_training)(leading, gallery).mean()


def _disagreement(a: jax.Array, b: jax.Array) -> float:
    """Relative gap between two sets of squared distances, each in units of its mean."""
    first, second = (np.asarray(distances.squared_distance_matrix(z, z)) for z in (a, b))
    return float(np.abs(first / first.mean() - second / second.mean()).mean())
