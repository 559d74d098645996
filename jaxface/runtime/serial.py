"""What a run keeps, as the content of files: JSON with sorted keys, `.npz` without pickles, UTF-8."""

import io
import json
import math
import os
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxface.core import messages

__all__ = []


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Keys with other values, in words."""
    old, new = _flat(before), _flat(now)
    differing = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return "; ".join(f"{key}: {old.get(key, 'absent')!r} -> {new.get(key, 'absent')!r}" for key in differing)


def npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def to_json(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, default=_plain, allow_nan=True)


def without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    """Arrays, NumPy scalars and tuples as JSON; anything else is an error that names its type."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | jax.Array):
        return np.asarray(value).tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    raise TypeError(f"{messages.describe(value)} cannot be written as JSON")


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as dotted keys."""
    if not isinstance(tree, dict) or not tree:
        return {prefix: tree}
    parts = (_flat(value, f"{prefix}.{key}" if prefix else str(key)) for key, value in tree.items())
    return {name: leaf for part in parts for name, leaf in part.items()}


def utf8(text: str) -> bytes:
    """UTF-8 of a text that may hold undecodable bytes of file names, which become escapes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace").encode()
