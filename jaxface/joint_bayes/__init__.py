"""Joint Bayesian verification with transfer (Cao, Wipf, Wen and Duan: A Practical Transfer Learning Algorithm for
Face Verification, supplementary material).

An image of person i is `x_ij = mean + mu_i + eps_ij` with `mu_i ~ N(0, T_mu)` and `eps_ij ~ N(0, T_eps)`. The score of
a pair is the log-likelihood ratio of "one mu" against "two mus". A source model (S_mu, S_eps) is the prior of a target.

    model       JointBayes(mean, identity_cov, noise_cov); sample; free parameters for gradient descent
    stats       one pass over the images: collect, or zero and add; then sums only: merge, pool, recenter,
                change_basis, group_by_count
    stream      the same pass over images that do not fit into memory: collect_stream
    counts      what may stand in statistics: whole numbers of images, weights
    quality     weights of images that follow from a quality: bins, exponents, free weights by ECM
    tracks      frames of a track, whose noise is correlated: track_weights, collect_tracks
    posterior   the E-step (3), (18): full, the paper's approximate one with means only, or that of PX-EM, expanded
    em          the M-step (5), init from moments, fit
    factors     T_mu = F F' of a given rank, whose range is learned: init_factors, fit_factors, fit_low_rank
    factor_scores  scores of such a model from r x r matrices
    transfer    fit_path over the prior weight w = lambda / (1 + lambda), choose_weight, leave_one_out (one person)
    adaptation  a model for another camera from images whose people nobody knows: CORAL and its kin, Kaldi's
    objectives  log-likelihood, the objective that (5) ascends, and (6), (11), (19) of the paper
    scores      the score: llr by Cholesky (differentiable in the parameters), quadratic_form (13), low_rank,
                diagonalize, llr_matrix, sets against sets
    strangers   moments of an image's scores against strangers, for z-norm without a cohort
    sets        sums of sets of weighted images; the score of sets by Cholesky, differentiable in everything

Images may have weights, which are precisions: the noise of an image of weight q is T_eps / q.

Where the printed text differs from this code, the text is wrong: the signs of (2), the direction of the divergence in
(4), the low-rank B after (17), and the claim that EM descends (19) with the M-step (5). The full E-step is the default:
with few images a person the approximate one drives T_mu to zero even on data from the model.
"""

from jaxface.joint_bayes import adaptation, objectives, posterior, quality
from jaxface.joint_bayes.em import fit, init
from jaxface.joint_bayes.factor_scores import diagonalize_factors, llr_of_factors
from jaxface.joint_bayes.factors import fit_factors, fit_low_rank, init_factors, leading_factors
from jaxface.joint_bayes.model import JointBayes, LowRankJointBayes, constrained, free, isotropic, sample, to_dense
from jaxface.joint_bayes.objectives import log_likelihood, penalized_objective
from jaxface.joint_bayes.scores import (
    ScoringBasis,
    choose_rank,
    diagonalize,
    llr,
    llr_matrix,
    low_rank,
    project,
    quadratic_form,
    same_size_llr_matrix,
    score_projections,
    set_evidence,
    set_llr,
    set_llr_matrix,
    truncation_bounds,
)
from jaxface.joint_bayes.sets import SetSums, llr_of_sets, set_sums
from jaxface.joint_bayes.stats import add, collect, group_by_count, merge, pool, zero
from jaxface.joint_bayes.strangers import StrangerMoments, stranger_moments
from jaxface.joint_bayes.stream import collect_stream
from jaxface.joint_bayes.tracks import collect_tracks, track_weights
from jaxface.joint_bayes.transfer import choose_weight, fit_path, leave_one_out
from jaxface.linalg.class_stats import Stats, change_basis, recenter

E_STEPS = {"full": posterior.full, "approximate": posterior.approximate, "expanded": posterior.expanded}  # by name

__all__ = [
    "E_STEPS",
    "JointBayes",
    "LowRankJointBayes",
    "ScoringBasis",
    "SetSums",
    "Stats",
    "StrangerMoments",
    "adaptation",
    "add",
    "change_basis",
    "choose_rank",
    "choose_weight",
    "collect",
    "collect_stream",
    "collect_tracks",
    "constrained",
    "diagonalize",
    "diagonalize_factors",
    "fit",
    "fit_factors",
    "fit_low_rank",
    "fit_path",
    "free",
    "group_by_count",
    "init",
    "init_factors",
    "isotropic",
    "leading_factors",
    "leave_one_out",
    "llr",
    "llr_matrix",
    "llr_of_factors",
    "llr_of_sets",
    "log_likelihood",
    "low_rank",
    "merge",
    "objectives",
    "penalized_objective",
    "pool",
    "posterior",
    "project",
    "quadratic_form",
    "quality",
    "recenter",
    "same_size_llr_matrix",
    "sample",
    "score_projections",
    "set_evidence",
    "set_llr",
    "set_llr_matrix",
    "set_sums",
    "stranger_moments",
    "to_dense",
    "track_weights",
    "truncation_bounds",
    "zero",
]
