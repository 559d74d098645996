"""Pool adjacent violators, as the upper concave hull of a rising curve, in O(n).

Both are one algorithm: the slopes of the hull of (impostors accepted, genuine pairs accepted) are the odds
that isotonic regression of the labels on the scores gives, ties pooled.
"""

import numpy as np

from jaxface.metrics.inputs import Array, Index

__all__ = []


def concave_hull(x: Array, y: Array) -> Index:
    """Indices `[k]` of the vertices of the upper concave hull of a curve `[n]` that never falls in x or y.

    A vertex on or below the chord of its two neighbours is not on the hull, so all such vertices go at once;
    rounds of that remove most of a curve at NumPy speed. When a round removes less than an eighth, a stack
    finishes in one pass, so the whole stays O(n) on any input. Of points that are the same, as empty bins make them,
    the first stands for all; at the end of the curve the last.
    """
    # Two copies of a vertex would lie on each other's chords, and both would go.
    kept = np.flatnonzero(np.concatenate([[True], (np.diff(x) != 0) | (np.diff(y) != 0)]))
    if kept.size > 1:
        kept[-1] = x.size - 1
    while kept.size > 2:
        survivors = kept[_bends_down(x[kept], y[kept])]
        shrunk_by = kept.size - survivors.size
        if shrunk_by == 0:
            return kept
        if 8 * shrunk_by < kept.size:
            return survivors[_stack(x[survivors].tolist(), y[survivors].tolist())]
        kept = survivors
    return kept


def _bends_down(x: Array, y: Array) -> np.ndarray:
    """Mask `[n]` of the ends and of every vertex strictly above the chord of its neighbours."""
    dx, dy = np.diff(x), np.diff(y)
    inner = dy[:-1] * dx[1:] > dy[1:] * dx[:-1]
    return np.concatenate([[True], inner, [True]])


def _stack(x: list[float], y: list[float]) -> list[int]:
    """The hull by one pass with a stack: each vertex enters once and leaves at most once."""
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[i] - x[b]) > (y[i] - y[b]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    return hull
