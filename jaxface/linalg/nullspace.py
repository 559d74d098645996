"""Null spaces from thin factors.

The scatter `S = G' G` of a factor `G [n, d]` is never formed: its eigenvalues are squared singular values, and in
float32 they put the rank at 45 where 119 is right. Bases have a static width; columns beyond the numerical rank are
zero and the rank stands beside them.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxface.core import checks, guards, machine
from jaxface.linalg import psd, spectral

__all__ = ["default_rtol", "numerical_rank", "project_out", "qr_complement", "range_basis"]


class Complement(NamedTuple):
    """Orthonormal basis of a subspace; trailing columns are zero when the rank is below the width."""

    basis: jax.Array  # [d, r]
    rank: jax.Array  # int32 []
    is_reliable: jax.Array  # bool [], False when the function's check of the rank failed


def default_rtol(factor: jax.Array) -> float:
    """`max(n, d) eps`: the relative size below which a singular value of `[n, d]` is rounding."""
    return max(factor.shape) * machine.eps(factor.dtype)


def numerical_rank(values: jax.Array, *, rtol: float) -> jax.Array:
    """How many singular values `[r]` are above `rtol` times the largest."""
    return (values > rtol * values.max(initial=0)).sum().astype(jnp.int32)


def range_basis(factor: jax.Array, *, rtol: float | None = None) -> Complement:
    """Basis of the row space of `factor [n, d]`, width min(n, d), by thin SVD; any rank."""
    svd = spectral.thin_svd(factor)
    rank = numerical_rank(svd.values, rtol=default_rtol(factor) if rtol is None else rtol)
    keep = jnp.arange(svd.values.shape[0]) < rank
    return Complement(jnp.where(keep[None, :], svd.right.T, 0), rank, jnp.asarray(True))


def qr_complement(inner: jax.Array, outer: jax.Array) -> Complement:
    """Null space of `inner [a, d]` inside the row space of `[inner; outer]`, width b, by one thin QR.

    The last b columns of Q in `[inner' outer'] = Q R`. Exact and stable when the a + b rows are independent: when the
    least singular value of R is above `(a + b) eps` times its largest entry. Otherwise `is_reliable` is False.
    """
    guards.assert_equal(inner.shape[1], outer.shape[1])
    checks.floating(inner=inner, outer=outer)
    rows = jnp.concatenate([inner, outer])
    guards.assert_axis_dimension_gteq(rows.T, 0, rows.shape[0])
    reflectors, scales = jnp.linalg.qr(jax.lax.stop_gradient(rows).T, mode="raw")
    lower = jnp.tril(reflectors[:, : len(rows)])  # R'
    least = psd.least_eigenvalue(lower / jnp.abs(lower).max())
    independent = jnp.sqrt(least) > default_rtol(lower)
    # Only the last b columns of Q are formed, from the product of reflectors.
    width = outer.shape[0]
    last = jnp.eye(rows.shape[1], width, k=-inner.shape[0], dtype=rows.dtype)
    basis = spectral.fix_signs(jax.lax.linalg.ormqr(reflectors.T, scales, last))
    return Complement(basis, jnp.asarray(width, jnp.int32), independent)


def project_out(factor: jax.Array, x: jax.Array, *, rtol: float | None = None) -> jax.Array:
    """`P x` for x `[..., d]`, where P projects onto the null space of `factor [n, d]`; d x d is never formed.

    Differentiable in both arguments, also where singular values repeat. The rank is taken as locally constant.
    """
    return _project_out(factor, x, default_rtol(factor) if rtol is None else rtol)


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _project_out(factor: jax.Array, x: jax.Array, rtol: float) -> jax.Array:
    basis = range_basis(factor, rtol=rtol).basis
    return x - (x @ basis) @ basis.T


@_project_out.defjvp
def _project_out_jvp(
    rtol: float, primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """`d(P x) = P dx - P dG' G+' x - G+ dG P x`, with `P = I - G+ G`, at constant rank."""
    (factor, x), (d_factor, d_x) = primals, tangents
    pinv = jnp.linalg.pinv(factor, rtol=rtol)  # [d, n]; its own derivative is right, so higher orders are too
    out = _project_out(factor, x, rtol)
    moved = d_x - (x @ pinv) @ d_factor
    return out, moved - (moved @ pinv) @ factor - (out @ d_factor.T) @ pinv.T
