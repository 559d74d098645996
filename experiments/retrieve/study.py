"""Retrieval of photographs after learning from small groups of similar ones.

    python -m experiments.retrieve --config=configs/retrieve.py --config.data.root=PHOTOS --workdir=runs/retrieve

Of each class, `per_class` photographs are the database, in which small groups are known to belong together, and as many
others are queries. The study reports how many of the K nearest photographs are of the query's class, in the mean.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs
from experiments.retrieve import report
from experiments.weak_labels import draws, methods
from experiments.weak_labels.draws import Draws, Problem
from experiments.weak_labels.methods import METHODS, Setting
from jaxface.cluster import neighbors
from jaxface.core import checks
from jaxface.data import LabeledImages
from jaxface.data.splits import Split, few_shot
from jaxface.metrics.retrieval import ranked_retrieval_at_k
from jaxface.runtime.log import progress
from jaxface.runtime.workdir import Workdir

SCALINGS = ("plain", "balanced", "rooted and balanced")


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """One stage for each scaling of the two kinds of features, then the report."""
    methods.check(config)
    fields.words(config, "scalings", SCALINGS)
    fields.counts(config, "per_class", "k", "num_splits", "num_draws")
    fields.counts(config, "group_size", minimum=2)
    fields.shares(config, "curve_widths", above_zero=True)
    if config.data.root is None:
        raise ValueError("--config.data.root is missing: name a folder of colour photographs, one folder a class.")
    workdir.uses(data=inputs.path_of(config.data))
    photographs = inputs.load_faces(config.data)
    fewest = int(np.bincount(photographs.ids).min())
    checks.at_most(
        "config.per_class", config.per_class, (fewest - 1) // 2, f"the smallest class has {fewest} photographs"
    )
    arrays = {
        scaling: workdir.stage(scaling.replace(" ", "-"), partial(hits, config, photographs, scaling))
        for scaling in config.scalings
    }
    report.page(config, workdir, photographs, arrays)
    return {
        f"correct in the top {config.k}, {name}, {scaling}": float(numbers[name][:, -1].mean())
        for scaling, numbers in arrays.items()
        for name in ("pixels", *config.methods)
    }


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


def hits(config: ConfigDict, photographs: LabeledImages, scaling: str) -> dict[str, np.ndarray]:
    """Mean number `[splits, k]` of right photographs in the top 1 to k, for every method on the same splits."""
    x = features(config, photographs.images, scaling)
    drawn = few_shot(
        photographs.ids,
        num_train=config.per_class,
        most_train=config.per_class,
        num_held_out=config.per_class,
        seed=config.seed,
        num_splits=config.num_splits,
    )
    settings: dict[str, Any] = {}
    numbers: dict[str, list[np.ndarray]] = {name: [] for name in ("pixels", *config.methods)}
    for number, (database, _, queries) in enumerate(progress(drawn, scaling)):
        task = draws.problem_of(x, photographs.ids, Split(np.sort(database), np.sort(queries)))
        grouping = draws.random_draws(config, task, config.group_size, seed=number)
        numbers["pixels"].append(_correct(config, task, x))
        for name in config.methods:
            if number == 0:
                settings[name] = draws.choose_setting(config, task, grouping, METHODS[name])
            numbers[name].append(
                _correct(config, task, draws.embed(task, grouping, METHODS[name], settings[name]).z[0])
            )
        if "kernel_rca" in config.methods:
            numbers.setdefault("by width", []).append(_by_width(config, task, grouping, settings["kernel_rca"]))
    return {name: np.array(values) for name, values in numbers.items()}


def _by_width(config: ConfigDict, task: Problem, grouping: Draws, setting: Setting) -> np.ndarray:
    """Right photographs in the top k `[widths]` after kernel RCA with `curve_widths` of its axes: one fit gives all."""
    widest = grouping.rows.shape[1] - grouping.num_groups
    whole = dict(setting) | {"width": jnp.asarray(float(widest))}
    z = draws.embed(task, grouping, METHODS["kernel_rca"], whole).z[0]
    place = jnp.arange(z.shape[1])[None, :]
    return np.array(
        [
            _correct(config, task, jnp.where(place < max(1, round(part * widest)), z, 0))[-1]
            for part in config.curve_widths
        ]
    )


def _correct(config: ConfigDict, task: Problem, z: jnp.ndarray) -> np.ndarray:
    """Mean number `[k]` of the database's photographs of the query's class in the top 1 to k."""
    ids, (database, queries, _) = np.asarray(task.ids), task.split
    nearest = neighbors.nearest(z[database], z[queries], num_neighbors=config.k)
    return ranked_retrieval_at_k(ids[database][np.asarray(nearest.indices)], ids[queries], k=config.k).number
