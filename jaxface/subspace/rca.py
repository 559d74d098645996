"""Relevant component analysis: whitening by the scatter within groups.

    W' Sigma W = I,  Sigma = S_g / n        d^2(a, b) = (a - b)' Sigma^-1 (a - b)

With more pixels than images Sigma is singular. Two ways out:

- PCA first, to at most rank S_g axes (Shental et al., and the NP-PER paper): directions that no group varies in, the
  best ones, may be lost;
- a ridge, `Sigma + e I`, and no reduction: as e vanishes, `e d^2` tends to the squared distance of NP-PER.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.linalg import nullspace, scaling, scatter, spectral
from jaxface.subspace import grouping, pca
from jaxface.subspace.linear_map import LinearMap

__all__ = ["fit"]


class Whitening(NamedTuple):
    """A basis that whitens S_w / number."""

    basis: jax.Array  # [p, p]
    rank: jax.Array  # int32 [], of S_w
    jitter: jax.Array  # [], what the ridge added to the diagonal of S_w / number


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
    result has stopped gradients. What a probe has outside the axes is left out of every distance: to all training
    images it is the same. It works in any unit that the type can hold.
    """
    n, d, groups = grouping.check(x, groups, num_groups)
    width = checked_width(n, d, num_groups, pca_components, ridge)
    return _fit(x, groups, ridge, num_groups=num_groups, pca_components=width)


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
    found = whitening(scatter.within_factor(y, groups, num_classes=num_groups), y, len(x), ridge)
    basis = principal.axes @ spectral.fix_signs(_upper_triangular(found.basis))
    status = fitinfo.diagnose((~grouping.is_complete(groups, num_groups=num_groups), Status.RANK_DEFICIENT))
    status = fitinfo.worst(status, diagnosis(basis, found.rank, pca_components, ridge))
    return in_unit(LinearMap(mean=principal.mean, basis=basis), found, status, power, x)


def in_unit(
    fitted: LinearMap, found: Whitening, status: jax.Array, power: jax.Array, x: jax.Array
) -> tuple[LinearMap, FitInfo]:
    """A whitening map of samples x that were divided by `2^power`, and its report, in the unit of the samples."""
    fitted = LinearMap(mean=scaling.shifted(fitted.mean, power), basis=scaling.shifted(fitted.basis, -power))
    jitter = scaling.shifted(found.jitter, 2 * power)
    status = fitinfo.or_non_finite(status, (x, fitted))
    return fitted, fitinfo.closed_form(dtype=x.dtype, status=status, rank=found.rank, jitter=jitter)


def diagnosis(basis: jax.Array, rank: jax.Array, width: int, ridge: jax.Array) -> jax.Array:
    """The status of a whitening basis: a rank of `width`, or any but 0 with a ridge, and no NaN."""
    full = (rank == width) | ((ridge > 0) & (rank > 0))
    return fitinfo.or_non_finite(fitinfo.diagnose((~full, Status.RANK_DEFICIENT)), basis)


def whitening(within: jax.Array, y: jax.Array, number: ArrayLike, ridge: jax.Array | float) -> Whitening:
    """`V diag(s^2 + ridge mean(s^2))^(-1/2)` of the factor `U s V'` of `S_w / number`, its rank and what was added.

    `within` is the factor `[n, p]` of S_w of the samples y `[n, p]`, whose rounding is that of y. Directions that are
    no larger have size zero; without a ridge they are dropped: their columns are zero.
    """
    n, p = within.shape
    svd = spectral.thin_svd(jnp.pad(within, ((0, max(0, p - n)), (0, 0))))
    # The longest column is about the largest singular value of y in principal coordinates.
    largest = jnp.maximum(svd.values.max(), jnp.sqrt((y**2).sum(axis=0).max()))
    rank = (svd.values > nullspace.default_rtol(within) * largest).sum().astype(jnp.int32)
    squared = jnp.where(jnp.arange(p) < rank, svd.values**2, 0) / jnp.asarray(number, y.dtype)
    jitter = ridge * squared.sum() / p
    powers = squared + jitter
    usable = (jnp.arange(p) < rank) | ((jnp.asarray(ridge) > 0) & (powers > 0))
    scale = jnp.where(usable, jnp.where(usable, powers, 1) ** -0.5, 0)
    return Whitening(svd.right.T * scale[None, :], rank, jitter)


def _upper_triangular(whitener: jax.Array) -> jax.Array:
    """The upper triangular U with `U U' = W W'`: column j of it reads the first j axes only."""
    return jnp.linalg.qr(whitener[::-1].T, mode="r").T[::-1, ::-1]


def effective_rank(x: ArrayLike, groups: ArrayLike, *, num_groups: int, threshold: float) -> int:
    """How many eigenvalues of S_g exceed `threshold` times the largest: a rule for `pca_components`; on the host."""
    _, _, groups = grouping.check(x, groups, num_groups)
    checks.between("threshold", threshold, 0.0, 1.0, closed_high=False)
    x, groups = np.asarray(x, np.float64), np.asarray(groups)
    means = np.stack([x[groups == group].mean(axis=0) for group in range(num_groups)])
    values = np.linalg.svd(x - means[groups], compute_uv=False)
    return int((values**2 > threshold * values.max() ** 2).sum())
