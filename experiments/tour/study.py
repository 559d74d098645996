"""The tour: the five systems on one set of faces, one command, one report.

python -m experiments.tour --config=configs/tour.py --workdir=runs/tour
python -m experiments.tour --config=configs/tour.py --workdir=runs/part --config.sections="('groups', 'gallery')"
"""

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.committee import study as committee
from experiments.common import fields, inputs
from experiments.common.publish import publish
from experiments.hallucinate import methods as methods_of_hallucination
from experiments.super_vector import sets
from experiments.tour import (
    clusters,
    committees,
    feature_maps,
    gallery,
    groups,
    pixels,
    same_person,
    subspaces,
    super_vectors,
)
from experiments.verify import transfer
from experiments.weak_labels import methods as methods_of_groups
from jaxface.core import checks
from jaxface.data import LabeledImages
from jaxface.reports.tables import Table
from jaxface.runtime import log
from jaxface.runtime.workdir import Workdir

SECTIONS = {
    "pixels": pixels,
    "subspaces": subspaces,
    "clusters": clusters,
    "same_person": same_person,
    "groups": groups,
    "committees": committees,
    "gallery": gallery,
    "super_vectors": super_vectors,
    "feature_maps": feature_maps,
}


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Runs every section of `config.sections` as a stage of its own and writes the report."""
    check(config)
    workdir.uses(data=inputs.path_of(config.data))
    faces = inputs.load_faces(config.data)
    parts = {}
    with (
        contextlib.closing(log.JsonlWriter(workdir.path / "metrics.jsonl", resume_step=0)) as metrics,
        contextlib.closing(workdir.stages(_works(config, faces), at_once=config.sections_at_once)) as stages,
    ):
        for step, (name, arrays) in enumerate(stages):
            parts[name] = SECTIONS[name].render(arrays, faces)
            metrics.scalars(step, {f"{name}: {what}": value for what, value in parts[name].results.items()})
    publish(
        workdir,
        title="A tour of jaxface",
        lead=f"{len(faces.images)} images of {len(faces.names)} people, each of the five systems by its main methods. "
        "Other studies have the rest: kernel RCA, tracks, retrieval, KCFA, dictionaries on a stream and views across "
        "cameras. Every figure and number on this page was made by the command at its end.",
        headline=Table(
            ("system", "what", "value [95 % interval]"),
            [row for part in parts.values() for row in part.headline],
            "The page in short; intervals are over random splits or over people, where there are enough of them",
        ),
        sections=[part.section for part in parts.values()],
        credits=(faces.credit,),
    )
    return {name: part.results for name, part in parts.items()}


def _works(config: ConfigDict, faces: LabeledImages) -> dict[str, Callable[[], Mapping[str, np.ndarray]]]:
    """What each section computes; its random numbers are the same whichever others there are."""
    works: dict[str, Callable[[], Mapping[str, np.ndarray]]] = {}
    for index, (name, module) in enumerate(SECTIONS.items()):
        if name in config.sections:
            rng = np.random.default_rng((config.seed, index))
            works[name] = partial(module.run, config[name], faces, rng)
    return works


def check(config: ConfigDict) -> None:
    """Refuses fields of all sections before the first of them runs."""
    fields.words(config, "sections", SECTIONS)
    checks.at_least("the number of config.sections", len(config.sections), 1)
    fields.counts(config, "sections_at_once")
    fields.counts(config, "pixels.num_splits", "pixels.num_train", "subspaces.num_splits", "subspaces.num_resamples")
    fields.counts(config, "subspaces.num_train", "subspaces.max_images", minimum=2)
    fields.counts(config, "subspaces.components", "subspaces.pca_widths")
    fields.positive(config, "subspaces.ridges")
    fields.counts(config, "num_restarts", "num_iters", "num_components", section="clusters")
    transfer.check(config, section="same_person")
    methods_of_groups.check(config, section="groups")
    fields.counts(config, "num_train", "group_sizes", minimum=2, section="groups")
    fields.counts(config, "num_draws", section="groups")
    committee.check(config, section="committees")
    methods_of_hallucination.check(config, section="gallery")
    fields.counts(config, "num_folds", minimum=2, section="gallery")
    fields.counts(config, "max_images", "num_tests", section="gallery")
    fields.shares(config, "tuning_part", above_zero=True, section="gallery")
    sets.check(config, section="super_vectors")
    fields.counts(
        config, "size", "estimates.num_images", "estimates.num_draws", "estimates.sizes", section="feature_maps"
    )
    fields.counts(config, "inverse.num_images", "inverse.expansions", section="feature_maps")
    fields.positive(config, "inverse.ratios", "inverse.shown", section="feature_maps")
