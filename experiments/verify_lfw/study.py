"""The LFW protocol with Joint Bayes: accuracy of every step of the pipeline, and calibration of its ratios.

python -m experiments.verify_lfw --config=configs/verify_lfw.py --config.data.root=LFW --workdir=runs/lfw
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs
from experiments.verify_lfw import embedded, protocol, report
from experiments.verify_lfw.protocol import Fold, Scored
from jaxface.core import checks
from jaxface.data import Listing
from jaxface.runtime.workdir import Workdir


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Encodes the images, scores every fold as a stage of its own, and reports."""
    if config.view not in (1, 2):
        raise ValueError(f"config.view must be 1 (to choose settings) or 2 (to report); got {config.view}.")
    checks.one_of("config.e_step", config.e_step, embedded.EM)
    fields.counts(config, "ranks", "fitted_ranks", "num_components", "lda_components", "num_iters", "num_resamples")
    if config.data.root is None:
        raise ValueError(
            "--config.data.root is missing: name the folder that holds LFW's pairs.txt and people.txt, and its images "
            "unless --config.embeddings names a file."
        )
    if config.embeddings is not None and config.fused_features:
        raise ValueError("config.fused_features are of images; with embeddings take configs/verify_lfw.py:embeddings.")
    files = None if config.embeddings is None else inputs.path_of(embedded.section(config))
    workdir.uses(data=config.data.root, embeddings=files)
    scored = _of_images(config, workdir) if config.embeddings is None else _of_vectors(config, workdir)
    arrays = protocol.summary(config, scored)
    headline, results = report.table(config, arrays)
    report.page(config, workdir, arrays, headline)
    return results


def _of_images(config: ConfigDict, workdir: Workdir) -> list[Mapping[str, np.ndarray]]:
    """Every fold's scores by all methods on all kinds of features."""
    listing, folds = protocol.folds(config)
    main = partial(protocol.features, listing, tuple(config.crop), config.image_steps, "main", mirrored=False)
    scored = _scored(workdir, listing, folds, "main", main, partial(protocol.fold_scores, config))
    more = []
    for name, crop, steps in config.fused_features:
        encode = partial(protocol.features, listing, tuple(crop), steps, name, mirrored=True)
        more.append(_scored(workdir, listing, folds, name, encode, partial(protocol.best_scores, config)))
    return [
        {**fold, "scores": np.stack([*fold["scores"], *(other[k]["scores"] for other in more)])}
        for k, fold in enumerate(scored)
    ]


def _of_vectors(config: ConfigDict, workdir: Workdir) -> list[Mapping[str, np.ndarray]]:
    """Every fold's scores by all methods on embeddings."""
    vectors, photos = embedded.load(config)
    listing, folds = protocol.folds(config, photos)
    return _scored(workdir, listing, folds, "main", lambda: vectors.x, partial(embedded.fold_scores, config))


def _scored(
    workdir: Workdir,
    listing: Listing,
    folds: Sequence[Fold],
    name: str,
    encode: Callable[[], np.ndarray],
    score: Callable[[np.ndarray, np.ndarray, Fold], np.ndarray | Scored],
) -> list[Mapping[str, np.ndarray]]:
    """The scores of every fold on one kind of features, a stage each; images are encoded when a stage needs them."""
    encoded = cache(encode)

    def of_fold(fold: Fold) -> dict[str, np.ndarray]:
        found = score(encoded(), listing.ids, fold)
        arrays = {"scores": found}
        if isinstance(found, Scored):
            arrays = {name.replace("_", " "): values for name, values in found._asdict().items()}
        people, others = (listing.ids[rows] for rows in (fold.pairs.first, fold.pairs.second))
        return {**arrays, "is_same": fold.pairs.is_same, "people": people, "others": others}

    return [workdir.stage(f"{name}-{k}", partial(of_fold, fold)) for k, fold in enumerate(folds)]
