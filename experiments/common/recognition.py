"""How well a representation recognises: nearest-neighbour error of one split, made to be vmapped over splits."""

import dataclasses

import jax
import jax.numpy as jnp

from jaxface.cluster import neighbors
from jaxface.core.blocks import each_row
from jaxface.linalg import distances
from jaxface.subspace import KernelMap, LinearMap, transform


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


def leading(linear_map: LinearMap, width: jax.Array) -> LinearMap:
    """The map that keeps the first `width` columns and zeros the rest: widths can then be vmapped."""
    keep = jnp.arange(linear_map.basis.shape[1]) < width
    return LinearMap(mean=linear_map.mean, basis=jnp.where(keep[None, :], linear_map.basis, 0))


def leading_of_kernel(kernel_map: KernelMap, width: jax.Array) -> KernelMap:
    """`leading` of a map of kernel values."""
    keep = jnp.arange(kernel_map.coefficients.shape[1]) < width
    return dataclasses.replace(
        kernel_map,
        coefficients=jnp.where(keep[None, :], kernel_map.coefficients, 0),
        offset=jnp.where(keep, kernel_map.offset, 0),
    )
