"""NP-PER: null-space projections with partial equivalence relations, linear.

    W = P Q,  S_t = S_g + S_b,  P spans range(S_t),  Q spans null(P' S_g P),  m = rank S_t - rank S_g      (6), (11)

with the scatter within groups S_g and between them S_b. Every group falls on one point, different groups on different
points, and lengths in the subspace are those of the pixels. With groups = classes this is null-space LDA.

Three routes to one subspace, the same to rounding or, `fit_dual`, to 1e-8:

    fit             one thin QR of differences: any precision; samples affinely independent
    fit_dual        one Cholesky factor of inner products: three times as fast; float64, independent samples
    fit_dependent   two thin SVDs on the host in float64: samples of any rank, such as duplicates

With more images than dimensions no direction is null within all groups. `from_sums` takes the directions that come
nearest to it, from sums over groups that come in parts.

The first two never look at values, so they can be vmapped over draws of groups. Where their own check of the rank
fails they return zeros and RANK_DEFICIENT. They do not take another route, for a jitted and an eager fit would differ
then. All give R - 1 columns, zeros beyond the rank, so that results stack.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from jaxface.core import checks, fitinfo, machine
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.linalg import krylov, nullspace, products, psd, scaling, spectral, triangular
from jaxface.subspace import grouping
from jaxface.subspace.group_sums import GroupSums
from jaxface.subspace.grouping import Contrasts
from jaxface.subspace.linear_map import LinearMap

__all__ = ["fit", "fit_dependent", "fit_dual", "from_sums", "project_onto"]


def fit(x: ArrayLike, groups: ArrayLike, *, num_groups: int) -> tuple[LinearMap, FitInfo]:
    """The subspace of x `[n, d]` with groups `[n]`, by one thin QR of the differences within and between groups.

    Needs d > n - R, for otherwise no direction is null within all groups. A group may have one row: it adds nothing to
    S_g, and its mean counts in S_b. The basis is orthonormal with stopped gradients: derivatives with
    respect to the training data come from `project_onto` or `fit_dual`.
    """
    n, d, groups = grouping.check(x, groups, num_groups)
    _check_null_space(n, d, num_groups)
    return _fit(x, groups, num_groups=num_groups)


@partial(jax.jit, static_argnames="num_groups")
def _fit(x: jax.Array, groups: jax.Array, *, num_groups: int) -> tuple[LinearMap, FitInfo]:
    x = jax.lax.stop_gradient(x)
    inner, outer = _contrasts(x, groups, num_groups=num_groups)
    # If d < n - 1, the inner differences and any m outer ones span R^d.
    m = min(num_groups - 1, x.shape[1] - len(inner))
    complement = nullspace.qr_complement(inner, outer[:m])
    basis = jnp.pad(complement.basis, ((0, 0), (0, num_groups - 1 - m)))
    return _reported(x, basis, m, complement.is_reliable & grouping.is_complete(groups, num_groups=num_groups))


def fit_dual(x: ArrayLike, groups: ArrayLike, *, num_groups: int) -> tuple[LinearMap, FitInfo]:
    """The subspace of `fit` from inner products of differences, up to three times as fast; for float64.

    With differences D within groups and E between them, the rows of `E - E D' K^-1 D` span it, `K = DD'`. K squares the
    condition number of the samples, so D is projected out a second time where the first time left more than 1e-8 of it.
    The check of the rank allows condition numbers up to about 1e6 in float64; in float32 it refuses most faces. Needs
    d >= n - 1. Differentiable in x.
    """
    n, d, groups = grouping.check(x, groups, num_groups)
    checks.at_least("number of dimensions", d, n - 1, "the dual form needs independent samples; use np_per.fit")
    # A program of its own: within the program of the products XLA would recompute the differences for each product.
    contrasts = _contrasts(x, groups, num_groups=num_groups)
    return _fit_dual(x, groups, contrasts)


@partial(jax.jit, static_argnames="num_groups")
def _contrasts(x: jax.Array, groups: jax.Array, *, num_groups: int) -> Contrasts:
    """The contrasts of x, scaled so that their squares stay in range; a subspace does not depend on the scale."""
    return grouping.contrasts(scaling.shifted(x, -scaling.exponent(x)), groups, num_groups=num_groups)


@jax.jit
def _fit_dual(x: jax.Array, groups: jax.Array, contrasts: Contrasts) -> tuple[LinearMap, FitInfo]:
    inner, outer = contrasts
    lower = jnp.linalg.cholesky(products.inner_products(inner))
    root, rows = _projected(lower, inner, outer)
    again = _left_over(lower, inner, rows) > machine.eps(x.dtype) ** 0.5 / 4
    rows = jax.lax.cond(again, lambda once: _projected(lower, inner, once)[1], lambda once: once, rows)
    # An eigenvalue may be far below every pivot. The test is False for NaN, where a factorisation failed.
    rounding = len(x) * machine.eps(x.dtype) * ((lower**2).sum() + (root**2).sum())
    independent = (psd.least_eigenvalue(lower) > rounding) & (psd.least_eigenvalue(root) > rounding)
    num_groups = len(outer) + 1
    is_reliable = independent & grouping.is_complete(groups, num_groups=num_groups)
    return _reported(x, spectral.fix_signs(rows.T), num_groups - 1, is_reliable)


def _projected(lower: jax.Array, inner: jax.Array, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Rows without their part in the span of `inner`, LL' = inner inner', as `root` times orthonormal ones."""
    rows = rows - products.transposed_copy(triangular.solve_product(lower, inner @ rows.T)) @ inner
    root = jnp.linalg.cholesky(rows @ rows.T)
    # The inverse of the small factor: a product is faster than a triangular solve with as many columns as pixels.
    return root, triangular.inverse(root) @ rows


def _left_over(lower: jax.Array, inner: jax.Array, rows: jax.Array) -> jax.Array:
    """How far rows `[r, d]` are from orthonormal and from right angles to `inner`, LL' = inner inner': an estimate.

    The larger of `|L^-1 inner rows'|_F` and `|rows rows' - I|_F`.
    """

    def beside(vectors: jax.Array) -> jax.Array:
        return triangular.solve(lower, inner @ (rows.T @ vectors))

    def among(vectors: jax.Array) -> jax.Array:
        return rows @ (rows.T @ vectors) - vectors

    return jnp.stack([krylov.frobenius_norm(each, len(rows), dtype=rows.dtype) for each in (beside, among)]).max()


def fit_dependent(
    x: ArrayLike, groups: ArrayLike, *, num_groups: int, rtol: float | None = None
) -> tuple[LinearMap, FitInfo]:
    """The subspace of samples of any rank, on the host in float64: x `[..., n, d]`, groups `[..., n]`.

    m is `info.rank`, at most R - 1, and later columns are zero. Leading axes are draws, fitted one after the other
    and stacked. Singular values of the differences below `rtol` times the largest are rounding; see `default_rtol`.
    """
    return grouping.fit_draws(partial(_fit_dependent, num_groups=num_groups, rtol=rtol), x, groups)


def _fit_dependent(
    x: np.ndarray, groups: np.ndarray, *, num_groups: int, rtol: float | None
) -> tuple[LinearMap, FitInfo]:
    n, d, groups = grouping.check(x, groups, num_groups)
    _check_null_space(n, d, num_groups)
    rtol = default_rtol(n, x.dtype) if rtol is None else rtol
    checks.between("rtol", rtol, 0.0, 1.0, closed_high=False)
    directions = null_directions(x, groups, num_groups=num_groups, rtol=rtol)
    rank = directions.shape[1]
    dtype = jnp.result_type(x)
    basis = np.pad(directions, ((0, 0), (0, num_groups - 1 - rank)))
    info = fitinfo.closed_form(dtype=dtype, status=Status.OK if rank else Status.RANK_DEFICIENT, rank=rank)
    fitted = LinearMap(mean=jnp.asarray(x.mean(axis=0), dtype), basis=spectral.fix_signs(jnp.asarray(basis, dtype)))
    return fitted, info


def from_sums(sums: GroupSums, *, num_components: int, ridge: jax.Array | float) -> tuple[LinearMap, FitInfo]:
    """The directions in which groups vary least beside the whole: for more images than dimensions, from sums.

    Of all a with `a'(S_g / n + e I) a = 1` those with the largest `a'S_b a`, `e = ridge tr S_g / (n d)`; there are at
    most R - 1, which bounds `info.rank`, and later columns are zero. Where some directions are null within all groups,
    they come first as e vanishes, and `e` times the squared distances tends to that of `fit`. Gradients are stopped. A
    matrix `S_g / n + e I` that is singular to rounding gives zeros and RANK_DEFICIENT.
    """
    d = checks.shapes(within=(sums.within, "d d"), sum=(sums.sum, "d"), shift=(sums.shift, "d"))["d"]
    checks.at_least("num_components", num_components, 1)
    checks.at_most("num_components", num_components, d, "the number of dimensions")
    checks.between("ridge", ridge, 0.0, jnp.inf, closed_high=False)
    grouping.check_sums(sums)
    return _from_sums(sums, ridge, num_components=num_components)


@partial(jax.jit, static_argnames="num_components")
def _from_sums(sums: GroupSums, ridge: jax.Array | float, *, num_components: int) -> tuple[LinearMap, FitInfo]:
    sums = jax.lax.stop_gradient(sums)
    mean = sums.sum / sums.count
    within = sums.within / sums.count
    between = sums.second_moment / sums.count - jnp.outer(mean, mean) - within
    lower = psd.cholesky(within, ridge=ridge)
    is_definite = psd.is_definite(lower)
    directions = spectral.eigh(triangular.whiten(lower, between))[1][:, :num_components]
    basis = spectral.fix_signs(triangular.solve_transposed(lower, directions))
    rank = jnp.minimum(num_components, sums.num_groups - 1).astype(jnp.int32)
    basis = jnp.where(is_definite & (jnp.arange(num_components) < rank), basis, 0)
    status = fitinfo.or_non_finite(fitinfo.diagnose((~is_definite, Status.RANK_DEFICIENT)), sums)
    jitter = ridge * jnp.trace(within) / len(mean)
    info = fitinfo.closed_form(dtype=basis.dtype, status=status, rank=jnp.where(is_definite, rank, -1), jitter=jitter)
    return LinearMap(mean=sums.shift + mean, basis=basis), info


def default_rtol(n: int, dtype: DTypeLike) -> float:
    """`max(n eps, 10 e)`: rounding of n rows in float64 whose entries were already rounded to a relative e."""
    return max(n * machine.eps(np.float64), 10 * machine.eps(dtype))


def null_directions(x: np.ndarray, groups: np.ndarray, *, num_groups: int, rtol: float) -> np.ndarray:
    """Orthonormal basis `[d, m]` of null(S_g) inside range(S_t) of samples of any rank; on the host in float64."""
    first = np.unique(groups, return_index=True)[1]
    others = np.setdiff1d(np.arange(len(groups)), first)
    x = np.asarray(x, np.float64)
    # Differences, not deviations from means: the difference of equal rows is exactly zero.
    differences = np.concatenate([x[others] - x[first[groups[others]]], x[first[1:]] - x[first[0]]])
    left, values, right = np.linalg.svd(differences, full_matrices=False)
    total = int((values > rtol * values.max()).sum())
    inner = left[: len(others), :total] * values[:total]
    _, spread, axes = np.linalg.svd(np.pad(inner, ((0, num_groups - 1), (0, 0))), full_matrices=False)
    within = int((spread > rtol * values.max()).sum())
    # At most R - 1 columns: R - 1 rows fewer take away at most as many singular values above a threshold.
    return (axes[within:] @ right[:total]).T


def project_onto(
    x: ArrayLike, groups: ArrayLike, probes: ArrayLike, *, num_groups: int, rtol: float | None = None
) -> jax.Array:
    """`W W'(probe - mean)` of probes `[..., d]` for training data x `[n, d]`: differentiable in both.

    Distances between projections are those between coordinates of `fit`. The derivative is that of the projectors at
    constant rank: it is exact also where singular values coincide and a basis has no derivative. Costs two thin SVDs.

    Singular values of the differences below `rtol` times the largest count as rounding; the default is n eps. In
    float32, samples with a condition number of 1e4 and more lose directions that `fit` finds: project in float64, or
    give a smaller `rtol`.
    """
    n, d, groups = grouping.check(x, groups, num_groups)
    _check_null_space(n, d, num_groups)
    checks.floating(probes=probes)
    x, groups, probes = jnp.asarray(x), jnp.asarray(groups), jnp.asarray(probes)
    checks.shapes(x=(x, "n d"), probes=(probes, "... d"))
    inner, outer = _contrasts(x, groups, num_groups=num_groups)
    rtol = n * machine.eps(x.dtype) if rtol is None else rtol
    checks.between("rtol", rtol, 0.0, 1.0, closed_high=False)
    away = probes - jnp.broadcast_to(x.mean(axis=0), probes.shape)
    beyond = nullspace.project_out(jnp.concatenate([inner, outer]), away, rtol=rtol)
    inside = nullspace.project_out(inner, away, rtol=rtol) - beyond
    # A factor with NaN has no singular values to count, and nothing would be projected out.
    return jnp.where(fitinfo.all_finite(x), inside, jnp.nan)


def _check_null_space(n: int, d: int, num_groups: int) -> None:
    checks.at_least(
        "number of dimensions",
        d,
        n - num_groups + 1,
        f"m = 0: {n - num_groups} differences within groups leave no null direction; use rca.fit or kernel_np_per.fit",
    )


def _reported(x: jax.Array, basis: jax.Array, m: int, is_reliable: jax.Array) -> tuple[LinearMap, FitInfo]:
    """The map and its report; without a reliable rank every column is zero and the rank unknown."""
    status = fitinfo.or_non_finite(fitinfo.diagnose((~is_reliable, Status.RANK_DEFICIENT)), x)
    info = fitinfo.closed_form(dtype=basis.dtype, status=status, rank=jnp.where(is_reliable, m, -1))
    return LinearMap(mean=x.mean(axis=0), basis=jnp.where(is_reliable, basis, 0)), info
