"""Scores of pairs of photos with weights."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxface import joint_bayes
from jaxface.core import blocks
from jaxface.joint_bayes import JointBayes, ScoringBasis, SetSums

_BLOCK_SIZE = 32_768  # pairs in flight


def pair_scores(model: JointBayes, weights: np.ndarray, x: jax.Array, index: np.ndarray) -> np.ndarray:
    """Log-likelihood ratios `[p]` of pairs of rows `[p, 2]` of x `[n, d]`, whose photos have weights `[n]`."""
    basis = joint_bayes.diagonalize(model)
    photos = joint_bayes.set_sums(basis, x, np.arange(len(x)), num_sets=len(x), weights=weights)
    return np.asarray(_of_pairs(basis, photos, jnp.asarray(index)))


@jax.jit
def _of_pairs(basis: ScoringBasis, photos: SetSums, index: jax.Array) -> jax.Array:
    """Pair by pair: the weights of two photos make one of many sums, and a product for each would be a program."""

    def score(pair: jax.Array) -> jax.Array:
        first, second = (jax.tree.map(lambda leaf, row=row: leaf[row], photos) for row in pair)
        return joint_bayes.set_llr(basis, *first, *second)

    return blocks.map_rows(score, index, block_size=_BLOCK_SIZE)
