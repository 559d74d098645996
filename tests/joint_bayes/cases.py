"""The transformation table of `jaxface.joint_bayes`."""

import jax
import numpy as np

from jaxface.joint_bayes import (
    adaptation,
    counts,
    em,
    factor_scores,
    factors,
    model,
    moment_start,
    objectives,
    posterior,
    quality,
    scores,
    sets,
    stats,
    strangers,
    stream,
    tracks,
    transfer,
)
from jaxface.joint_bayes.model import JointBayes, LowRankJointBayes
from jaxface.joint_bayes.posterior import Moments
from jaxface.joint_bayes.scores import ScoringBasis
from jaxface.joint_bayes.stats import GroupedStats
from jaxface.linalg.class_stats import Stats
from tests.joint_bayes.draws import spd
from tests.transformations import Case

D = 3
COUNTS = np.array([2.0, 1.0, 3.0, 0.0, 2.0])
IDS = np.array([0, 0, 1, 2, 2, 2, 4, -1], np.int32)
EVERYONE = np.arange(8, dtype=np.int32) // 3  # three people
WEIGHTS = np.array([0.2, 0.7])
# Keyword arguments are no arguments of the test: float32 leaves the type of the others alone.
PRIOR = JointBayes(
    mean=np.zeros(D, np.float32),
    identity_cov=np.diag(np.array([3, 2, 1], np.float32)),
    noise_cov=np.diag(np.array([1, 1, 2], np.float32)),
)


def a_model(rng):
    return JointBayes(mean=rng.normal(size=D), identity_cov=spd(rng), noise_cov=spd(rng) + np.eye(D))


def a_target(rng):
    return adaptation.Target(rng.normal(size=D), spd(rng) + np.eye(D), np.float64(9))


def free_parameters(rng):
    return model.FreeJointBayes(
        mean=rng.normal(size=D), identity_root=rng.normal(size=(D, 2)), noise_root=rng.normal(size=(D, D))
    )


def images(rng):
    return rng.normal(size=(8, D))


def sums(rng):
    """Statistics of five people, one of them absent."""
    groups = [rng.normal(size=(int(m), D)) for m in COUNTS]
    x = np.concatenate(groups)
    return Stats(COUNTS, np.stack([g.sum(axis=0) for g in groups]), x.T @ x, np.zeros(D))


def weighted_sums(rng):
    """Five people whose images have weights."""
    return sums(rng)._replace(count=0.7 * COUNTS + 0.1, num_images=COUNTS + 1, log_weight=np.float64(-3))


def bins(rng):
    """Statistics of two bins about one shift."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), sums(rng), sums(rng))


def rows(rng):
    return GroupedStats(rng.normal(size=(5, D)), np.ones(5), COUNTS, COUNTS, np.sign(COUNTS), spd(rng), np.zeros(D))


def weighted_rows(rng):
    """Rows of people whose images have weights."""
    weight = 0.7 * COUNTS + 0.1
    sums_of_weights = {"num_images": np.float64(9), "log_weight": np.float64(-3)}
    return rows(rng)._replace(row_count=weight, count=weight, num_people=np.ones(5), **sums_of_weights)


def two_factors(rng):
    return LowRankJointBayes(mean=rng.normal(size=D), root=rng.normal(size=(D, 2)), noise_cov=spd(rng) + np.eye(D))


def whitened(rng):
    """A state in the coordinates of a model, and statistics there."""
    lower, root = np.linalg.cholesky(spd(rng) + np.eye(D)), rng.normal(size=(D, 2))
    zero = np.float64(0)
    data = factors.Whitened(rng.normal(size=(5, D)), 9 * spd(rng) + 99 * np.eye(D), lower, lower.T @ lower, rows(rng))
    return factors.State(root, root, np.eye(D), np.float64(7), zero), data


def path(rng):
    return jax.tree.map(lambda *leaves: np.stack(leaves), a_model(rng), a_model(rng))


def moments(rng):
    return Moments(rng.normal(size=D), spd(rng), spd(rng), np.float64(4), np.float64(8))


def basis(rng):
    values = np.sort(rng.uniform(0.1, 2, size=D))[::-1].copy()
    return ScoringBasis(mean=rng.normal(size=D), vectors=rng.normal(size=(D, D)), values=values)


def weights_of_tracks(correlation):
    return tracks.track_weights(TRACKS, num_tracks=3, correlation=correlation)


def hidden(rng):
    return rng.normal(size=(4, D)), rng.normal(size=(8, D)), spd(rng) + np.eye(D), spd(rng) + np.eye(D)


PAPER = {"prior": PRIOR, "prior_weight": 0.3}
SIZES = np.array([2.0, 1.0, 3.0, 2.0])
QUALITY = np.array([0.5, 1, 2, 0, 3, 1, 0.2, 1], np.float32)
BINS = np.array([0, 1, 0, 1, 1, 0, 1, 0], np.int32)
TRACKS = np.array([0, 0, -1, 1, 1, 1, 2, -1], np.int32)
HALF = np.float64(0.5)

CASES = [
    Case(model.free, lambda r: (a_model(r),), {"rank": 2}, factor=10),
    Case(model.isotropic, lambda r: (a_model(r),), {"rank": 2}, grad=(0,)),
    Case(model.constrained, lambda r: (free_parameters(r),), grad=(0,)),
    Case(
        model.sample,
        lambda r: (jax.random.key(int(r.integers(1000))), a_model(r)),
        {"num_people": 2, "num_images": 3},
        factor=10,
    ),
    Case(stats.collect, lambda r: (images(r), IDS), {"num_people": 5, "shift": np.ones(D, np.float32)}),
    Case(
        stats.collect,
        lambda r: (images(r), IDS),
        {"num_people": 5, "shift": np.ones(D, np.float32), "weights": QUALITY},
        grad=(0,),
        variant="weights",
    ),
    Case(stats.zero, lambda r: (r.normal(size=D),), {"num_people": 5}),
    Case(stats.add, lambda r: (sums(r), images(r), IDS)),
    Case(stats.add, lambda r: (weighted_sums(r), images(r), IDS), {"weights": QUALITY}, variant="weights"),
    Case(stats.add_rows, lambda r: (sums(r), images(r), IDS), {"block_size": 3}),
    Case(stats.merge, lambda r: (sums(r), sums(r))),
    Case(stats.merge, lambda r: (weighted_sums(r), sums(r)), variant="weights"),
    Case(stats.pool, lambda r: (sums(r), sums(r))),
    Case(stats.pool, lambda r: (sums(r), weighted_sums(r)), variant="weights"),
    Case(stats.by_person, lambda r: (sums(r),)),
    Case(stats.by_person, lambda r: (weighted_sums(r),), variant="weights"),
    Case(stats.rows_about, lambda r: (rows(r), r.normal(size=D)), grad=(0, 1)),
    Case(posterior.full, lambda r: (a_model(r), rows(r)), factor=10),
    Case(posterior.full, lambda r: (a_model(r), weighted_rows(r)), factor=10, variant="weights"),
    Case(posterior.approximate, lambda r: (a_model(r), rows(r)), factor=10),
    Case(posterior.expanded, lambda r: (a_model(r), rows(r)), factor=10),
    Case(posterior.expanded, lambda r: (a_model(r), weighted_rows(r)), factor=10, variant="weights"),
    Case(posterior.identity, lambda r: (a_model(r), r.normal(size=D), r.uniform(0.3, 1.7)), grad=(1, 2), factor=10),
    Case(posterior.diagonal_basis, lambda r: (a_model(r),), factor=100),
    Case(objectives.log_likelihood, lambda r: (a_model(r), weighted_sums(r)), grad=(0,), factor=10),
    Case(
        objectives.penalized_objective,
        lambda r: (a_model(r), sums(r), a_model(r), HALF),
        grad=(0, 3),
        factor=10,
    ),
    Case(objectives.divergence, lambda r: (a_model(r), a_model(r), rows(r)), grad=(0, 1), factor=10),
    Case(objectives.gaussian_divergence, lambda r: (spd(r), spd(r)), grad=(0, 1), factor=10),
    Case(objectives.eq6, hidden, PAPER, grad=(0, 1, 2, 3), factor=10),
    Case(objectives.eq11, lambda r: hidden(r)[:2], PAPER, grad=(0, 1), factor=10),
    Case(objectives.eq19, lambda r: (*hidden(r), SIZES), PAPER, grad=(0, 1, 2, 3), factor=10),
    Case(em.init, lambda r: (weighted_sums(r),), factor=10),
    Case(moment_start.moments_of, lambda r: (weighted_sums(r),), factor=10),
    Case(em.m_step, lambda r: (moments(r), a_model(r), HALF), grad=(0, 1, 2)),
    Case(
        em.update,
        lambda r: (a_model(r), rows(r), a_model(r), HALF),
        {"e_step": posterior.full, "floor": 1e-6},
        factor=10,
    ),
    Case(
        em.fit,
        lambda r: (weighted_sums(r), a_model(r)),
        {"prior": PRIOR, "prior_weight": 0.3, "num_iters": 2},
        factor=100,
    ),
    Case(em.fit, lambda r: (sums(r), a_model(r)), {"num_iters": 2}, factor=100, variant="without a prior"),
    Case(factors.fit_low_rank, lambda r: (weighted_sums(r), a_model(r)), {"rank": 2, "num_iters": 2}, factor=100),
    Case(factors.leading_factors, lambda r: (a_model(r),), {"rank": 2}, factor=100),
    Case(factors.init_factors, lambda r: (weighted_sums(r),), {"rank": 1}, factor=100),
    Case(
        factors.fit_factors,
        lambda r: (weighted_sums(r), two_factors(r)),
        {"num_iters": 3, "tol": 1e-3, "expand": False},
        factor=100,
    ),
    Case(factors.whitened, lambda r: (rows(r), two_factors(r)), factor=100),
    Case(factors.update, whitened, {"floor": 1e-6, "expand": True}, factor=100),
    Case(factor_scores.diagonalize_factors, lambda r: (two_factors(r),), factor=100),
    Case(
        factor_scores.llr_of_factors,
        lambda r: (two_factors(r), r.normal(size=D), r.normal(size=D)),
        grad=(0, 1, 2),
        factor=10,
    ),
    Case(model.to_dense, lambda r: (two_factors(r),), grad=(0,)),
    Case(
        em.fit_grouped,
        lambda r: (rows(r), a_model(r), a_model(r), HALF),
        {"num_iters": 3, "tol": 1e-3, "e_step": posterior.approximate, "floor": 1e-6},
        factor=100,
    ),
    Case(transfer.fit_path, lambda r: (sums(r), a_model(r), a_model(r), WEIGHTS), {"num_iters": 2}, factor=100),
    Case(transfer.choose_weight, lambda r: (path(r), sums(r)), factor=10),
    Case(
        transfer.leave_one_out,
        lambda r: (images(r), EVERYONE, a_model(r), WEIGHTS),
        {"num_people": 3, "num_iters": 2, "weights": QUALITY},
        factor=100,
    ),
    Case(
        quality.collect_bins,
        lambda r: (images(r), IDS, BINS),
        {"num_people": 5, "num_bins": 2, "shift": np.ones(D, np.float32)},
    ),
    Case(quality.weighted, lambda r: (bins(r), np.array([0.5, 2])), grad=(1,)),
    Case(quality.exponents, lambda r: (bins(r), r.normal(size=2), r.uniform(size=3)), grad=(1, 2)),
    Case(quality.rounded, lambda r: (r.uniform(0.1, 9, size=8),), {"num_levels": 4}),
    Case(
        quality.fit_candidates,
        lambda r: (bins(r), bins(r), np.array([[1, 1], [0.5, 2.0]])),
        {"num_iters": 2},
        factor=100,
    ),
    Case(quality.fit_weights, lambda r: (bins(r), a_model(r)), {"num_iters": 2}, factor=100),
    Case(tracks.track_weights, lambda r: (TRACKS,), {"num_tracks": 3, "correlation": np.float32(0.3)}),
    Case(weights_of_tracks, lambda r: (r.uniform(0.2, 0.8),), grad=(0,)),
    Case(
        tracks.collect_tracks,
        lambda r: (images(r), IDS, TRACKS),
        {"num_people": 5, "num_tracks": 3, "correlation": 0.3, "shift": np.ones(D, np.float32)},
        grad=(0,),
    ),
    Case(sets.set_sums, lambda r: (basis(r), images(r), IDS), {"num_sets": 5, "weights": QUALITY}, grad=(0, 1)),
    Case(
        sets.llr_of_sets,
        lambda r: (a_model(r), images(r), images(r)),
        {"first_weights": QUALITY},
        grad=(0, 1, 2),
        factor=10,
    ),
    Case(scores.llr, lambda r: (a_model(r), r.normal(size=D), r.normal(size=D)), grad=(0, 1, 2), factor=10),
    Case(scores.quadratic_form, lambda r: (a_model(r),), grad=(0,), factor=10),
    Case(scores.low_rank, lambda r: (a_model(r),), {"rank": 2}, factor=100),
    Case(scores.truncation_bounds, lambda r: (a_model(r),), factor=10),
    Case(scores.diagonalize, lambda r: (a_model(r),), {"rank": 2}, factor=100),
    Case(scores.project, lambda r: (basis(r), r.normal(size=D)), grad=(0, 1)),
    Case(
        scores.set_llr,
        lambda r: (basis(r), r.normal(size=D), np.float64(3), r.normal(size=D), np.float64(2)),
        grad=(0, 1, 3),
    ),
    Case(
        scores.same_size_llr_matrix,
        lambda r: (basis(r), images(r), np.arange(1.0, 9.0), images(r)[:3], np.float64(2)),
        grad=(0, 1, 3),
        factor=10,
    ),
    Case(scores.set_evidence, lambda r: (basis(r), images(r)[:4], SIZES), grad=(1,), factor=10),
    Case(scores.llr_matrix, lambda r: (basis(r), images(r), images(r)), grad=(0, 1, 2), factor=10),
    Case(adaptation.target_of, lambda r: (images(r),), grad=(0,)),
    Case(adaptation.shrunk, lambda r: (a_target(r), a_model(r)), {"strength": np.float32(3)}, factor=10),
    Case(adaptation.equivariant_root, lambda r: (spd(r, D), spd(r, D)), factor=100),
    Case(adaptation.printed_root, lambda r: (spd(r, D), spd(r, D)), factor=100),
    Case(adaptation.mean_shift, lambda r: (a_model(r), a_target(r)), factor=10),
    Case(adaptation.coral, lambda r: (a_model(r), a_target(r)), factor=1000),
    Case(
        adaptation.coral_plus,
        lambda r: (a_model(r), a_target(r)),
        {"gamma_identity": 0.5, "gamma_noise": 1.0},
        factor=1000,
    ),
    Case(adaptation.total_metric, lambda r: (spd(r, D), spd(r, D))),
    Case(adaptation.own_metric, lambda r: (spd(r, D), spd(r, D))),
    Case(
        adaptation.coral_plus,
        lambda r: (a_model(r), a_target(r)),
        {"gamma_identity": 0.5, "gamma_noise": 0.3, "metric": adaptation.own_metric},
        factor=1000,
        variant="printed",
    ),
    Case(adaptation.kaldi, lambda r: (a_model(r), a_target(r)), {"to_identity": 0.7, "to_noise": 0.3}, factor=1000),
    Case(strangers.stranger_moments, lambda r: (basis(r), images(r)), grad=(1,), factor=10),
    Case(
        strangers.stranger_moments,
        lambda r: (basis(r), images(r)[:4]),
        {"counts": SIZES.astype(np.float32)},
        grad=(1,),
        factor=10,
        variant="sets",
    ),
    Case(scores.score_projections, lambda r: (basis(r), images(r), images(r)), grad=(0, 1, 2)),
]

EXEMPT = [
    adaptation.choose_strength,  # takes a function; its values are those of the others
    stats.group_by_count,  # on the host in float64: how many rows depends on the counts
    counts.numbers_of_images,  # the counts again, or raises; NaN inside a transformation
    counts.checked_counts,
    counts.checked_weights,
    counts.with_weights,  # two fields more, or the statistics themselves
    counts.log_weight_of,
    stats.num_images,  # sums of the counts
    stats.mean_weight,
    quality.bin_edges,  # on the host
    quality.bins_of,
    quality.bin_means,
    quality.ecm_step,  # parts of fit_weights
    quality.noise_of_bins,
    posterior.whole_numbers,  # the same for grouped statistics
    posterior.sum_rows,  # takes a function; a part of every E-step
    em.least_pivot,  # parts of every fit, and the fits are in the table
    em.floored,
    em.diagnosis,
    stats.grouped,  # `group_by_count` or `by_person`, as the counts are known or not
    stream.collect_stream,  # reads files, on the host
    em.axes_of,  # names for messages
    em.at_least_two_people,  # a check on the host
    em.checked_problem,  # the arguments again, or raises
    scores.choose_rank,  # a Python integer
    scores.set_llr_matrix,  # one program for each size that occurs: the sizes are looked at on the host
]
