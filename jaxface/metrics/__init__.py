"""Metrics of face recognition: NumPy float64 on the host, larger scores always mean more similar.

Scores are sorted once: `roc(scores, is_same)` gives a `Roc`, and whatever depends on the order of the scores
alone takes that. What depends on their values takes the scores.

    verification     roc; of a Roc: auc, eer, eer_rocch, verification_rate, threshold_at_far, rates_at, hull, det,
                     dcf, min_dcf, actual_dcf
    calibration      of log-likelihood ratios: cllr, calibration_loss, pav, pav_llr, reliability; of a Roc: min_cllr
    identification   cmc, nearest_neighbor_error, open_set and identification_rate (DIR@FAR)
    clustering       purity, cluster_accuracy, their pair forms, adjusted_rand
    retrieval        retrieval_at_k, mean_average_precision
    reconstruction   psnr, ssim, cosine_distance (the papers' NCD, a distance in [0, 2])
    lfw              lfw_accuracy: ten folds, mean +- standard error
    intervals        subject_bootstrap, mean_interval, wilson, and from over_splits paired_interval, split_interval
    ranges           limits that stay in the range of their quantity: RATE, POSITIVE, SIGNED or (low, high)
    streaming        a Roc from counts that add, with bounds on what the bins hide
    resampling       the exact ROCs of all resamples of the subjects at once
    hull             the concave hull of a curve, which is also isotonic regression
    inputs           what the metrics accept: no NaN, +-inf are legal scores

A threshold accepts scores >= it, and tied scores are accepted together. FAR is the share of impostor pairs
accepted, VR (the verification rate, TAR) the share of genuine pairs accepted, FRR = 1 - VR.
"""

from jaxface.metrics import streaming
from jaxface.metrics.calibration import cllr, min_cllr
from jaxface.metrics.clustering import cluster_accuracy, purity
from jaxface.metrics.identification import cmc, identification_rate, nearest_neighbor_error, open_set
from jaxface.metrics.intervals import (
    POSITIVE,
    RATE,
    SIGNED,
    mean_interval,
    paired_interval,
    split_interval,
    subject_bootstrap,
    wilson,
)
from jaxface.metrics.lfw import lfw_accuracy
from jaxface.metrics.reconstruction import cosine_distance, cosine_distance_matrix, psnr, ssim
from jaxface.metrics.retrieval import mean_average_precision, retrieval_at_k
from jaxface.metrics.verification import (
    Roc,
    actual_dcf,
    auc,
    det,
    eer,
    eer_rocch,
    min_dcf,
    roc,
    threshold_at_far,
    verification_rate,
)

__all__ = [
    "POSITIVE",
    "RATE",
    "SIGNED",
    "Roc",
    "actual_dcf",
    "auc",
    "cllr",
    "cluster_accuracy",
    "cmc",
    "cosine_distance",
    "cosine_distance_matrix",
    "det",
    "eer",
    "eer_rocch",
    "identification_rate",
    "lfw_accuracy",
    "mean_average_precision",
    "mean_interval",
    "min_cllr",
    "min_dcf",
    "nearest_neighbor_error",
    "open_set",
    "paired_interval",
    "psnr",
    "purity",
    "retrieval_at_k",
    "roc",
    "split_interval",
    "ssim",
    "streaming",
    "subject_bootstrap",
    "threshold_at_far",
    "verification_rate",
    "wilson",
]
