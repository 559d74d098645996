"""Rows in padded blocks: bounded memory with the same results whatever the block size.

A block is always full (the last one is padded), so one program serves any number of rows.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import checks

__all__ = ["each_row", "fold_rows", "map_rows", "num_blocks", "padded_batches", "split"]

S = TypeVar("S")


def num_blocks(num_rows: int, block_size: int) -> int:
    """How many blocks of `block_size` cover `num_rows`."""
    checks.at_least("block_size", block_size, 1)
    return -(-num_rows // block_size)


def split(x: jax.Array, block_size: int) -> jax.Array:
    """Rows `[n, ...]` as blocks `[b, block_size, ...]`, the last one filled with zeros."""
    count = num_blocks(x.shape[0], block_size)
    missing = count * block_size - x.shape[0]
    padded = jnp.pad(x, [(0, missing)] + [(0, 0)] * (x.ndim - 1))
    return padded.reshape(count, block_size, *x.shape[1:])


def each_row(fn: Callable[..., Any], params: Any, *rows: Any) -> Any:
    """`fn(params, row, ...)` for all rows at once: `each_row(transform, linear_map, x)` is `[n, r]`."""
    return jax.vmap(fn, in_axes=(None, *[0] * len(rows)))(params, *rows)


def map_rows(fn: Callable[[jax.Array], Any], x: jax.Array, *, block_size: int) -> Any:
    """`vmap(fn)(x)` over rows with at most `block_size` rows in flight; the results do not depend on it."""
    n = x.shape[0]
    if n <= block_size:
        return jax.vmap(fn)(x)
    mapped = jax.lax.map(jax.vmap(fn), split(x, block_size))
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:n], mapped)


def fold_rows(step: Callable[[S, Any, jax.Array], S], init: S, x: Any, *, block_size: int) -> S:
    """Folds `state = step(state, rows, valid [size])` over blocks of the rows of `x`, an array or tree of them.

    All blocks have one size, at most `block_size`. Nothing is copied or padded: the last block begins early enough to
    be full, and `valid` is False for the rows that it shares with the block before.
    """
    n = jax.tree.leaves(x)[0].shape[0]
    if n == 0:
        return init
    size = num_blocks(n, num_blocks(n, block_size))

    def body(state: S, first_new: jax.Array) -> tuple[S, None]:
        start = jnp.minimum(first_new, n - size)
        rows = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, size), x)
        return step(state, rows, start + jnp.arange(size, dtype=jnp.int32) >= first_new), None

    return jax.lax.scan(body, init, size * jnp.arange(num_blocks(n, size), dtype=jnp.int32))[0]


def padded_batches(x: np.ndarray, *, block_size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Host twin of `split`: yields `(rows [block_size, ...], valid [block_size])` for a loop of jitted calls."""
    checks.at_least("block_size", block_size, 1)
    for start in range(0, len(x), block_size):
        rows = x[start : start + block_size]
        valid = np.arange(block_size) < len(rows)
        missing = block_size - len(rows)
        yield np.pad(rows, [(0, missing)] + [(0, 0)] * (x.ndim - 1)) if missing else rows, valid
