"""Metrics of face recognition: NumPy float64 on the host, larger scores always mean more similar.

Scores are sorted once: `roc(scores, is_same)` gives a `Roc`. Numbers that depend on the order of the scores alone are
functions of the `Roc`; numbers that depend on their values are functions of the scores.

    verification     roc; of a Roc: auc, eer, eer_rocch, verification_rate, threshold_at_far, rates_at, hull, det,
                     dcf, min_dcf, actual_dcf
    calibration      of log-likelihood ratios: cllr, reliability, supported_range; pav_llr makes them; of a Roc:
                     min_cllr
    normalization    z-, t-, s- and adaptive s-norm of scores by a cohort
    identification   cmc, nearest_neighbor_error, open_set and identification_rate (DIR@FAR); cmc_from_counts,
                     rank_hits, open_set_from_counts for galleries too large for a matrix of scores
    mate_counts      counts_from_trials: the same from a list of trials
    clustering       purity, cluster_accuracy; precision, recall and F of samples (bcubed) and of pairs (pairwise)
    retrieval        retrieval_at_k, mean_average_precision
    reconstruction   psnr, ssim, cosine_distance (the papers' NCD, a distance in [0, 2])
    lfw              lfw_accuracy: ten folds, mean +- standard error
    bootstrap        intervals over people: subject_bootstrap, subject_differences, mean_interval
    draws            the statistics of every resample of the people
    group_draws      the same from counts of groups of people, for pairs that are too many to keep
    intervals        intervals over splits, inside a range (RATE, POSITIVE, SIGNED or (low, high)): split_interval,
                     paired_interval; over trials: wilson
    streaming        a Roc from counts that add, with bounds on what the bins hide
    resampling       the exact ROCs of all resamples of the subjects at once
    arguments        checks and conversions: NaN is refused, +-inf are legal scores

A threshold accepts scores >= it, and tied scores are accepted together. FAR is the share of impostor pairs
accepted, VR (the verification rate, TAR) the share of genuine pairs accepted, FRR = 1 - VR.
"""

from jaxface.metrics import normalization, streaming
from jaxface.metrics.bootstrap import SubjectIntervals, mean_interval, subject_bootstrap
from jaxface.metrics.calibration import cllr, cross_entropy, min_cllr, supported_range
from jaxface.metrics.clustering import PrecisionRecall, bcubed, cluster_accuracy, pairwise, purity
from jaxface.metrics.identification import (
    cmc,
    cmc_from_counts,
    identification_rate,
    nearest_neighbor_error,
    nearest_neighbor_hits,
    open_set,
    open_set_from_counts,
    rank_hits,
    stranger_threshold,
)
from jaxface.metrics.intervals import POSITIVE, RATE, SIGNED, Interval, paired_interval, split_interval, wilson
from jaxface.metrics.lfw import lfw_accuracy
from jaxface.metrics.mate_counts import counts_from_trials
from jaxface.metrics.reconstruction import cosine_distance, psnr, ssim
from jaxface.metrics.retrieval import average_precision, mean_average_precision, retrieval_at_k
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
    "Interval",
    "PrecisionRecall",
    "Roc",
    "SubjectIntervals",
    "actual_dcf",
    "auc",
    "average_precision",
    "bcubed",
    "cllr",
    "cluster_accuracy",
    "cmc",
    "cmc_from_counts",
    "cosine_distance",
    "counts_from_trials",
    "cross_entropy",
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
    "nearest_neighbor_hits",
    "normalization",
    "open_set",
    "open_set_from_counts",
    "paired_interval",
    "pairwise",
    "psnr",
    "purity",
    "rank_hits",
    "retrieval_at_k",
    "roc",
    "split_interval",
    "ssim",
    "stranger_threshold",
    "streaming",
    "subject_bootstrap",
    "supported_range",
    "threshold_at_far",
    "verification_rate",
    "wilson",
]
