"""One function for every member: vmapped, in blocks where memory forbids, on many devices by placement."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, pytree

__all__ = ["choose", "fit_members"]


@partial(jax.jit, static_argnames=("fit", "block_size"))
def fit_members(fit: Callable[..., Any], draws: Any, *data: Any, block_size: int | None = None) -> Any:
    """`fit(draw, *data)` for every member of `draws`, stacked: the results gain the leading axis m.

    `draws` is any pytree of arrays `[m, ...]`: rows, axes, keys, ridges. Write `fit` at the level of a module and pass
    the data as arguments: a function made anew for each call is compiled anew. At most `block_size` members are in
    flight, all by default. Shard the draws over members (`core.mesh`) and replicate the data: each device fits its own.
    """
    return map_members(lambda draw: fit(draw, *data), draws, block_size=block_size)


def map_members(fn: Callable[[Any], Any], members: Any, *, block_size: int | None = None) -> Any:
    """`vmap(fn)(members)` over the leading axis of a pytree, at most `block_size` members in flight.

    The members of one step lie far apart, the same number on each device of a mesh whose size divides the block.
    """
    m = pytree.num_members(members)
    checks.at_least("number of members", m, 1)
    if block_size is None or block_size >= m:
        return jax.vmap(fn)(members)
    num_steps = blocks.num_blocks(m, block_size)
    width = blocks.num_blocks(m, num_steps)
    # The last member stands in for the missing ones: it is a valid one, whatever the function does.
    place = jnp.minimum(jnp.arange(width * num_steps, dtype=jnp.int32), m - 1).reshape(width, num_steps).T
    mapped = jax.lax.map(jax.vmap(fn), pytree.member(members, place))

    def in_order(leaf: jax.Array) -> jax.Array:
        return jnp.swapaxes(leaf, 0, 1).reshape(width * num_steps, *leaf.shape[2:])[:m]

    return jax.tree.map(in_order, mapped)


def choose(criterion: ArrayLike, subsets: ArrayLike) -> jax.Array:
    """The candidate `[m]` with the largest criterion among those a member may try: `argmax F over T_t`.

    `criterion` `[m, k]` is what each member finds for all candidates, `subsets` `[m, rho]` what it may choose from. A
    candidate whose criterion is NaN cannot be compared: it is refused, and the choice is -1 under a transformation.
    """
    sizes = checks.shapes(criterion=(criterion, "m k"), subsets=(subsets, "m rho"))
    checks.at_least("number of candidates in subsets", sizes["rho"], 1)
    checks.floating(criterion=criterion)
    criterion, subsets = jnp.asarray(criterion), jnp.asarray(checks.fits_int32("subsets", subsets))
    found = jnp.take_along_axis(criterion, subsets, axis=1)
    lost = jnp.isnan(criterion).any(axis=1)
    if checks.is_concrete(lost) and (number := int(lost.sum())):
        raise ValueError(f"criterion must be free of NaN to choose by; {number} members found NaN for a candidate.")
    best = jnp.take_along_axis(subsets, jnp.argmax(found, axis=1)[:, None], axis=1)[:, 0]
    return jnp.where(lost, -1, best)


def check_columns(name: str, members: Any, x: ArrayLike) -> None:
    """Refuses rows x `[..., p]` that lack columns which members with axes read; concrete axes only."""
    axes = getattr(members, "axes", None)
    if axes is None or not checks.is_concrete(axes):
        return
    needed = int(np.asarray(axes).max(initial=-1)) + 1
    checks.at_least(f"number of columns of {name}", np.shape(x)[-1], needed, "the axes of the members")
