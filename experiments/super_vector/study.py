"""Super vectors against Fisher vectors: an image is a set of two kinds of descriptors, and a set becomes one vector.

python -m experiments.super_vector --config=configs/super_vector.py --workdir=runs/super_vector
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, models, ratios, trials
from experiments.common.publish import publish
from experiments.super_vector import ablations, codes, cross_view, missing, recognize, report, sets, spectra
from experiments.super_vector.codes import METHODS, SUPER
from experiments.super_vector.recognize import CLASSIFIERS, PAIR_SCORES, PAIRED
from experiments.super_vector.sets import Sets
from jaxface.core import prng
from jaxface.data import pairs
from jaxface.data.splits import Split
from jaxface.runtime.log import progress
from jaxface.runtime.workdir import Workdir


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """One stage for each split and number of training images, and one for retrieval across views."""
    fields.counts(config, "leading_axes")
    for part in (missing, ablations):
        if config.source == part.SOURCE:
            return part.run(config, workdir)
    sets.check(config)
    spectra.check(config)
    fields.counts(config, "components", "latent_dims", "num_resamples")
    fields.shares(config, "missing.shares")
    workdir.uses(data=sets.path_of(config))
    faces = sets.load(config)
    arrays = {}
    for num_train in config.num_train:
        parts = sets.stages(config, workdir, faces, num_train, of_split)
        models.write(workdir, parts[0])
        names = [name for name in models.without(parts[0]) if name not in ("scores", "people")]
        calibrated = workdir.stage(f"train-{num_train}-ratios", partial(of_pairs, config, parts))
        arrays[num_train] = {name: np.stack([part[name] for part in parts], axis=-1) for name in names} | calibrated
    across = rebuilt = None
    if config.source == "views":
        across = workdir.stage("cross-view", partial(of_views, config, faces))
        rebuilt = workdir.stage("reconstruction", partial(spectra.measure, config, faces))
    publish(
        workdir,
        title="Super vectors and Fisher vectors",
        lead=f"{len(faces.names)} people, {len(faces.ids)} images, {config.num_splits} random splits; every method "
        "sees the same descriptors of the same images.",
        headline=report.headline(config, arrays),
        sections=report.sections(config, arrays, across) + ((spectra.section(config, rebuilt),) if rebuilt else ()),
        credits=(faces.credit,),
    )
    return report.results(config, arrays, across) | (spectra.results(rebuilt) if rebuilt else {})


def of_split(config: ConfigDict, faces: Sets, split: Split, number: int) -> dict[str, np.ndarray]:
    """Errors `[settings, methods, classifiers]` and EER `[settings, methods, pair scores]` of one split."""
    key = jax.random.fold_in(jax.random.key(config.seed), number)
    descriptors = sets.descriptors_of(config, faces, split, number)
    sizes = codes.settings(config)
    errors = np.empty((len(sizes), len(METHODS), len(CLASSIFIERS)))
    eer = np.empty((len(sizes), len(METHODS), len(PAIR_SCORES)))
    scored: list[tuple[ratios.Trials, ...]] = []
    kept: dict[str, Any] = {}
    for num_components in sorted({k for k, _ in sizes}):
        model_key = prng.stream(key, f"{num_components} components")
        longest = codes.longest(descriptors, num_components, max(d for k, d in sizes if k == num_components))
        rates_of = partial(recognize.evaluate, config, ids=faces.ids, split=split, longest=longest)
        vectors = codes.fisher_vectors(config, model_key, descriptors, num_components=num_components)
        fisher = {name: rates_of(codes=each) for name, each in vectors.items()}
        for row, (k, latent_dim) in enumerate(sizes):
            if k != num_components:
                continue
            model = codes.fit_mixture(config, model_key, descriptors, num_components=k, latent_dim=latent_dim)
            vectors = codes.codes_of(model, descriptors)
            rates = fisher | {name: rates_of(codes=vectors[name]) for name in SUPER}
            for column, name in enumerate(METHODS):
                errors[row, column], eer[row, column] = rates[name].errors, rates[name].eer
            if row == 0:
                scored = [rates[name].trials for name in METHODS]
                kept = dict(zip(("axes_x", "axes_y", "mixture"), (*descriptors.maps, model), strict=True))
    rows = split.test[pairs.limited(faces.ids[split.test], max_rows=config.max_images)]
    return (models.arrays_of(**kept) if number == 0 else {}) | {
        "errors": errors,
        "eer": eer,
        "scores": np.array([[each.scores for each in of_method] for of_method in scored], np.float32),
        "people": np.stack([scored[0][0].first, scored[0][0].second]),
        "largest share": np.asarray(trials.share_of(faces.ids[rows])),
        "test to train": np.asarray(split.test_to_train),
    }


def of_pairs(config: ConfigDict, parts: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Cllr and its intervals of `PAIRED` at the default size, from the scores of all splits."""
    scored = [
        {
            name: ratios.Trials(part["scores"][divmod(k, len(PAIR_SCORES))].astype(np.float64), *part["people"])
            for k, name in enumerate(PAIRED)
        }
        for part in parts
    ]
    ratio = [name for name in PAIRED if name.endswith(PAIR_SCORES[1])]
    return ratios.together(scored, ratios=ratio, num_resamples=config.num_resamples, seed=config.seed)


def of_views(config: ConfigDict, faces: Sets) -> dict[str, np.ndarray]:
    """Rank-1 rates across views of every split, the splits last."""
    parts = cross_view.random_people(config, faces)
    of_splits = [
        cross_view.rates(config, people, number)
        for number, people in enumerate(progress(parts, "across views", total=config.num_splits))
    ]
    return {name: np.stack([each[name] for each in of_splits], axis=-1) for name in of_splits[0]}
