"""The rows of a gallery a part at a time: of a device, of a NumPy array or memory map, or of the shards of an array."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import prefetch
from jaxface.core.search_tiles import Part

__all__ = []

ROWS_READ = 65_536  # of the host at a time


def parts(gallery: Any) -> Iterator[Part]:
    """All rows in order. Of a memory map the next part is read while the device works on this one."""
    if isinstance(gallery, jax.Array):
        yield from (Part(data, first, len(data)) for first, data in _shards(gallery))
        return
    g = len(gallery)
    size = min(g, ROWS_READ)

    def read(first: int) -> Part:
        rows = np.ascontiguousarray(gallery[first : first + size])
        missing = size - len(rows)
        return Part(jnp.asarray(np.pad(rows, [(0, missing), (0, 0)]) if missing else rows), first, len(rows))

    yield from prefetch.ahead(read, range(0, g, size))


def rows_at(gallery: Any, rows: np.ndarray) -> np.ndarray | jax.Array:
    """The vectors `[..., d]` of some rows `[...]`; the first row in the place of -1."""
    rows = np.maximum(rows, 0)
    if not isinstance(gallery, jax.Array):
        return np.asarray(gallery[rows])
    taken = gallery[jnp.asarray(rows)]
    return np.asarray(taken) if len(gallery.devices()) > 1 else taken


def _shards(gallery: jax.Array) -> list[tuple[int, jax.Array]]:
    """First row and rows of each shard."""
    if not gallery.is_fully_addressable:
        raise ValueError(
            "gallery must lie on devices of this process; some rows are on devices of others. Search the rows of each "
            "process by themselves, and sort what they found."
        )
    shards = [shard for shard in gallery.addressable_shards if shard.replica_id == 0]
    if any(shard.data.shape[1] != gallery.shape[1] for shard in shards):
        raise ValueError("gallery must be cut by rows; its columns are cut. Place it by jaxface.core.mesh.shard.")
    return sorted(((shard.index[0].start or 0, shard.data) for shard in shards), key=lambda each: each[0])
