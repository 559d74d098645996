"""Large products in the layout in which a CPU computes them fastest; on other devices they are plain products.

XLA folds a transposition into a product, which then reads a matrix by columns: `A'B` takes up to twice as long as `AB`,
in float64 above all. `transposed_copy(A) @ B` does not.
"""

import jax
import jax.numpy as jnp

__all__ = ["inner_products", "transposed_copy"]

_STRIPES = 4  # of a large matrix of inner products


def transposed_copy(a: jax.Array) -> jax.Array:
    """`A'` `[q, p]` of a `[p, q]`, in memory of its own."""
    return jax.lax.optimization_barrier(a.T)


def inner_products(x: jax.Array) -> jax.Array:
    """`X X'` `[n, n]` of x `[n, d]`; of many rows only the blocks from the diagonal upwards, five eighths of them."""
    n = x.shape[0]
    if n < 128 * _STRIPES:  # putting stripes together would take longer than so small a product
        return x @ x.T
    height = -(-n // _STRIPES)
    stripes = [jnp.pad(x[i : i + height] @ x[i:].T, ((0, 0), (i, 0))) for i in range(0, n, height)]
    upper = jnp.concatenate(stripes)
    return jnp.triu(upper) + jnp.triu(upper, 1).T
