"""Gathering and scattering by NumPy: for every element of the result or update, where in the array it is."""

from collections.abc import Callable
from typing import Any

import numpy as np

OUTSIDE = "FILL_OR_DROP"


def places(
    shape: tuple[int, ...],
    indices: np.ndarray,
    *,
    window_axes: Any,
    window_of: list[int],
    sizes: list[int],
    axes_of_indices: Any,
    batch_axes_of_array: Any,
    batch_axes_of_indices: Any,
    clips: bool,
) -> tuple[list[np.ndarray], np.ndarray]:
    """An index for each axis of an array of this shape, and whether the window lies inside; both broadcast.

    window_axes: axes of the result that run through the window
    window_of: the axis of the array that each of these runs through
    sizes: of the window, for every axis of the array
    """
    rank = indices.ndim - 1 + len(window_axes)
    outer = [axis for axis in range(rank) if axis not in window_axes]

    def spread(values: np.ndarray, axes: list[int]) -> np.ndarray:
        aligned = [1] * rank
        for size, axis in zip(values.shape, axes, strict=True):
            aligned[axis] = size
        return values.reshape(aligned)

    inside = np.ones([1] * rank, bool)
    found = [np.zeros([1] * rank, np.int64) for _ in shape]
    for column, axis in enumerate(axes_of_indices):
        start = spread(indices[..., column].astype(np.int64), outer)
        last = shape[axis] - sizes[axis]
        inside = inside & (start >= 0) & (start <= last)
        found[axis] = np.clip(start, 0, last) if clips else start
    for axis, of_indices in zip(batch_axes_of_array, batch_axes_of_indices, strict=True):
        found[axis] = spread(np.arange(shape[axis]), [outer[of_indices]])
    for axis, of_result in zip(window_of, window_axes, strict=True):
        found[axis] = found[axis] + spread(np.arange(sizes[axis]), [of_result])
    return found, inside


def beside(dtype: Any) -> Any:
    """What stands where an index is outside."""
    if np.issubdtype(dtype, np.inexact):
        return np.nan
    if np.issubdtype(dtype, np.bool_):
        return True
    return np.iinfo(dtype).min if np.issubdtype(dtype, np.signedinteger) else np.iinfo(dtype).max


def gather(x: np.ndarray, indices: np.ndarray, *, dimension_numbers: Any, slice_sizes: Any, mode: Any, fill_value: Any,
           **_: Any) -> np.ndarray:  # fmt: skip
    numbers = dimension_numbers
    hidden = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    found, inside = places(
        x.shape,
        indices,
        window_axes=numbers.offset_dims,
        window_of=[axis for axis in range(x.ndim) if axis not in hidden],
        sizes=list(slice_sizes),
        axes_of_indices=numbers.start_index_map,
        batch_axes_of_array=numbers.operand_batching_dims,
        batch_axes_of_indices=numbers.start_indices_batching_dims,
        clips=True,
    )
    if mode.name != OUTSIDE:
        return x[tuple(found)]
    inside = np.broadcast_to(inside, np.broadcast_shapes(*(at.shape for at in found), inside.shape))
    taken = x[tuple(found)] if x.size else np.zeros(inside.shape, x.dtype)
    return np.where(inside, taken, np.asarray(beside(x.dtype) if fill_value is None else fill_value, x.dtype))


def scatter(combine: Callable[..., Any]) -> Callable[..., np.ndarray]:
    def form(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, dimension_numbers: Any, mode: Any,
             **_: Any) -> np.ndarray:  # fmt: skip
        numbers = dimension_numbers
        hidden = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
        window_of = [axis for axis in range(x.ndim) if axis not in hidden]
        sizes = [1] * x.ndim
        for axis, of_updates in zip(window_of, numbers.update_window_dims, strict=True):
            sizes[axis] = updates.shape[of_updates]
        found, inside = places(
            x.shape,
            indices,
            window_axes=numbers.update_window_dims,
            window_of=window_of,
            sizes=sizes,
            axes_of_indices=numbers.scatter_dims_to_operand_dims,
            batch_axes_of_array=numbers.operand_batching_dims,
            batch_axes_of_indices=numbers.scatter_indices_batching_dims,
            clips=mode.name == "CLIP",
        )
        valid = np.broadcast_to(inside | (mode.name == "CLIP"), updates.shape)
        out = x.copy()
        combine(out, tuple(np.broadcast_to(at, updates.shape)[valid] for at in found), updates[valid])
        return out

    return form
