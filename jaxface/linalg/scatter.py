"""Scatter of labelled samples: thin factors F `[rows, d]` with `S = F' F`, and the matrices themselves.

Total = within + between. Labels are dense int32 in [0, c); -1 is not allowed here, such rows are dropped on the host.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxface.linalg import products, scaling

__all__ = ["ClassMoments", "between_factor", "class_moments", "matrix", "total_factor", "within_factor"]


class ClassMoments(NamedTuple):
    """First moments of every class; an empty class has count 0 and mean 0."""

    counts: jax.Array  # [c]
    mean: jax.Array  # [c, d]


def class_moments(x: jax.Array, labels: jax.Array, *, num_classes: int) -> ClassMoments:
    """Counts and means of the classes of x `[n, d]`, by segment sums."""
    x = scaling.as_floating(x)
    ones = jnp.ones(x.shape[0], x.dtype)
    counts = jax.ops.segment_sum(ones, labels, num_classes)
    total = jax.ops.segment_sum(x, labels, num_classes)
    return ClassMoments(counts, total / jnp.maximum(counts, 1)[:, None])


def within_factor(x: jax.Array, labels: jax.Array, *, num_classes: int) -> jax.Array:
    """Rows `x_i - mu_{c(i)}` `[n, d]`, centred twice as those of `total_factor`."""
    once = x - class_moments(x, labels, num_classes=num_classes).mean[labels]
    return once - class_moments(once, labels, num_classes=num_classes).mean[labels]


def between_factor(x: jax.Array, labels: jax.Array, *, num_classes: int) -> jax.Array:
    """Rows `sqrt(n_c) (mu_c - mu)` `[c, d]`; the row of an empty class is zero."""
    moments = class_moments(total_factor(x), labels, num_classes=num_classes)
    return jnp.sqrt(moments.counts)[:, None] * moments.mean


def total_factor(x: jax.Array) -> jax.Array:
    """Rows `x_i - mu` `[n, d]`.

    Centred twice: what rounding leaves of a mean far from zero is one more direction, and a rank too many.
    """
    once = x - x.mean(axis=0)[None, :]
    return once - once.mean(axis=0)[None, :]


def matrix(factor: jax.Array) -> jax.Array:
    """`S = F' F` `[d, d]` of a factor; for small d only, null spaces and ranks come from the factor itself."""
    columns = products.transposed_copy(factor)
    return columns @ columns.T
