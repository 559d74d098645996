"""Modules of a room that are imported at their first use, so that a program waits for what it needs only."""

import importlib
from collections.abc import Callable, Sequence
from types import ModuleType

__all__ = ["modules_of"]


def modules_of(package: str, names: Sequence[str]) -> Callable[[str], ModuleType]:
    """The `__getattr__` of a room: the module of that name, imported now."""

    def find(name: str) -> ModuleType:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(f"{package}.{name}")

    return find
