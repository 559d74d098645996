"""The transformation table of `jaxface.verifier`."""

import numpy as np

from jaxface.faces import pipeline
from jaxface.joint_bayes import JointBayes
from jaxface.losses.calibration import Affine
from jaxface.subspace import LinearMap
from jaxface.verifier import Verifier, coordinates, identification, kinds, presence, score, stream, training
from tests.transformations import Case

D, R = 5, 3
FIRST, SECOND = np.array([0, 2, 1], np.int32), np.array([3, 1, 1], np.int32)


def definite(rng):
    a = rng.normal(size=(R, R))
    return a @ a.T + np.eye(R)


def model(rng, *, length_normalize=False):
    return Verifier(
        steps=pipeline.build((("resize", {"height": 1, "width": 5, "method": "area"}),)),
        reduction=LinearMap(mean=rng.normal(size=D), basis=rng.normal(size=(D, R))),
        model=JointBayes(mean=rng.normal(size=R), identity_cov=definite(rng), noise_cov=definite(rng)),
        calibration=Affine(slope=np.float64(1.5), offset=np.float64(-0.5)),
        length_normalize=length_normalize,
    )


def points(rng, n=4):
    return rng.normal(size=(n, R))


CASES = [
    Case(coordinates.encode, lambda r: (model(r), r.random((3, 2, 5))), grad=(1,), factor=10),
    Case(coordinates.encode_vectors, lambda r: (model(r), r.normal(size=(3, D))), grad=(1,), factor=10),
    Case(
        coordinates.encode_vectors,
        lambda r: (model(r, length_normalize=True), r.normal(size=(3, D))),
        grad=(1,),
        factor=10,
        variant="length-normalised",
    ),
    Case(
        coordinates.reduce,
        lambda r: (model(r).reduction, r.normal(size=(3, D))),
        {"length_normalize": True},
        grad=(1,),
    ),
    Case(coordinates.normalize_length, lambda r: (points(r),), grad=(0,)),
    Case(score.score_pairs, lambda r: (model(r), points(r), FIRST, SECOND), grad=(1,), factor=10),
    Case(score.score_matrix, lambda r: (model(r), points(r), points(r, 2)), grad=(1, 2), factor=10),
]

EXEMPT = [
    training.fit,  # Joint Bayes and PCA have rows of their own
    training.fit_reduction,
    kinds.fit_kind,
    stream.fit_stream,
    kinds.most_axes,  # a number
    kinds.of_stats,  # a part of both fits
    training.calibrate,
    score.enroll,  # counts must be known
    score.score_sets,
    score.basis_of,  # `joint_bayes.diagonalize` has a row
    identification.identify,  # on the host
    presence.fit_presence,  # draws on the host; its regression is that of losses
]
