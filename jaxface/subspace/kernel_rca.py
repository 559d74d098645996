"""Kernel RCA, in two forms that are different metrics.

- `fit`, as in the NP-PER paper: linear RCA with PCA on the vectors `y_i = (k(x_1, x_i), ..., k(x_n, x_i))`;
- Tsang, Cheung and Kwok's: `d^2(a, b) = (phi_a - phi_b)' C^-1 (phi_a - phi_b)` with `C = Phi H Phi' / n + e I` in
  feature space, where H centres by group. `fit_ridge` gives coordinates with these distances on the span of the
  training images; `fit_metric` with `squared_distance` the distance of any two images, by Woodbury's identity.

As the ridge vanishes, `e d^2` tends to the squared distance of kernel NP-PER with `rkhs_orthonormal`.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.pytree import params
from jaxface.linalg import distances, gram, psd, scatter, triangular
from jaxface.linalg.gram import Kernel
from jaxface.subspace import grouping, kernel_map, rca
from jaxface.subspace.kernel_map import KernelMap

__all__ = ["fit", "fit_metric", "fit_ridge", "squared_distance", "squared_distance_matrix"]


@params
class KernelMetric:
    """`C^-1 = (I - Phi F F' Phi') / e`, with `F F' = H (n e I + HKH)^-1 H`."""

    kernel: Kernel  # a pytree of `linalg.gram`
    train: jax.Array  # [n, d]
    root: jax.Array  # [n, n], F
    epsilon: jax.Array  # [], e


def fit(
    kernel: Kernel,
    x: ArrayLike,
    groups: ArrayLike,
    *,
    num_groups: int,
    pca_components: int | None = None,
    ridge: jax.Array | float = 0.0,
) -> tuple[KernelMap, FitInfo]:
    """`rca.fit` on the rows of `kernel(x, x)`, x `[n, d]` with groups `[n]`; settings and report as there."""
    n, _, groups = grouping.check(x, groups, num_groups)
    width = rca.checked_width(n, n, num_groups, pca_components, ridge)
    return _fit(gram.as_kernel(kernel), x, groups, ridge, num_groups=num_groups, pca_components=width)


@partial(jax.jit, static_argnames=("num_groups", "pca_components"))
def _fit(
    kernel: Kernel,
    x: jax.Array,
    groups: jax.Array,
    ridge: jax.Array | float,
    *,
    num_groups: int,
    pca_components: int,
) -> tuple[KernelMap, FitInfo]:
    kernel, x = jax.lax.stop_gradient((kernel, x))
    k = kernel(x, x)
    linear_map, info = rca.fit(k, groups, num_groups=num_groups, pca_components=pca_components, ridge=ridge)
    info = info._replace(status=kernel_map.status_of(kernel, x, k, info.status))
    return kernel_map.from_linear(kernel, x, linear_map), info


def fit_ridge(
    kernel: Kernel, x: ArrayLike, groups: ArrayLike, *, num_groups: int, ridge: jax.Array | float
) -> tuple[KernelMap, FitInfo]:
    """Coordinates `[n]` whose distances are those of `fit_metric` on the span of the training images x `[n, d]`.

    `e = ridge tr(HKH) / n^2`, relative to the mean of the n eigenvalues. The component of an image outside the span
    adds the same constant to its distances to all training images and is dropped: their order as neighbours is that of
    `fit_metric`. With
    `K = LL'`, `A' = G^-1 L^-1` for `GG' = L'HL / n + e I`. A Gram matrix singular to rounding gives zeros and
    RANK_DEFICIENT, a ridge below the rounding of GG' zeros and NOT_PSD: in float32 take 1e-4 and more.
    Differentiable in the kernel and x.
    """
    _, _, groups = grouping.check(x, groups, num_groups)
    checks.positive("ridge", ridge)
    return _fit_ridge(gram.as_kernel(kernel), x, groups, ridge, num_groups=num_groups)


@partial(jax.jit, static_argnames="num_groups")
def _fit_ridge(
    kernel: Kernel, x: jax.Array, groups: jax.Array, ridge: jax.Array | float, *, num_groups: int
) -> tuple[KernelMap, FitInfo]:
    k = kernel(x, x)
    lower = psd.cholesky(k)
    definite = psd.is_definite(lower)
    within = scatter.within_factor(lower, groups, num_classes=num_groups)
    covariance = within.T @ within / len(k)
    whitener = psd.cholesky(covariance, ridge=ridge)
    inverse = triangular.inverse(lower)
    enough = psd.is_definite(whitener)
    coefficients = jnp.where(definite & enough, triangular.solve(whitener, inverse).T, 0)
    status = fitinfo.diagnose((~definite, Status.RANK_DEFICIENT), (~enough, Status.NOT_PSD))
    jitter = ridge * jnp.trace(covariance) / len(k)
    info = fitinfo.closed_form(dtype=k.dtype, status=kernel_map.status_of(kernel, x, k, status), jitter=jitter)
    return kernel_map.centered_map(kernel, x, k, coefficients), info


def fit_metric(
    kernel: Kernel, x: ArrayLike, groups: ArrayLike, *, num_groups: int, ridge: jax.Array | float
) -> tuple[KernelMetric, FitInfo]:
    """Tsang's metric for x `[n, d]` with groups `[n]`; K may have any rank.

    `e`, derivatives and the status for a ridge that is too small as in `fit_ridge`.
    """
    _, _, groups = grouping.check(x, groups, num_groups)
    checks.positive("ridge", ridge)
    return _fit_metric(gram.as_kernel(kernel), x, groups, ridge, num_groups=num_groups)


@partial(jax.jit, static_argnames="num_groups")
def _fit_metric(
    kernel: Kernel, x: jax.Array, groups: jax.Array, ridge: jax.Array | float, *, num_groups: int
) -> tuple[KernelMetric, FitInfo]:
    n = len(x)
    center = partial(scatter.within_factor, labels=groups, num_classes=num_groups)
    k = kernel(x, x)
    within = center(center(k).T) / n  # HKH / n
    epsilon = ridge * jnp.trace(within) / n
    lower = psd.cholesky(within, ridge=ridge)
    half = triangular.inverse(lower)
    root = center(half.T) / jnp.sqrt(jnp.asarray(n, within.dtype))
    enough = psd.is_definite(lower) & jnp.isfinite(root).all()
    status = kernel_map.status_of(kernel, x, k, fitinfo.diagnose((~enough, Status.NOT_PSD)))
    info = fitinfo.closed_form(dtype=within.dtype, status=status, jitter=epsilon)
    return KernelMetric(kernel=kernel, train=jnp.asarray(x), root=root, epsilon=epsilon), info


def squared_distance(metric: KernelMetric, x: ArrayLike, y: ArrayLike) -> jax.Array:
    """`(phi_x - phi_y)' C^-1 (phi_x - phi_y)` of two images `[d]`."""
    checks.shapes(x=(x, "d"), y=(y, "d"), train=(metric.train, "n d"))
    checks.floating(x=x, y=y)
    x, y = jnp.asarray(x), jnp.asarray(y)
    return _squared_distance_matrix(metric, x[None, :], y[None, :])[0, 0]


def squared_distance_matrix(metric: KernelMetric, gallery: ArrayLike, probes: ArrayLike) -> jax.Array:
    """Squared distances `[g, q]` of gallery `[g, d]` and probes `[q, d]`.

    `((phi_x - phi_y)'(phi_x - phi_y) - |F'(k_x - k_y)|^2) / e`.
    """
    checks.shapes(gallery=(gallery, "g d"), probes=(probes, "q d"), train=(metric.train, "n d"))
    checks.floating(gallery=gallery, probes=probes)
    return _squared_distance_matrix(metric, jnp.asarray(gallery), jnp.asarray(probes))


@jax.jit
def _squared_distance_matrix(metric: KernelMetric, x: jax.Array, y: jax.Array) -> jax.Array:
    self_x, self_y = (jax.vmap(lambda row: metric.kernel(row[None, :], row[None, :])[0, 0])(rows) for rows in (x, y))
    plain = self_x[:, None] + self_y[None, :] - 2 * metric.kernel(x, y)
    z_x, z_y = (metric.kernel(rows, metric.train) @ metric.root for rows in (x, y))
    return jnp.maximum(plain - distances.squared_distance_matrix(z_x, z_y), 0) / metric.epsilon
