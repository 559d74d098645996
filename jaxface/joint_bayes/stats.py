"""Statistics of labelled images: collected in one pass, additive, and sufficient for EM.

    images --collect--> Stats --merge, pool--> Stats --recenter--> Stats --group_by_count--> GroupedStats --> EM
    batches --zero, add--> Stats

After `collect` the cost of an iteration does not depend on the number of images; after `group_by_count` it does not
depend on the number of people either, once there are more of them than dimensions times different counts. What follows
from the sums alone (another shift, another basis, scatters) is in `linalg.class_stats`.

**Weights** are precisions: an image of weight q has the noise covariance T_eps / q, and weight 0 leaves it out. With
`Q_i = sum_j q_ij` in the place of a person's number of images every formula holds, but for two sums over all images:
the M-step and the likelihood also need K, the number of images, and L, the sum of log q. A weight of 2 is therefore not
the same as two images, and fractions in `count` without K are refused.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import blocks, checks
from jaxface.joint_bayes.counts import checked_counts, checked_weights, log_weight_of, with_weights
from jaxface.linalg import scatter
from jaxface.linalg.class_stats import Stats, images_of, within_scatter

__all__ = ["GroupedStats", "add", "collect", "group_by_count", "merge", "pool", "zero"]

BLOCK_SIZE = 4096  # rows at a time
_MOST_VALUES = 64  # different sums of weights that are worth a group each


class GroupedStats(NamedTuple):
    """Input of an E-step: rows y with a number of images m each, so that sums over people become sums over rows.

    With weights m is a person's sum of weights, and the last two fields are not None.

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
    num_images: jax.Array | None = None  # [], K, images with a weight above zero
    log_weight: jax.Array | None = None  # [], L, sum of their log weights


def zero(shift: ArrayLike, *, num_people: int, weighted: bool = False) -> Stats:
    """The statistics of no images of `num_people` people, about `shift` `[d]`: where a sum over batches starts.

    `weighted` statistics take images with weights.
    """
    checks.at_least("num_people", num_people, 1)
    checks.samples(shift=(shift, "d"))
    shift = jnp.asarray(shift)
    return Stats(
        count=jnp.zeros(num_people, shift.dtype),
        sum=jnp.zeros((num_people, len(shift)), shift.dtype),
        second_moment=jnp.zeros((len(shift), len(shift)), shift.dtype),
        shift=shift,
        num_images=jnp.zeros(num_people, shift.dtype) if weighted else None,
        log_weight=jnp.zeros((), shift.dtype) if weighted else None,
    )


def add(stats: Stats, x: ArrayLike, ids: ArrayLike, *, weights: ArrayLike | None = None) -> Stats:
    """The statistics with the images x `[n, d]` added, whose dense ids `[n]` are -1 for rows to leave out.

    `weights` `[n]`, if given, are precisions: an image of weight q has the noise T_eps / q, and 0 leaves a row out.
    Statistics that had no weights then get them: their images have the weight 1.

    Pure: a loop over batches jits it with `donate_argnums=0`, so that a batch costs no copy of the sums.
    """
    checks.samples(x=(x, "n d"), beside={"ids": (ids, "n"), "shift": (stats.shift, "d")})
    ids = checks.dense_labels("ids", ids, len(stats.count), padding=True)
    x = jnp.asarray(x)
    if weights is not None:
        checks.shapes(x=(x, "n d"), weights=(weights, "n"))
        weights = checked_weights("weights", weights, jnp.result_type(x, stats.sum))
    # Sharded or traced rows are folded in one block: slicing them would move data between devices.
    whole = not checks.is_concrete(x) or len(x.sharding.device_set) > 1
    return _added(stats, x, jnp.asarray(ids), weights, block_size=max(1, len(x)) if whole else BLOCK_SIZE)


def collect(
    x: ArrayLike, ids: ArrayLike, *, num_people: int, shift: ArrayLike, weights: ArrayLike | None = None
) -> Stats:
    """Statistics of x `[n, d]` with dense ids `[n]`, -1 for rows to leave out, about `shift` `[d]`.

    `weights` `[n]` are precisions, as in `add`: an image of weight q has the noise T_eps / q. Differentiable in x and
    in weights above zero.

    One GEMM and one segment sum, in blocks of rows if x lies on one device: a centred copy of all of x would cost as
    much time as its second moment. Blocks of a stream share one shift, near the mean: `add` them one after the other,
    or `merge` the statistics of each.
    """
    checks.shapes(x=(x, "n d"), shift=(shift, "d"))
    return add(zero(shift, num_people=num_people), x, ids, weights=weights)


@partial(jax.jit, static_argnames="block_size")
def add_rows(stats: Stats, x: jax.Array, ids: jax.Array, weights: jax.Array | None = None, *, block_size: int) -> Stats:
    """`add` without checks, of rows in the dtype of the statistics, `block_size` of them at a time."""
    num_people = len(stats.count)
    if weights is None and stats.num_images is not None:
        weights = jnp.ones(len(x), stats.sum.dtype)

    def step(stats: Stats, rows: tuple[jax.Array, jax.Array, jax.Array | None], valid: jax.Array) -> Stats:
        kept = valid & (rows[1] >= 0)
        if rows[2] is not None:
            kept &= rows[2] != 0  # NaN stays, to be seen
        centered = jnp.where(kept[:, None], rows[0].astype(stats.sum.dtype) - stats.shift[None, :], 0)
        # Out-of-range ids are dropped, so padding goes to a place beyond the last person.
        place = jnp.where(kept, rows[1], num_people)
        if rows[2] is not None:
            return _plus_weighted(stats, centered, place, kept, jnp.where(kept, rows[2], 1))
        return stats._replace(
            count=stats.count.at[place].add(kept.astype(stats.count.dtype), mode="drop"),
            sum=stats.sum.at[place].add(centered, mode="drop"),
            second_moment=stats.second_moment + scatter.matrix(centered),
        )

    return blocks.fold_rows(step, stats, (x, ids, weights), block_size=block_size)


def _plus_weighted(stats: Stats, centered: jax.Array, place: jax.Array, kept: jax.Array, weights: jax.Array) -> Stats:
    """The statistics with centred rows `[n, d]` added; a row that is not kept is zero and has the weight 1."""
    weights = weights.astype(stats.sum.dtype)
    of_image = kept.astype(stats.sum.dtype)
    return Stats(
        count=stats.count.at[place].add(weights, mode="drop"),
        sum=stats.sum.at[place].add(weights[:, None] * centered, mode="drop"),
        second_moment=stats.second_moment + scatter.matrix(jnp.sqrt(weights)[:, None] * centered),
        shift=stats.shift,
        num_images=images_of(stats).at[place].add(of_image, mode="drop"),
        log_weight=log_weight_of(stats) + jnp.log(weights).sum(),
    )


@partial(jax.jit, static_argnames="block_size")
def _added(stats: Stats, x: jax.Array, ids: jax.Array, weights: jax.Array | None, *, block_size: int) -> Stats:
    dtype = jnp.result_type(x, stats.sum)
    stats = jax.tree.map(lambda leaf: leaf.astype(dtype), stats if weights is None else with_weights(stats))
    return add_rows(stats, x, ids, weights, block_size=block_size)


def merge(a: Stats, b: Stats) -> Stats:
    """Statistics of two disjoint sets of images about the same shift; a person may have images in both.

    If one of them has weights, the images of the other have the weight 1.
    """
    checks.shapes(a=(a.sum, "c d"), b=(b.sum, "c d"))
    if checks.is_concrete(a.shift) and checks.is_concrete(b.shift) and not np.array_equal(a.shift, b.shift):
        raise ValueError("a and b must be collected about the same shift; recenter one of them to the other's.")
    if a.num_images is not None or b.num_images is not None:
        a, b = with_weights(a), with_weights(b)
    return jax.tree.map(jnp.add, a, b)._replace(shift=a.shift)


def pool(a: Stats, b: Stats) -> Stats:
    """Statistics of the people of a followed by those of b, where nobody is in both: `[c_a + c_b]` people.

    Each set stays centred on its own shift, so that a difference between the means of two domains is not taken for a
    difference between people. The shift of the result is that of b.
    """
    checks.shapes(a=(a.sum, "c d"), b=(b.sum, "n d"))
    pooled = Stats(
        count=jnp.concatenate([a.count, b.count]),
        sum=jnp.concatenate([a.sum, b.sum]),
        second_moment=a.second_moment + b.second_moment,
        shift=b.shift,
    )
    if a.num_images is None and b.num_images is None:
        return pooled
    a, b = with_weights(a), with_weights(b)
    return pooled._replace(
        num_images=jnp.concatenate([images_of(a), images_of(b)]), log_weight=log_weight_of(a) + log_weight_of(b)
    )


def by_person(stats: Stats) -> GroupedStats:
    """One row a person: any number of people, pure and jittable."""
    stats = checked_counts(stats)
    count = stats.count
    has_images = (count > 0).astype(stats.sum.dtype)
    means = stats.sum / jnp.where(count == 0, 1, count)[:, None]
    rows = GroupedStats(means, has_images, count, count, has_images, within_scatter(stats), stats.shift)
    return rows._replace(**_sums_of_weights(stats))


def _sums_of_weights(stats: Stats) -> dict[str, jax.Array]:
    """K and L of grouped statistics, where images have weights."""
    if stats.num_images is None:
        return {}
    return {"num_images": stats.num_images.sum(), "log_weight": log_weight_of(stats)}


def group_by_count(stats: Stats) -> GroupedStats:
    """At most d + 1 rows for each different number of images or sum of weights: the fast form for many people.

    The rows are compressed on the host in float64. Sums of weights differ from person to person unless the weights are
    few numbers: `quality.rounded` makes them so.
    """
    count = np.asarray(checked_counts(stats).count, np.float64)
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
    grouped_rows = GroupedStats(
        rows=jnp.asarray(rows),
        row_unit=jnp.asarray(row_unit),
        row_count=jnp.asarray(np.repeat(values, sizes), dtype),
        count=jnp.asarray(values, dtype),
        num_people=jnp.asarray(num_people, dtype),
        within=within_scatter(stats),
        mean=stats.shift,
    )
    return grouped_rows._replace(**_sums_of_weights(stats))


def num_images(stats: GroupedStats) -> jax.Array:
    """K, how many images there are, those of weight 0 left out."""
    return (stats.num_people * stats.count).sum() if stats.num_images is None else stats.num_images


def mean_weight(stats: GroupedStats) -> jax.Array | float:
    """The mean weight of an image: 1 without weights."""
    if stats.num_images is None:
        return 1.0
    return (stats.num_people * stats.count).sum() / jnp.maximum(stats.num_images, 1)


def rows_about(stats: GroupedStats, mean: jax.Array) -> jax.Array:
    """The rows `[r, d]` about another mean."""
    return stats.rows - stats.row_unit[:, None] * (mean - stats.mean)[None, :]


def grouped(stats: Stats) -> GroupedStats:
    """`group_by_count` if the values of the statistics are known, `by_person` inside a transformation.

    Also `by_person` if the images have weights and their sums are many different numbers.
    """
    if not all(map(checks.is_concrete, stats)):
        return by_person(stats)
    if stats.num_images is None:
        return group_by_count(stats)
    # Means of q and of log q are 1 and 0 only if every q is 1: then the program is that without weights.
    if np.array_equal(stats.count, stats.num_images) and float(log_weight_of(stats)) == 0:
        return group_by_count(stats._replace(num_images=None, log_weight=None))
    return by_person(stats) if len(np.unique(np.asarray(stats.count))) > _MOST_VALUES else group_by_count(stats)


def _compressed(rows: np.ndarray) -> np.ndarray:
    """Rows with the same `rows' rows`, at most as many as columns."""
    return np.asarray(np.linalg.qr(rows, mode="r")) if len(rows) > rows.shape[1] else rows
