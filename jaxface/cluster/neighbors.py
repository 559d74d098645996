"""Exact nearest neighbours: one GEMM a block of probes, so the memory is bounded by the block and not by q x g."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxface.core import blocks, checks
from jaxface.linalg import distances


class Neighbors(NamedTuple):
    """The nearest gallery rows of every probe, nearest first; ties go to the lowest index."""

    indices: jax.Array  # int32 [q, k]
    squared: jax.Array  # [q, k], squared distances


def nearest(gallery: jax.Array, probes: jax.Array, *, num_neighbors: int, block_size: int = 1024) -> Neighbors:
    """The `num_neighbors` rows of gallery `[g, d]` nearest to each probe `[q, d]` in Euclidean distance."""
    sizes = checks.shapes(gallery=(gallery, "g d"), probes=(probes, "q d"))
    checks.floating(gallery=gallery, probes=probes)
    checks.finite(gallery=gallery, probes=probes)
    checks.at_least("num_neighbors", num_neighbors, 1)
    checks.at_most("num_neighbors", num_neighbors, sizes["g"], "the gallery's size")
    checks.at_least("block_size", block_size, 1)
    return _nearest(gallery, probes, num_neighbors=num_neighbors, block_size=block_size)


def classify(gallery: jax.Array, labels: jax.Array, probes: jax.Array, *, block_size: int = 1024) -> jax.Array:
    """Label `[q]` of the nearest gallery row of each probe."""
    checks.shapes(gallery=(gallery, "g d"), labels=(labels, "g"))
    found = nearest(gallery, probes, num_neighbors=1, block_size=block_size)
    return jnp.asarray(labels)[found.indices[:, 0]]


@partial(jax.jit, static_argnames=("num_neighbors", "block_size"))
def _nearest(gallery: jax.Array, probes: jax.Array, *, num_neighbors: int, block_size: int) -> Neighbors:
    def of_block(rows: jax.Array) -> Neighbors:
        squared = distances.squared_distance_matrix(rows, gallery)
        if num_neighbors == 1:
            index = distances.first_min(squared)
            return Neighbors(index[:, None], squared.min(axis=1, keepdims=True))
        negative, index = jax.lax.top_k(-squared, num_neighbors)
        return Neighbors(index.astype(jnp.int32), -negative)

    q = probes.shape[0]
    if q <= block_size:
        return of_block(probes)
    mapped = jax.lax.map(of_block, blocks.split(probes, block_size))
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:q], mapped)
