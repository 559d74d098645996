"""Recognition, and clusters, from training images that come in small groups without names.

    python -m experiments.weak_labels --config=configs/weak_labels.py --workdir=runs/weak_labels

Each method gets the same random groups, all draws of one size in one vmapped call. The report has the figures and the
table of the NP-PER paper, and beside them methods that the paper leaves out.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs, models, people
from experiments.common.publish import publish
from experiments.weak_labels import clustering, curves, draws, films, many, methods, report, tracks, videos
from experiments.weak_labels.draws import Problem
from experiments.weak_labels.methods import METHODS, OF_DISTANCES
from jaxface.core import prng
from jaxface.faces import pipeline
from jaxface.reports.html import Section
from jaxface.reports.tables import Table
from jaxface.runtime.workdir import Workdir


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """One stage for each group size of images and of videos, then the report."""
    check(config)
    workdir.uses(data=inputs.path_of(config.data) if config.group_sizes else None, videos=config.videos.root)
    parts = [study(config, workdir) for study in (_images, _videos, _many) if _takes_part(config, study)]
    publish(
        workdir,
        title="Learning from weak labels",
        lead=parts[0].lead,
        headline=parts[0].headline,
        sections=[section for part in parts for section in part.sections],
        credits=[part.credit for part in parts],
    )
    return {name: value for part in parts for name, value in part.results.items()}


class Part(NamedTuple):
    """What a study of images or of videos has to say."""

    lead: str
    headline: Table
    sections: Sequence[Section]
    results: Mapping[str, float]
    credit: str = ""


def _takes_part(config: ConfigDict, study: Callable[..., Part]) -> bool:
    return bool({_images: config.group_sizes, _videos: config.videos.sizes, _many: config.many.sizes}[study])


def _images(config: ConfigDict, workdir: Workdir) -> Part:
    loaded = inputs.load_vectors(config.data, pipeline.build(config.image_steps))
    vectors = people.chosen(config, loaded)
    task = draws.problem(config, vectors)
    draws.check_dimensions(config, task)
    arrays = {
        size: workdir.stage(f"groups-of-{size}", partial(of_size, config, task, size)) for size in config.group_sizes
    }
    scatter = workdir.stage("scatter", partial(curves.scatter_errors, config, task))
    models.write(workdir, arrays[config.group_sizes[0]])
    gallery = "the grouped images" if config.gallery == "grouped" else "all training images"
    return Part(
        lead=f"{people.in_words(config, loaded, vectors)}, {config.num_train} training images each, drawn into groups "
        f"without names. The gallery is {gallery}.",
        headline=report.error_table(config, arrays),
        sections=[
            report.errors(config, arrays),
            report.rca(config, arrays),
            report.scatter(scatter),
            report.clustering(config, arrays),
        ],
        results={
            f"error %, {name}, groups of {size}": 100 * float(arrays[size][f"error/{name}"].mean())
            for name in config.methods
            for size in config.group_sizes
        }
        | report.curves(arrays, scatter),
        credit=vectors.credit,
    )


def _videos(config: ConfigDict, workdir: Workdir) -> Part:
    own = None
    if config.videos.root is not None:
        filmed = workdir.stage("faces-of-videos", lambda: films.read(config)._asdict())
        own = tracks.Filmed(**filmed)
    arrays = {
        size: workdir.stage(f"videos-{size}", partial(tracks.errors, config, size, own)) for size in config.videos.sizes
    }
    shown = workdir.stage("pictures-of-videos", partial(tracks.shown, config, own))
    return Part(
        lead="Faces in videos, in groups without names: frames between which the face moves little.",
        headline=videos.table(config, arrays),
        sections=[videos.section(config, arrays, shown["pictures"], own)],
        results={
            f"videos, error %, {name}, groups of {size}": 100 * float(errors.mean())
            for size, by_method in arrays.items()
            for name, errors in by_method.items()
        },
    )


def _many(config: ConfigDict, workdir: Workdir) -> Part:
    found = workdir.stage("many-groups", partial(many.errors, config))
    results = {
        f"many groups, {name}, {size} images": float(values[k])
        for name, values in found.items()
        for k, size in enumerate(config.many.sizes)
        if name != "sizes" and np.isfinite(values[k])
    }
    return Part(
        lead="Many groups: random features in the place of a kernel of all images with all images.",
        headline=many.table(config, found),
        sections=[many.section(config, found)],
        results=results,
    )


def check(config: ConfigDict) -> None:
    """Refuses values of fields with which no method can be fitted."""
    if not (config.group_sizes or config.videos.sizes or config.many.sizes):
        raise ValueError(
            "config.group_sizes, config.videos.sizes and config.many.sizes are all empty; one needs at least one entry."
        )
    fields.counts(config, "group_size", "num_people", "num_images", minimum=2, section="many")
    fields.counts(config, "kernel_most", "num_features", "num_components", section="many")
    fields.positive(config, "bandwidth", "ridge", section="many")
    if config.many.sizes:  # none: no study of many groups
        fields.counts(config, "sizes", minimum=2 * config.many.group_size, section="many")
    if config.group_sizes:  # none: no images
        people.check(config)
        fields.words(config, "gallery", ("grouped", "all"))
        methods.check(config)
        fields.counts(config, "num_train", "group_sizes", minimum=2)
        fields.counts(config, "num_draws")
        fields.words(config, "clustering.methods", OF_DISTANCES)
        fields.words(config, "clustering.starts", clustering.STARTS)
        fields.counts(config, "num_draws", "num_restarts", "num_iters", section="clustering")
        fields.counts(config, "num_draws", section="scatter")
        fields.counts(config, "num_simulated", minimum=2, section="scatter")
    if config.videos.sizes:  # none: no videos
        methods.check(config, section="videos")
        fields.counts(config, "sizes", "num_people", "frames_per_run", minimum=2, section="videos")
        fields.counts(config, "num_draws", "size", "max_side", section="videos")
        fields.positive(config, "movement", section="videos")
        fields.shares(config, "min_score", section="videos")


def of_size(config: ConfigDict, task: Problem, size: int) -> dict[str, np.ndarray]:
    """Errors, settings, clusters and RCA's curves at one group size."""
    drawn = draws.random_draws(config, task, size)
    arrays: dict[str, np.ndarray] = {}
    for name in config.methods:
        setting = draws.choose_setting(config, task, drawn, METHODS[name])
        embedded = draws.embed(task, drawn, METHODS[name], setting)
        arrays[f"error/{name}"] = draws.errors(task, drawn, embedded, gallery=config.gallery)
        if size == config.group_sizes[0]:
            arrays |= models.arrays_of(**{name: draws.of_vectors(task, METHODS[name], embedded.first)})
        arrays[f"refitted/{name}"] = np.asarray(embedded.refitted)
        for key, value in setting.items():
            arrays[f"{key}/{name}"] = np.asarray(float(value) / (task.scale if key == "bandwidth" else 1.0))
        if name in config.clustering.methods:
            key_of_size = prng.stream(jax.random.key(config.seed), f"clusters of {size}")
            for start in config.clustering.starts:
                arrays[f"clusters/{name}/{start}"] = clustering.purity_and_accuracy(
                    key_of_size,
                    embedded.z,
                    np.asarray(task.ids),
                    drawn,
                    start=start,
                    num_draws=config.clustering.num_draws,
                    num_restarts=config.clustering.num_restarts,
                    num_iters=config.clustering.num_iters,
                )
    return arrays | curves.width_errors(task, drawn) | curves.ridge_errors(task, drawn)
