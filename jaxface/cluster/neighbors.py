"""Exact nearest neighbours: one GEMM for each block of probes; a large gallery is searched in tiles, by `core.search`.

The GEMM gives approximate distances and picks candidates; exact differences rank them. Where the rounding bound of the
GEMM cannot exclude that another row is nearer, the probe is compared with every row.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, machine, search
from jaxface.linalg import distances, scaling

__all__ = ["classify", "nearest"]

_SPARE = 4  # candidates beyond num_neighbors
_AT_ONCE = 32_768  # rows of a gallery; up to here one product is quicker than a search in tiles


class Neighbors(NamedTuple):
    """The nearest gallery rows of each probe, nearest first; ties go to the lowest index.

    One row a probe: these are lists, not a matrix of scores `[gallery, probes]`.
    """

    indices: jax.Array  # int32 [q, k]
    squared: jax.Array  # [q, k], squared distances


def nearest(gallery: ArrayLike, probes: ArrayLike, *, num_neighbors: int, block_size: int = 1024) -> Neighbors:
    """The `num_neighbors` rows of gallery `[g, d]` nearest to each probe `[q, d]` in Euclidean distance.

    The result is one list for each probe, `[q, num_neighbors]`. NaN is refused; inside a transformation, where values
    are unknown, a probe with NaN has indices -1 and distances NaN, and a gallery with NaN gives them to every probe.
    """
    sizes = checks.samples(gallery=(gallery, "g d"), probes=(probes, "q d"))
    checks.at_least("number of probes", sizes["q"], 1)
    checks.at_least("num_neighbors", num_neighbors, 1)
    checks.at_most("num_neighbors", num_neighbors, sizes["g"], "the gallery's size")
    checks.at_least("block_size", block_size, 1)
    return _nearest(jnp.asarray(gallery), jnp.asarray(probes), num_neighbors=num_neighbors, block_size=block_size)


def classify(gallery: ArrayLike, labels: ArrayLike, probes: ArrayLike, *, block_size: int = 1024) -> jax.Array:
    """Label `[q]` of the nearest gallery row of each probe; -1 for NaN inside a transformation, as in `nearest`."""
    checks.shapes(gallery=(gallery, "g d"), labels=(labels, "g"))
    labels = checks.fits_int32("labels", labels)
    nearest_row = nearest(gallery, probes, num_neighbors=1, block_size=block_size).indices[:, 0]
    return jnp.where(nearest_row < 0, -1, jnp.asarray(labels)[nearest_row])


@partial(jax.jit, static_argnames=("num_neighbors", "block_size"))
def _nearest(gallery: jax.Array, probes: jax.Array, *, num_neighbors: int, block_size: int) -> Neighbors:
    power = scaling.squarable_exponent(gallery, probes)
    gallery, probes = scaling.shifted(gallery, -power), scaling.shifted(probes, -power)
    is_lost = ~jnp.isfinite(gallery).all()

    def of_block(rows: jax.Array) -> Neighbors:
        indices = _indices(*jax.lax.stop_gradient((gallery, rows)), num_neighbors=num_neighbors)
        squared = scaling.shifted(_squared(gallery, rows, indices), 2 * power)
        unknown = (is_lost | ~jnp.isfinite(rows).all(axis=1))[:, None]
        return Neighbors(jnp.where(unknown, -1, indices), jnp.where(unknown, jnp.nan, squared))

    q = probes.shape[0]
    if q <= block_size:
        return of_block(probes)
    mapped = jax.lax.map(of_block, blocks.split(probes, block_size))
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:q], mapped)


def _indices(gallery: jax.Array, probes: jax.Array, *, num_neighbors: int) -> jax.Array:
    """The nearest rows `[q, k]`: from the candidates, or from all rows where the candidates may lack one."""
    width = min(gallery.shape[0], num_neighbors + _SPARE)
    if gallery.shape[0] <= _AT_ONCE:
        negative, candidates = jax.lax.top_k(-distances.ordinary_squared_distances(probes, gallery), width)
    else:
        candidates, negative = search.top_k(_estimates, gallery.mean(axis=0), gallery, probes, num_best=width)
    candidates = jnp.sort(candidates, axis=1)  # ties go to the lowest index
    squared = _squared(gallery, probes, candidates)
    nearest, order = jax.lax.top_k(-squared, num_neighbors)
    indices = jnp.take_along_axis(candidates, order, axis=1).astype(jnp.int32)
    if width == gallery.shape[0]:
        return indices
    # Every row left out is at least as far as the farthest candidate, up to rounding in both and in the two estimates
    # that a search makes. Minima instead of the last column of a top_k: XLA would sort whole rows for that column.
    unsettled = -nearest.min(axis=1) >= -negative.min(axis=1) - 4 * _error(gallery, probes)

    def compare(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        indices, unsettled = state
        probe = jnp.argmax(unsettled)
        negative = -((gallery - probes[probe][None, :]) ** 2).sum(axis=1)
        exact = jax.lax.top_k(negative, num_neighbors)[1].astype(jnp.int32)
        return indices.at[probe].set(exact), unsettled.at[probe].set(False)

    return jax.lax.while_loop(lambda state: state[1].any(), compare, (indices, unsettled))[0]


def _estimates(center: jax.Array, gallery: jax.Array, probes: jax.Array) -> jax.Array:
    """Negative squared distances `[g, q]` from products of vectors about a center."""
    gallery, probes = gallery - center[None, :], probes - center[None, :]
    lengths = (gallery**2).sum(axis=1)[:, None] + (probes**2).sum(axis=1)[None, :]
    return -jnp.maximum(lengths - 2 * gallery @ probes.T, 0)


def _squared(gallery: jax.Array, probes: jax.Array, indices: jax.Array) -> jax.Array:
    """Squared distances `[q, k]` of probes and gallery rows from their differences, one `[q, d]` at a time."""
    columns = jax.lax.map(lambda rows: ((probes - gallery[rows]) ** 2).sum(axis=1), indices.T)
    return columns.T


def _error(gallery: jax.Array, probes: jax.Array) -> jax.Array:
    """Bound `[q]` on the rounding of squared distances from products: d roundings of the squares."""
    center = gallery.mean(axis=0)[None, :]
    largest = ((gallery - center) ** 2).sum(axis=1).max()
    lengths = ((probes - center) ** 2).sum(axis=1)
    return (gallery.shape[1] + 8) * machine.eps(probes.dtype) * (lengths + largest)
