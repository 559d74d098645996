"""Relevant component analysis: whitening by the scatter within groups.

    W' Sigma W = I,  Sigma = S_g / n        d^2(a, b) = (a - b)' Sigma^-1 (a - b)

With more pixels than images Sigma is singular. Two ways out:

- PCA first, to at most rank S_g axes (Shental et al., and the NP-PER paper). It may lose the best directions, those in
  which no group varies;
- a ridge, `Sigma + e I`, and no reduction. As e vanishes, `e d^2` tends to the squared distance of NP-PER.

`from_sums` is the second from sums over groups that come in parts, for more images than memory holds.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.linalg import discriminant, psd, scaling, scatter, spectral, triangular
from jaxface.subspace import grouping, pca
from jaxface.subspace.group_sums import GroupSums
from jaxface.subspace.linear_map import LinearMap

__all__ = ["fit", "from_sums"]


def fit(
    x: ArrayLike,
    groups: ArrayLike,
    *,
    num_groups: int,
    pca_components: int | None = None,
    ridge: jax.Array | float = 0.0,
) -> tuple[LinearMap, FitInfo]:
    """RCA of x `[n, d]` with groups `[n]` in `pca_components` axes p; default: all min(n - 1, d), without loss.

    `ridge` adds `ridge (tr Sigma / p) I` in those axes; it may be traced, so many ridges are one vmapped call. Without
    one, p is at most n - R, and a singular Sigma gives RANK_DEFICIENT; `info.rank` is its rank. Column j of W reads
    the first j axes only, so without a ridge the first m columns are RCA after PCA to m: one fit gives every m. The
    result has stopped gradients. The component of a probe outside the axes adds the same constant to all its distances
    and is dropped. x may be in any unit that the type can hold.
    """
    n, d, groups = grouping.check(x, groups, num_groups)
    width = checked_width(n, d, num_groups, pca_components, ridge)
    return _fit(x, groups, ridge, num_groups=num_groups, pca_components=width)


def from_sums(sums: GroupSums, *, ridge: jax.Array | float) -> tuple[LinearMap, FitInfo]:
    """RCA with a ridge from sums over groups: `W W' = (Sigma + ridge (tr Sigma / d) I)^-1`, `W` `[d, d]`.

    The distances are those of `fit` of all images at once, where these are more than dimensions. By one Cholesky
    factor: S_g has the square of the condition number of its images, so in float32 take a ridge of 1e-4 and more. A
    matrix that is singular to rounding gives zeros and RANK_DEFICIENT. Differentiable in the sums.
    """
    d = checks.shapes(within=(sums.within, "d d"), sum=(sums.sum, "d"), shift=(sums.shift, "d"))["d"]
    checks.between("ridge", ridge, 0.0, jnp.inf, closed_high=False)
    grouping.check_sums(sums)
    covariance = sums.within / sums.count
    lower = psd.cholesky(covariance, ridge=ridge)
    is_definite = psd.is_definite(lower)
    inverse = triangular.inverse(lower)
    status = fitinfo.or_non_finite(fitinfo.diagnose((~is_definite, Status.RANK_DEFICIENT)), sums)
    info = fitinfo.closed_form(dtype=lower.dtype, status=status, jitter=ridge * jnp.trace(covariance) / d)
    return LinearMap(mean=sums.shift + sums.sum / sums.count, basis=jnp.where(is_definite, inverse.T, 0)), info


def checked_width(n: int, d: int, num_groups: int, pca_components: int | None, ridge: jax.Array | float) -> int:
    """The number of PCA axes, after checks of it and of the ridge."""
    checks.between("ridge", ridge, 0.0, jnp.inf, closed_high=False)
    most = min(n - 1, d)
    width = most if pca_components is None else pca_components
    checks.at_least("pca_components", width, 1)
    checks.at_most("pca_components", width, most, f"{n} centred samples of {d} dimensions")
    if checks.is_concrete(ridge) and (np.asarray(ridge) == 0).any():
        checks.at_most("pca_components", width, n - num_groups, "the most that S_g can have as rank; or give a ridge")
    return width


@partial(jax.jit, static_argnames=("num_groups", "pca_components"))
def _fit(
    x: jax.Array, groups: jax.Array, ridge: jax.Array | float, *, num_groups: int, pca_components: int
) -> tuple[LinearMap, FitInfo]:
    ridge, power = jnp.asarray(ridge, x.dtype), scaling.exponent(x)
    x = scaling.shifted(x, -power)
    principal = pca.principal_axes(x, num_components=pca_components)
    y = (x - principal.mean[None, :]) @ principal.axes
    whitener = discriminant.whitening(scatter.within_factor(y, groups, num_classes=num_groups), y, len(x), ridge)
    basis = principal.axes @ spectral.fix_signs(_upper_triangular(whitener.basis))
    status = fitinfo.diagnose((~grouping.is_complete(groups, num_groups=num_groups), Status.RANK_DEFICIENT))
    status = fitinfo.worst(status, diagnosis(basis, whitener.rank, pca_components, ridge))
    return in_unit(LinearMap(mean=principal.mean, basis=basis), whitener, status, power, x)


def in_unit(
    fitted: LinearMap, whitener: discriminant.Whitening, status: jax.Array, power: jax.Array, x: jax.Array
) -> tuple[LinearMap, FitInfo]:
    """The whitening map of samples x that were divided by `2^power`, and its report, in the unit of the samples."""
    fitted = LinearMap(mean=scaling.shifted(fitted.mean, power), basis=scaling.shifted(fitted.basis, -power))
    jitter = scaling.shifted(whitener.jitter, 2 * power)
    status = fitinfo.or_non_finite(status, (x, fitted))
    return fitted, fitinfo.closed_form(dtype=x.dtype, status=status, rank=whitener.rank, jitter=jitter)


def diagnosis(basis: jax.Array, rank: jax.Array, width: int, ridge: jax.Array) -> jax.Array:
    """The status of a whitening basis: OK for a rank of `width`, or any rank above 0 with a ridge, and no NaN."""
    full = (rank == width) | ((ridge > 0) & (rank > 0))
    return fitinfo.or_non_finite(fitinfo.diagnose((~full, Status.RANK_DEFICIENT)), basis)


def _upper_triangular(whitener: jax.Array) -> jax.Array:
    """The upper triangular U with `U U' = W W'`: column j of it reads the first j axes only."""
    return jnp.linalg.qr(whitener[::-1].T, mode="r").T[::-1, ::-1]
