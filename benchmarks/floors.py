"""The indispensable work of rows: bare products, factorisations and passes, in JAX with the threads of our side.

A floor is no algorithm. It does, with numbers of the right sizes and type, what every algorithm for the same result
must do, and leaves out all else: reading into shape, repairs, checks, reports. Nothing is faster in exact arithmetic of
that type by the same kernels; a row far above its floor spends its time elsewhere.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.linalg

from jaxface.linalg import products

_TILE = 2048
_ROWS = 1000  # of a block


@jax.jit
def _largest(a: jax.Array, b: jax.Array) -> jax.Array:
    return (a @ b.T).max()


def pairs(u: jax.Array) -> jax.Array:
    """The inner products of all pairs of rows of u `[n, d]`, each pair once, looked at and not kept."""
    n = -len(u) % _TILE
    tiles = jnp.pad(u, ((0, n), (0, 0))).reshape(-1, _TILE, u.shape[1])
    found = [_largest(tiles[i], tiles[j]) for i in range(len(tiles)) for j in range(i, len(tiles))]
    return jnp.stack(found).max()


@jax.jit
def moment(x: jax.Array) -> jax.Array:
    """`X'X` `[d, d]` of x `[n, d]`."""
    return x.T @ x


@partial(jax.jit, static_argnames="num_iters")
def em_iterations(rows: jax.Array, start: jax.Array, *, num_iters: int) -> jax.Array:
    """In each iteration the eigenvectors of a `[d, d]` matrix and three products with rows `[r, d]` of an E-step."""

    def step(basis: jax.Array, _: None) -> tuple[jax.Array, None]:
        z = basis @ rows.T
        scatter, cross = z @ z.T, z @ rows
        return jnp.linalg.eigh(scatter)[1] + 1e-12 * cross, None

    return jax.lax.scan(step, start, None, length=num_iters)[0]


@partial(jax.jit, static_argnames="num_directions")
def null_space(x: jax.Array, *, num_directions: int) -> jax.Array:
    """The Gram matrix of x `[n, d]`, its Cholesky factor, and a combination of the rows for each direction."""
    gram = products.inner_products(x)
    lower = jnp.linalg.cholesky(gram + jnp.trace(gram) * jnp.eye(len(x), dtype=x.dtype))
    return lower[-num_directions:] @ x


@partial(jax.jit, static_argnames="num_directions")
def kernel_null_space(x: jax.Array, *, num_directions: int) -> jax.Array:
    """The kernel matrix of x `[n, d]`, its Cholesky factor, and a column of coefficients for each direction."""
    kernel = jnp.exp(-jnp.abs(x @ x.T))
    lower = jnp.linalg.cholesky(kernel + len(x) * jnp.eye(len(x), dtype=x.dtype))
    return jax.scipy.linalg.solve_triangular(lower, kernel[:, :num_directions], lower=True)


@partial(jax.jit, static_argnames="num_axes")
def leading_axes(x: jax.Array, *, num_axes: int) -> jax.Array:
    """Two products of x `[n, d]` with as many columns as there are axes, and a factorisation of that size."""
    basis = x.T @ (x @ jnp.ones((x.shape[1], num_axes), x.dtype))
    inner = basis.T @ basis
    return basis @ jnp.linalg.eigh(inner)[1]


@partial(jax.jit, static_argnames=("num_draws", "num_directions"))
def drawn_null_spaces(x: jax.Array, *, num_draws: int, num_directions: int) -> jax.Array:
    """The Gram matrix of x `[n, d]` and the bases `[m, d, g]` of all draws in pixels, which are written."""
    lower = jnp.linalg.cholesky(x @ x.T + jnp.eye(len(x), dtype=x.dtype) * (x**2).sum())
    coefficients = jnp.tile(lower[:, :num_directions], (1, num_draws))
    return x.T @ coefficients


@partial(jax.jit, static_argnames="num_classes")
def committee(y: jax.Array, probes: jax.Array, axes: jax.Array, *, num_classes: int) -> jax.Array:
    """The scatter once; of each member the Cholesky factor and the log posteriors `[m, n, c]`, which are written."""
    whole = y.T @ y + len(y) * jnp.eye(y.shape[1], dtype=y.dtype)

    def member(rows: jax.Array) -> jax.Array:
        lower = jnp.linalg.cholesky(whole[rows[:, None], rows[None, :]])
        return jax.nn.log_softmax(probes[:, rows] @ (lower @ y[:num_classes, rows].T), axis=1)

    return jax.lax.map(member, axes)


def mixture_products(model: Any, v: jax.Array, latent_dim: int) -> jax.Array:
    """Products of all samples `[s, n]` with the loadings of every component, there and back."""
    return _mixture_products(v, jnp.zeros((v.shape[1], len(model.log_weights) * latent_dim), v.dtype))


@jax.jit
def _mixture_products(v: jax.Array, loadings: jax.Array) -> jax.Array:
    """In blocks of rows: writing all products down would take longer than making them."""

    def add(total: jax.Array, rows: jax.Array) -> tuple[jax.Array, None]:
        return total + products.transposed_copy(rows) @ (rows @ loadings + 1), None

    rows = v[: len(v) // _ROWS * _ROWS].reshape(-1, _ROWS, v.shape[1])
    return jax.lax.scan(add, jnp.zeros_like(loadings), rows)[0]


@jax.jit
def fisher_products(x: jax.Array, weights: jax.Array) -> jax.Array:
    """The two products of Fisher vectors of x `[i, s, n]` with weights `[2 n, k]`: densities, and weighted moments."""

    def image(rows: jax.Array) -> jax.Array:
        both = jnp.concatenate([rows, rows * rows], axis=-1)
        return (both @ weights).T @ both

    return jax.lax.map(image, x, batch_size=8)


@jax.jit
def dense_codes(x: jax.Array, atoms: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Correlations of x `[n, d]` with atoms `[k, d]`, and the Gram matrix of the atoms."""
    return x @ atoms.T, atoms @ atoms.T
