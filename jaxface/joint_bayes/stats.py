"""Statistics of labelled images: collected in one pass, additive, and sufficient for EM.

    images --collect--> Stats --merge, pool--> Stats --recenter--> Stats --group_by_count--> GroupedStats --> EM

After `collect` the cost of an iteration does not depend on the number of images; after `group_by_count` it does not
depend on the number of people either, once there are more of them than dimensions times different counts.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import blocks, checks
from jaxface.linalg import scatter

__all__ = ["GroupedStats", "Stats", "collect", "group_by_count", "merge", "pool", "recenter"]

_BLOCK_SIZE = 4096  # rows that `collect` takes at a time


class Stats(NamedTuple):
    """Sums over images about `shift`; disjoint sets of images with the same shift add, also within one person."""

    count: jax.Array  # type: ignore[assignment]  # [c], images of each person, in the dtype of x
    sum: jax.Array  # [c, d], sum of x - shift over a person's images
    second_moment: jax.Array  # [d, d], sum of (x - shift)(x - shift)' over all images
    shift: jax.Array  # [d]


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


def collect(x: ArrayLike, ids: ArrayLike, *, num_people: int, shift: ArrayLike) -> Stats:
    """Statistics of x `[n, d]` with dense ids `[n]`, -1 for rows to leave out, about `shift` `[d]`.

    One GEMM and one segment sum, in blocks of rows if x lies on one device: a centred copy of all of x would cost as
    much time as its second moment. Blocks of a stream share one shift, near the mean; `merge` adds them.
    """
    checks.samples(x=(x, "n d"), shift=(shift, "d"), beside={"ids": (ids, "n")})
    checks.at_least("num_people", num_people, 1)
    ids = checks.dense_labels("ids", ids, num_people, padding=True)
    x = jnp.asarray(x)
    # Sharded or traced rows are folded in one block: slicing them would move data between devices.
    whole = not checks.is_concrete(x) or len(x.sharding.device_set) > 1
    block_size = max(1, len(x)) if whole else _BLOCK_SIZE
    return _collect(x, jnp.asarray(ids), jnp.asarray(shift), num_people=num_people, block_size=block_size)


@partial(jax.jit, static_argnames=("num_people", "block_size"))
def _collect(x: jax.Array, ids: jax.Array, shift: jax.Array, *, num_people: int, block_size: int) -> Stats:
    def add(stats: Stats, rows: tuple[jax.Array, jax.Array], valid: jax.Array) -> Stats:
        kept = valid & (rows[1] >= 0)
        centered = jnp.where(kept[:, None], rows[0] - shift[None, :], 0)
        # Out-of-range ids are dropped, so padding goes to a place beyond the last person.
        place = jnp.where(kept, rows[1], num_people)
        return Stats(
            count=stats.count.at[place].add(kept.astype(stats.count.dtype), mode="drop"),
            sum=stats.sum.at[place].add(centered, mode="drop"),
            second_moment=stats.second_moment + scatter.matrix(centered),
            shift=stats.shift,
        )

    d, dtype = x.shape[1], jnp.result_type(x, shift)
    zero = Stats(
        count=jnp.zeros(num_people, dtype),
        sum=jnp.zeros((num_people, d), dtype),
        second_moment=jnp.zeros((d, d), dtype),
        shift=shift.astype(dtype),
    )
    return blocks.fold_rows(add, zero, (x, ids), block_size=block_size)


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


def recenter(stats: Stats, shift: ArrayLike | None = None) -> Stats:
    """The same statistics about another shift, exactly; by default about the mean of the images."""
    number = stats.count.sum()
    total = stats.sum.sum(axis=0)
    if shift is not None:
        checks.shapes(shift=(shift, "d"), stats_shift=(stats.shift, "d"))
        checks.floating(shift=shift)
    else:
        shift = stats.shift + total / jnp.maximum(number, 1)
    shift = jnp.asarray(shift, stats.shift.dtype)
    move = shift - stats.shift
    cross = jnp.outer(total, move)
    return Stats(
        count=stats.count,
        sum=stats.sum - stats.count[:, None] * move[None, :],
        second_moment=stats.second_moment - cross - cross.T + number * jnp.outer(move, move),
        shift=shift,
    )


@jax.jit
def within_scatter(stats: Stats) -> jax.Array:
    """`S_w = sum xx' - sum_i s_i s_i' / m_i` `[d, d]`."""
    scaled = stats.sum / jnp.sqrt(jnp.maximum(stats.count, 1))[:, None]
    return stats.second_moment - scatter.matrix(scaled)


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
    means = np.asarray(stats.sum, np.float64) / np.maximum(count, 1.0)[:, None]
    augmented = np.concatenate([means, np.ones((len(means), 1))], axis=1)
    dtype = stats.sum.dtype
    values = np.unique(count[count > 0])
    if values.size == 0:
        raise ValueError("stats must hold at least one image; every count is zero.")
    parts = [_compressed(augmented[count == value]) for value in values]
    rows = np.concatenate(parts)
    row_count = np.repeat(values, [len(part) for part in parts])
    return GroupedStats(
        rows=jnp.asarray(rows[:, :-1], dtype),
        row_unit=jnp.asarray(rows[:, -1], dtype),
        row_count=jnp.asarray(row_count, dtype),
        count=jnp.asarray(values, dtype),
        num_people=jnp.asarray([(count == value).sum() for value in values], dtype),
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
