"""Samples that lack some views, grouped by the views that they have.

A missing view is left out of the sums of module `views`. Samples with the same views share one set of factors, and
every sum over them is a wide product. The entries of a missing view are never read and may be NaN. Nothing is imputed.

Samples without views missing are one group. Given the views that are present, which views are missing must not depend
on their values: a detector that fails on profiles can bias the means.
"""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, messages
from jaxface.core.pytree import params, static
from jaxface.mixtures.views import Mixture, checked, names

__all__ = []

Pattern = tuple[int, ...]  # the places of the views that a sample has, ascending


class Blocks(NamedTuple):
    """Samples in blocks, their views side by side."""

    values: jax.Array  # [b, s, n]
    sample_weights: jax.Array  # [b, s], 0 for padding


@params
class Samples:
    """Samples in groups, each with the values of the views that its samples have."""

    patterns: tuple[Pattern, ...] = static()
    groups: tuple[Blocks, ...]  # one for each pattern


@params
class Presence:
    """Which views samples have, when the patterns are known and the samples of each are not, as inside `vmap`."""

    mask: jax.Array | np.ndarray  # bool [s, v]
    patterns: tuple[Pattern, ...] = static()


def to_blocks(
    model: Mixture,
    views: tuple[ArrayLike, ...],
    sample_weights: ArrayLike | None,
    block_size: int = 1024,
    *,
    present: ArrayLike | Presence | None = None,
    with_nan: bool = False,
) -> Samples:
    """Checked samples in as few blocks of nearly equal size as `block_size` allows; NaN is refused unless `with_nan`.

    `present` bool `[s, v]` says which views a sample has; None: all of them. A block takes every b-th sample, so that
    each block of sharded samples is sharded, too.
    """
    arrays = checked(model, views, "s")
    size = arrays[0].shape[0]
    checks.at_least("the number of samples", size, 1)
    if sample_weights is not None:
        checks.shapes(x=(arrays[0], "s n"), sample_weights=(sample_weights, "s"))
        checks.between("sample_weights", sample_weights, 0.0, jnp.inf, closed_high=False)
        sample_weights = jnp.asarray(sample_weights, jnp.result_type(*arrays))
        checks.positive("the sum of sample_weights", sample_weights.sum())
    presence = None if present is None else checked_presence(present, (size, len(views)), sample_weights)
    if not with_nan:
        finite_where_counted(arrays, sample_weights, None if presence is None else presence.mask)
    return _grouped([jnp.asarray(view) for view in arrays], sample_weights, presence, block_size)


def checked_presence(
    present: ArrayLike | Presence, shape: tuple[int, ...], sample_weights: ArrayLike | None
) -> Presence:
    """The mask with the patterns in it, or with all patterns where its values are not known.

    Refuses a mask of another shape or type, and a sample without a view unless its weight is 0.
    """
    if isinstance(present, Presence):
        return present
    mask = present if isinstance(present, jax.Array) else np.asarray(present)
    if mask.dtype != bool or mask.shape != shape:
        raise ValueError(
            f"present must be Boolean of shape {shape}, True where a sample has the view; got "
            f"{messages.describe(mask)}."
        )
    return Presence(mask=mask, patterns=patterns_of(mask, sample_weights))


def patterns_of(mask: Any, sample_weights: ArrayLike | None = None) -> tuple[Pattern, ...]:
    """The patterns in a mask `[..., v]`, the one with most views first; every pattern where the mask is a tracer."""
    num_views = mask.shape[-1]
    if not checks.is_concrete(mask):
        each = itertools.product((True, False), repeat=num_views)
        return tuple(tuple(np.flatnonzero(row).tolist()) for row in each if any(row))
    rows = np.asarray(mask).reshape(-1, num_views)
    if not rows.any(axis=1).all() and (sample_weights is None or checks.is_concrete(sample_weights)):
        counted = np.ones(len(rows)) if sample_weights is None else np.asarray(sample_weights).reshape(-1)
        without = np.flatnonzero(~rows.any(axis=1) & (counted > 0))
        if without.size:
            first = ", ".join(str(at) for at in np.unravel_index(without[0], mask.shape[:-1]))
            raise ValueError(
                f"every sample must have a view; {without.size} have none, the first is sample {first}. "
                "Leave them out, or give them a weight of 0."
            )
    different = sorted({tuple(np.flatnonzero(row).tolist()) for row in np.unique(rows, axis=0)})
    return tuple(sorted((pattern for pattern in different if pattern), key=len, reverse=True))


def every_view_occurs(present: ArrayLike | None, sample_weights: ArrayLike | None = None) -> None:
    """Refuses a concrete mask `[s, v]` with a view that no sample of a weight above 0 has: nothing would fit it."""
    if present is None or not (checks.is_concrete(present) and checks.is_concrete(sample_weights)):
        return
    mask = np.asarray(present)
    if sample_weights is not None:
        mask = mask & (np.asarray(sample_weights) > 0)[:, None]
    occurs = np.any(mask, axis=0)
    if not occurs.all():
        name = names(len(occurs))[int(occurs.argmin())][0]
        raise ValueError(
            f"{name} is missing in every sample; nothing can be said of it. Leave this view out of the model and the "
            "data, or add samples that have it."
        )


def finite_where_counted(
    views: Sequence[ArrayLike], sample_weights: ArrayLike | None, present: Any | None = None
) -> None:
    """Checks that views `[..., n]` are finite wherever they are present and their weight `[...]` is above 0."""
    if not checks.is_concrete(present):
        return
    for v, ((name, _), view) in enumerate(zip(names(len(views)), views, strict=True)):
        counted = None if present is None else np.asarray(present)[..., v]
        if sample_weights is not None and checks.is_concrete(view) and checks.is_concrete(sample_weights):
            weighed = np.asarray(sample_weights) > 0
            counted = weighed if counted is None else weighed & counted
        if counted is None or not checks.is_concrete(view):
            checks.finite(**{name: view})
        else:
            checks.finite(**{name: np.where(counted[..., None], view, 0)})


def _grouped(
    views: list[jax.Array], sample_weights: jax.Array | None, presence: Presence | None, block_size: int
) -> Samples:
    """One group for every pattern: its own samples where the mask is known, or all samples with weights of 0."""
    if presence is None:
        number = blocks.num_blocks(views[0].shape[0], block_size)
        everything = _in_blocks(views, sample_weights, number=number)
        return Samples(patterns=(tuple(range(len(views))),), groups=(everything,))
    groups = []
    for pattern in presence.patterns:
        is_seen = np.isin(np.arange(len(views)), pattern)
        own, weights = [views[v] for v in pattern], sample_weights
        if checks.is_concrete(presence.mask):
            rows = np.flatnonzero((np.asarray(presence.mask) == is_seen).all(axis=1))
            own, weights = [view[rows] for view in own], None if weights is None else weights[rows]
        else:
            belongs = (presence.mask == is_seen[None, :]).all(axis=1).astype(jnp.result_type(*own))
            weights = belongs if weights is None else belongs * weights
        groups.append(_in_blocks(own, weights, number=blocks.num_blocks(own[0].shape[0], block_size)))
    return Samples(patterns=presence.patterns, groups=tuple(groups))


@partial(jax.jit, static_argnames="number")
def _in_blocks(views: list[jax.Array], sample_weights: jax.Array | None, *, number: int) -> Blocks:
    values = jnp.concatenate(views, axis=1)
    if sample_weights is None:
        sample_weights = jnp.ones(values.shape[0], values.dtype)
    else:
        values = jnp.where(sample_weights[:, None] > 0, values, 0)
    return Blocks(blocks.split(values, number).swapaxes(0, 1), blocks.split(sample_weights, number).T)


def are_connected(samples: Samples, num_views: int) -> jax.Array:
    """Whether the graph of views seen together is connected, bool `[]`: an edge is a sample that has both views.

    Where it is not, the z of one part may be rotated against that of another: covariances between them are arbitrary.
    """
    if samples.patterns == (tuple(range(num_views)),):
        return jnp.asarray(True)
    reach = jnp.eye(num_views, dtype=bool)
    for pattern, group in zip(samples.patterns, samples.groups, strict=True):
        has = np.isin(np.arange(num_views), pattern)
        reach |= (has[:, None] & has[None, :]) & (group.sample_weights > 0).any()
    for _ in range(num_views.bit_length()):
        reach = (reach[:, :, None] & reach[None, :, :]).any(axis=1)
    return reach.all()
