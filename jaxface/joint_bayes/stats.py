"""Statistics of labelled images: collected in one pass, additive, and sufficient for EM.

    images --collect--> Stats --merge, pool--> Stats --recenter--> Stats --group_by_count--> GroupedStats --> EM
    batches --zero, add--> Stats

After `collect` the cost of an iteration does not depend on the number of images; after `group_by_count` it does not
depend on the number of people either, once there are more of them than dimensions times different counts. What follows
from the sums alone (another shift, another basis, scatters) is in `linalg.class_stats`.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import blocks, checks
from jaxface.linalg import scatter
from jaxface.linalg.class_stats import Stats, within_scatter

__all__ = ["GroupedStats", "add", "collect", "group_by_count", "merge", "pool", "zero"]

BLOCK_SIZE = 4096  # rows at a time


class GroupedStats(NamedTuple):
    """Input of an E-step: rows y with a number of images m each, so that sums over people become sums over rows.

    A row `[y, u]` is a person's mean about `mean` with u = 1, or one of the d + 1 rows of a factor `R_m` with
    `R_m' R_m = sum of [ybar, 1]'[ybar, 1]` over all people with m images. An E-step reads the rows `y - u c` about a
    model's mean `mean + c`, and its sums are the same for both kinds of row.
    """

    rows: jax.Array  # [r, d], y
    row_unit: jax.Array  # [r], u
    row_count: jax.Array  # [r], m of each row
    count: jax.Array  # type: ignore[assignment]  # [g], values of m
    num_people: jax.Array  # [g], people with that many images
    within: jax.Array  # [d, d], S_w, sum over images of (x - own person's mean)(...)'
    mean: jax.Array  # [d]


def zero(shift: ArrayLike, *, num_people: int) -> Stats:
    """The statistics of no images of `num_people` people, about `shift` `[d]`: where a sum over batches starts."""
    checks.at_least("num_people", num_people, 1)
    checks.samples(shift=(shift, "d"))
    shift = jnp.asarray(shift)
    return Stats(
        count=jnp.zeros(num_people, shift.dtype),
        sum=jnp.zeros((num_people, len(shift)), shift.dtype),
        second_moment=jnp.zeros((len(shift), len(shift)), shift.dtype),
        shift=shift,
    )


def add(stats: Stats, x: ArrayLike, ids: ArrayLike) -> Stats:
    """The statistics with the images x `[n, d]` added, whose dense ids `[n]` are -1 for rows to leave out.

    Pure: a loop over batches jits it with `donate_argnums=0`, so that a batch costs no copy of the sums.
    """
    checks.samples(x=(x, "n d"), beside={"ids": (ids, "n"), "shift": (stats.shift, "d")})
    ids = checks.dense_labels("ids", ids, len(stats.count), padding=True)
    x = jnp.asarray(x)
    # Sharded or traced rows are folded in one block: slicing them would move data between devices.
    whole = not checks.is_concrete(x) or len(x.sharding.device_set) > 1
    return _added(stats, x, jnp.asarray(ids), block_size=max(1, len(x)) if whole else BLOCK_SIZE)


def collect(x: ArrayLike, ids: ArrayLike, *, num_people: int, shift: ArrayLike) -> Stats:
    """Statistics of x `[n, d]` with dense ids `[n]`, -1 for rows to leave out, about `shift` `[d]`.

    One GEMM and one segment sum, in blocks of rows if x lies on one device: a centred copy of all of x would cost as
    much time as its second moment. Blocks of a stream share one shift, near the mean: `add` them one after the other,
    or `merge` the statistics of each.
    """
    checks.shapes(x=(x, "n d"), shift=(shift, "d"))
    return add(zero(shift, num_people=num_people), x, ids)


def add_rows(stats: Stats, x: jax.Array, ids: jax.Array, *, block_size: int) -> Stats:
    """`add` without checks, of rows in the dtype of the statistics, `block_size` of them at a time."""
    num_people = len(stats.count)

    def step(stats: Stats, rows: tuple[jax.Array, jax.Array], valid: jax.Array) -> Stats:
        kept = valid & (rows[1] >= 0)
        centered = jnp.where(kept[:, None], rows[0].astype(stats.sum.dtype) - stats.shift[None, :], 0)
        # Out-of-range ids are dropped, so padding goes to a place beyond the last person.
        place = jnp.where(kept, rows[1], num_people)
        return Stats(
            count=stats.count.at[place].add(kept.astype(stats.count.dtype), mode="drop"),
            sum=stats.sum.at[place].add(centered, mode="drop"),
            second_moment=stats.second_moment + scatter.matrix(centered),
            shift=stats.shift,
        )

    return blocks.fold_rows(step, stats, (x, ids), block_size=block_size)


@partial(jax.jit, static_argnames="block_size")
def _added(stats: Stats, x: jax.Array, ids: jax.Array, *, block_size: int) -> Stats:
    dtype = jnp.result_type(x, stats.sum)
    return add_rows(jax.tree.map(lambda leaf: leaf.astype(dtype), stats), x, ids, block_size=block_size)


def merge(a: Stats, b: Stats) -> Stats:
    """Statistics of two disjoint sets of images about the same shift; a person may have images in both."""
    checks.shapes(a=(a.sum, "c d"), b=(b.sum, "c d"))
    if checks.is_concrete(a.shift) and checks.is_concrete(b.shift) and not np.array_equal(a.shift, b.shift):
        raise ValueError("a and b must be collected about the same shift; recenter one of them to the other's.")
    return Stats(a.count + b.count, a.sum + b.sum, a.second_moment + b.second_moment, a.shift)


def pool(a: Stats, b: Stats) -> Stats:
    """Statistics of the people of a followed by those of b, where nobody is in both: `[c_a + c_b]` people.

    Each set stays centred on its own shift, so that a difference between the means of two domains is not taken for a
    difference between people. The shift of the result is that of b.
    """
    checks.shapes(a=(a.sum, "c d"), b=(b.sum, "n d"))
    return Stats(
        count=jnp.concatenate([a.count, b.count]),
        sum=jnp.concatenate([a.sum, b.sum]),
        second_moment=a.second_moment + b.second_moment,
        shift=b.shift,
    )


def numbers_of_images(name: str, count: jax.Array) -> jax.Array:
    """The counts themselves; fractions and negative numbers are refused, and become NaN under a transformation.

    Weights instead of counts would scale the covariances: a weight is not a number of images.
    """
    if not checks.is_concrete(count):
        return jnp.where((count >= 0) & (count == jnp.floor(count)), count, jnp.nan)
    values = np.asarray(count, np.float64)
    wrong = values[~((values >= 0) & (values == np.floor(values)))]
    if wrong.size:
        raise ValueError(
            f"{name} must hold numbers of images, which are whole and at least 0; got {wrong.size} that are not, the "
            f"first {wrong[0]:g}. Weights of images are not counts: collect the statistics without weights."
        )
    return count


def by_person(stats: Stats) -> GroupedStats:
    """One row a person: any number of people, pure and jittable."""
    count = numbers_of_images("the count of stats", stats.count)
    has_images = (count > 0).astype(stats.sum.dtype)
    means = stats.sum / jnp.maximum(count, 1)[:, None]
    return GroupedStats(means, has_images, count, count, has_images, within_scatter(stats), stats.shift)


def group_by_count(stats: Stats) -> GroupedStats:
    """At most d + 1 rows for each different number of images: the fast form for many people.

    The rows are compressed on the host in float64.
    """
    count = np.asarray(numbers_of_images("the count of stats", stats.count), np.float64)
    sums, dtype = np.asarray(stats.sum), stats.sum.dtype
    values, num_people = np.unique(count[count > 0], return_counts=True)
    if values.size == 0:
        raise ValueError("stats must hold at least one image; every count is zero.")
    sizes = np.minimum(num_people, sums.shape[1] + 1)
    rows, row_unit = np.empty((sizes.sum(), sums.shape[1]), dtype), np.empty(sizes.sum(), dtype)
    # One number of images at a time: a copy of all sums in float64 would take twice their memory.
    for value, start, size in zip(values, np.cumsum(sizes) - sizes, sizes, strict=True):
        means = sums[count == value].astype(np.float64) / value
        part = _compressed(np.concatenate([means, np.ones((len(means), 1))], axis=1))
        rows[start : start + size], row_unit[start : start + size] = part[:, :-1], part[:, -1]
    return GroupedStats(
        rows=jnp.asarray(rows),
        row_unit=jnp.asarray(row_unit),
        row_count=jnp.asarray(np.repeat(values, sizes), dtype),
        count=jnp.asarray(values, dtype),
        num_people=jnp.asarray(num_people, dtype),
        within=within_scatter(stats),
        mean=stats.shift,
    )


def rows_about(stats: GroupedStats, mean: jax.Array) -> jax.Array:
    """The rows `[r, d]` about another mean."""
    return stats.rows - stats.row_unit[:, None] * (mean - stats.mean)[None, :]


def grouped(stats: Stats) -> GroupedStats:
    """`group_by_count` if the values of the statistics are known, `by_person` inside a transformation."""
    return group_by_count(stats) if all(map(checks.is_concrete, stats)) else by_person(stats)


def _compressed(rows: np.ndarray) -> np.ndarray:
    """Rows with the same `rows' rows`, at most as many as columns."""
    return np.asarray(np.linalg.qr(rows, mode="r")) if len(rows) > rows.shape[1] else rows
