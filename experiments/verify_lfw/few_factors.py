"""Models whose identity covariance is fitted with few directions, beside the one with all of them.

Truncation cuts directions off a fitted model; here EM learns which directions to have, and what it leaves out goes to
the noise.
"""

from typing import NamedTuple

import jax
import numpy as np

from jaxface import joint_bayes
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import raise_if_failed
from jaxface.joint_bayes import JointBayes, ScoringBasis, Stats

_NUM_ITERS = 50  # PX-EM settles sooner


class FewFactors(NamedTuple):
    """What models of each number of directions say; the last one has all."""

    ranks: np.ndarray  # int [r]
    scores: np.ndarray  # [r, pairs]
    of_known: np.ndarray  # [r], log-likelihood of a training image
    of_new: np.ndarray  # [r], of an image of the people who are tested


def fit(
    ranks: list[int], *, full: JointBayes, stats: Stats, tested: jax.Array, people: np.ndarray, pairs: np.ndarray
) -> FewFactors:
    """Fits by PX-EM from moments, 50 steps.

    full            the model with all directions
    stats           of the training images
    tested, people  images `[t, d]` and dense people `[t]` of the test fold
    pairs           rows of `tested`, `[2, pairs]`
    """
    held_out = joint_bayes.collect(tested, people, num_people=int(people.max()) + 1, shift=stats.shift)
    bases, models = [], []
    for rank in ranks:
        start = joint_bayes.init_factors(stats, rank=rank)
        found, info = joint_bayes.fit_factors(stats, start, num_iters=_NUM_ITERS)
        raise_if_failed(info, f"{rank} factors")
        bases.append(joint_bayes.diagonalize_factors(found))
        models.append(joint_bayes.to_dense(found))
    bases.append(joint_bayes.diagonalize(full))
    models.append(full)
    known, new = (
        np.array([float(joint_bayes.log_likelihood(model, each)) for model in models]) / float(each.count.sum())
        for each in (stats, held_out)
    )
    scores = np.stack([np.asarray(_of_pairs(basis, tested[pairs[0]], tested[pairs[1]])) for basis in bases])
    return FewFactors(np.array([*ranks, tested.shape[1]]), scores.astype(np.float64), known, new)


@jax.jit
def _of_pairs(basis: ScoringBasis, first: jax.Array, second: jax.Array) -> jax.Array:
    """Log-likelihood ratios `[p]` of rows `[p, d]`."""
    z = (each_row(joint_bayes.project, basis, side) for side in (first, second))
    return jax.vmap(lambda a, b: joint_bayes.set_llr(basis, a, 1, b, 1))(*z)
