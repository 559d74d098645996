"""Kernel NP-PER: null-space projections of the images in feature space, (7) to (11).

A direction is `sum_i a_i phi(x_i)`, and the images enter by `y_i = (k(x_1, x_i), ..., k(x_n, x_i))`. The printed (8)
leaves the scale of a free, but the scale decides the metric. There are two choices:

- `A'A = I`, the literal form: linear NP-PER on the vectors y_i. With the linear kernel it is not the linear method;
- `A'KA = I`: orthonormal in feature space. With the linear kernel it is the linear method.

Both put every group on one point. There is always a null space, for the samples of a Gaussian kernel are independent.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.linalg import gram, psd, spectral, triangular
from jaxface.linalg.gram import Kernel
from jaxface.subspace import grouping, kernel_map, np_per
from jaxface.subspace.kernel_map import KernelMap

__all__ = ["fit", "fit_dependent"]


class Dual(NamedTuple):
    """Functions `sum_i a_i k(x_i, .)` that are constant on every group."""

    coefficients: jax.Array  # [n, R - 1], one function a column
    is_reliable: jax.Array  # bool [], False when K is singular to rounding or a group empty


def fit(
    kernel: Kernel, x: ArrayLike, groups: ArrayLike, *, num_groups: int, rkhs_orthonormal: bool = False
) -> tuple[KernelMap, FitInfo]:
    """Kernel NP-PER of x `[n, d]` with groups `[n]` and R - 1 outputs, by one Cholesky factor of K.

    A Gram matrix that is singular to rounding (duplicates, a wide bandwidth, float32) gives zeros and
    RANK_DEFICIENT: use a smaller bandwidth, float64, or `fit_dependent`. Differentiable in the kernel and x.
    """
    _, _, groups = grouping.check(x, groups, num_groups)
    return _fit(gram.as_kernel(kernel), x, groups, num_groups=num_groups, rkhs_orthonormal=rkhs_orthonormal)


@partial(jax.jit, static_argnames=("num_groups", "rkhs_orthonormal"))
def _fit(
    kernel: Kernel, x: jax.Array, groups: jax.Array, *, num_groups: int, rkhs_orthonormal: bool
) -> tuple[KernelMap, FitInfo]:
    k = kernel(x, x)
    functions = dual(k, groups, num_groups=num_groups, rkhs_orthonormal=rkhs_orthonormal)
    coefficients = spectral.fix_signs(jnp.where(functions.is_reliable, functions.coefficients, 0))
    status = kernel_map.status_of(kernel, x, k, fitinfo.diagnose((~functions.is_reliable, Status.RANK_DEFICIENT)))
    info = fitinfo.closed_form(dtype=k.dtype, status=status, rank=jnp.where(functions.is_reliable, num_groups - 1, -1))
    return kernel_map.centered_map(kernel, x, k, coefficients), info


def dual(k: jax.Array, groups: jax.Array, *, num_groups: int, rkhs_orthonormal: bool) -> Dual:
    """Coefficients with `K a` constant on every group, from a positive definite Gram matrix k `[n, n]`.

    `a = K^-1 Z c` for group indicators Z `[n, R]`. With `rkhs_orthonormal`, `1'a = 0` and `A'KA = I`: the images of
    these functions lie in the span of differences in feature space. Otherwise `1'K^-1 a = 0` and `A'A = I`: the same
    about the vectors `y_i = (k(x_1, x_i), ..., k(x_n, x_i))`. Differentiable in k: a QR of full rank has a derivative.
    """
    lower = jnp.linalg.cholesky(k)
    ones = jnp.ones((len(k), 1), k.dtype)
    indicators = jnp.concatenate([ones, jax.nn.one_hot(groups, num_groups, dtype=k.dtype)[:, 1:]], axis=1)
    half = triangular.solve(lower, indicators)
    if rkhs_orthonormal:
        coefficients = triangular.solve_transposed(lower, _beyond_first(half))
    else:
        coefficients = _beyond_first(triangular.solve_transposed(lower, half))
    is_definite = psd.is_definite(lower)
    return Dual(coefficients, is_definite & grouping.is_complete(groups, num_groups=num_groups))


def fit_dependent(
    kernel: Kernel,
    x: ArrayLike,
    groups: ArrayLike,
    *,
    num_groups: int,
    rkhs_orthonormal: bool = False,
    rtol: float | None = None,
) -> tuple[KernelMap, FitInfo]:
    """Kernel NP-PER of a Gram matrix of any rank, on the host in float64: x `[..., n, d]`, groups `[..., n]`.

    m is `info.rank`, at most R - 1, and later columns are zero. Leading axes are draws, fitted one after the other and
    stacked. The Gram matrix itself is computed in the type of x. Singular values below `rtol` times its largest are
    rounding; the default is `np_per.default_rtol`.
    """
    fit_one = partial(
        _fit_dependent,
        gram.as_kernel(kernel),
        num_groups=num_groups,
        rkhs_orthonormal=rkhs_orthonormal,
        rtol=rtol,
    )
    return grouping.fit_draws(fit_one, x, groups)


def _fit_dependent(
    kernel: Kernel,
    x: ArrayLike,
    groups: ArrayLike,
    *,
    num_groups: int,
    rkhs_orthonormal: bool,
    rtol: float | None,
) -> tuple[KernelMap, FitInfo]:
    n, _, groups = grouping.check(x, groups, num_groups)
    x = jnp.asarray(x)
    k = kernel(x, x)
    checks.finite(**{"the Gram matrix kernel(x, x)": k})
    rtol = np_per.default_rtol(n, k.dtype) if rtol is None else rtol
    find = _orthonormal_in_features if rkhs_orthonormal else np_per.null_directions
    directions = find(np.asarray(k, np.float64), np.asarray(groups), num_groups=num_groups, rtol=rtol)
    m = directions.shape[1]
    coefficients = spectral.fix_signs(jnp.asarray(np.pad(directions, ((0, 0), (0, num_groups - 1 - m))), k.dtype))
    status = kernel_map.status_of(kernel, x, k, Status.OK if m else Status.RANK_DEFICIENT)
    info = fitinfo.closed_form(dtype=k.dtype, status=status, rank=m)
    return kernel_map.centered_map(kernel, x, k, coefficients), info


def _beyond_first(a: jax.Array) -> jax.Array:
    """Orthonormal basis of the columns of `a` `[n, k]` after the first is taken out of them, `[n, k - 1]`."""
    return jnp.linalg.qr(a)[0][:, 1:]


def _orthonormal_in_features(k: np.ndarray, groups: np.ndarray, *, num_groups: int, rtol: float) -> np.ndarray:
    """`A = V l^-1/2 W`, with W of linear NP-PER on the coordinates `V l^1/2` of the samples, where `K = V l V'`."""
    values, vectors = np.linalg.eigh(k)
    is_above = values > rtol * values.max()
    root, vectors = np.sqrt(values[is_above]), vectors[:, is_above]
    # Eigenvalues are squares of the coordinates' singular values.
    return vectors / root @ np_per.null_directions(vectors * root, groups, num_groups=num_groups, rtol=rtol**0.5)
