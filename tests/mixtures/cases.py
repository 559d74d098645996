"""The transformation table of `jaxface.mixtures`."""

import jax
import numpy as np

from jaxface.mixtures import (
    em,
    encoding,
    gmm,
    initialization,
    multiview,
    normalization,
    padding,
    patterns,
    pcca,
    repairs,
    scores,
    selection,
    stats,
    validity,
    views,
)
from jaxface.mixtures.encoding import FisherScores
from jaxface.mixtures.gmm import GMM
from jaxface.mixtures.multiview import MultiviewMixture
from jaxface.mixtures.patterns import Blocks, Samples
from jaxface.mixtures.pcca import PCCAMixture
from jaxface.mixtures.stats import Moments, ViewMoments
from tests.transformations import Case

K, N, M, D, S = 2, 3, 3, 2, 8
WEIGHTS = np.array([1, 2, 0, 1, 1, 1, 2, 1], np.float32)


def key(rng):
    return jax.random.key(int(rng.integers(1000)))


def spd(rng, n=N):
    a = rng.normal(size=(K, n, 2 * n))
    return a @ a.transpose(0, 2, 1) / n


def pair(rng):
    return rng.normal(size=(S, N)), rng.normal(size=(S, M))


def one(rng):
    return rng.normal(size=N), rng.normal(size=M)


def model(rng, *, full=False):
    return PCCAMixture(
        log_weights=np.log(rng.dirichlet(np.ones(K))),
        mean_x=rng.normal(size=(K, N)),
        mean_y=rng.normal(size=(K, M)),
        loadings_x=rng.normal(size=(K, N, D)),
        loadings_y=rng.normal(size=(K, M, D)),
        noise_x=spd(rng) if full else rng.uniform(0.5, 1.5, size=(K, N)),
        noise_y=spd(rng) if full else rng.uniform(0.5, 1.5, size=(K, M)),
    )


def model_of_views(rng, *, full=False):
    """Of the same two views, as the model of any number."""
    drawn = model(rng, full=full)
    return MultiviewMixture(log_weights=drawn.log_weights, views=drawn.views)


def gaussians(rng):
    return GMM(
        log_weights=np.log(rng.dirichlet(np.ones(K))),
        mean=rng.normal(size=(K, N)),
        variance=rng.uniform(0.5, 1.5, size=(K, N)),
    )


def two_views(rng):
    return model(rng).views


def moments(rng):
    """Sums that real samples could have: z and v of six samples in each component."""
    z, r = rng.normal(size=(K, 6, D)), rng.normal(size=(K, 6, N + M))
    of_latent = np.full(K, 6.0), z.sum(axis=1), z.transpose(0, 2, 1) @ z
    parts = []
    for part in (slice(0, N), slice(N, None)):
        v = r[:, :, part]
        cross = v.transpose(0, 2, 1) @ z
        center = rng.normal(size=(K, v.shape[2]))
        parts.append(ViewMoments(center, v.sum(axis=1), (v * v).sum(axis=1), cross, *of_latent))
    return Moments(*of_latent[:2], tuple(parts))


def same_place(rng):
    """Two batches at the same parameters."""
    first, second = moments(rng), moments(rng)
    moved = [b._replace(center=a.center) for a, b in zip(first.views, second.views, strict=True)]
    return first, second._replace(views=tuple(moved))


def samples(rng):
    return Samples(patterns=((0, 1),), groups=(Blocks(rng.normal(size=(2, 4, N + M)), np.ones((2, 4))),))


def fisher_scores(rng):
    return FisherScores(
        rng.normal(size=(K, D)),
        tuple(rng.normal(size=(K, n)) for n in (N, M)),
        tuple(rng.normal(size=(K, n)) for n in (N, M)),
    )


def parts(rng):
    return rng.normal(size=(K, N)), rng.normal(size=(K, M))


def woodbury_and(rng, *shape):
    return views.factorize(*_leaves(model(rng))), rng.normal(size=shape)


def e_step_of_mask(drawn, present, x, y):
    """Inside a transformation the patterns are not known."""
    return stats.e_step(drawn, x, y, present=present)


def codes_of_mask(drawn, present, x, y):
    return encoding.super_vector(drawn, x, y, present=present)


def _leaves(drawn):
    return jax.tree.map(jax.numpy.asarray, (drawn.log_weights, drawn.views))


MASK = np.array([[1, 1], [1, 0], [1, 1], [1, 0], [1, 1], [1, 1], [1, 0], [1, 1]], bool)
GROUPS = {"present": MASK, "sample_weights": WEIGHTS}
SIZES = {"num_components": K, "num_iters": 2}

CASES = [
    Case(views.factorize, lambda r: _leaves(model(r)), partial=(0, 1), factor=10),
    Case(views.evaluate, lambda r: woodbury_and(r, N + M), factor=10),
    Case(views.distance, lambda r: (woodbury_and(r)[0].whitening[0], r.normal(size=N)), factor=10),
    Case(views.squares_beside, lambda r: (r.normal(size=N),), grad=(0,)),
    Case(views.is_not_constant, lambda r: (r.normal(size=N) ** 2, r.normal(size=N))),
    Case(views.typical_variance, lambda r: (r.uniform(1, 2, size=N), r.normal(size=N)), grad=(0,)),
    Case(views.diagonal, lambda r: (spd(r),), grad=(0,)),
    Case(views.noise_powers, lambda r: (1e20 * spd(r),)),
    Case(views.in_units, lambda r: (two_views(r)[0], np.arange(N, dtype=np.int32)), grad=(0,)),
    Case(views.block_diagonal, lambda r: (r.normal(size=(2, 2)), r.normal(size=(3, 3))), grad=(0, 1)),
    Case(views.batched_matvec, lambda r: (r.normal(size=(K, N, D)), r.normal(size=(K, D))), grad=(0, 1)),
    Case(views.latent_mean, lambda r: woodbury_and(r, D, K), factor=10),
    Case(views.latent_cov, lambda r: woodbury_and(r)[:1], factor=10),
    Case(views.log_density, lambda r: (model(r), *one(r)), grad=(0, 1, 2), factor=10),
    Case(views.log_density, lambda r: (model(r, full=True), *one(r)), grad=(0, 1, 2), factor=100, variant="full"),
    Case(views.log_responsibilities, lambda r: (model(r), *one(r)), grad=(0, 1, 2), factor=10),
    Case(views.responsibilities, lambda r: (gaussians(r), one(r)[0]), grad=(0, 1), factor=10),
    Case(views.woodbury_of_given_views, lambda r: (model(r), one(r)), partial=(0,), factor=10),
    Case(stats.e_step, lambda r: (model(r), *pair(r)), {"block_size": 3, "sample_weights": WEIGHTS}, factor=10),
    Case(stats.e_step, lambda r: (model(r, full=True), *pair(r)), factor=100, variant="full"),
    Case(stats.log_likelihood, lambda r: (model(r), *pair(r)), {"block_size": 3}, grad=(0, 1, 2), factor=10),
    Case(stats.e_step, lambda r: (model_of_views(r), *pair(r)), GROUPS, factor=10, variant="gaps"),
    Case(stats.log_likelihood, lambda r: (model(r), *pair(r)), GROUPS, grad=(0, 1, 2), factor=10, variant="gaps"),
    Case(stats.in_data_units, lambda r: (moments(r).views[0], np.arange(N, dtype=np.int32)), grad=(0,)),
    Case(stats.merge, same_place),
    Case(stats.stepwise, lambda r: (moments(r), moments(r), np.float64(0.3)), grad=(0, 1, 2)),
    Case(stats.recenter, lambda r: (moments(r), parts(r)), grad=(0, 1)),
    Case(patterns.to_blocks, lambda r: (model(r), pair(r)), {"sample_weights": WEIGHTS, "block_size": 3}),
    Case(stats.positive_floor, lambda r: (r.uniform(1, 2, size=K),), grad=(0,)),
    Case(stats.mean_of, lambda r: (r.normal(size=(K, N)), r.uniform(1, 2, size=K)), grad=(0, 1)),
    Case(patterns.are_connected, lambda r: (samples(r),), {"num_views": 2}),
    Case(repairs.is_empty, lambda r: (np.array([3.0, 0.0]), np.array([3.0, 0.0]))),
    Case(repairs.reseed, lambda r: (np.array([3.0, 0.0]),)),
    Case(repairs.least_noise, lambda r: (moments(r).views[0], np.float64(0.1))),
    Case(repairs.raise_noise, lambda r: (spd(r), r.uniform(0.5, 1.5, size=(K, N))), partial=(0, 1), factor=10),
    Case(em.joint, lambda r: (two_views(r), moments(r)), grad=(0, 1), factor=10),
    Case(em.sequential, lambda r: (two_views(r), moments(r)), grad=(0, 1), factor=10),
    Case(em.residual, lambda r: (two_views(r)[0], moments(r).views[0]), grad=(0, 1)),
    Case(em.m_step, lambda r: (model(r), moments(r)), factor=10),
    Case(em.update, lambda r: (model(r), samples(r)), {"regression": em.sequential, "floor": 1e-6}, factor=100),
    Case(em.is_in_range, lambda r: (model(r),)),
    Case(em.fit, lambda r: (*pair(r), model(r)), {"num_iters": 2, "block_size": 4}, factor=1000),
    Case(gmm.init, lambda r: (key(r), pair(r)[0]), SIZES, factor=10),
    Case(gmm.fit, lambda r: (pair(r)[0], gaussians(r)), {"num_iters": 2, "sample_weights": WEIGHTS}, factor=100),
    Case(initialization.init, lambda r: (key(r), *pair(r)), {"latent_dim": 1, **SIZES}, factor=100),
    Case(initialization.cluster, lambda r: (key(r), pair(r)[0]), SIZES, factor=10),
    Case(multiview.init, lambda r: (key(r), pair(r)), {"latent_dim": 2, "present": MASK, **SIZES}, factor=100),
    Case(multiview.fit, lambda r: (pair(r), model_of_views(r)), {"num_iters": 2, **GROUPS}, factor=1000),
    Case(multiview.latent_posterior, lambda r: (model_of_views(r), one(r)[0], None), grad=(0, 1), factor=10),
    Case(multiview.conditional, lambda r: (model_of_views(r), one(r)[0], None), grad=(0, 1), factor=10),
    Case(multiview.matrices, lambda r: (r.uniform(1, 2, size=(K, N)),), grad=(0,)),
    Case(multiview.predict, lambda r: (model_of_views(r), None, one(r)[1]), factor=10),
    Case(multiview.sample, lambda r: (key(r), model_of_views(r)), {"num_samples": 5}, factor=10),
    Case(pcca.latent_posterior, lambda r: (model(r), *one(r)), grad=(0, 1, 2), factor=10),
    Case(scores.llr, lambda r: (model(r), *one(r)), grad=(0, 1, 2), factor=10),
    Case(scores.llr_matrix, lambda r: (model(r), *pair(r)), grad=(1, 2), factor=10),
    Case(pcca.predict, lambda r: (model(r), None, one(r)[1]), factor=10),
    Case(pcca.canonical_correlations, lambda r: (model(r),), factor=100),
    Case(pcca.closed_form, lambda r: pair(r), {"latent_dim": 2, "ridge": 0.1}, factor=100),
    Case(
        pcca.from_covariance,
        lambda r: (r.normal(size=N + M), spd(r, N + M)[0]),
        {"dim_x": N, "latent_dim": 2, "ridge": 0.1},
        factor=100,
    ),
    Case(pcca.sample, lambda r: (key(r), model(r)), {"num_samples": 5}, factor=10),
    Case(pcca.of_views, lambda r: (model(r).log_weights, two_views(r)), grad=(0, 1)),
    Case(normalization.signed_sqrt, lambda r: (r.normal(size=(K, N)),), grad=(0,)),
    Case(normalization.per_component, lambda r: (r.normal(size=(K, N)),), grad=(0,)),
    Case(normalization.unit_rows, lambda r: (parts(r),), grad=(0,)),
    Case(normalization.concatenate, lambda r: (parts(r),), grad=(0,)),
    Case(normalization.standard, lambda r: (parts(r),), grad=(0,)),
    Case(normalization.power, lambda r: (parts(r),), grad=(0,)),
    Case(encoding.closed_form, lambda r: (model(r), *pair(r)), {"sample_weights": WEIGHTS}, grad=(0, 1, 2), factor=10),
    Case(encoding.autodiff, lambda r: (model(r), *pair(r)), factor=100),
    Case(encoding.whiten, lambda r: (model(r), fisher_scores(r)), grad=(0, 1)),
    Case(encoding.whitened_closed_form, lambda r: (gaussians(r), pair(r)[0]), factor=10),
    Case(encoding.fisher_vector, lambda r: (gaussians(r), pair(r)[0]), grad=(1,), factor=1000),
    Case(encoding.gradient_vector, lambda r: (model(r), *pair(r)), factor=1000),
    Case(encoding.latent_vector, lambda r: (model(r), *pair(r)), grad=(1, 2), factor=1000),
    Case(encoding.super_vector, lambda r: (model(r), *pair(r)), {"sample_weights": WEIGHTS}, factor=1000),
    Case(
        encoding.encode_batch,
        lambda r: (gaussians(r), r.normal(size=(3, S, N))),
        {"encoder": encoding.fisher_vector, "block_size": 2},
        factor=1000,
    ),
    Case(e_step_of_mask, lambda r: (model_of_views(r), MASK, *pair(r)), factor=10),
    Case(codes_of_mask, lambda r: (model_of_views(r), MASK, *pair(r)), factor=1000),
    Case(encoding.closed_form, lambda r: (model(r), *pair(r)), GROUPS, grad=(0, 1, 2), factor=10, variant="gaps"),
    Case(
        encoding.encode_batch,
        lambda r: (model_of_views(r), r.normal(size=(3, S, N)), r.normal(size=(3, S, M))),
        {"encoder": encoding.super_vector, "block_size": 2, "present": np.stack([MASK] * 3)},
        factor=1000,
        variant="gaps",
    ),
]

EXEMPT: list = [
    em.fit_blocks,  # em.fit, gmm.fit and multiview.fit are in the table
    stats.e_step_blocks,  # stats.e_step, of one group and of several
    stats.log_likelihood_of_blocks,  # stats.log_likelihood
    pcca.posterior_given,  # pcca.latent_posterior and multiview.latent_posterior
    pcca.draw,  # pcca.sample and multiview.sample
    initialization.clusters_with_gaps,  # multiview.init
    initialization.shared_axes,
    selection.bic,  # numbers on the host
    selection.choose,  # on the host, from functions that are in the table
    selection.draw_starts,
    selection.fit_starts,
    selection.num_parameters,  # from shapes
    selection.with_columns,
    patterns.checked_presence,  # raises, or returns its arguments
    patterns.every_view_occurs,
    patterns.patterns_of,  # from concrete values
    views.names,
    encoding.precomputed,  # returns a function
    views.is_full,  # a Python bool
    views.checked,  # raises, or returns its arguments
    patterns.finite_where_counted,
    pcca.check_pairs,
    validity.check_noise,  # the same, on the host
    validity.check_weights,
    initialization.check_components,
    padding.pad_sets,  # ragged lists, on the host
]
