"""Large products in the layout in which a CPU computes them fastest; on other devices they are plain products.

XLA folds a transposition into a product, which then reads a matrix by columns: `A'B` takes up to twice as long as `AB`,
in float64 above all. `transposed_copy(A) @ B` does not.
"""

import jax
import jax.numpy as jnp

__all__ = ["inner_products", "transposed_copy"]

_STRIPES = 4  # of a large matrix of inner products


def transposed_copy(a: jax.Array) -> jax.Array:
    """`A'` `[q, p]` of a `[p, q]`; on a CPU in memory of its own."""
    return jax.lax.platform_dependent(a, cpu=lambda a: jax.lax.optimization_barrier(a.T), default=lambda a: a.T)


def inner_products(x: jax.Array) -> jax.Array:
    """`X X'` `[n, n]` of x `[n, d]`; on a CPU only the blocks from the diagonal upwards, if there are many rows."""
    if x.shape[0] < 128 * _STRIPES:  # putting stripes together would take longer than so small a product
        return x @ x.T
    return jax.lax.platform_dependent(x, cpu=_in_stripes, default=lambda x: x @ x.T)


def _in_stripes(x: jax.Array) -> jax.Array:
    """`X X'` from five eighths of its entries."""
    n = x.shape[0]
    height = -(-n // _STRIPES)
    stripes = [jnp.pad(x[i : i + height] @ x[i:].T, ((0, 0), (i, 0))) for i in range(0, n, height)]
    upper = jnp.concatenate(stripes)
    return jnp.triu(upper) + jnp.triu(upper, 1).T
