"""Curves from counts: scores that are too many to keep are counted in bins, and the counts give a ROC with bounds.

Counts for `edges [b + 1]` have b + 2 entries: `counts[0]` scores below `edges[0]`, `counts[i]` scores in
[edges[i - 1], edges[i]), `counts[b + 1]` scores from `edges[b]` up. Counts of blocks, devices and hosts add:
merging is `+`.

The ROC from counts is exact at every edge and a straight line within a bin. Functions of `verification` are then
exact to the bin, and the `*_bounds` here are the interval in which the exact value lies, whatever the order of the
scores inside a bin.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import arguments
from jaxface.metrics.arguments import Array
from jaxface.metrics.verification import Roc

__all__ = ["Bounds", "auc_bounds", "count", "eer_bounds", "roc", "verification_rate_bounds"]

Counts = npt.NDArray[np.int64]


class Bounds(NamedTuple):
    """The exact value lies in [low, high]."""

    low: float
    high: float


def count(scores: npt.ArrayLike, is_same: npt.ArrayLike, edges: npt.ArrayLike) -> tuple[Counts, Counts]:
    """Genuine and impostor counts `[b + 2]` of a block of scores `[p]`; a block may hold one kind only, or nothing."""
    checks.shapes(scores=(scores, "p"), is_same=(is_same, "p"))
    values, same = arguments.numbers("scores", scores), arguments.mask("is_same", is_same)
    arguments.not_nan(scores=values)
    boundaries = _edges(edges)
    bins = np.searchsorted(boundaries, values, side="right")
    size = boundaries.size + 1
    genuine = np.bincount(bins[same], minlength=size).astype(np.int64)
    return genuine, np.bincount(bins[~same], minlength=size).astype(np.int64)


def roc(edges: npt.ArrayLike, genuine: npt.ArrayLike, impostor: npt.ArrayLike) -> Roc:
    """The ROC `[b + 3]` at thresholds +inf, edges from the last to the first, -inf."""
    boundaries = _edges(edges)
    size = boundaries.size + 1
    return Roc(
        thresholds=np.concatenate([[np.inf], boundaries[::-1], [-np.inf]]),
        far=_accepted_share("impostor", impostor, size),
        vr=_accepted_share("genuine", genuine, size),
    )


def auc_bounds(curve: Roc) -> Bounds:
    """AUC with all impostors of a bin above its genuine scores, and with all below."""
    width = np.diff(curve.far)
    return Bounds(float(width @ curve.vr[:-1]), float(width @ curve.vr[1:]))


def eer_bounds(curve: Roc) -> Bounds:
    """The part of FAR = FRR inside the bin where the curve crosses it.

    The exact curve rises through the rectangle between two points (f0, v0) and (f1, v1), so it meets the line
    between max(f0, 1 - v1) and min(f1, 1 - v0).
    """
    after = int(np.argmax(curve.far + curve.vr >= 1.0))
    low = max(curve.far[after - 1], 1.0 - curve.vr[after])
    high = min(curve.far[after], 1.0 - curve.vr[after - 1])
    return Bounds(float(low), float(high))


def verification_rate_bounds(curve: Roc, far: float) -> Bounds:
    """VR@FAR reached at an edge, and with every genuine score of the next bin above its impostors."""
    checks.between("far", far, 0.0, 1.0)
    point = int(np.searchsorted(curve.far, far, side="right")) - 1
    following = min(point + 1, curve.vr.size - 1)
    return Bounds(float(curve.vr[point]), float(curve.vr[following]))


def _edges(edges: npt.ArrayLike) -> Array:
    checks.shapes(edges=(edges, "b"))
    boundaries = arguments.numbers("edges", edges)
    checks.finite(edges=boundaries)
    if boundaries.size < 2 or not (np.diff(boundaries) > 0.0).all():
        raise ValueError(
            f"edges must be at least two rising numbers; got {boundaries.size} values that "
            f"{'do not all rise' if boundaries.size > 1 else 'make no bin'}. Use e.g. np.linspace(low, high, 4097)."
        )
    return boundaries


def _accepted_share(name: str, counts: npt.ArrayLike, size: int) -> Array:
    """Share of scores at or above each threshold, from 0 to 1."""
    checks.shapes(**{name: (counts, str(size))})
    values = np.asarray(counts)
    if not np.issubdtype(values.dtype, np.integer) or (values < 0).any() or not values.any():
        raise ValueError(
            f"{name} must be non-negative integer counts with a sum above 0; got dtype {values.dtype} and "
            f"sum {values.sum()}. Widen the pair list, or check the overflow of the counts."
        )
    accepted = np.concatenate([[0], np.cumsum(values[::-1], dtype=np.int64)])
    return accepted / accepted[-1]
