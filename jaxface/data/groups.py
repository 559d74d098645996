"""Partial equivalence groups: rows known to show one person, who need not be named.

    random_groups  groups of a given size drawn from labelled rows, many draws at once
    kept_rows      the rows of such draws as index arrays that fit one vmapped call
    movement       how far a tracked face moved since the frame before
    track_groups   runs of slow frames of a face track

Two groups may hold the same person. Rows in no group have -1; algorithms take only grouped rows, so select
with `core.labels.dense` or `kept_rows` before fitting.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxface.core import checks
from jaxface.core.labels import dense

__all__ = ["kept_rows", "random_groups", "track_groups"]


def random_groups(
    labels: Sequence[Any] | np.ndarray,
    *,
    group_size: int,
    rng: np.random.Generator,
    num_draws: int = 1,
    min_size: int | None = None,
    num_groups: int | None = None,
) -> np.ndarray:
    """Random groups of `group_size` rows of one person: int32 `[num_draws, n]`, -1 for rows in no group.

    A draw cuts the n_c rows of each person at random into floor(n_c / group_size) groups. The rest of a person
    forms a smaller group when it has at least `min_size` rows (default: `group_size`, that is never). `num_groups`
    keeps only that many groups of each draw, chosen at random. Every draw has the same number of groups, and draw
    i is the same however many draws there are.
    """
    checks.at_least("group_size", group_size, 1)
    checks.at_least("num_draws", num_draws, 1)
    if min_size is not None:
        checks.at_least("min_size", min_size, 1)
        checks.at_most("min_size", min_size, group_size, "group_size")
    rows, ids, _ = dense(labels)
    pattern = _cut_people(np.bincount(ids), group_size, min_size or group_size)
    available = int(pattern.max()) + 1
    if available == 0:
        most = np.bincount(ids).max()
        raise ValueError(f"group_size must be at most {most}, the most rows of one person; got {group_size}.")
    num_groups = available if num_groups is None else num_groups
    checks.at_least("num_groups", num_groups, 1)
    checks.at_most("num_groups", num_groups, available, f"the groups of {group_size} in these labels")
    noise = rng.random((num_draws, ids.size + available))
    shuffled = np.lexsort((noise[:, : ids.size], np.broadcast_to(ids, (num_draws, ids.size))), axis=-1)
    number = _renumber_chosen(noise[:, ids.size :], num_groups)
    groups = np.full((num_draws, len(labels)), -1, np.int32)
    np.put_along_axis(groups, rows[shuffled], number[:, pattern], axis=1)
    return groups


def kept_rows(draws: Any) -> tuple[np.ndarray, np.ndarray]:
    """The grouped rows of each draw of `[m, n]` and their groups: int64 `[m, k]` and int32 `[m, k]`.

    With these, `jax.vmap(lambda rows, groups: fit(x[rows], groups))` runs all draws in one call.
    """
    draws = np.asarray(draws)
    checks.shapes(draws=(draws, "m n"))
    counts = (draws >= 0).sum(1)
    if np.unique(counts).size != 1:
        raise ValueError(
            f"draws must group the same number of rows each; got from {counts.min()} to {counts.max()}. "
            "Draw groups of one size: leave min_size at its default."
        )
    rows = np.nonzero(draws >= 0)[1].reshape(len(draws), counts[0])
    return rows, np.take_along_axis(draws, rows, axis=1)


def movement(positions: Any, tracks: Any, *, frames: Any = None) -> np.ndarray:
    """How far a face moved since the frame before in its track: float64 `[n]`, inf where there is none.

    positions: landmarks `[n, p, 2]` (mean displacement of the p points) or vectors `[n, d]` (Euclidean distance).
    tracks: integers `[n]`, -1 for rows in no track; the rows of several tracks may be interleaved.
    frames: frame numbers `[n]`. The movement across a missing frame is infinite, because nothing is known of it;
    without frame numbers the rows of a track are consecutive frames in the order of the rows.
    """
    positions, tracks = _check_tracks(positions, tracks)
    order, follows = _in_time(tracks, frames)
    step = np.linalg.norm(np.diff(positions[order].astype(np.float64), axis=0), axis=-1)
    step = step.mean(-1) if step.ndim == 2 else step
    moved = np.full(len(tracks), np.inf)
    moved[order[1:]] = np.where(follows[1:], step, np.inf)
    return moved


def track_groups(
    positions: Any,
    tracks: Any,
    *,
    threshold: float,
    min_size: int = 2,
    max_size: int | None = None,
    frames: Any = None,
) -> np.ndarray:
    """Groups cut from face tracks: int32 `[n]`, -1 for rows in no group.

    Consecutive frames belong together while each moves at most `threshold` (in the units of `positions`) from the
    one before. Runs longer than `max_size` are cut into pieces of `max_size`; pieces of fewer than `min_size`
    frames are in no group. Groups are numbered by track, then by time; other arguments as in `movement`.
    """
    checks.at_least("min_size", min_size, 1)
    if max_size is not None:
        checks.at_least("max_size", max_size, min_size, "min_size")
    checks.between("threshold", threshold, 0.0, np.inf)
    moved = movement(positions, tracks, frames=frames)
    tracks = np.asarray(tracks)
    order = _in_time(tracks, frames)[0]
    order = order[tracks[order] != -1]
    starts = (moved[order] > threshold) | np.isinf(moved[order])
    if max_size is not None:
        within = np.arange(order.size) - np.flatnonzero(starts)[np.cumsum(starts) - 1]
        starts = within % max_size == 0
    piece = np.cumsum(starts) - 1
    long_enough = np.bincount(piece) >= min_size
    groups = np.full(len(tracks), -1, np.int32)
    groups[order] = np.where(long_enough, np.cumsum(long_enough) - 1, -1)[piece]
    return groups


def _cut_people(counts: np.ndarray, group_size: int, min_size: int) -> np.ndarray:
    """Group of each row when rows are sorted by person: `[sum counts]`, -1 for the rest of a person."""
    groups_of = counts // group_size + (counts % group_size >= min_size)
    first = np.cumsum(groups_of) - groups_of
    person = np.repeat(np.arange(counts.size), counts)
    within = np.arange(person.size) - (np.cumsum(counts) - counts)[person]
    piece = within // group_size
    return np.where(piece < groups_of[person], first[person] + piece, -1)


def _renumber_chosen(noise: np.ndarray, num_groups: int) -> np.ndarray:
    """A random choice among R groups in each of m draws: int32 `[m, R + 1]`, the new number or -1.

    The extra last column is -1, so that group -1 keeps its value when it is used as an index.
    """
    chosen = np.sort(np.argsort(noise, axis=1)[:, :num_groups], axis=1)
    number = np.full((noise.shape[0], noise.shape[1] + 1), -1, np.int32)
    np.put_along_axis(number, chosen, np.arange(num_groups, dtype=np.int32)[None], axis=1)
    return number


def _check_tracks(positions: Any, tracks: Any) -> tuple[np.ndarray, np.ndarray]:
    positions, tracks = np.asarray(positions), np.asarray(tracks)
    if positions.ndim not in (2, 3):
        raise ValueError(f"positions must have shape [n, d] or [n, p, 2]; got shape {positions.shape}.")
    checks.finite(positions=positions)
    if tracks.shape != positions.shape[:1] or tracks.dtype.kind not in "iu":
        raise ValueError(
            f"tracks must hold one integer for each of the {len(positions)} rows; "
            f"got dtype {tracks.dtype} and shape {tracks.shape}."
        )
    return positions, tracks


def _in_time(tracks: np.ndarray, frames: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows by track and time `[n]`, and whether each (in that order) comes one frame after the row before it."""
    times = np.arange(len(tracks)) if frames is None else np.asarray(frames)
    checks.shapes(tracks=(tracks, "n"), frames=(times, "n"))
    checks.finite(frames=times)
    order = np.lexsort((times, tracks))
    same_track = np.r_[False, np.diff(tracks[order]) == 0][: len(tracks)] & (tracks[order] != -1)
    if frames is None:
        return order, same_track
    gap = np.diff(times[order], prepend=times[order[:1]])
    if (same_track & (gap == 0)).any():
        row = order[np.flatnonzero(same_track & (gap == 0))[0]]
        raise ValueError(f"frames must differ within a track; track {tracks[row]} has frame {times[row]} twice.")
    return order, same_track & (gap == 1)
