"""From coordinates to calibrated ratios; differentiable in the coordinates but not in the verifier."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface import joint_bayes
from jaxface.core import blocks, checks
from jaxface.joint_bayes import ScoringBasis
from jaxface.losses import calibration
from jaxface.verifier.model import Verifier

__all__ = ["Gallery", "enroll", "score_matrix", "score_pairs", "score_sets"]

BLOCK_SIZE = 65_536  # pairs in flight


class Gallery(NamedTuple):
    """Sets of images, each of one person: the sums and counts that determine their scores."""

    sums: jax.Array  # [g, r], of coordinates
    counts: np.ndarray  # int [g]


def enroll(coordinates: ArrayLike, ids: ArrayLike, *, num_people: int) -> Gallery:
    """One set for each person from coordinates `[n, r]` and dense ids `[n]`; every person needs at least one row."""
    checks.shapes(coordinates=(coordinates, "n r"), ids=(ids, "n"))
    checks.floating(coordinates=coordinates)
    ids = checks.dense_labels("ids", ids, num_people)
    checks.every_label("ids", ids, num_people)
    sums = jax.ops.segment_sum(jnp.asarray(coordinates), jnp.asarray(ids), num_people)
    return Gallery(sums, np.bincount(np.asarray(ids), minlength=num_people))


def score_pairs(
    verifier: Verifier, coordinates: ArrayLike, first: ArrayLike, second: ArrayLike, *, block_size: int = BLOCK_SIZE
) -> jax.Array:
    """Scores `[p]` of pairs of rows of coordinates `[n, r]`; work and memory grow with the pairs alone."""
    sizes = checks.shapes(coordinates=(coordinates, "n r"), first=(first, "p"), second=(second, "p"))
    checks.floating(coordinates=coordinates)
    rows = [checks.dense_labels(name, each, sizes["n"]) for name, each in (("first", first), ("second", second))]
    index = jnp.stack([jnp.asarray(each) for each in rows], axis=1)
    return _score_pairs(verifier, jnp.asarray(coordinates), index, block_size=block_size)


@partial(jax.jit, static_argnames="block_size")
def _score_pairs(verifier: Verifier, coordinates: jax.Array, index: jax.Array, *, block_size: int) -> jax.Array:
    verifier = jax.lax.stop_gradient(verifier)
    basis = joint_bayes.diagonalize(verifier.model)
    one = jnp.ones((), coordinates.dtype)

    def score(pair: jax.Array) -> jax.Array:
        return joint_bayes.set_llr(basis, coordinates[pair[0]], one, coordinates[pair[1]], one)

    return calibration.calibrate(verifier.calibration, blocks.map_rows(score, index, block_size=block_size))


def score_matrix(verifier: Verifier, gallery: ArrayLike, probes: ArrayLike) -> jax.Array:
    """Scores `[g, q]` of coordinates of single images `[g, r]` and `[q, r]`, by one GEMM."""
    checks.shapes(gallery=(gallery, "g r"), probes=(probes, "q r"))
    verifier = jax.lax.stop_gradient(verifier)
    raw = joint_bayes.score_projections(basis_of(verifier), jnp.asarray(gallery), jnp.asarray(probes))
    return calibration.calibrate(verifier.calibration, raw)


def score_sets(verifier: Verifier, gallery: Gallery, probes: Gallery) -> jax.Array:
    """Scores `[g, q]` of sets with any numbers of images."""
    raw = joint_bayes.set_llr_matrix(basis_of(verifier), gallery.sums, gallery.counts, probes.sums, probes.counts)
    return calibration.calibrate(verifier.calibration, raw)


@jax.jit
def basis_of(verifier: Verifier) -> ScoringBasis:
    return joint_bayes.diagonalize(verifier.model)
