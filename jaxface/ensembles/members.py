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

    `draws` is any pytree of arrays `[m, ...]`: rows, axes, keys, ridges. Define `fit` at module level and pass the data
    as arguments: a new function for each call is compiled each time. At most `block_size` members are in
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
    # Pad with copies of the last member, which every function can handle.
    place = jnp.minimum(jnp.arange(width * num_steps, dtype=jnp.int32), m - 1).reshape(width, num_steps).T
    mapped = jax.lax.map(jax.vmap(fn), pytree.member(members, place))

    def in_order(leaf: jax.Array) -> jax.Array:
        return jnp.swapaxes(leaf, 0, 1).reshape(width * num_steps, *leaf.shape[2:])[:m]

    return jax.tree.map(in_order, mapped)


def choose(criterion: ArrayLike, subsets: ArrayLike) -> jax.Array:
    """The candidate `[m]` with the largest criterion among those a member may try: `argmax F over T_t`.

    `criterion` `[m, k]` has the value of each candidate for each member, `subsets` `[m, rho]` the candidates that a
    member may choose from. NaN in the criterion is refused; under a transformation the choice is -1 then.
    """
    sizes = checks.shapes(criterion=(criterion, "m k"), subsets=(subsets, "m rho"))
    checks.at_least("number of candidates in subsets", sizes["rho"], 1)
    checks.floating(criterion=criterion)
    criterion, subsets = jnp.asarray(criterion), jnp.asarray(checks.fits_int32("subsets", subsets))
    among = jnp.take_along_axis(criterion, subsets, axis=1)
    lost = jnp.isnan(criterion).any(axis=1)
    if checks.is_concrete(lost) and (number := int(lost.sum())):
        raise ValueError(f"criterion must be free of NaN to choose by; {number} members found NaN for a candidate.")
    best = jnp.take_along_axis(subsets, jnp.argmax(among, axis=1)[:, None], axis=1)[:, 0]
    return jnp.where(lost, -1, best)


def check_columns(name: str, members: Any, x: ArrayLike) -> None:
    """Refuses rows x `[..., p]` without the columns that the axes of the members name; concrete axes only."""
    axes = getattr(members, "axes", None)
    if axes is None or not checks.is_concrete(axes):
        return
    needed = int(np.asarray(axes).max(initial=-1)) + 1
    checks.at_least(f"number of columns of {name}", np.shape(x)[-1], needed, "the axes of the members")
