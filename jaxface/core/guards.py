"""chex, imported at its first use: its import costs as much as that of a room, and a first score needs none of it."""

import importlib
from typing import Any

__all__ = []


def __getattr__(name: str) -> Any:
    """`guards.assert_rank` is `chex.assert_rank`."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("chex"), name)
