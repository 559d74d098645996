"""Does it help to know how good a photo is? Degraded photos, with weights from known and from measured qualities.

    python -m experiments.quality --config=configs/quality.py --workdir=runs/quality

Every photo is blurred, shrunk, darkened or left alone, by a random amount. The model without weights is compared with
models whose weights follow from the known amount and from what a user can measure.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs, people
from experiments.quality import degrade, faces, measured, methods, report
from jaxface.data import LabeledImages, Listing, pairs, people_with, take, take_people
from jaxface.runtime import log
from jaxface.runtime.workdir import Workdir


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Features of the degraded photos, scores of every fold, and the page."""
    check(config)
    workdir.uses(data=inputs.path_of(config.data))
    credit = ""
    if config.is_embedded:
        listing = faces.listed(config)
        arrays = workdir.stage("features", partial(faces_and_measures, config, listing))
    else:
        loaded = inputs.load_faces(config.data)
        credit = loaded.credit
        arrays = workdir.stage("features", partial(encoded, config, loaded))
    folds = methods.folds(config, arrays["ids"])
    scored = [
        workdir.stage(f"fold-{k}", partial(methods.scores_of_fold, config, arrays, split))
        for k, split in enumerate(log.progress(folds, "folds"))
    ]
    found = report.measure(config, arrays, scored)
    report.page(config, workdir, arrays, scored, found, credit)
    return report.results(found)


def check(config: ConfigDict) -> None:
    """Refuses fields with values that no run can have."""
    people.check(config)
    fields.counts(config, "num_people", "num_components", "num_iters", "num_resamples", "degrade.num_levels")
    fields.counts(config, "num_folds", "num_bins", "num_bins_of_two", minimum=2)
    fields.counts(config, "degrade.height", "detector.max_side")
    fields.positive(config, "degrade.blur", "degrade.dark")
    fields.not_negative(config, "degrade.noise", "alphas")
    fields.shares(config, "held_out", "degrade.dark", "detector.min_score", above_zero=True)


def encoded(config: ConfigDict, loaded: LabeledImages) -> dict[str, np.ndarray]:
    """Features of degraded faces by the image steps, with what was done and what was measured."""
    chosen = people_with(loaded.ids, min_rows=config.people.min_images)
    if config.num_people is not None and config.num_people < chosen.size:
        rng = np.random.default_rng((config.seed, 3))
        chosen = np.sort(rng.choice(chosen, config.num_people, replace=False))
    some = take_people(loaded, chosen)
    some = take(some, pairs.limited(some.ids, max_rows=config.people.max_images))
    amounts = degrade.drawn(config, len(some.ids), np.random.default_rng((config.seed, 1)))
    images = degrade.degraded(config, some.images, amounts, np.random.default_rng((config.seed, 2)))
    return {
        "x": np.asarray(inputs.encode(jnp.asarray(images, inputs.working_dtype()), config.image_steps)),
        "ids": some.ids,
        "kind": amounts.kind,
        "level": amounts.level,
        "measured": measured.qualities(images),
        "pictures": shown(config, some.images),
    }


def faces_and_measures(config: ConfigDict, listing: Listing) -> dict[str, np.ndarray]:
    """SFace vectors of the faces that the detector finds in degraded photos."""
    found = faces.described(config, listing)
    images = found.pop("images")
    clean = images[found["kind"] == 0]
    return found | {"measured": measured.qualities(images), "pictures": shown(config, clean)}


def shown(config: ConfigDict, images: np.ndarray) -> np.ndarray:
    """A few photos at every kind and the strongest level `[photos, kinds, h, w]`."""
    few = images[:: max(1, len(images) // 4)][:4]
    few = few.mean(axis=-1) if few.ndim == 4 else few
    rng, most = np.random.default_rng((config.seed, 5)), config.degrade.num_levels
    of_kinds = []
    for kind in range(len(degrade.KINDS)):
        amounts = degrade.Amounts(np.full(len(few), kind), np.full(len(few), most if kind else 0))
        of_kinds.append(degrade.degraded(config, few, amounts, rng))
    return np.stack(of_kinds, axis=1)
