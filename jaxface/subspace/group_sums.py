"""Sums over groups that come in parts: what RCA and NP-PER read of images that do not fit into memory.

    n, sum of x, sum of xx', S_g = sum over groups of sum_i (x_i - mu_r)(x_i - mu_r)'

Whole groups add: their scatters do not depend on any other image, so batches, files and machines may hold different
groups. The memory is `[d, d]`, whatever the number of images and groups. `rca.from_sums` and `np_per.from_sums` fit.

With features of `jaxface.features` in the place of x these are kernel methods without a matrix of all images with all
images: the features' inner products estimate the kernel.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.linalg import scatter

__all__ = ["GroupSums", "add", "merge", "zero"]


class GroupSums(NamedTuple):
    """Sums over the images of whole groups; those of disjoint groups about one shift add."""

    count: jax.Array  # type: ignore[assignment]  # [], n, in the type of x
    num_groups: jax.Array  # [], R
    sum: jax.Array  # [d], of x - shift
    second_moment: jax.Array  # [d, d], sum of (x - shift)(x - shift)'
    within: jax.Array  # [d, d], S_g
    shift: jax.Array  # [d], near the mean


def zero(shift: ArrayLike) -> GroupSums:
    """The sums of no images, about `shift` `[d]`."""
    checks.samples(shift=(shift, "d"))
    shift = jnp.asarray(shift)
    number, square = jnp.zeros((), shift.dtype), jnp.zeros((len(shift), len(shift)), shift.dtype)
    return GroupSums(number, number, jnp.zeros_like(shift), square, square, shift)


def add(sums: GroupSums, x: ArrayLike, groups: ArrayLike, *, num_groups: int) -> GroupSums:
    """The sums with whole groups added: images x `[n, d]` and their groups `[n]`, -1 for rows to leave out.

    `num_groups` is the most groups of a batch; numbers of groups begin at 0 in every batch. A group that is spread over
    two batches counts as two, which miss the difference of their means. Differentiable in x.
    """
    checks.samples(x=(x, "n d"), beside={"groups": (groups, "n"), "shift": (sums.shift, "d")})
    checks.at_least("num_groups", num_groups, 1)
    groups = checks.dense_labels("groups", groups, num_groups, padding=True)
    return _added(sums, jnp.asarray(x), jnp.asarray(groups), num_groups=num_groups)


@partial(jax.jit, static_argnames="num_groups")
def _added(sums: GroupSums, x: jax.Array, groups: jax.Array, *, num_groups: int) -> GroupSums:
    dtype = jnp.result_type(x, sums.sum)
    sums = jax.tree.map(lambda leaf: leaf.astype(dtype), sums)
    kept = groups >= 0
    centered = jnp.where(kept[:, None], x.astype(dtype) - sums.shift[None, :], 0)
    # Rows that are left out are a group of zeros, which adds nothing.
    place = jnp.where(kept, groups, num_groups)
    factor = scatter.within_factor(centered, place, num_classes=num_groups + 1)
    present = jnp.zeros(num_groups + 1, bool).at[place].set(True)[:num_groups]
    return sums._replace(
        count=sums.count + kept.sum().astype(dtype),
        num_groups=sums.num_groups + present.sum().astype(dtype),
        sum=sums.sum + centered.sum(axis=0),
        second_moment=sums.second_moment + scatter.matrix(centered),
        within=sums.within + scatter.matrix(factor),
    )


def merge(a: GroupSums, b: GroupSums) -> GroupSums:
    """The sums of two disjoint sets of groups about the same shift."""
    checks.shapes(a=(a.within, "d d"), b=(b.within, "d d"))
    if checks.is_concrete(a.shift) and checks.is_concrete(b.shift) and not np.array_equal(a.shift, b.shift):
        raise ValueError(
            "a and b must be collected about the same shift; begin both with group_sums.zero of one shift."
        )
    return jax.tree.map(jnp.add, a, b)._replace(shift=a.shift)
