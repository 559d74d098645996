"""Random-sampling committees against single LDAs: with few images of a person and many pixels.

python -m experiments.committee --config=configs/committee.py --workdir=runs/committee
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.committee import analysis, illustrations, methods, report
from experiments.committee.methods import METHODS, PAIRED
from experiments.committee.samples import random_samples
from experiments.common import fields, inputs, models, people, ratios, trials
from experiments.common.publish import publish
from experiments.common.ratios import Trials
from jaxface.core import checks
from jaxface.data import pairs
from jaxface.ensembles import PAIR_SCORES, POSTERIORS, RULES
from jaxface.faces import pipeline
from jaxface.runtime.log import progress
from jaxface.runtime.workdir import Workdir


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """One stage for each number of training images, then the report."""
    check(config)
    check_analysis(config)
    people.check(config)
    workdir.uses(data=inputs.path_of(config.data))
    loaded = inputs.load_vectors(config.data, pipeline.build(config.image_steps))
    vectors = people.chosen(config, loaded)
    x, ids = jnp.asarray(vectors.x), _enough_images(config, vectors.ids)
    arrays = {
        num_train: workdir.stage(f"train-{num_train}", partial(of_size, config, x, ids, num_train))
        for num_train in config.num_train
    }
    models.write(workdir, arrays[max(config.num_train)])
    publish(
        workdir,
        title="Random-sampling committees",
        lead=f"{people.in_words(config, loaded, vectors)}; every method sees the same images and settings are chosen "
        f"on {config.num_held_out} more images a person that train nobody.",
        headline=report.headline(config, arrays),
        sections=report.sections(config, arrays),
        credits=(vectors.credit,),
    )
    results = {
        f"error %, {METHODS[m]}, {num_train} images": 100 * float(each["errors"][m].mean())
        for num_train, each in arrays.items()
        for m in range(len(METHODS))
        if not np.isnan(each["errors"][m]).any()
    }
    for num_train, each in arrays.items():
        results |= {
            f"EER %, {name}, {num_train} images": 100 * float(each["eer"][k].mean()) for k, name in enumerate(PAIRED)
        }
        results |= ratios.results(PAIRED, each, f"{num_train} images")
    return (
        results
        | {
            f"error %, rule {rule}, {num_train} images": 100 * float(each["rules"][r].mean())
            for num_train, each in arrays.items()
            for r, rule in enumerate((*RULES, methods.LEARNT))
        }
        | {
            f"out-of-bag error %, {name}, {num_train} images": 100 * float(each["out of bag"][k].mean())
            for num_train, each in arrays.items()
            for k, name in enumerate(methods.OUT_OF_BAG)
            if not np.isnan(each["out of bag"][k]).any()
        }
    )


def check(config: ConfigDict, *, section: str = "") -> None:
    """Refuses values of fields with which no committee can be fitted; the tour has some of the fields."""
    fields.words(config, "posterior", POSTERIORS, section=section)
    fields.words(config, "pair_score", PAIR_SCORES, section=section)
    fields.counts(config, "num_train", "max_images", minimum=2, section=section)
    fields.counts(config, "num_held_out", "num_splits", "num_members", "block_size", section=section)
    fields.words(config, "committees", methods.COMMITTEES[1:], section=section)
    fields.shares(
        config,
        "lda_widths",
        "pca_widths",
        "random_part",
        "people_part",
        "images_part",
        above_zero=True,
        section=section,
    )
    fields.shares(config, "fixed_part", section=section)
    fields.not_negative(config, "floor", "bag_ridge", section=section)
    fields.positive(config, "ridges", section=section)


def check_analysis(config: ConfigDict) -> None:
    """Refuses fields of the analysis of sizes and choices."""
    fields.counts(config, "num_candidates", "choices", "num_resamples")
    fields.shares(config, "candidate_part", above_zero=True)
    fields.shares(config, "size_parts")
    checks.at_most("config.choices", max(config.choices), config.num_candidates, "config.num_candidates")
    for k, pair in enumerate(config.size_parts):
        if len(pair) != 2:
            raise ValueError(f"config.size_parts[{k}] must be a pair of parts (M0, M1); got {pair}.")


def of_size(config: ConfigDict, x: jax.Array, ids: np.ndarray, num_train: int) -> dict[str, np.ndarray]:
    """Errors `[methods, splits]` and the analysis of the first split."""
    of_splits, paired = [], []
    first: dict[str, np.ndarray] = {}
    drawn = random_samples(config, x, ids, num_train)
    for number, samples in enumerate(progress(drawn, f"{num_train} images a person", total=config.num_splits)):
        of_splits.append(methods.errors(config, samples, number))
        of_pairs = [of_splits[-1].pop(field) for field in Trials._fields]
        paired.append(dict(zip(PAIRED, map(Trials, *of_pairs), strict=True)))
        if number == 0:
            first = analysis.sizes(config, samples) | analysis.strength_against_diversity(config, samples)
            members = methods.subspaces(config, samples, methods.key_of(config, number), floor=config.floor)
            first |= illustrations.measure(config, members, samples)
            first |= models.arrays_of(axes=samples.axes, members=members)
            first["test to train"] = np.asarray(len(samples.probe_ids) / len(samples.train_ids))
            scored = samples.probe_ids[pairs.limited(samples.probe_ids, max_rows=config.max_images)]
            first["largest share"] = np.asarray(trials.share_of(scored))
    together = {name: np.stack([each[name] for each in of_splits], axis=-1) for name in of_splits[0]}
    calibrated = ratios.together(paired, ratios=(), num_resamples=config.num_resamples, seed=config.seed)
    return together | calibrated | first


def _enough_images(config: ConfigDict, ids: np.ndarray) -> np.ndarray:
    """The ids, after a check that everybody has images to train, to hold out and to probe."""
    needed = max(config.num_train) + config.num_held_out + 1
    fewest = int(np.bincount(ids).min())
    if fewest < needed:
        raise ValueError(
            f"config.num_train and num_held_out need {needed} images of everybody; somebody has {fewest}. "
            f"Ask for fewer, or leave people out: --config.people.min_images={needed}."
        )
    return ids
