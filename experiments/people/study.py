"""People out of a heap of photos: groups of one person each, by a verifier that was trained on others.

    python -m experiments.people --config=configs/people.py --config.data.root=FILE.npz --workdir=runs/people
    python -m experiments.people --config=configs/people.py:photos --config.data.root=PHOTOS --workdir=runs/mine \
        --config.model=runs/people/params/verifier.safetensors --config.num_people=40

Without a model the people are known: some train a verifier, some choose settings, the photos of the rest are grouped
and compared with the truth. Merging by the ratios of sets ascends the posterior of partitions exactly.
"""

import dataclasses
from functools import partial
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs
from experiments.common.inputs import Vectors
from experiments.people import heap, methods, report, splits
from experiments.people.heap import Heap
from jaxface.cluster import partition_priors
from jaxface.cluster.partition_priors import Prior
from jaxface.faces import pipeline
from jaxface.runtime import log, params_io
from jaxface.runtime.workdir import Workdir
from jaxface.verifier import Verifier, kinds

SAVED = "params/verifier.safetensors"


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Groups all photos by a given model, or measures methods on people never seen."""
    check(config)
    workdir.uses(data=inputs.path_of(config.data), model=config.model)
    return evaluated(config, workdir) if config.model is None else grouped(config, workdir)


def check(config: ConfigDict) -> None:
    """Refuses fields with values that no run can have."""
    fields.counts(config, "num_splits", "num_components", "num_iters", "num_restarts", "num_kmeans_iters", "num_shown")
    fields.counts(config, "num_neighbors")
    fields.counts(config, "num_people", "max_pairs_images", "min_images", minimum=2)
    fields.counts(config, "max_images", minimum=config.min_images)
    fields.shares(config, "share_fit", "share_choose", above_zero=True)
    fields.positive(config, "noise_scale", "noise_scales")
    fields.shares(config, "min_score")
    fields.words(config, "kind", kinds.KINDS)
    if config.model is None and (config.num_people, config.threshold, config.noise_scale) != (None, None, None):
        raise ValueError(
            "config.num_people, config.threshold and config.noise_scale belong to --config.model; without a model they "
            "are learned from held-out people. Leave them out, or name a verifier."
        )
    if config.model is not None and (config.num_people is None) == (config.threshold is None):
        raise ValueError(
            "with --config.model, give either --config.num_people, how many people you expect, or --config.threshold, "
            f"the least ratio of a merge in nats; got num_people = {config.num_people} and threshold = "
            f"{config.threshold}."
        )


def evaluated(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Every method on people never seen, over the splits; saves the verifier and the groups of the first."""
    steps = pipeline.build(config.image_steps)
    loaded = heap.load(config, workdir, steps)
    if not loaded.is_known:
        raise ValueError(
            "the data do not say who is on the photos. Name a verifier that was trained on others with --config.model "
            "and how many people you expect with --config.num_people; or bring labels (a folder a person, "
            "--config.face=weighted)."
        )
    vectors = taking_part(config, loaded.vectors)
    drawn = splits.drawn(config, vectors.ids)
    steps = steps if vectors.images is not None else pipeline.build(())
    measured = [
        workdir.stage(f"split-{k}", partial(splits.measure, config, vectors, steps, split, k))
        for k, split in enumerate(log.progress(drawn, "splits"))
    ]
    workdir.write_bytes(SAVED, measured[0]["model"].tobytes())
    report.write_groups(workdir, vectors, drawn[0].test, measured[0]["labels"][0])
    report.comparison(config, workdir, loaded.vectors, vectors, drawn, measured)
    return report.results(config, drawn, measured)


def taking_part(config: ConfigDict, vectors: Vectors) -> Vectors:
    """The photos of people with `min_images` to `max_images` of them."""
    counts = np.bincount(vectors.ids)
    is_kept = (counts >= config.min_images) & (counts <= config.max_images)
    rows = np.flatnonzero(is_kept[vectors.ids])
    people = np.cumsum(is_kept) - 1
    return dataclasses.replace(
        vectors,
        x=vectors.x[rows],
        ids=people[vectors.ids[rows]].astype(np.int32),
        names=tuple(name for name, kept in zip(vectors.names, is_kept, strict=True) if kept),
        files=tuple(vectors.files[row] for row in rows) if vectors.files else (),
        images=None if vectors.images is None else vectors.images[rows],
    )


def grouped(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """All photos as groups, by a verifier that was trained on others."""
    model = params_io.load(config.model, Verifier)
    found = heap.load(config, workdir, model.steps)
    arrays = workdir.stage("groups", partial(_groups, config, model, found))
    rows = np.arange(len(found.vectors.x))
    report.write_groups(workdir, found.vectors, rows, arrays["labels"])
    return report.groups(config, workdir, found, arrays)


def _groups(config: ConfigDict, model: Verifier, found: Heap) -> dict[str, np.ndarray]:
    x, affine = found.vectors.x, model.calibration
    if config.noise_scale is None:
        slope, offset = float(affine.slope), float(affine.offset)
    else:
        model, slope, offset = methods.with_noise(model, config.noise_scale), 1.0, 0.0
    partition = methods.by_ratios(
        model,
        x,
        slope=slope,
        prior=_prior(config, offset, len(x)),
        apart=found.apart,
        num_neighbors=config.num_neighbors,
    )
    return {"labels": partition.labels, "rise": np.array(partition.rise)}


def _prior(config: ConfigDict, offset: float, num_images: int) -> Prior:
    """Ewens' prior with the expected number of people, or the stated threshold, of ratios with this offset."""
    if config.threshold is not None:
        return partition_priors.threshold(config.threshold - offset)
    if not config.num_people < num_images:
        raise ValueError(
            f"config.num_people must be less than the number of photos, {num_images}; got {config.num_people}."
        )
    return splits.expected_people(offset, config.num_people, num_images)
