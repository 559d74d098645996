"""Kinds of verifier to choose from: cosines, and Joint Bayes on vectors as they are, after LDA, and of one length.

Every kind is a `Verifier`, so the plain cosine has a calibration, sets and galleries as well: on vectors of one length,
the ratio of Joint Bayes with zero mean and covariances `a I` and `b I` rises with the cosine.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface import joint_bayes
from jaxface.core import checks, fitinfo
from jaxface.core.fitinfo import FitInfo
from jaxface.faces import pipeline
from jaxface.faces.pipeline import ImagePipeline
from jaxface.linalg.class_stats import Stats
from jaxface.losses import calibration
from jaxface.subspace import LinearMap
from jaxface.verifier.coordinates import reduce
from jaxface.verifier.known import Known, Reduced, Rows
from jaxface.verifier.model import Verifier

__all__ = ["KINDS", "Kind", "fit_kind"]


class Kind(NamedTuple):
    """How a verifier is made of vectors of known people."""

    reduction: Callable[[Known], Reduced]
    length_normalize: bool
    is_cosine: bool = False


def _about(mean: jax.Array) -> Reduced:
    """The map that only subtracts a mean `[d]`."""
    eye = jnp.eye(mean.shape[0], dtype=mean.dtype)
    return LinearMap(mean=mean, basis=eye), fitinfo.closed_form(dtype=mean.dtype)


def _as_they_are(known: Known) -> Reduced:
    return _about(jnp.zeros_like(known.mean()))


def _centered(known: Known) -> Reduced:
    return _about(known.mean())


def _principal(known: Known) -> Reduced:
    """All axes unless there are more than `num_components`."""
    return _as_they_are(known) if known.num_components >= len(known.mean()) else known.principal(whiten=False)


def _whitened(known: Known) -> Reduced:
    return known.principal(whiten=True)


def _discriminant(known: Known) -> Reduced:
    return known.discriminant()


# By the name that a report shows.
KINDS: dict[str, Kind] = {
    "cosine": Kind(_as_they_are, length_normalize=True, is_cosine=True),
    "centered cosine": Kind(_centered, length_normalize=True, is_cosine=True),
    "LDA, cosine": Kind(_discriminant, length_normalize=True, is_cosine=True),
    "Joint Bayes": Kind(_principal, length_normalize=False),
    "LDA, Joint Bayes": Kind(_discriminant, length_normalize=False),
    "whitened, one length, Joint Bayes": Kind(_whitened, length_normalize=True),
}


def fit_kind(
    key: jax.Array,
    kind: Kind,
    vectors: ArrayLike,
    ids: ArrayLike,
    *,
    num_people: int,
    num_iters: int,
    num_components: int | None = None,
    steps: ImagePipeline | None = None,
) -> tuple[Verifier, FitInfo]:
    """A verifier of one kind from vectors `[n, d]` and dense ids `[n]`; its scores are raw.

    num_people      people in ids; some of them need two rows or more
    num_iters       steps of EM, for kinds that are no cosine
    num_components  most axes that a reduction keeps; None keeps all that the rows determine
    steps           the image steps that made the vectors, kept for `encode`; None for embeddings

    The report is that of EM, with the status of the reduction if it is worse.
    """
    checks.samples(vectors=(vectors, "n d"), beside={"ids": (ids, "n")})
    ids = jnp.asarray(checks.dense_labels("ids", ids, num_people))
    x = jnp.asarray(vectors)
    reduction, of_reduction = kind.reduction(Rows(key, x, ids, num_people, most_axes(num_components, *x.shape)))
    z = reduce(reduction, x, length_normalize=kind.length_normalize)
    stats = joint_bayes.collect(z, ids, num_people=num_people, shift=z.mean(axis=0))
    return of_stats(kind, stats, reduction, of_reduction, num_iters=num_iters, steps=steps)


def most_axes(num_components: int | None, num_rows: int, num_dimensions: int) -> int:
    """The axes that so many rows determine, at most those asked for."""
    most = min(num_dimensions, num_rows - 1)
    return most if num_components is None else min(most, num_components)


def of_stats(
    kind: Kind,
    stats: Stats,
    reduction: LinearMap,
    of_reduction: FitInfo,
    *,
    num_iters: int,
    steps: ImagePipeline | None = None,
) -> tuple[Verifier, FitInfo]:
    """The verifier of a kind from the sums of reduced vectors, and the worse of both reports."""
    start = joint_bayes.init(stats)
    if kind.is_cosine:
        model = dataclasses.replace(joint_bayes.isotropic(start), mean=jnp.zeros_like(start.mean))
        info = fitinfo.closed_form(dtype=start.mean.dtype)
    else:
        model, info = joint_bayes.fit(stats, start, num_iters=num_iters)
    raw = Verifier(
        steps=pipeline.build(()) if steps is None else steps,
        reduction=reduction,
        model=model,
        calibration=calibration.neutral(model.mean.dtype),
        length_normalize=kind.length_normalize,
    )
    status = fitinfo.worst(info.status, of_reduction.status)
    return raw, info._replace(status=fitinfo.or_non_finite(status, raw))
