"""The transformation table of `jaxface.linalg`."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.linalg import (
    class_stats,
    discriminant,
    distances,
    gram,
    hadamard,
    krylov,
    nullspace,
    products,
    psd,
    scaling,
    scatter,
    small_cholesky,
    spectral,
    triangular,
)
from tests.transformations import Case


def spd(rng, d=5):
    a = rng.normal(size=(d, 2 * d))
    return a @ a.T / d


def factor(rng, n=3, d=6):
    return rng.normal(size=(n, d))


def repeated_spectrum(rng, n=3, d=6):
    """Orthonormal rows: all singular values are equal."""
    return np.linalg.qr(rng.normal(size=(d, n)))[0].T


def rows(rng, n=7, d=4):
    return rng.normal(size=(n, d))


def several(rng, k=2, d=3):
    a = rng.normal(size=(k, d, 2 * d))
    return a @ a.transpose(0, 2, 1) / d


def spread(v):
    return jnp.arange(1, v.shape[0] + 1, dtype=v.dtype) * v


def times(a, v):
    return a @ v


def operators(a):
    """Products with A and with its transpose."""
    return jax.tree_util.Partial(times, a), jax.tree_util.Partial(times, a.T)


def sums(rng):
    """Statistics of three classes, one of them empty."""
    x, count = rows(rng), np.array([4.0, 0.0, 3.0])
    return class_stats.Stats(count, np.stack([x[:4].sum(0), 0 * x[0], x[4:].sum(0)]), x.T @ x, np.zeros(4))


def weighted_sums(rng):
    """The same of samples with weights."""
    count = np.array([2.5, 0.0, 0.7])
    return sums(rng)._replace(count=count, num_images=np.array([4.0, 0.0, 3.0]), log_weight=np.float64(-3))


SPREAD = jax.tree_util.Partial(spread)
LABELS = np.array([0, 1, 1, 2, 0, 2, 2], np.int32)


def lower(rng, d=4):
    return np.tril(rng.normal(size=(d, d))) + 3 * np.eye(d)


CASES = [
    Case(psd.symmetrize, lambda r: (r.normal(size=(4, 4)),), grad=(0,)),
    Case(psd.add_ridge, lambda r: (spd(r), np.float64(0.1)), grad=(0, 1)),
    Case(psd.cholesky, lambda r: (spd(r),), {"ridge": 0.01}, grad=(0,)),
    Case(psd.is_definite, lambda r: (np.linalg.cholesky(spd(r)),)),
    Case(psd.exceeds_rounding, lambda r: (spd(r), 2 * np.diagonal(spd(r)))),
    Case(psd.least_eigenvalue, lambda r: (np.linalg.cholesky(spd(r)),), grad=(0,), factor=10),
    Case(psd.solve, lambda r: (spd(r), r.normal(size=(5, 2))), {"ridge": 0.01}, grad=(0, 1), factor=10),
    Case(psd.solve, lambda r: (spd(r), r.normal(size=5)), grad=(0, 1), factor=10, variant="vector"),
    Case(psd.solve_definite, lambda r: (spd(r), r.normal(size=(5, 2))), {"ridge": 0.01}, grad=(0, 1), factor=10),
    Case(psd.log_det, lambda r: (spd(r),), {"ridge": 0.01}, grad=(0,)),
    Case(psd.log_density, lambda r: (spd(r), r.normal(size=5)), grad=(0, 1), factor=10),
    Case(triangular.solve, lambda r: (lower(r), r.normal(size=(4, 2))), grad=(0, 1)),
    Case(triangular.solve_transposed, lambda r: (lower(r), r.normal(size=4)), grad=(0, 1)),
    Case(triangular.solve_product, lambda r: (lower(r), r.normal(size=(4, 2))), grad=(0, 1)),
    Case(triangular.inverse, lambda r: (lower(r),), grad=(0,)),
    Case(triangular.whiten, lambda r: (lower(r), spd(r, 4)), grad=(0, 1)),
    Case(spectral.fix_signs, lambda r: (r.normal(size=(5, 3)),), grad=(0,)),
    Case(spectral.eigh, lambda r: (spd(r),), factor=10),
    Case(spectral.thin_svd, lambda r: (factor(r),), factor=10),
    Case(spectral.diagonalize_pair, lambda r: (spd(r), spd(r)), factor=100),
    Case(nullspace.numerical_rank, lambda r: (np.sort(r.uniform(size=5))[::-1].copy(),), {"rtol": 0.5}),
    Case(nullspace.range_basis, lambda r: (factor(r),), factor=10),
    Case(nullspace.qr_complement, lambda r: (factor(r, 3, 8), factor(r, 2, 8)), factor=10),
    Case(nullspace.project_out, lambda r: (factor(r), r.normal(size=6)), grad=(0, 1), factor=10),
    Case(
        nullspace.project_out,
        lambda r: (repeated_spectrum(r), r.normal(size=6)),
        grad=(0, 1),
        factor=10,
        variant="repeated singular values",
    ),
    Case(scatter.class_moments, lambda r: (rows(r), LABELS), {"num_classes": 4}, grad=(0,)),
    Case(scatter.within_factor, lambda r: (rows(r), LABELS), {"num_classes": 4}, grad=(0,)),
    Case(scatter.between_factor, lambda r: (rows(r), LABELS), {"num_classes": 3}, grad=(0,)),
    Case(scatter.total_factor, lambda r: (rows(r),), grad=(0,)),
    Case(scatter.matrix, lambda r: (rows(r),), grad=(0,)),
    Case(class_stats.total, lambda r: (sums(r),)),
    Case(class_stats.recenter, lambda r: (weighted_sums(r),), variant="mean"),
    Case(class_stats.recenter, lambda r: (sums(r), r.normal(size=4)), grad=(1,)),
    Case(class_stats.change_basis, lambda r: (sums(r), r.normal(size=(4, 2)), r.normal(size=4)), grad=(1, 2)),
    Case(class_stats.within_scatter, lambda r: (sums(r),)),
    Case(class_stats.within_covariance, lambda r: (sums(r),)),
    Case(products.inner_products, lambda r: (rows(r),), grad=(0,)),
    Case(products.transposed_copy, lambda r: (rows(r),), grad=(0,)),
    Case(discriminant.whitening, lambda r: (rows(r), rows(r), np.float64(10), np.float64(0.1)), factor=100),
    Case(discriminant.covariance_whitening, lambda r: (spd(r, 4), np.float64(10), np.float64(0.1)), factor=100),
    Case(discriminant.balanced_whitening, lambda r: (rows(r), r.uniform(1, 2, size=4), np.float64(0.1)), factor=100),
    Case(discriminant.leading_directions, lambda r: (factor(r, 3, 4), spd(r, 4)), {"width": 2}, factor=100),
    Case(distances.safe_inverse_sqrt, lambda r: (r.uniform(0.5, 1, size=4),), grad=(0,)),
    Case(distances.safe_sqrt, lambda r: (r.uniform(0.5, 1, size=4),), grad=(0,)),
    Case(distances.norm, lambda r: (r.normal(size=4),), grad=(0,)),
    Case(distances.normalize, lambda r: (r.normal(size=4),), grad=(0,)),
    Case(distances.distance, lambda r: (r.normal(size=4), r.normal(size=4)), grad=(0, 1)),
    Case(distances.cosine, lambda r: (r.normal(size=4), r.normal(size=4)), grad=(0, 1)),
    Case(scaling.as_floating, lambda r: (rows(r),), grad=(0,)),
    Case(distances.squared_distance_matrix, lambda r: (rows(r), rows(r, 5)), grad=(0, 1)),
    Case(distances.ordinary_squared_distances, lambda r: (rows(r), rows(r, 5)), grad=(0, 1)),
    Case(distances.cosine_matrix, lambda r: (rows(r), rows(r, 5)), grad=(0, 1)),
    Case(scaling.exponent, lambda r: (1e6 * rows(r), rows(r))),
    Case(scaling.squarable_exponent, lambda r: (1e20 * rows(r), rows(r))),
    Case(scaling.row_exponents, lambda r: (1e20 * rows(r),)),
    Case(scaling.shifted, lambda r: (rows(r), np.int32(3)), grad=(0,)),
    Case(krylov.conjugate_gradient, lambda r: (SPREAD, r.normal(size=4)), {"tol": 1e-6, "num_iters": 9}),
    Case(krylov.spectral_range, lambda r: (SPREAD, r.normal(size=4)), {"num_steps": 3}, factor=100),
    Case(krylov.leading_eigenvector, lambda r: (SPREAD, r.normal(size=4)), {"num_restarts": 9}, factor=100),
    Case(
        krylov.leading_subspace,
        lambda r: (*operators(rows(r)), r.normal(size=(4, 2))),
        {"num_passes": 2},
        factor=100,
    ),
    Case(small_cholesky.inverse_factor, lambda r: (several(r),), grad=(0,), factor=10),
    Case(small_cholesky.inverse, lambda r: (several(r),), grad=(0,), factor=10),
    Case(small_cholesky.log_det, lambda r: (several(r),), grad=(0,)),
    Case(hadamard.transform, lambda r: (r.normal(size=(3, 128)),), grad=(0,)),
]

EXEMPT = [
    class_stats.images_of,  # a field
    psd.check_covariance,  # raises or returns nothing, on the host
    nullspace.default_rtol,  # a Python float from shape and dtype
    gram.linear,  # constructors of kernels: the kernels themselves are tested in test_gram.py
    gram.gaussian,
    gram.cosine,
    gram.polynomial,
    gram.as_kernel,
    hadamard.next_power_of_two,  # Python integers
    krylov.frobenius_norm,  # takes a function, a size and a type
    hadamard.matrix,  # takes a size, not an array
]
