"""The recogniser that a user keeps: from images or embeddings to calibrated log-likelihood ratios and decisions.

    model        Verifier: image steps, reduction, length normalisation, Joint Bayes model, calibration
    training     fit from vectors of known people; calibrate on pairs of other people
    coordinates  encode: images or vectors to the few numbers an image that a gallery keeps
    score        pairs, matrices and sets of coordinates to log-likelihood ratios; enroll; identify

Coordinates are those of the diagonal basis of Joint Bayes, so a person is enrolled by a sum of them and a count. Scores
are in nats, positive where one person is more probable than two.
"""

from jaxface.verifier.coordinates import encode, encode_vectors
from jaxface.verifier.model import Verifier
from jaxface.verifier.score import Gallery, Identification, enroll, identify, score_matrix, score_pairs, score_sets
from jaxface.verifier.training import calibrate, fit

__all__ = [
    "Gallery",
    "Identification",
    "Verifier",
    "calibrate",
    "encode",
    "encode_vectors",
    "enroll",
    "fit",
    "identify",
    "score_matrix",
    "score_pairs",
    "score_sets",
]
