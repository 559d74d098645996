"""Who is it, and is it one person: three classifiers on any vectors `[i, f]` of unit length.

The nearest neighbour by the cosine, multinomial logistic regression, and Joint Bayes with a round prior.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import trials
from jaxface import joint_bayes
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import raise_if_failed
from jaxface.data import pairs
from jaxface.data.splits import Split
from jaxface.joint_bayes import JointBayes, ScoringBasis
from jaxface.losses import minimize
from jaxface.metrics import identification
from jaxface.subspace import pca

CLASSIFIERS = ("nearest neighbour", "logistic", "Joint Bayes")
PAIR_SCORES = ("cosine", "Joint Bayes")

Weights = tuple[jax.Array, jax.Array]  # [p, c], [c]


class Found(NamedTuple):
    """Rates on the probes of one split."""

    errors: np.ndarray  # [classifiers], of identification
    eer: np.ndarray  # [pair scores], over all pairs of probes, at most `max_images` of a person


def evaluate(config: ConfigDict, codes: jax.Array, ids: np.ndarray, split: Split, *, longest: int) -> Found:
    """Training images enrol and train, probes ask; `longest` is the length of the longest vectors in the comparison."""
    train, probes = codes[split.train], codes[split.test]
    train_ids, probe_ids = ids[split.train], ids[split.test]
    cosines = np.asarray(train @ probes.T)
    y, rank = coordinates(train, codes, width=min(longest, len(split.train) - 1))
    basis = fit_joint_bayes(config, y[split.train], rank, train_ids)
    by_person = enrolled_scores(basis, y[split.train], train_ids, y[split.test])
    people = np.arange(by_person.shape[0])
    errors = (
        identification.nearest_neighbor_error(cosines, train_ids, probe_ids),
        1 - (logistic(config, y[split.train], train_ids, y[split.test]) == probe_ids).mean(),
        identification.nearest_neighbor_error(by_person, people, probe_ids),
    )
    rows = pairs.limited(probe_ids, max_rows=config.max_images)
    known, compared = codes[split.test[rows]], y[split.test[rows]]
    both = known @ known.T, joint_bayes.llr_matrix(basis, compared, compared)
    eers = [trials.eer(np.asarray(scores), probe_ids[rows]) for scores in both]
    return Found(np.array(errors), np.array(eers))


@partial(jax.jit, static_argnames="width")
def coordinates(train: jax.Array, codes: jax.Array, *, width: int) -> tuple[jax.Array, jax.Array]:
    """Coordinates on all principal axes of the training vectors, what a linear classifier can see, and their rank.

    They are `[i, width]`, with zeros beyond the rank: vectors of any length then share the programs that follow.
    """
    found = pca.principal_axes(train, num_components=min(width, train.shape[1]))
    y = (codes - found.mean[None, :]) @ found.axes
    return jnp.pad(y, [(0, 0), (0, width - y.shape[1])]), found.rank


def logistic(config: ConfigDict, y: jax.Array, ids: np.ndarray, probes: jax.Array) -> np.ndarray:
    """Multinomial logistic regression with a ridge: the most probable person `[q]` of each probe."""
    num_people = int(ids.max()) + 1
    start = (jnp.zeros((y.shape[1], num_people), y.dtype), jnp.zeros(num_people, y.dtype))
    data = (y, jnp.asarray(ids), jnp.asarray(config.logistic.ridge, y.dtype))
    (weights, offset), info = minimize(cross_entropy, start, data, num_iters=config.logistic.num_iters)
    raise_if_failed(info, "logistic regression")
    return np.asarray(probes @ weights + offset[None, :]).argmax(axis=1)


def cross_entropy(weights: Weights, data: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
    """The mean over images, and `ridge / 2` of the squared weights."""
    y, ids, ridge = data
    logits = y @ weights[0] + weights[1][None, :]
    right = jnp.take_along_axis(jax.nn.log_softmax(logits), ids[:, None], axis=1)
    return ridge / 2 * (weights[0] ** 2).sum() - right.mean()


def fit_joint_bayes(config: ConfigDict, y: jax.Array, rank: jax.Array, ids: np.ndarray) -> ScoringBasis:
    """Joint Bayes on all axes: fewer images than axes need a prior, and EM starts there."""
    stats = joint_bayes.collect(y, ids, num_people=int(ids.max()) + 1, shift=y.mean(axis=0))
    prior = _round(stats, rank)
    model, info = joint_bayes.fit(
        stats, prior, prior=prior, prior_weight=config.joint_bayes.weight, num_iters=config.joint_bayes.num_iters
    )
    raise_if_failed(info, "Joint Bayes")
    return _diagonalize(model)


_diagonalize = jax.jit(joint_bayes.diagonalize)


@jax.jit
def _round(stats: joint_bayes.Stats, rank: jax.Array) -> JointBayes:
    """The mean variances between and within people, the same in every direction."""
    moments = joint_bayes.init(stats)
    eye = jnp.eye(moments.mean.shape[0], dtype=moments.mean.dtype)
    identity, noise = (jnp.trace(cov) / rank * eye for cov in (moments.identity_cov, moments.noise_cov))
    return JointBayes(mean=moments.mean, identity_cov=identity, noise_cov=noise)


def enrolled_scores(basis: ScoringBasis, y: jax.Array, ids: np.ndarray, probes: jax.Array) -> np.ndarray:
    """Log-likelihood ratios `[c, q]` of all training images of a person together against each probe."""
    counts = np.bincount(ids)
    sums = jax.ops.segment_sum(_projected(basis, y), jnp.asarray(ids), len(counts))
    alone = np.ones(len(probes), np.int32)
    return np.asarray(joint_bayes.set_llr_matrix(basis, sums, counts, _projected(basis, probes), alone))


@jax.jit
def _projected(basis: ScoringBasis, y: jax.Array) -> jax.Array:
    return each_row(joint_bayes.project, basis, y)
