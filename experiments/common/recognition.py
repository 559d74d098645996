"""How well a representation recognises: nearest-neighbour error of one split, made to be vmapped over splits."""

import jax

from jaxface.cluster import neighbors
from jaxface.core.blocks import each_row
from jaxface.linalg import distances
from jaxface.subspace import LinearMap, transform


def error(gallery: jax.Array, gallery_ids: jax.Array, probes: jax.Array, probe_ids: jax.Array) -> jax.Array:
    """Share of probes `[q, d]` whose nearest gallery row `[g, d]` shows somebody else."""
    found = neighbors.classify(gallery, gallery_ids, probes)
    return (found != probe_ids).mean(dtype=gallery.dtype)


def error_of_map(
    linear_map: LinearMap, x: jax.Array, ids: jax.Array, gallery: jax.Array, probes: jax.Array
) -> jax.Array:
    """`error` after a linear map, for index arrays into x `[n, d]`."""
    z = each_row(transform, linear_map, x)
    return error(z[gallery], ids[gallery], z[probes], ids[probes])


def cosine_error(x: jax.Array, ids: jax.Array, gallery: jax.Array, probes: jax.Array) -> jax.Array:
    """`error` by the largest cosine instead of the smallest distance."""
    directions = distances.normalize(x)
    return error(directions[gallery], ids[gallery], directions[probes], ids[probes])
