"""A verifier from vectors of known people, and its calibration."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface import joint_bayes
from jaxface.core import checks, fitinfo
from jaxface.core.fitinfo import FitInfo
from jaxface.faces import pipeline
from jaxface.faces.pipeline import ImagePipeline
from jaxface.losses import calibration
from jaxface.subspace import pca
from jaxface.verifier.coordinates import reduce
from jaxface.verifier.model import Verifier
from jaxface.verifier.score import score_pairs

__all__ = ["calibrate", "fit"]

_EXACT_PCA = 2000  # rows; more take the randomised one


def fit(
    key: jax.Array,
    vectors: ArrayLike,
    ids: ArrayLike,
    *,
    num_people: int,
    num_components: int,
    num_iters: int,
    length_normalize: bool,
    steps: ImagePipeline | None = None,
) -> tuple[Verifier, FitInfo]:
    """PCA, length normalisation on request, and Joint Bayes by EM from vectors `[n, d]` and dense ids `[n]`.

    key             for the randomised PCA of more than 2,000 rows
    num_people      people in ids; some of them need two rows or more
    num_components  axes of the PCA
    num_iters       steps of EM
    steps           what made the vectors from images, kept for `encode`; None for embeddings

    The scores are raw: `calibrate` them on people that are not in here. The report is that of EM, with the status of
    the PCA where that is worse.
    """
    checks.shapes(vectors=(vectors, "n d"), ids=(ids, "n"))
    checks.floating(vectors=vectors)
    ids = checks.dense_labels("ids", ids, num_people)
    x = jnp.asarray(vectors)
    settings: dict[str, Any] = {"num_components": num_components, "whiten": length_normalize}
    if len(x) <= _EXACT_PCA:
        reduction, of_pca = pca.fit(x, **settings)
    else:
        reduction, of_pca = pca.fit_randomized(key, x, **settings)
    z = reduce(reduction, x, length_normalize=length_normalize)
    stats = joint_bayes.collect(z, jnp.asarray(ids), num_people=num_people, shift=z.mean(axis=0))
    model, info = joint_bayes.fit(stats, joint_bayes.init(stats), num_iters=num_iters)
    found = Verifier(
        steps=pipeline.build(()) if steps is None else steps,
        reduction=reduction,
        model=model,
        calibration=calibration.identity(x.dtype),
        length_normalize=length_normalize,
    )
    return found, info._replace(status=fitinfo.worst(info.status, of_pca.status))


def calibrate(
    verifier: Verifier, coordinates: ArrayLike, first: ArrayLike, second: ArrayLike, is_same: ArrayLike
) -> tuple[Verifier, FitInfo]:
    """The verifier with an affine calibration fitted to pairs `[p]` of rows of people that fitted nothing."""
    plain = dataclasses.replace(verifier, calibration=calibration.identity(jnp.asarray(coordinates).dtype))
    affine, info = calibration.fit(score_pairs(plain, coordinates, first, second), is_same)
    return dataclasses.replace(verifier, calibration=affine), info
