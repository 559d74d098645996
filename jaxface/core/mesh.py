"""Placement: the only file that names devices. Sharding is where arrays live, not how functions are written.

Members of an ensemble shard over `member`, samples and gallery rows over `data`; the same jitted functions run on
one device or many. The axes are `AxisType.Auto`: XLA inserts the sums, while explicit axes would refuse `x.T @ x`.
"""

from typing import TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jaxface.core import checks

__all__ = ["create", "from_local_rows", "replicate", "shard"]

T = TypeVar("T")


def create(axis: str, *, num_devices: int | None = None) -> Mesh:
    """A mesh with the one axis `axis` over the first `num_devices` devices of all processes (default: all)."""
    devices = jax.devices()
    count = len(devices) if num_devices is None else num_devices
    checks.at_least("num_devices", count, 1)
    checks.at_most("num_devices", count, len(devices), "the devices that JAX sees")
    return Mesh(np.asarray(devices[:count]), (axis,), axis_types=(AxisType.Auto,))


def shard(tree: T, mesh: Mesh) -> T:
    """Places every leaf with its leading axis cut over the mesh; the axis must divide by its size."""
    (axis,) = mesh.axis_names
    for leaf in jax.tree.leaves(tree):
        if leaf.ndim == 0 or leaf.shape[0] % mesh.size:
            raise ValueError(
                f"every leaf needs a leading axis that divides by the {mesh.size} devices of {axis!r}; "
                f"got shape {leaf.shape}. Pad the rows with jaxface.core.blocks or take fewer devices."
            )
    return jax.device_put(tree, NamedSharding(mesh, PartitionSpec(axis)))


def replicate(tree: T, mesh: Mesh) -> T:
    """Places a whole copy of every leaf on each device."""
    return jax.device_put(tree, NamedSharding(mesh, PartitionSpec()))


def from_local_rows(rows: np.ndarray, mesh: Mesh) -> jax.Array:
    """One global array whose leading axis is cut over the mesh, from the rows that this process holds."""
    (axis,) = mesh.axis_names
    return jax.make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec(axis)), rows)
