"""The transformation table of `jaxface.ensembles`."""

import jax
import numpy as np

from jaxface.ensembles import (
    committee,
    fusion,
    lda_checks,
    lda_directions,
    lda_member,
    members,
    oob,
    pair_scores,
    posteriors,
    sampling,
)
from jaxface.ensembles.lda_member import LdaMember
from jaxface.linalg.scatter import ClassMoments
from tests.reference import ensembles_reference as reference
from tests.transformations import Case

C = 4
LABELS = np.repeat(np.arange(C, dtype=np.int32), [4, 3, 4, 5])
AXES = np.array([[0, 1, 3], [4, 2, 1]], np.int32)


def key(rng):
    return jax.random.key(int(rng.integers(99)))


def samples(rng):
    x = rng.normal(size=(16, 6)) + rng.normal(size=(C, 6))[LABELS]
    return reference.principal_coordinates(x * np.array([4.0, 3.0, 2.5, 2.0, 1.5, 1.0]))[0]


def a_member(rng):
    return LdaMember(axes=AXES[0], basis=rng.normal(size=(3, 2)), centers=rng.normal(size=(C, 2)))


def a_committee(rng):
    return LdaMember(axes=AXES, basis=rng.normal(size=(2, 3, 2)), centers=rng.normal(size=(2, C, 2)))


def rows(rng, n=3):
    return rng.normal(size=(n, 6))


def logs(rng):
    return np.asarray(fusion.normalize(rng.normal(size=(3, 5, C))))


def answers(rng):
    return rng.integers(0, C, 5).astype(np.int32)


def moments(rng):
    return ClassMoments(np.bincount(LABELS).astype(float), rng.normal(size=(C, 6)) * 0.3)


def weights(rng):
    return 1.0 + rng.integers(0, 2, 16)


def bags(rng):
    return np.stack([weights(rng), weights(rng)])


def mean_row(drawn, x):
    return x[drawn].mean(axis=0)


def fit_means(draws, x):
    return members.fit_members(mean_row, draws, x)


def map_sums(x):
    return members.map_members(lambda row: (row**2).sum(), x, block_size=2)


LDA = {"num_classes": C, "ridge": 0.1}
GAUSSIAN = {"posterior": lda_member.gaussian}
COSINE = {"score": pair_scores.cosine}

CASES = [
    Case(
        sampling.feature_subspaces,
        lambda r: (key(r), np.array([4.0, 3.0, 2.0, 1.0])),
        {"num_members": 2, "num_fixed": 1, "num_random": 2},
    ),
    Case(sampling.class_bags, lambda r: (key(r),), {"num_members": 2, "num_classes": C, "bag_size": 2}),
    Case(sampling.parameter_subsets, lambda r: (key(r),), {"num_members": 2, "num_candidates": C, "subset_size": 2}),
    Case(
        sampling.image_bags,
        lambda r: (key(r), LABELS),
        {"num_members": 2, "num_classes": C, "images_per_class": 2},
    ),
    Case(
        sampling.image_bags,
        lambda r: (key(r), LABELS),
        {"num_members": 2, "num_classes": C, "images_per_class": 2, "bootstrap": True},
        variant="bootstrap",
    ),
    Case(sampling.bootstrap, lambda r: (key(r),), {"num_members": 2, "num_rows": 5}),
    Case(
        oob.out_of_bag,
        lambda r: (a_committee(r), samples(r), LABELS, np.stack([np.arange(16.0) % 2, (np.arange(16.0) + 1) % 2])),
        {"num_classes": C, **GAUSSIAN},
        factor=10,
    ),
    Case(sampling.class_weights, lambda r: (r.integers(0, C, (2, 2)).astype(np.int32), LABELS)),
    Case(sampling.row_weights, lambda r: (r.integers(0, 16, (2, 5)).astype(np.int32),), {"num_rows": 16}),
    Case(map_sums, lambda r: (rows(r),), grad=(0,)),
    Case(fit_means, lambda r: (AXES, rows(r, 6)), grad=(1,)),
    Case(members.choose, lambda r: (rows(r, 2), AXES)),
    Case(
        lda_directions.by_cholesky,
        lambda r: (moments(r), np.full(6, 3.0), AXES[0]),
        {"ridge": 0.1},
        factor=10,
    ),
    Case(
        lda_directions.by_means,
        lambda r: (moments(r), np.full(6, 3.0), AXES[0]),
        {"ridge": 0.1, "width": 2},
        factor=100,
    ),
    Case(
        lda_directions.by_rows,
        lambda r: (samples(r), LABELS, weights(r), AXES[0]),
        {"ridge": 0.1, "num_classes": C, "width": 2},
        factor=100,
    ),
    Case(lda_member.fit, lambda r: (samples(r), LABELS, AXES), LDA, factor=10),
    Case(lda_member.fit, lambda r: (samples(r), LABELS, AXES), LDA | {"num_components": 2}, factor=100, variant="two"),
    Case(lda_member.fit_bags, lambda r: (samples(r), LABELS, AXES, bags(r)), LDA, factor=100),
    Case(lda_member.transform, lambda r: (a_member(r), rows(r)[0]), grad=(1,)),
    Case(lda_member.enroll, lambda r: (a_committee(r), rows(r, 16), LABELS), {"num_classes": C}, grad=(1,)),
    Case(lda_member.gaussian, lambda r: (a_member(r), rows(r)), grad=(1,)),
    Case(lda_member.cosine, lambda r: (a_member(r), rows(r)), grad=(1,), factor=10),
    Case(posteriors.class_centers, lambda r: (rows(r, 16), LABELS), {"num_classes": C}, grad=(0,)),
    Case(posteriors.gaussian, lambda r: (rows(r), rows(r, C)), grad=(0, 1), factor=10),
    Case(posteriors.cosine, lambda r: (rows(r), rows(r, C)), grad=(0, 1), factor=10),
    Case(posteriors.linear, lambda r: (rows(r), rows(r, C).T, rows(r)[0, :C]), grad=(0, 1, 2)),
    Case(posteriors.log_posteriors, lambda r: (a_committee(r), rows(r)), GAUSSIAN, grad=(1,)),
    Case(
        posteriors.fused,
        lambda r: (a_committee(r), rows(r)),
        GAUSSIAN | {"rule": fusion.sum, "block_size": 2},
        grad=(1,),
    ),
    Case(fusion.sum, lambda r: (logs(r),), grad=(0,)),
    Case(fusion.product, lambda r: (logs(r),), grad=(0,)),
    Case(fusion.min, lambda r: (logs(r),), grad=(0,)),
    Case(fusion.max, lambda r: (logs(r),), grad=(0,)),
    Case(fusion.median, lambda r: (logs(r),), grad=(0,)),
    Case(fusion.vote, lambda r: (logs(r),)),
    Case(fusion.weighted, lambda r: (logs(r), r.dirichlet(np.ones(3))), grad=(0, 1)),
    Case(fusion.fit_weights, lambda r: (logs(r), answers(r)), {"num_iters": 3}, grad=(0,)),
    Case(fusion.predict, lambda r: (logs(r)[0],)),
    Case(fusion.votes, lambda r: (logs(r)[0],)),
    Case(fusion.vote_scores, lambda r: (r.integers(0, 3, (5, C)).astype(float), logs(r)[0])),
    Case(fusion.normalize, lambda r: (rows(r),), grad=(0,)),
    Case(fusion.nothing, lambda r: (logs(r)[0],)),
    Case(fusion.add, lambda r: (fusion.Total(np.exp(rows(r)), 1 + rows(r)), rows(r)), grad=(1,)),
    Case(fusion.mean, lambda r: (fusion.Total(np.exp(rows(r)), rows(r)),), grad=(0,)),
    Case(committee.diagnose, lambda r: (logs(r), answers(r)), grad=(0,), factor=10),
    Case(committee.growth, lambda r: (logs(r), answers(r)), {"rule": fusion.median}, factor=10),
    Case(committee.assess, lambda r: (a_committee(r), rows(r), answers(r)[:3]), GAUSSIAN, grad=(1,), factor=10),
    Case(pair_scores.cosine, lambda r: (a_member(r), rows(r), rows(r)), grad=(1, 2), factor=10),
    Case(pair_scores.distance, lambda r: (a_member(r), rows(r), rows(r)), grad=(1, 2), factor=10),
    Case(pair_scores.same_class, lambda r: (a_member(r), rows(r), rows(r)), grad=(1, 2), factor=10),
    Case(pair_scores.score_matrix, lambda r: (a_committee(r), rows(r), rows(r)), COSINE, grad=(1, 2), factor=10),
    Case(pair_scores.score_pairs, lambda r: (a_committee(r), rows(r), rows(r)), COSINE, grad=(1, 2), factor=10),
]

EXEMPT: list = [
    members.fit_members,  # fit_means
    members.map_members,  # map_sums
    sampling.check_subspace,  # checks concrete values and returns nothing
    members.check_columns,  # the same, of columns
    lda_checks.check_samples,
    lda_checks.check_images,
    lda_checks.check_width,
    lda_checks.check_principal,
    lda_checks.check_rank,
    lda_checks.check_bags,
]
