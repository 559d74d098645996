"""Placement: the only file that names devices. Sharding is where arrays live, not how functions are written.

Members of an ensemble shard over `member`, samples and gallery rows over `data`; the same jitted functions run on
one device or many. The axes are `AxisType.Auto`: XLA inserts the sums, while explicit axes would refuse `x.T @ x`.
"""

from functools import partial
from typing import TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from jaxface.core import checks, processes

__all__ = ["create", "from_local_rows", "replicate", "shard", "sum_over_processes"]

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
    _gather_processes(mesh)
    return jax.device_put(tree, NamedSharding(mesh, PartitionSpec(axis)))


def replicate(tree: T, mesh: Mesh) -> T:
    """Places a whole copy of every leaf on each device."""
    _gather_processes(mesh)
    return jax.device_put(tree, NamedSharding(mesh, PartitionSpec()))


def from_local_rows(rows: np.ndarray, mesh: Mesh) -> jax.Array:
    """One global array whose leading axis is cut over the mesh, from the rows that this process holds."""
    (axis,) = mesh.axis_names
    return jax.make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec(axis)), rows)


def sum_over_processes(tree: T) -> T:
    """The sum of every array over all processes, the same in each of them; with one process, the tree itself.

    Every process must call this, with arrays of the same shapes. One leaf after the other, so that a process holds two
    copies of one leaf and not of all. A process waits for the others as long as they live.
    """
    if jax.process_count() == 1:
        return tree
    first = {device.process_index: device for device in reversed(jax.devices())}
    devices = np.asarray([first[process] for process in sorted(first)])
    mesh = Mesh(devices, ("process",), axis_types=(AxisType.Auto,))
    _gather_processes(mesh)
    everywhere = NamedSharding(mesh, PartitionSpec())

    def summed(leaf: jax.Array) -> jax.Array:
        total = _sum_of_rows(from_local_rows(np.asarray(leaf)[None], mesh), everywhere)
        return total.addressable_data(0)

    return jax.tree.map(summed, tree)


def _gather_processes(mesh: Mesh) -> None:
    """Waits for the processes of a mesh over all of them: on CPU, a collective gives up on one 30 seconds late."""
    if len({device.process_index for device in mesh.devices.flat}) == processes.count():
        processes.rendezvous()


@partial(jax.jit, static_argnames="sharding")
def _sum_of_rows(x: jax.Array, sharding: NamedSharding) -> jax.Array:
    return jax.lax.with_sharding_constraint(x.sum(axis=0), sharding)
