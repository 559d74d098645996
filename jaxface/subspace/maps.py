"""Maps of either kind, linear or of kernel values: one name for what both can do, chosen by the type of the map."""

import jax

from jaxface.subspace import kernel_map, linear_map
from jaxface.subspace.kernel_map import KernelMap
from jaxface.subspace.linear_map import LinearMap

__all__ = ["leading", "transform"]

Map = LinearMap | KernelMap


def transform(fitted: Map, x: jax.Array) -> jax.Array:
    """The coordinates `[r]` of one image `[d]`: `W'(x - mean)`, or `A'k(train, x) + offset` of a kernel map."""
    return kernel_map.transform(fitted, x) if isinstance(fitted, KernelMap) else linear_map.transform(fitted, x)


def leading(fitted: Map, width: jax.Array | int) -> Map:
    """The map that keeps the first `width` coordinates and zeros the rest.

    The shape stays, so one program serves every width, and `vmap` tries many.
    """
    return kernel_map.leading(fitted, width) if isinstance(fitted, KernelMap) else linear_map.leading(fitted, width)
