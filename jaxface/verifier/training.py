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
from jaxface.subspace import LinearMap, pca
from jaxface.verifier.coordinates import reduce
from jaxface.verifier.model import Verifier
from jaxface.verifier.score import score_pairs

__all__ = ["calibrate", "fit", "fit_reduction"]

_SETTLED = 1e-6  # relative change of the loss of a calibration, of millions of pairs in float32
_EXACT_PCA = 2000  # rows; with more the PCA is randomised


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
    length_normalize  whether whitened vectors are scaled to one length
    steps           the image steps that made the vectors, kept for `encode`; None for embeddings

    The scores are raw: `calibrate` them on other people. The report is that of EM, with the status of the PCA if it is
    worse.
    """
    checks.shapes(vectors=(vectors, "n d"), ids=(ids, "n"))
    checks.floating(vectors=vectors)
    ids = checks.dense_labels("ids", ids, num_people)
    x = jnp.asarray(vectors)
    reduction, of_pca = fit_reduction(key, x, num_components=num_components, length_normalize=length_normalize)
    z = reduce(reduction, x, length_normalize=length_normalize)
    stats = joint_bayes.collect(z, jnp.asarray(ids), num_people=num_people, shift=z.mean(axis=0))
    model, info = joint_bayes.fit(stats, joint_bayes.init(stats), num_iters=num_iters)
    raw = Verifier(
        steps=pipeline.build(()) if steps is None else steps,
        reduction=reduction,
        model=model,
        calibration=calibration.neutral(x.dtype),
        length_normalize=length_normalize,
    )
    return raw, info._replace(status=fitinfo.worst(info.status, of_pca.status))


def fit_reduction(
    key: jax.Array, vectors: ArrayLike, *, num_components: int, length_normalize: bool
) -> tuple[LinearMap, FitInfo]:
    """PCA of vectors `[n, d]`, whitened if their length is to be normalised; randomised for more than 2,000 rows."""
    x = jnp.asarray(vectors)
    settings: dict[str, Any] = {"num_components": num_components, "whiten": length_normalize}
    return pca.fit(x, **settings) if len(x) <= _EXACT_PCA else pca.fit_randomized(key, x, **settings)


def calibrate(
    verifier: Verifier, coordinates: ArrayLike, first: ArrayLike, second: ArrayLike, is_same: ArrayLike
) -> tuple[Verifier, FitInfo]:
    """The verifier with an affine calibration fitted to pairs `[p]` of rows, of people that are in no other fit."""
    raw = dataclasses.replace(verifier, calibration=calibration.neutral(jnp.asarray(coordinates).dtype))
    affine, info = calibration.fit(score_pairs(raw, coordinates, first, second), is_same, tol=_SETTLED)
    return dataclasses.replace(verifier, calibration=affine), info
