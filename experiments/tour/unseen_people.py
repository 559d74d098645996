"""Verification of people whom no map was fitted to, by the cosine after each of four maps."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import trials
from jaxface.core import pair_counts
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import raise_if_failed
from jaxface.data import LabeledImages, pairs, splits
from jaxface.linalg import distances
from jaxface.metrics import bootstrap, streaming, verification
from jaxface.subspace import LinearMap, lda, pca, transform


def verified(
    config: ConfigDict, x: jax.Array, faces: LabeledImages, ridge: float, rng: np.random.Generator
) -> dict[str, Any]:
    """Half of the people train, all pairs of the other half are scored; intervals over people."""
    people = len(faces.names)
    part = splits.identity_disjoint(faces.ids, num_people=(people // 2, people - people // 2), rng=rng)[0]
    names, train_ids = np.unique(faces.ids[part == 0], return_inverse=True)
    unseen = np.flatnonzero(part == 1)
    unseen = unseen[pairs.limited(faces.ids[unseen], max_rows=config.max_images)]
    test, test_ids = x[unseen], faces.ids[unseen]
    trial = pairs.all_pairs(test_ids)
    intervals = []
    for fitted in _maps(config, x[part == 0], train_ids.astype(np.int32), ridge):
        z = each_row(transform, fitted, test)
        scores = np.asarray(_cosines(None, z, z))[trial.first, trial.second]
        first, second = test_ids[trial.first], test_ids[trial.second]
        intervals.append(
            bootstrap.subject_bootstrap(
                scores, trial.is_same, first, second, rng=rng, num_resamples=config.num_resamples, far=(0.01,)
            )
        )
    counts = pair_counts.count_all_pairs(_cosines, None, z, test_ids)
    curve = streaming.roc(counts.edges, counts.genuine, counts.impostor)
    return {
        "eer": [tuple(interval.eer) for interval in intervals],
        "rate": [np.concatenate([np.asarray(end) for end in interval.verification_rate]) for interval in intervals],
        "band_far": intervals[0].band_far,
        "band": [np.stack(interval.band_vr) for interval in intervals],
        "counted_eer": tuple(streaming.eer_bounds(curve)),
        "exact_eer": verification.eer(verification.roc(scores, trial.is_same)),
        "num_train_people": len(names),
        "max_images": config.max_images,
        "largest share": trials.share_of(test_ids),
    }


def _cosines(params: Any, a: jax.Array, b: jax.Array) -> jax.Array:
    del params
    return distances.cosine_matrix(a, b)


def _maps(config: ConfigDict, x: jax.Array, ids: np.ndarray, ridge: float) -> list[LinearMap]:
    """The four representations fitted on labelled training rows; raw pixels are a map that only centres."""
    people = int(ids.max()) + 1
    eigen, info = pca.fit(x, num_components=max(config.components))
    raise_if_failed(info, "Eigenfaces")
    maps = [LinearMap(mean=x.mean(axis=0), basis=jnp.eye(x.shape[1], dtype=x.dtype)), eigen]
    settings = ({"pca_components": min(config.pca_widths)}, {"pca_components": len(x) - 1, "ridge": ridge})
    for setting in settings:
        fitted, info = lda.fit(x, jnp.asarray(ids), num_classes=people, num_components=people - 1, **setting)
        raise_if_failed(info, "Fisherfaces")
        maps.append(fitted)
    return maps
