"""Inverse Cholesky factors of many small matrices at once, in plain array operations.

A batched LAPACK call on small matrices costs more in threads than in arithmetic, and several in parallel can deadlock
XLA's thread pool. An elimination of all matrices together, column by column, avoids both.

`inverse_factor` carries a `jit` of its own, so that a fit that calls it a dozen times traces it once.
"""

import jax
import jax.numpy as jnp

from jaxface.linalg.psd import symmetrize

__all__ = ["inverse", "inverse_factor", "log_det"]


@jax.jit
def inverse_factor(a: jax.Array) -> jax.Array:
    """Lower R `[k, d, d]` with `R A R' = I`, so `R'R = A^-1`, of positive definite A; NaN where one is not."""
    return jax.vmap(_inverse_factor)(a)


def inverse(a: jax.Array) -> jax.Array:
    """`A^-1` `[k, d, d]`."""
    root = inverse_factor(a)
    return root.mT @ root


def log_det(root: jax.Array) -> jax.Array:
    """`log |A|` `[k]` from `inverse_factor(A)`."""
    return -2 * jnp.log(jnp.diagonal(root, axis1=1, axis2=2)).sum(axis=1)


@jax.custom_jvp
def _inverse_factor(a: jax.Array) -> jax.Array:
    d = a.shape[0]
    if d == 0:  # latent variables of no dimension
        return a
    place = jnp.arange(d)

    def eliminate(j: jax.Array, work: jax.Array) -> jax.Array:
        """Step j of `A = L D L'`: below the diagonal, columns up to j hold L^-1 and later ones what is left of A."""
        row = work[j]
        ratio = jnp.where(place > j, work[:, j] / row[j], 0)
        kept = jnp.where((place > j)[:, None] & (place == j)[None, :], 0, work)
        return kept - ratio[:, None] * jnp.where(place == j, 1, row)[None, :]

    work = jax.lax.fori_loop(0, d, eliminate, symmetrize(a))
    unit = jnp.tril(work, -1) + jnp.eye(d, dtype=a.dtype)
    return unit / jnp.sqrt(jnp.diagonal(work))[:, None]


@_inverse_factor.defjvp
def _inverse_factor_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """`dR = -low(R dA R') R`, where low is the lower triangle with half of the diagonal."""
    root = _inverse_factor(*primals)
    inner = root @ symmetrize(tangents[0]) @ root.T
    return root, -(jnp.tril(inner) - jnp.diag(jnp.diagonal(inner)) / 2) @ root
