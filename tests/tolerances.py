"""One table of tolerances, keyed by dtype; a test widens it by a stated factor, never by its own number."""

from typing import Any

import jax
import numpy as np

RTOL = {np.dtype("float64"): 1e-10, np.dtype("float32"): 1e-5}
ATOL = {np.dtype("float64"): 1e-12, np.dtype("float32"): 1e-6}


def assert_close(actual: Any, expected: Any, *, factor: float = 1.0) -> None:
    """Compares pytrees leaf by leaf at the tolerance of the coarser dtype, relative to the largest finite entry.

    NaN and infinities must stand at the same places, infinities with the same sign.
    """
    actual_leaves, actual_tree = jax.tree.flatten(actual)
    expected_leaves, expected_tree = jax.tree.flatten(expected)
    assert actual_tree == expected_tree, f"structures differ: {actual_tree} against {expected_tree}"
    for left, right in zip(actual_leaves, expected_leaves, strict=True):
        left, right = np.asarray(left), np.asarray(right)
        assert left.shape == right.shape, f"shapes differ: {left.shape} against {right.shape}"
        floats = [x.dtype for x in (left, right) if x.dtype in RTOL]
        if not floats:
            np.testing.assert_array_equal(left, right)
            continue
        coarse = max(floats, key=lambda dtype: RTOL[dtype])
        scale = np.max(np.abs(right[np.isfinite(right)]), initial=0.0)
        np.testing.assert_allclose(left, right, rtol=0.0, atol=factor * (RTOL[coarse] * scale + ATOL[coarse]))


def projector(basis: Any) -> np.ndarray:
    """W W' of a basis `[d, r]` with orthonormal or zero columns: how subspaces are compared."""
    basis = np.asarray(basis)
    return basis @ basis.T


def largest_angle(left: Any, right: Any) -> float:
    """Sine of the largest principal angle between two orthonormal bases (zero columns are ignored)."""
    return float(np.linalg.norm(projector(left) - projector(right), 2))
