"""Labels of any kind as dense integers: people by name, rows by group, classes by number. NumPy only."""

import re
from collections.abc import Collection, Mapping, Set
from typing import Any, NamedTuple

import numpy as np

from jaxface.core import checks, messages

__all__ = ["Dense", "dense", "natural_key"]


class Dense(NamedTuple):
    """Rows that have a label, with dense ids."""

    rows: np.ndarray  # int64 [k], the rows kept, ascending
    ids: np.ndarray  # int32 [k], in [0, c), every value occurs
    names: tuple[str | int, ...]  # [c], names[ids[j]] is the label of row rows[j]; in natural order


def dense(labels: Any) -> Dense:
    """Makes labels `[n]` (all strings or all integers) dense and drops the rows labelled -1 or None.

    Names are sorted, strings in natural order (s2 before s10), so ids do not depend on the order of the rows.
    """
    values, rows = _labeled(labels)
    unique, inverse = np.unique(values, return_inverse=True)
    names = unique.tolist()
    for name in names:
        if isinstance(name, str):
            checks.utf8(name, "labels")
    order = sorted(range(len(names)), key=lambda index: _sort_key(names[index]))
    rank = np.empty(len(names), np.int32)
    rank[order] = np.arange(len(names), dtype=np.int32)
    return Dense(rows, rank[inverse], tuple(names[index] for index in order))


def natural_key(name: str) -> tuple[tuple[int | str, ...], str]:
    """Sort key in which runs of digits count as numbers: `s2` stands before `s10`."""
    parts = re.split(r"([0-9]{1,18})", name)  # int() takes no more than 4,300 digits
    return tuple(int(part) if index % 2 else part for index, part in enumerate(parts)), name


def _labeled(labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """The labels that are neither -1 nor None, as an integer or string array, and their rows."""
    is_array, is_unordered = hasattr(labels, "__array__"), isinstance(labels, str | bytes | Mapping | Set)
    if not is_array and (is_unordered or not isinstance(labels, Collection)):
        raise ValueError(f"labels must be a list or an array, one label a row; got {messages.describe(labels)}.")
    # A list is read as objects: NumPy would silently turn [1, 'a'] into two strings.
    values = np.asarray(labels) if hasattr(labels, "__array__") else np.fromiter(labels, object)
    if values.ndim != 1:
        raise ValueError(f"labels must have shape [n]; got shape {values.shape}. Flatten them with .ravel().")
    if values.dtype.kind not in "iuUO":
        raise ValueError(f"labels must be integers or strings; got dtype {values.dtype}.")
    rows = np.flatnonzero([not _is_missing(value) for value in values] if values.dtype == object else values != -1)
    if rows.size == 0:
        raise ValueError(f"labels must name at least one row; got {values.size} rows, all of them -1 or None.")
    return _uniform(values[rows]), rows


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, int | np.integer) and label == -1)


def _uniform(values: np.ndarray) -> np.ndarray:
    """Objects as int64 or strings; refuses a mixture and anything else."""
    if values.dtype != object:
        return values
    kinds = {type(value) for value in values}
    if all(issubclass(kind, str) for kind in kinds):
        return values.astype(str)
    if all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        if max(map(abs, values.tolist())) >= 2**63:
            raise ValueError("labels must fit into 64 bits; give larger numbers as strings.")
        return values.astype(np.int64)
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise ValueError(f"labels must be all integers or all strings, None or -1 where there is none; got {names}.")


def _sort_key(name: str | int) -> Any:
    return natural_key(name) if isinstance(name, str) else name
