"""The transformation table of `jaxface.subspace`."""

import jax
import numpy as np

from jaxface.linalg import discriminant, gram
from jaxface.subspace import (
    group_scatter,
    group_sums,
    grouping,
    held_out,
    kcfa,
    kernel_map,
    kernel_np_per,
    kernel_rca,
    lda,
    linear_map,
    maps,
    np_per,
    pca,
    rca,
)
from jaxface.subspace.kernel_map import KernelMap
from jaxface.subspace.linear_map import LinearMap
from tests.class_sums import collected
from tests.transformations import Case


def a_map(rng):
    return LinearMap(mean=rng.normal(size=4), basis=rng.normal(size=(4, 2)))


def samples(rng):
    return rng.normal(size=(12, 5)) * np.array([5.0, 4.0, 3.0, 2.0, 1.0])


def images(rng):
    """Twelve images that are independent, also centred."""
    return rng.normal(size=(12, 14))


def sums(rng):
    return jax.tree.map(np.asarray, collected(samples(rng), LABELS, 3, np.ones(5)))


def gaussian(rng):
    return gram.Gaussian(bandwidth=rng.uniform(3, 5))


def a_gram_matrix(rng):
    x = images(rng)
    return x @ x.T


def a_kernel_map(rng):
    return KernelMap(
        kernel=gaussian(rng), train=images(rng), coefficients=rng.normal(size=(12, 2)), offset=rng.normal(size=2)
    )


def some_filters(rng):
    kernel = kcfa.UnitEnergyKernel(kernel=gaussian(rng))
    return KernelMap(kernel=kernel, train=images(rng), coefficients=rng.normal(size=(12, 3)), offset=np.zeros(3))


def a_kernel_metric(rng):
    # Small enough that the square root of what it subtracts from the identity exists.
    root = 0.1 * rng.normal(size=(12, 12))
    return kernel_rca.KernelMetric(kernel=gaussian(rng), train=images(rng), root=root, epsilon=rng.uniform(0.5, 1))


def some_sums(rng):
    """As if of twelve images in five groups; five dimensions."""
    factor = rng.normal(size=(9, 5))
    total = factor.T @ factor + 12 * np.ones((5, 5)) + 5 * np.eye(5)
    return group_sums.GroupSums(
        count=np.float64(12),
        num_groups=np.float64(5),
        sum=rng.normal(size=5),
        second_moment=total + np.diag(np.arange(5.0)),
        within=factor.T @ factor,
        shift=np.ones(5),
    )


LABELS = np.repeat(np.arange(3, dtype=np.int32), 4)

# Groups differ in size and one has a single image; a second draw of them would need a second program.
GROUPS = np.array([3, 0, 1, 1, 4, 0, 2, 1, 2, 3, 1, 0], np.int32)
CLASSES = np.array([0, 1, 1, 2, 0], np.int32)[GROUPS]  # of the images of each group
FIVE = {"num_groups": 5}
RKHS = {"num_groups": 5, "rkhs_orthonormal": True}
LITERAL = {"num_groups": 5, "rkhs_orthonormal": False}


def a_whitening(rng):
    return discriminant.Whitening(np.eye(2), np.int32(2), rng.uniform())


CASES = [
    Case(linear_map.transform, lambda r: (a_map(r), r.normal(size=4)), grad=(0, 1)),
    Case(linear_map.leading, lambda r: (a_map(r), np.int32(1)), partial=(0,)),
    Case(linear_map.reconstruct, lambda r: (a_map(r), r.normal(size=2)), grad=(0, 1)),
    Case(pca.principal_axes, lambda r: (samples(r),), {"num_components": 3}, factor=10),
    Case(pca.fit, lambda r: (samples(r),), {"num_components": 3}, factor=10),
    Case(pca.fit, lambda r: (samples(r),), {"num_components": 3, "whiten": True}, factor=10, variant="whiten"),
    Case(pca.from_moments, lambda r: (sums(r),), {"num_components": 3, "whiten": True}, factor=100),
    Case(pca.axes_of_moments, lambda r: (sums(r),), {"num_components": 3}, factor=100),
    Case(lda.from_stats, lambda r: (sums(r),), {"num_components": 2, "ridge": 0.1}, factor=1000),
    Case(
        pca.fit_randomized,
        lambda r: (jax.random.key(int(r.integers(99))), samples(r)),
        {"num_components": 3, "extra": 2},
        factor=100,
    ),
    Case(
        lda.fit,
        lambda r: (samples(r), LABELS),
        {"num_classes": 3, "num_components": 2, "ridge": 0.01},
        factor=1000,
    ),
    Case(linear_map.compose, lambda r: (a_map(r), LinearMap(mean=r.normal(size=2), basis=r.normal(size=(2, 2))))),
    Case(grouping.contrasts, lambda r: (images(r), GROUPS), FIVE, grad=(0,)),
    Case(grouping.is_complete, lambda r: (GROUPS,), FIVE),
    Case(rca.fit, lambda r: (images(r), GROUPS), {**FIVE, "pca_components": 5}, factor=1000),
    Case(
        rca.fit,
        lambda r: (images(r), GROUPS),
        {**FIVE, "pca_components": 6, "ridge": 0.1},
        factor=1000,
        variant="ridge",
    ),
    Case(
        rca.in_unit,
        lambda r: (
            a_map(r),
            discriminant.Whitening(np.eye(2), np.int32(2), r.uniform()),
            np.int32(0),
            np.int32(3),
            samples(r),
        ),
    ),
    Case(kernel_map.status_of, lambda r: (gaussian(r), images(r), a_gram_matrix(r), np.int32(4))),
    Case(rca.diagnosis, lambda r: (r.normal(size=(4, 3)), np.int32(2), np.int32(3), np.float64(0.1))),
    Case(np_per.fit, lambda r: (images(r), GROUPS), FIVE, factor=10),
    Case(np_per.fit_dual, lambda r: (images(r), GROUPS), FIVE, grad=(0,), factor=100),
    Case(
        kernel_np_per.dual, lambda r: (a_gram_matrix(r), GROUPS), RKHS, grad=(0,), factor=10, variant="rkhs_orthonormal"
    ),
    Case(kernel_np_per.dual, lambda r: (a_gram_matrix(r), GROUPS), LITERAL, grad=(0,), factor=10),
    Case(np_per.project_onto, lambda r: (images(r), GROUPS, r.normal(size=14)), FIVE, grad=(0, 2), factor=10),
    Case(kernel_map.transform, lambda r: (a_kernel_map(r), r.normal(size=14)), grad=(0, 1)),
    Case(maps.transform, lambda r: (a_map(r), r.normal(size=4)), grad=(0, 1)),
    Case(maps.transform, lambda r: (a_kernel_map(r), r.normal(size=14)), grad=(0, 1), variant="kernel"),
    Case(maps.leading, lambda r: (a_map(r), np.int32(1)), partial=(0,)),
    Case(maps.leading, lambda r: (a_kernel_map(r), np.int32(1)), partial=(0,), variant="kernel"),
    Case(kernel_map.leading, lambda r: (a_kernel_map(r), np.int32(1)), partial=(0,)),
    Case(kernel_map.from_linear, lambda r: (gaussian(r), images(r), a_map(r)), grad=(0, 1, 2)),
    Case(
        kernel_map.centered_map,
        lambda r: (gaussian(r), images(r), r.normal(size=(12, 12)), r.normal(size=(12, 2))),
        grad=(0, 1, 2, 3),
    ),
    Case(kernel_np_per.fit, lambda r: (gaussian(r), images(r), GROUPS), LITERAL, grad=(0, 1), factor=100),
    Case(
        kernel_np_per.fit,
        lambda r: (gaussian(r), images(r), GROUPS),
        RKHS,
        grad=(0, 1),
        factor=100,
        variant="rkhs_orthonormal",
    ),
    Case(
        kernel_rca.fit,
        lambda r: (gaussian(r), images(r), GROUPS),
        {**FIVE, "pca_components": 5},
        factor=1000,
    ),
    Case(
        kernel_rca.fit_ridge,
        lambda r: (gaussian(r), images(r), GROUPS),
        {**FIVE, "ridge": 0.1},
        grad=(0, 1),
        factor=100,
    ),
    Case(
        kernel_rca.fit_metric,
        lambda r: (gaussian(r), images(r), GROUPS),
        {**FIVE, "ridge": 0.1},
        grad=(0, 1),
        factor=100,
    ),
    Case(
        kernel_rca.squared_distance,
        lambda r: (a_kernel_metric(r), r.normal(size=14), r.normal(size=14)),
        grad=(0, 1, 2),
        factor=10,
    ),
    Case(
        kernel_rca.squared_distance_matrix,
        lambda r: (a_kernel_metric(r), images(r), images(r)),
        grad=(0, 1, 2),
        factor=10,
    ),
    Case(
        kcfa.fit,
        lambda r: (gaussian(r), images(r), LABELS),
        {"num_classes": 3, "ridge": 0.1},
        grad=(0, 1),
        factor=100,
    ),
    Case(kcfa.encode, lambda r: (some_filters(r), r.normal(size=14)), grad=(0, 1)),
    Case(kcfa.score, lambda r: (some_filters(r), r.normal(size=14), r.normal(size=14)), grad=(0, 1, 2)),
    Case(kcfa.score_matrix, lambda r: (some_filters(r), images(r), images(r)), grad=(0, 1, 2)),
    Case(held_out.group_error, lambda r: (images(r), GROUPS)),
    Case(held_out.group_error_of_scores, lambda r: (a_gram_matrix(r), GROUPS)),
    Case(group_sums.zero, lambda r: (r.normal(size=5),)),
    Case(group_sums.add, lambda r: (some_sums(r), samples(r), GROUPS), FIVE, grad=(1,), factor=10),
    Case(group_sums.merge, lambda r: (some_sums(r), some_sums(r))),
    Case(np_per.from_sums, lambda r: (some_sums(r),), {"num_components": 2, "ridge": 0.1}, factor=1000),
    Case(rca.from_sums, lambda r: (some_sums(r),), {"ridge": 0.1}, grad=(0,), factor=100),
    Case(group_scatter.missed_factor, lambda r: (images(r), GROUPS, CLASSES), {**FIVE, "num_classes": 3}, grad=(0,)),
    Case(group_scatter.scatter_error, lambda r: (images(r), GROUPS, CLASSES), {**FIVE, "num_classes": 3}, grad=(0,)),
]

EXEMPT = [
    grouping.check,  # raises or returns two integers
    grouping.check_sums,  # raises or returns nothing
    grouping.fit_draws,  # on the host, one fit after the other
    rca.checked_width,  # raises or returns an integer
    np_per.default_rtol,  # a Python float
    np_per.null_directions,  # on the host in float64: how many directions depends on the samples
    np_per.fit_dependent,  # the same, of a fixed width
    kernel_np_per.fit_dependent,  # the same
    kcfa.median_distance,  # on the host
    held_out.folds,  # rows for the host
    held_out.errors,  # one call for each fold, whose sizes differ
]
