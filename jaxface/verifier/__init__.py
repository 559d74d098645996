"""The recogniser that a user keeps: from images or embeddings to calibrated log-likelihood ratios and decisions.

    model        Verifier: image steps, reduction, length normalisation, Joint Bayes model, calibration
    kinds        cosines, LDA and Joint Bayes, each as a verifier to choose from
    training     fit from vectors of known people; calibrate on pairs of other people
    stream       the same kinds from vectors that stay on a disk
    coordinates  encode: from an image or a vector to the coordinates that a gallery stores
    presence     fit_presence: how far the best ratio of a gallery speaks against a stranger
    score        pairs, matrices and sets of coordinates to log-likelihood ratios; enroll
    identification  identify: the people of a gallery of any size who come into question for a probe

Coordinates belong to the diagonal basis of Joint Bayes, so the sum of the coordinates of a person's images and their
number are all that a gallery stores. Scores are in nats and positive if one person is more probable than two.

A verifier is saved and loaded whole. `experiments.verify` saves one in `params/verifier.safetensors` of its folder:

    import pathlib

    import numpy as np

    from jaxface import verifier
    from jaxface.runtime import params_io

    recogniser = params_io.load("verifier.safetensors", verifier.Verifier)
    points = verifier.encode(recogniser, images)  # in [0, 1], `[n, h, w]`; embeddings: `encode_vectors`
    scores = verifier.score_pairs(recogniser, points, np.array([0, 1]), np.array([2, 3]))  # 0 and 2, 1 and 3

    pathlib.Path("mine.safetensors").write_bytes(params_io.to_bytes(recogniser))
"""

from jaxface.verifier.coordinates import encode, encode_vectors, normalize_length, reduce
from jaxface.verifier.identification import Identification, identify
from jaxface.verifier.kinds import KINDS, Kind, fit_kind
from jaxface.verifier.model import Presence, Verifier
from jaxface.verifier.presence import fit_presence
from jaxface.verifier.score import (
    Gallery,
    enroll,
    score_matrix,
    score_pairs,
    score_sets,
)
from jaxface.verifier.stream import fit_stream
from jaxface.verifier.training import calibrate, fit, fit_reduction

__all__ = [
    "KINDS",
    "Gallery",
    "Identification",
    "Kind",
    "Presence",
    "Verifier",
    "calibrate",
    "encode",
    "encode_vectors",
    "enroll",
    "fit",
    "fit_kind",
    "fit_presence",
    "fit_reduction",
    "fit_stream",
    "identify",
    "normalize_length",
    "reduce",
    "score_matrix",
    "score_pairs",
    "score_sets",
]
