"""Random-sampling committees against single LDAs: with few images of a person and many pixels.

python -m experiments.committee --config=configs/committee.py --workdir=runs/committee
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.committee import analysis, methods, report
from experiments.committee.methods import METHODS
from experiments.committee.samples import random_samples
from experiments.common import fields, inputs, trials
from experiments.common.publish import publish
from jaxface.core import checks
from jaxface.data import pairs
from jaxface.ensembles import PAIR_SCORES, POSTERIORS, RULES
from jaxface.runtime.log import progress
from jaxface.runtime.workdir import Workdir


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """One stage for each number of training images, then the report."""
    check(config)
    check_analysis(config)
    workdir.uses(data=inputs.path_of(config.data))
    faces = inputs.load_faces(config.data)
    x = inputs.encode(jnp.asarray(faces.images, inputs.working_dtype()), config.image_steps)
    ids = _enough_images(config, faces.ids)
    arrays = {
        num_train: workdir.stage(f"train-{num_train}", partial(of_size, config, x, ids, num_train))
        for num_train in config.num_train
    }
    publish(
        workdir,
        title="Random-sampling committees",
        lead=f"{len(faces.names)} people; every method sees the same images and settings are chosen on "
        f"{config.num_held_out} more images a person that train nobody.",
        headline=report.headline(config, arrays),
        sections=report.sections(config, arrays),
        credits=(faces.credit,),
    )
    results = {
        f"error %, {METHODS[m]}, {num_train} images": 100 * float(each["errors"][m].mean())
        for num_train, each in arrays.items()
        for m in range(len(METHODS))
        if not np.isnan(each["errors"][m]).any()
    }
    return results | {
        f"error %, rule {rule}, {num_train} images": 100 * float(each["rules"][r].mean())
        for num_train, each in arrays.items()
        for r, rule in enumerate(RULES)
    }


def check(config: ConfigDict, *, section: str = "") -> None:
    """Refuses values of fields with which no committee can be fitted; the tour has some of the fields."""
    fields.words(config, "posterior", POSTERIORS, section=section)
    fields.words(config, "pair_score", PAIR_SCORES, section=section)
    fields.counts(config, "num_train", "max_images", minimum=2, section=section)
    fields.counts(config, "num_held_out", "num_splits", "num_members", "block_size", section=section)
    fields.shares(config, "pca_widths", "random_part", "people_part", "images_part", above_zero=True, section=section)
    fields.shares(config, "fixed_part", section=section)
    fields.not_negative(config, "floor", "bag_ridge", section=section)
    fields.positive(config, "ridges", section=section)


def check_analysis(config: ConfigDict) -> None:
    """Refuses fields of the analysis of sizes and choices."""
    fields.counts(config, "num_candidates", "choices")
    fields.shares(config, "candidate_part", above_zero=True)
    fields.shares(config, "size_parts")
    checks.at_most("config.choices", max(config.choices), config.num_candidates, "config.num_candidates")
    for k, pair in enumerate(config.size_parts):
        if len(pair) != 2:
            raise ValueError(f"config.size_parts[{k}] must be a pair of parts (M0, M1); got {pair}.")


def of_size(config: ConfigDict, x: jax.Array, ids: np.ndarray, num_train: int) -> dict[str, np.ndarray]:
    """Errors `[methods, splits]` and the analysis of the first split."""
    of_splits = []
    first: dict[str, np.ndarray] = {}
    drawn = random_samples(config, x, ids, num_train)
    for number, samples in enumerate(progress(drawn, f"{num_train} images a person", total=config.num_splits)):
        of_splits.append(methods.errors(config, samples, number))
        if number == 0:
            first = analysis.sizes(config, samples) | analysis.strength_against_diversity(config, samples)
            first["test to train"] = np.asarray(len(samples.probe_ids) / len(samples.train_ids))
            scored = samples.probe_ids[pairs.limited(samples.probe_ids, max_rows=config.max_images)]
            first["largest share"] = np.asarray(trials.share_of(scored))
    return {name: np.stack([each[name] for each in of_splits], axis=-1) for name in of_splits[0]} | first


def _enough_images(config: ConfigDict, ids: np.ndarray) -> np.ndarray:
    """The ids, after a check that everybody has images to train, to hold out and to probe."""
    needed = max(config.num_train) + config.num_held_out + 1
    fewest = int(np.bincount(ids).min())
    if fewest < needed:
        raise ValueError(
            f"config.num_train and num_held_out need {needed} images of everybody; somebody has {fewest}. "
            "Ask for fewer, or load people with more images (min_images)."
        )
    return ids
