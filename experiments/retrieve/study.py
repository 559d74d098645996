"""Retrieval of photographs after learning from small groups of similar ones.

    python -m experiments.retrieve --config=configs/retrieve.py --config.data.root=PHOTOS --workdir=runs/retrieve

Of each class, `per_class` photographs are the database, in which small groups are known to belong together, and as many
others are queries. The study reports how many of the K nearest photographs are of the query's class, in the mean, also
against the number of classes. Without photographs of many classes a generator makes some: `:made`.
"""

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs
from experiments.retrieve import report
from experiments.weak_labels import draws, methods
from experiments.weak_labels.draws import Draws, Problem
from experiments.weak_labels.methods import METHODS, OF_DISTANCES, Setting
from jaxface.cluster import neighbors
from jaxface.core import checks
from jaxface.data import LabeledImages, patterns
from jaxface.data.splits import Split, few_shot
from jaxface.metrics.retrieval import ranked_retrieval_at_k
from jaxface.runtime import sections
from jaxface.runtime.log import progress
from jaxface.runtime.workdir import Workdir

SCALINGS = ("plain", "balanced", "rooted and balanced")
NUM_SHOWN = 6  # queries in the report


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """One stage for each scaling of the features and each number of classes, then the report."""
    check(config)
    workdir.uses(data=inputs.path_of(config.data))
    photographs = load(config)
    fewest = int(np.bincount(photographs.ids).min())
    checks.at_most(
        "config.per_class", config.per_class, (fewest - 1) // 2, f"the smallest class has {fewest} photographs"
    )
    numbers = config.num_classes or (len(photographs.names),)
    checks.at_most("config.num_classes", max(numbers), len(photographs.names), "the classes there are")
    encoded = functools.cache(partial(features, config, photographs.images))
    found = {
        scaling: {
            number: workdir.stage(
                f"{scaling.replace(' ', '-')}-{number}-classes",
                partial(hits, config, photographs.ids, partial(encoded, scaling), number),
            )
            for number in numbers
        }
        for scaling in config.scalings
    }
    report.page(config, workdir, photographs, found)
    return {
        f"correct in the top {config.k}, {name}, {scaling}, {number} classes": float(arrays[name][:, -1].mean())
        for scaling, by_number in found.items()
        for number, arrays in by_number.items()
        for name in ("pixels", *config.methods)
    }


def check(config: ConfigDict) -> None:
    """Refuses values of fields with which nothing can be learnt or found."""
    methods.check(config)
    fields.words(config, "methods", OF_DISTANCES)
    fields.words(config, "scalings", SCALINGS)
    fields.counts(config, "per_class", "k", "num_splits", "num_draws")
    fields.counts(config, "group_size", minimum=2)
    fields.counts(config, "num_classes", minimum=2)
    fields.shares(config, "curve_widths", above_zero=True)
    if config.data.root is None and config.data.loader != "made":
        raise ValueError("--config.data.root is missing: name a folder of colour photographs, one folder a class.")


def load(config: ConfigDict) -> LabeledImages:
    """Photographs of a folder, or made ones."""
    if config.data.loader != "made":
        return inputs.load_faces(config.data)
    options = sections.arguments(inputs.given(config.data.options), patterns.patterns)
    return patterns.patterns(np.random.default_rng(config.seed), **options).data


def features(config: ConfigDict, images: np.ndarray, scaling: str) -> jnp.ndarray:
    """Colour and texture `[n, 5120]`, unscaled ("plain") or each kind divided to the same total variance."""
    color, texture = (
        np.asarray(inputs.encode(jnp.asarray(images, inputs.working_dtype()), steps))
        for steps in (config.color_steps, config.texture_steps)
    )
    if scaling == "plain":
        return jnp.asarray(np.concatenate([color, texture], axis=1))
    kinds = [np.sqrt(color) if scaling.startswith("rooted") else color, texture]
    return jnp.asarray(np.concatenate([kind / np.sqrt(kind.var(axis=0).sum()) for kind in kinds], axis=1))


def hits(
    config: ConfigDict, ids: np.ndarray, encoded: Callable[[], jnp.ndarray], num_classes: int
) -> dict[str, np.ndarray]:
    """Mean number `[splits, k]` of right photographs in the top 1 to k, for every method on the same splits.

    Every split has `num_classes` classes drawn at random; a smaller number of them are among those of a larger one. Of
    the first split there are also some queries and their answers, as rows of the photographs.
    """
    x = encoded()
    drawn = few_shot(
        ids,
        num_train=config.per_class,
        most_train=config.per_class,
        num_held_out=config.per_class,
        seed=config.seed,
        num_splits=config.num_splits,
    )
    names = ("pixels", *config.methods)
    settings: dict[str, Any] = {"pixels": {}}
    found: dict[str, list[np.ndarray]] = {name: [] for name in (*names, "by width")}
    shown: dict[str, np.ndarray] = {}
    for number, (database, _, queries) in enumerate(progress(drawn, f"{num_classes} classes")):
        rows, task = _problem(config, x, ids, (database, queries), num_classes, number)
        grouping = draws.random_draws(config, task, config.group_size, seed=number)
        for name in names:
            if name not in settings:
                settings[name] = draws.choose_setting(config, task, grouping, METHODS[name])
            z = task.x if name == "pixels" else draws.embed(task, grouping, METHODS[name], settings[name]).z[0]
            ranked = _ranked(config, task, z)
            found[name].append(_correct(config, task, ranked))
            if number == 0:
                places = _some_queries(task, config.seed)
                shown |= {"queries": rows[task.split.test[places]], f"answers/{name}": rows[ranked[places]]}
        if "kernel_rca" in names:
            found["by width"].append(_by_width(config, task, grouping, settings["kernel_rca"]))
    return {name: np.array(values) for name, values in found.items() if values} | shown


def _problem(
    config: ConfigDict,
    x: jnp.ndarray,
    ids: np.ndarray,
    parts: tuple[np.ndarray, np.ndarray],
    num_classes: int,
    number: int,
) -> tuple[np.ndarray, Problem]:
    """The photographs `[r]` of some classes, and the problem of learning from the one part and asking for the other."""
    order = np.random.default_rng((config.seed, number, 8)).permutation(int(ids.max()) + 1)
    chosen = np.sort(order[:num_classes])
    database, queries = (np.sort(part[np.isin(ids[part], chosen)]) for part in parts)
    rows = np.sort(np.concatenate([database, queries]))
    split = Split(np.searchsorted(rows, database), np.searchsorted(rows, queries))
    return rows, draws.problem_of(x[rows], np.searchsorted(chosen, ids[rows]).astype(np.int32), split)


def _some_queries(task: Problem, seed: int) -> np.ndarray:
    """Places `[q]` of queries to show: the first one of some classes."""
    asked = np.asarray(task.ids)[task.split.test]
    classes, first = np.unique(asked, return_index=True)
    return first[np.sort(np.random.default_rng(seed).permutation(len(classes))[:NUM_SHOWN])]


def _by_width(config: ConfigDict, task: Problem, grouping: Draws, setting: Setting) -> np.ndarray:
    """Right photographs in the top k `[widths]` after kernel RCA with `curve_widths` of its axes: one fit gives all."""
    widest = grouping.rows.shape[1] - grouping.num_groups
    whole = dict(setting) | {"width": jnp.asarray(float(widest))}
    z = draws.embed(task, grouping, METHODS["kernel_rca"], whole).z[0]
    place = jnp.arange(z.shape[1])[None, :]
    leading = (jnp.where(place < max(1, round(part * widest)), z, 0) for part in config.curve_widths)
    return np.array([_correct(config, task, _ranked(config, task, each))[-1] for each in leading])


def _ranked(config: ConfigDict, task: Problem, z: jnp.ndarray) -> np.ndarray:
    """The k rows of the database `[q, k]` that are nearest to each query, the nearest first."""
    database, queries, _ = task.split
    nearest = neighbors.nearest(z[database], z[queries], num_neighbors=config.k)
    return database[np.asarray(nearest.indices)]


def _correct(config: ConfigDict, task: Problem, ranked: np.ndarray) -> np.ndarray:
    """Mean number `[k]` of the database's photographs of the query's class in the top 1 to k."""
    ids = np.asarray(task.ids)
    return ranked_retrieval_at_k(ids[ranked], ids[task.split.test], k=config.k).number
