"""Statistics of images that are larger than memory, read once, by one process or several.

    source --collect_stream--> Stats

A batch is read while the one before is added, at most two batches wait for the device, and the sums are donated from
batch to batch. With several processes each reads its own share, and the sums are added once, at the end.
"""

import collections
from functools import partial
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, machine, mesh
from jaxface.core.prefetch import ahead
from jaxface.joint_bayes.counts import checked_weights
from jaxface.joint_bayes.stats import BLOCK_SIZE, add_rows, zero
from jaxface.linalg import class_stats
from jaxface.linalg.class_stats import Stats

__all__ = ["Source", "collect_stream"]

_LARGEST_ERROR = 1e-3  # of a mean variance, from the rounding of squares about a distant shift


class Source(Protocol):
    """Rows on disk or in memory, such as a `jaxface.data.stream.Source`."""

    @property
    def num_rows(self) -> int:
        """N."""

    @property
    def row_shape(self) -> tuple[int, ...]:
        """(d,)."""

    @property
    def dtype(self) -> np.dtype:
        """The type that rows are to have."""

    @property
    def ids(self) -> np.ndarray:
        """Dense ids `[n]`, -1 for a row without a person."""

    @property
    def name(self) -> str:
        """The file, for messages."""

    def read_range(self, start: int, stop: int, /) -> np.ndarray:
        """Rows [start, stop), `[stop - start, d]` of any real type; called from a thread."""


class Running(NamedTuple):
    """Statistics while they grow."""

    stats: Stats
    rest: jax.Array  # [d, d], what rounding took from the second moment: many batches lose no digits


class Share(NamedTuple):
    """The rows that this process reads, and whether the sums of all processes are the result."""

    rows: range
    is_part: bool


def collect_stream(
    source: Source,
    *,
    num_people: int,
    batch_size: int,
    shift: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    process_index: int | None = None,
    process_count: int | None = None,
) -> Stats:
    """`collect` of a source of rows `[n, d]`, such as `data.stream.from_npy` gives, read once and in order.

    source         float16 and integers become float32, batch by batch; rows with the id -1 are left out
    batch_size     rows of a batch; four are in memory. Results differ by rounding only
    shift          `[d]`, the same in all processes; by default the mean of the first batch in which a person is known
    weights        `[n]`, of every row of the source, as in `add`: precisions, 0 for rows to leave out
    process_index, process_count  whose share of the rows; by default that of this process of `jax.distributed`, where
                   each process gets the sums of all. Without `jax.distributed` they are those of the share alone;
                   `merge` adds shares

    NaN and infinity are looked for in the sums at the end; the error names the file and the first such row. A shift so
    far from the mean that the variances would be rounding is an error too.
    """
    start = _checked_shift(source, num_people, batch_size, shift)
    if weights is not None:
        checks.shapes(weights=(weights, str(source.num_rows)))
        weights = np.asarray(checked_weights("weights", weights, start.dtype))
    share = _share(source.num_rows, process_index, process_count)
    if not share.is_part:
        stats = _collected(source, share.rows, num_people, batch_size, start, weights)
    else:
        stats = _of_all_processes(source, share.rows, num_people, batch_size, start, weights)
    _check_finite(stats, source, share)
    if share.is_part or len(share.rows) == source.num_rows:  # one share alone may well be far from the shift of all
        _check_distance(stats, source, is_given=shift is not None)
    return stats


def _collected(
    source: Source, rows: range, num_people: int, batch_size: int, shift: np.ndarray, weights: np.ndarray | None
) -> Stats:
    """The statistics of the rows of one process."""
    batch_size = min(batch_size, max(1, len(rows)))

    def read(start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        stop = min(start + batch_size, rows.stop)
        x, ids = source.read_range(start, stop), np.asarray(source.ids[start:stop], np.int32)
        q = None if weights is None else weights[start:stop]
        if missing := batch_size - len(ids):  # the last batch is filled, so that one program serves all
            x, ids = np.pad(x, ((0, missing), (0, 0))), np.pad(ids, (0, missing), constant_values=-1)
            q = None if q is None else np.pad(q, (0, missing))
        return x, ids, q

    nothing = zero(shift, num_people=num_people, weighted=weights is not None)
    running = Running(nothing, jnp.zeros_like(nothing.second_moment))
    in_flight: collections.deque[jax.Array] = collections.deque()
    for batch in ahead(read, rows[::batch_size]):
        running, done = _with_batch(running, *jax.tree.map(jnp.asarray, batch))
        in_flight.append(done)
        if len(in_flight) > 2:
            in_flight.popleft().block_until_ready()
    # Counted from the ids: in float32, one more image than 2^24 would not count.
    ids = np.asarray(source.ids[rows.start : rows.stop])
    if weights is None:
        count = np.bincount(ids[ids >= 0], minlength=num_people)
        return running.stats._replace(count=jnp.asarray(count, shift.dtype))
    q = weights[rows.start : rows.stop].astype(np.float64)
    kept = (ids >= 0) & (q > 0)
    q, ids = q[kept], ids[kept]
    count, number = (np.bincount(ids, each, minlength=num_people) for each in (q, np.ones_like(q)))
    exact = {"count": count, "num_images": number, "log_weight": np.log(q).sum()}
    return running.stats._replace(**{name: jnp.asarray(each, shift.dtype) for name, each in exact.items()})


@partial(jax.jit, donate_argnums=0)
def _with_batch(running: Running, x: jax.Array, ids: jax.Array, weights: jax.Array | None) -> tuple[Running, jax.Array]:
    """With the images of a batch, and a number to wait for, since the statistics themselves are donated on."""
    stats, before = running.stats, running.stats.second_moment
    stats = add_rows(stats._replace(second_moment=jnp.zeros_like(before)), x, ids, weights, block_size=BLOCK_SIZE)
    # The sum of two numbers and its rounding error (Knuth), entry by entry.
    batch = stats.second_moment + running.rest
    after = before + batch
    added = after - before
    rest = (before - (after - added)) + (batch - added)
    return Running(stats._replace(second_moment=after), rest), after[0, 0]


def _of_all_processes(
    source: Source, rows: range, num_people: int, batch_size: int, shift: np.ndarray, weights: np.ndarray | None
) -> Stats:
    """The sums of the shares of all processes, in each. If one fails, the others must not wait for it: it sends NaN."""
    failure: Exception | None = None
    try:
        stats = _collected(source, rows, num_people, batch_size, shift, weights)
    except Exception as error:
        failure, stats = error, zero(shift, num_people=num_people, weighted=weights is not None)
        stats = stats._replace(second_moment=jnp.full_like(stats.second_moment, jnp.nan))
    stats = mesh.sum_over_processes(stats)
    if failure is not None:
        raise failure
    if not np.allclose(stats.shift, jax.process_count() * shift, rtol=1e-5, atol=0):
        raise ValueError(
            "shift must be the same in every process; it is not. Give every process the same shift, or the same source."
        )
    return stats._replace(shift=jnp.asarray(shift))


def _share(num_rows: int, index: int | None, count: int | None) -> Share:
    running = jax.process_count()
    if (index is None) != (count is None):
        raise ValueError("process_index and process_count must be given together, or neither of them.")
    if index is None or count is None:
        index, count = jax.process_index(), running
    checks.at_least("process_count", count, 1)
    checks.at_least("process_index", index, 0)
    checks.at_most("process_index", index, count - 1, "process_count - 1")
    if running > 1 and count > 1 and (index, count) != (jax.process_index(), running):
        raise ValueError(
            f"process_index and process_count must be those of jax.distributed, {jax.process_index()} of {running}; "
            f"got {index} of {count}. Leave them out."
        )
    size = -(-num_rows // count)
    rows = range(min(index * size, num_rows), min((index + 1) * size, num_rows))
    return Share(rows, is_part=running > 1 and count > 1)


def _checked_shift(source: Source, num_people: int, batch_size: int, shift: ArrayLike | None) -> np.ndarray:
    """The shift in the type of the statistics, after checks of the arguments and of a shift that was given."""
    checks.at_least("batch_size", batch_size, 1)
    checks.at_least("num_people", num_people, 1)
    checks.at_least(f"the number of rows of {source.name}", source.num_rows, 1)
    if len(source.row_shape) != 1:
        raise ValueError(
            f"{source.name} must hold vectors [n, d]; its rows have shape {source.row_shape}. Reduce images to vectors."
        )
    checks.shapes(ids=(source.ids, str(source.num_rows)))
    ids = checks.dense_labels(f"the ids of {source.name}", source.ids, num_people, padding=True)
    dtype = jnp.result_type(jnp.asarray(np.zeros(0, source.dtype)), np.float32)  # float64 only where x64 is on
    if shift is not None:
        checks.samples(shift=(shift, str(source.row_shape[0])))
    known = np.flatnonzero(ids >= 0)
    if not known.size:
        return np.zeros(source.row_shape, dtype) if shift is None else np.asarray(shift, dtype)
    rows = range(int(known[0]), min(int(known[0]) + batch_size, source.num_rows))
    first = source.read_range(rows.start, rows.stop)
    if not (ids[rows.start : rows.stop] >= 0).all():
        first = first[ids[rows.start : rows.stop] >= 0]
    mean = first.mean(axis=0, dtype=np.float64)
    if not np.isfinite(mean).all():
        _refuse_bad_row(source, rows)
    return mean.astype(dtype) if shift is None else np.asarray(shift, dtype)


def _check_distance(stats: Stats, source: Source, *, is_given: bool) -> None:
    """Refuses a shift whose distance from the mean cost the variances their digits."""
    images = class_stats.total(stats)
    number, dtype = float(images.number), stats.sum.dtype
    if float(class_stats.images_of(stats).sum()) < 2:
        return
    move = np.asarray(images.mean, np.float64) - np.asarray(stats.shift, np.float64)
    squared, variance = float(move @ move), max(float(np.trace(images.scatter)) / number, machine.tiny(dtype))
    if machine.eps(dtype) * squared > _LARGEST_ERROR * variance / len(move) and squared > variance:
        remedy = (
            "Leave shift out to take the mean of the first batch" if is_given else "Give as shift the mean of some rows"
        )
        raise ValueError(
            f"shift must be near the mean of {source.name}; it is {np.sqrt(squared / variance):.3g} standard "
            f"deviations away, and {dtype} keeps too few digits of the variances. {remedy}, or work in float64."
        )


def _check_finite(stats: Stats, source: Source, share: Share) -> None:
    """Refuses sums with NaN or infinity, and says where it comes from."""
    if np.isfinite(np.diagonal(stats.second_moment)).all() and np.isfinite(stats.sum.sum(axis=0)).all():
        return
    _refuse_bad_row(source, share.rows)
    if share.is_part:
        raise ValueError(
            f"{source.name} could not be used by another process, whose own error says more, unless squares of its "
            f"numbers are too large for {stats.sum.dtype}: then divide all by the largest of them."
        )
    raise ValueError(
        f"{source.name} holds numbers whose squares {stats.sum.dtype} cannot hold. Divide all by the largest of them."
    )


def _refuse_bad_row(source: Source, rows: range) -> None:
    """Raises for the first row of a known person that holds NaN or infinity."""
    for start in rows[::BLOCK_SIZE]:
        stop = min(start + BLOCK_SIZE, rows.stop)
        bad = ~np.isfinite(source.read_range(start, stop)) & (source.ids[start:stop] >= 0)[:, None]
        if bad.any():
            row, column = (int(place) for place in np.argwhere(bad)[0])
            raise ValueError(
                f"{source.name} must be finite; row {start + row} holds NaN or infinity, the first in column {column}. "
                "Remove or repair such rows, or give them no label."
            )
