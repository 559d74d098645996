"""Identification and verification by any codes `[i, f]` of unit length.

Three classifiers: the nearest neighbour by the cosine, multinomial logistic regression, and Joint Bayes with an
isotropic prior.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import ratios
from experiments.common.ratios import Trials
from experiments.super_vector.codes import METHODS
from jaxface import joint_bayes, verifier
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import raise_if_failed
from jaxface.data import pairs
from jaxface.data.splits import Split
from jaxface.joint_bayes import JointBayes, ScoringBasis
from jaxface.losses import logistic
from jaxface.metrics import identification, verification
from jaxface.subspace import pca

CLASSIFIERS = ("nearest neighbour", "logistic", "Joint Bayes")
PAIR_SCORES = ("cosine", "Joint Bayes")
PAIRED = tuple(f"{method}, {score}" for method in METHODS for score in PAIR_SCORES)  # every score of pairs


class Rates(NamedTuple):
    """Rates of errors on the probes of one split."""

    errors: np.ndarray  # [classifiers], of identification
    eer: np.ndarray  # [pair scores], over all pairs of probes, at most `max_images` of a person
    trials: tuple[Trials, ...]  # these pairs by each pair score


def evaluate(config: ConfigDict, codes: jax.Array, ids: np.ndarray, split: Split, *, longest: int) -> Rates:
    """Training images fit the classifiers and are the gallery; `longest` is the length of the longest codes."""
    train, probes = (jnp.take(codes, rows, axis=0) for rows in (split.train, split.test))
    train_ids, probe_ids = ids[split.train], ids[split.test]
    cosines = np.asarray(train @ probes.T)
    y, rank = coordinates(train, codes, width=min(longest, len(split.train) - 1))
    of_train, of_probes = (jnp.take(y, rows, axis=0) for rows in (split.train, split.test))
    basis = fit_joint_bayes(config, of_train, rank, train_ids)
    by_person = enrolled_scores(basis, of_train, train_ids, of_probes)
    people = np.arange(by_person.shape[0])
    errors = (
        identification.nearest_neighbor_error(cosines, train_ids, probe_ids),
        1 - (name_probes(config, of_train, train_ids, of_probes) == probe_ids).mean(),
        identification.nearest_neighbor_error(by_person, people, probe_ids),
    )
    rows = pairs.limited(probe_ids, max_rows=config.max_images)
    directions, coordinates_of_pairs = (jnp.take(each, split.test[rows], axis=0) for each in (codes, y))
    matrices = directions @ directions.T, joint_bayes.llr_matrix(basis, coordinates_of_pairs, coordinates_of_pairs)
    scored = tuple(ratios.of_matrix(scores, probe_ids[rows]) for scores in matrices)
    eers = [verification.eer(verification.roc(each.scores, each.is_same)) for each in scored]
    return Rates(np.array(errors), np.array(eers), scored)


@partial(jax.jit, static_argnames="width")
def coordinates(train: jax.Array, codes: jax.Array, *, width: int) -> tuple[jax.Array, jax.Array]:
    """Coordinates on all principal axes of the training codes, which lose nothing for a linear classifier; their rank.

    They are `[i, width]` with zeros beyond the rank, so that codes of any length share the compiled programs.
    """
    principal = pca.principal_axes(train, num_components=min(width, train.shape[1]))
    y = (codes - principal.mean[None, :]) @ principal.axes
    return jnp.pad(y, [(0, 0), (0, width - y.shape[1])]), principal.rank


def name_probes(config: ConfigDict, y: jax.Array, ids: np.ndarray, probes: jax.Array) -> np.ndarray:
    """The most probable person `[q]` of each probe by multinomial logistic regression."""
    model, info = logistic.fit(
        y, ids, num_classes=int(ids.max()) + 1, ridge=config.logistic.ridge, num_iters=config.logistic.num_iters
    )
    raise_if_failed(info, "logistic regression")
    return np.asarray(each_row(logistic.predict, model, probes))


def fit_joint_bayes(config: ConfigDict, y: jax.Array, rank: jax.Array, ids: np.ndarray) -> ScoringBasis:
    """Joint Bayes on all axes: with fewer images than axes it needs a prior, and EM starts at this prior."""
    stats = joint_bayes.collect(y, ids, num_people=int(ids.max()) + 1, shift=y.mean(axis=0))
    prior = _isotropic_prior(stats, rank)
    settings = {"prior_weight": config.joint_bayes.prior_weight, "num_iters": config.joint_bayes.num_iters}
    model, info = joint_bayes.fit(stats, prior, prior=prior, **settings)
    raise_if_failed(info, "Joint Bayes")
    return _diagonalize(model)


_diagonalize = jax.jit(joint_bayes.diagonalize)


@jax.jit
def _isotropic_prior(stats: joint_bayes.Stats, rank: jax.Array) -> JointBayes:
    return joint_bayes.isotropic(joint_bayes.init(stats), rank=rank)


def enrolled_scores(basis: ScoringBasis, y: jax.Array, ids: np.ndarray, probes: jax.Array) -> np.ndarray:
    """Log-likelihood ratios `[people, probes]` of all training images of a person against one probe."""
    gallery = verifier.enroll(_project(basis, y), ids, num_people=int(ids.max()) + 1)
    alone = np.ones(len(probes), np.int32)
    return np.asarray(joint_bayes.set_llr_matrix(basis, *gallery, _project(basis, probes), alone))


@jax.jit
def _project(basis: ScoringBasis, y: jax.Array) -> jax.Array:
    return each_row(joint_bayes.project, basis, y)
