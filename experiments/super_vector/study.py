"""Super vectors against Fisher vectors: images as sets of two kinds of descriptors, each set as one vector.

python -m experiments.super_vector --config=configs/super_vector.py --workdir=runs/super_vector
"""

from functools import partial
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, trials
from experiments.common.publish import publish
from experiments.super_vector import codes, cross_view, recognize, report, sets
from experiments.super_vector.codes import METHODS, SUPER
from experiments.super_vector.recognize import CLASSIFIERS, PAIR_SCORES
from experiments.super_vector.sets import Sets
from jaxface.core import prng
from jaxface.data import pairs
from jaxface.data.splits import Split
from jaxface.runtime.log import progress
from jaxface.runtime.workdir import Workdir


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """One stage for each split and number of training images, and one for retrieval across views."""
    sets.check(config)
    fields.counts(config, "components", "latent_dims")
    workdir.uses(data=sets.path_of(config))
    given = sets.load(config)
    arrays = {}
    for num_train in config.num_train:
        drawn = sets.random_splits(config, given.ids, num_train)
        parts = [
            workdir.stage(f"train-{num_train}-split-{number}", partial(of_split, config, given, split, number))
            for number, split in enumerate(progress(drawn, f"{num_train} images a person"))
        ]
        arrays[num_train] = {name: np.stack([part[name] for part in parts], axis=-1) for name in parts[0]}
    across = workdir.stage("cross-view", partial(of_views, config, given)) if config.source == "views" else None
    publish(
        workdir,
        title="Super vectors and Fisher vectors",
        lead=f"{len(given.names)} people, {len(given.ids)} images, {config.num_splits} random splits; every method "
        "sees the same descriptors of the same images.",
        headline=report.headline(config, arrays),
        sections=report.sections(config, arrays, across),
        credits=(given.credit,),
    )
    return report.results(config, arrays, across)


def of_split(config: ConfigDict, given: Sets, split: Split, number: int) -> dict[str, np.ndarray]:
    """Errors `[settings, methods, classifiers]` and EER `[settings, methods, pair scores]` of one split."""
    key = jax.random.fold_in(jax.random.key(config.seed), number)
    descriptors = sets.describe(config, given, split, number)
    sizes = codes.settings(config)
    errors = np.empty((len(sizes), len(METHODS), len(CLASSIFIERS)))
    eer = np.empty((len(sizes), len(METHODS), len(PAIR_SCORES)))
    for num_components in sorted({k for k, _ in sizes}):
        own = prng.stream(key, f"{num_components} components")
        longest = codes.longest(descriptors, num_components, max(d for k, d in sizes if k == num_components))
        judge = partial(recognize.evaluate, config, ids=given.ids, split=split, longest=longest)
        views = codes.fisher_vectors(config, own, descriptors, num_components=num_components)
        fisher = {name: judge(codes=vectors) for name, vectors in views.items()}
        for row, (k, latent_dim) in enumerate(sizes):
            if k != num_components:
                continue
            both = codes.super_vectors(config, own, descriptors, num_components=k, latent_dim=latent_dim)
            found = fisher | {name: judge(codes=both[name]) for name in SUPER}
            for column, name in enumerate(METHODS):
                errors[row, column], eer[row, column] = found[name]
    asked = split.test[pairs.limited(given.ids[split.test], max_rows=config.max_images)]
    return {
        "errors": errors,
        "eer": eer,
        "largest share": np.asarray(trials.share_of(given.ids[asked])),
        "test to train": np.asarray(split.test_to_train),
    }


def of_views(config: ConfigDict, given: Sets) -> dict[str, np.ndarray]:
    """Rank-1 rates across views of every split, the splits last."""
    parts = cross_view.random_people(config, given)
    found = [
        cross_view.rates(config, people, number)
        for number, people in enumerate(progress(parts, "across views", total=config.num_splits))
    ]
    return {name: np.stack([each[name] for each in found], axis=-1) for name in found[0]}
