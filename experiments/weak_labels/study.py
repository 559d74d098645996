"""Recognition, and clusters, from training images that come in small groups without names.

    python -m experiments.weak_labels --config=configs/weak_labels.py --workdir=runs/weak_labels

Each method gets the same random groups, all draws of one size in one vmapped call. The report has the figures and the
table of the NP-PER paper, and beside them methods that the paper leaves out.
"""

from functools import partial
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs, models, people
from experiments.common.publish import publish
from experiments.weak_labels import clustering, draws, methods, report, tracks
from experiments.weak_labels.draws import Problem
from experiments.weak_labels.methods import METHODS
from jaxface.core import prng
from jaxface.faces import pipeline
from jaxface.runtime.workdir import Workdir


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """One stage for each group size of images and of videos, then the report."""
    check(config)
    people.check(config)
    workdir.uses(data=inputs.path_of(config.data))
    loaded = inputs.load_vectors(config.data, pipeline.build(config.image_steps))
    vectors = people.chosen(config, loaded)
    task = draws.problem(config, vectors)
    draws.check_dimensions(config, task)
    arrays = {
        size: workdir.stage(f"groups-of-{size}", partial(of_size, config, task, size)) for size in config.group_sizes
    }
    videos = {
        size: workdir.stage(f"videos-{size}", partial(tracks.errors, config, size)) for size in config.videos.sizes
    }
    models.write(workdir, arrays[config.group_sizes[0]])
    sections = [report.errors(config, arrays), report.rca(arrays), report.clustering(config, arrays)]
    if videos:
        sections.append(report.videos(config, config.videos.sizes, videos))
    gallery = "the grouped images" if config.gallery == "grouped" else "all training images"
    publish(
        workdir,
        title="Learning from weak labels",
        lead=f"{people.in_words(config, loaded, vectors)}, {config.num_train} training images each, drawn into groups "
        f"without names. The gallery is {gallery}.",
        headline=report.error_table(config, arrays),
        sections=sections,
        credits=(vectors.credit,),
    )
    results = {
        f"error %, {name}, groups of {size}": 100 * float(arrays[size][f"error/{name}"].mean())
        for name in config.methods
        for size in config.group_sizes
    }
    return results | {
        f"videos, error %, {name}, groups of {size}": 100 * float(errors.mean())
        for size, by_method in videos.items()
        for name, errors in by_method.items()
    }


def check(config: ConfigDict) -> None:
    """Refuses values of fields with which no method can be fitted."""
    fields.words(config, "gallery", ("grouped", "all"))
    methods.check(config)
    fields.counts(config, "num_train", "group_sizes", minimum=2)
    fields.counts(config, "num_draws")
    fields.words(config, "clustering.methods", METHODS)
    fields.words(config, "clustering.starts", clustering.STARTS)
    fields.counts(config, "num_draws", "num_restarts", "num_iters", section="clustering")
    if config.videos.sizes:  # none: no videos
        methods.check(config, section="videos")
        fields.counts(config, "sizes", "num_people", "frames_per_run", minimum=2, section="videos")
        fields.counts(config, "num_draws", "size", section="videos")
        fields.positive(config, "movement", section="videos")


def of_size(config: ConfigDict, task: Problem, size: int) -> dict[str, np.ndarray]:
    """Errors, settings, clusters and RCA's curves at one group size."""
    drawn = draws.random_draws(config, task, size)
    arrays: dict[str, np.ndarray] = {}
    for name in config.methods:
        setting = draws.choose_setting(config, task, drawn, METHODS[name])
        embedded = draws.embed(task, drawn, METHODS[name], setting)
        arrays[f"error/{name}"] = draws.errors(task, drawn, embedded.z, gallery=config.gallery)
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
    ridge = draws.ridge_errors(task, drawn)
    return arrays | draws.width_errors(task, drawn) | ridge
