"""Hallucination by one matrix: PCA, PCA with a Gaussian prior, ridge regression.

    image = mean + M'(pixels - mean of the pixels)

- `fit_pca`, the usual baseline: coefficients of p axes by least squares on the visible rows of the axes. With more axes
  than the visible pixels determine, the coefficients explode.
- `fit_pca_prior`: the mean of the hidden part given the visible one, under `N(0, W L W' + s I)`, which is PCA with the
  variances of the coefficients as a prior. The choice of p is no longer critical.
- `fit_ridge`: the regression of all pixels on the visible ones.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.pytree import params, whole
from jaxface.hallucination.reconstruction import Reconstruction, checked, checked_weights
from jaxface.linalg import nullspace, psd, scaling, spectral

__all__ = ["AffineHallucinator", "fit_pca", "fit_pca_prior", "fit_ridge"]


@params
class AffineHallucinator:
    """A mean face and a matrix."""

    mean: jax.Array  # [d]
    visible: jax.Array = whole()  # int32 [v]
    matrix: jax.Array  # [v, d], M

    def prepare(self) -> Reconstruction:
        """One product."""
        return lambda pixels: self.mean + (pixels - self.mean[self.visible]) @ self.matrix


def fit_pca(x: ArrayLike, mask: ArrayLike, *, num_components: int) -> tuple[AffineHallucinator, FitInfo]:
    """`M' = W W_v^+` for the first `num_components` principal axes W of faces x `[n, d]`; W_v are its visible rows."""
    return _fit_axes(_pca, x, mask, num_components)


@partial(jax.jit, static_argnames="num_components")
def _pca(centered: jax.Array, visible: jax.Array, *, num_components: int) -> tuple[jax.Array, FitInfo]:
    axes, _, rank = _principal(centered, num_components)
    matrix = jnp.linalg.pinv(axes[visible]).T @ axes.T
    return matrix, report(matrix, centered)._replace(rank=rank)


def fit_pca_prior(x: ArrayLike, mask: ArrayLike, *, num_components: int) -> tuple[AffineHallucinator, FitInfo]:
    """`M' = W (W_v'W_v + s L^-1)^-1 W_v'` with variances L of the axes W and s, the mean variance of all others."""
    return _fit_axes(_pca_prior, x, mask, num_components)


@partial(jax.jit, static_argnames="num_components")
def _pca_prior(centered: jax.Array, visible: jax.Array, *, num_components: int) -> tuple[jax.Array, FitInfo]:
    n, d = centered.shape
    power = scaling.exponent(centered)
    centered = scaling.shifted(centered, -power)  # the matrix has no unit
    axes, variances, rank = _principal(centered, num_components)
    total = (centered**2).sum() / n
    discarded = jnp.maximum(total - variances.sum(), 0) / max(d - num_components, 1)
    # If nothing is discarded the model is singular; the floor is the rounding of the sum and of the factors.
    floor = nullspace.default_rtol(centered) * total
    noise = jnp.maximum(discarded, floor)
    # Solve for whitened coefficients z, so that no small variance is divided by.
    loadings = axes * jnp.sqrt(variances)[None, :]
    seen = loadings[visible]
    solution, _ = penalized_solve(seen.T @ seen, seen.T, noise)
    matrix = solution.T @ loadings.T
    jitter = scaling.shifted(jnp.where(discarded < floor, floor, 0), 2 * power)
    return matrix, report(matrix, centered, jitter)._replace(rank=rank)


def fit_ridge(
    x: ArrayLike, mask: ArrayLike, *, ridge: jax.Array | float, sample_weights: ArrayLike | None = None
) -> tuple[AffineHallucinator, FitInfo]:
    """`M = (Y_v'W Y_v + r I)^-1 Y_v'W Y` for centred faces Y `[n, d]` and sample weights W `[n]`.

    `r = ridge tr Y_v'W Y_v / v`, relative to the mean eigenvalue.
    """
    centered, mean, visible = checked(x, mask)
    checks.shapes(ridge=(ridge, ""))
    checks.positive("ridge", ridge)
    matrix, info = _ridge(centered, visible, checked_weights(sample_weights, centered), ridge)
    return AffineHallucinator(mean=mean, visible=visible, matrix=matrix), info


@jax.jit
def _ridge(
    centered: jax.Array, visible: jax.Array, weights: jax.Array, ridge: jax.Array | float
) -> tuple[jax.Array, FitInfo]:
    power = scaling.exponent(centered)
    centered = scaling.shifted(centered, -power)  # the matrix has no unit
    seen = centered[:, visible]
    weighted = seen * weights[:, None]
    gram = weighted.T @ seen
    penalty = ridge * jnp.trace(gram) / gram.shape[0]
    matrix, added = penalized_solve(gram, weighted.T @ centered, penalty)
    return matrix, report(matrix, centered, scaling.shifted(added, 2 * power))


def report(solution: jax.Array, data: Any, jitter: jax.Array | float = 0.0) -> FitInfo:
    """The report on a solve: NON_FINITE for data or jitter that are not finite, NOT_PSD for such a solution."""
    status = fitinfo.diagnose((~fitinfo.all_finite(solution), Status.NOT_PSD))
    status = fitinfo.or_non_finite(status, (data, jnp.asarray(jitter)))
    return fitinfo.closed_form(dtype=solution.dtype, status=status, jitter=jitter)


def penalized_solve(a: jax.Array, b: jax.Array, penalty: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`(A + r I)^-1 B`, and the number added to the diagonal.

    B itself if A and r are zero; NaN where A + r I does not exceed rounding.
    """
    added = jnp.where((jnp.trace(a) > 0) | (penalty > 0), penalty, 1).astype(a.dtype)
    return psd.solve_definite(a + added * jnp.eye(a.shape[0], dtype=a.dtype), b), added


def _principal(centered: jax.Array, num_components: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Principal axes `[d, p]` with their variances `[p]`, zero beyond the rank, and the rank."""
    svd = spectral.thin_svd(centered)
    rank = nullspace.numerical_rank(svd.values, rtol=nullspace.default_rtol(centered))
    keep = jnp.arange(num_components) < rank
    axes = jnp.where(keep[None, :], svd.right[:num_components].T, 0)
    return axes, jnp.where(keep, svd.values[:num_components] ** 2 / centered.shape[0], 0), rank


def _fit_axes(
    solve: Callable[..., tuple[jax.Array, FitInfo]], x: ArrayLike, mask: ArrayLike, num_components: int
) -> tuple[AffineHallucinator, FitInfo]:
    """The model with the matrix `solve(centered, visible, num_components=...)`, after the checks of both PCA."""
    centered, mean, visible = checked(x, mask)
    n, d = centered.shape
    checks.at_least("num_components", num_components, 1)
    checks.at_most("num_components", num_components, min(n - 1, d), f"{n} centred faces of {d} pixels")
    matrix, info = solve(centered, visible, num_components=num_components)
    return AffineHallucinator(mean=mean, visible=visible, matrix=matrix), info
