"""Checks of config fields before the first stage: a wrong value is reported at once, not after an hour.

A field is named with dots, `"clustering.num_iters"`, below the `section` if there is one. A field that holds a tuple is
checked entry by entry and must not be empty; None means that the field is not used and passes.
"""

import math
import numbers
from collections.abc import Collection
from functools import reduce
from typing import Any

from ml_collections import ConfigDict

from jaxface.core import checks, messages


def counts(config: ConfigDict, *names: str, minimum: int = 1, section: str = "") -> None:
    """Whole numbers of at least `minimum`."""
    for name, value in _entries(config, names, section):
        checks.at_least(name, value, minimum)


def shares(config: ConfigDict, *names: str, above_zero: bool = False, section: str = "") -> None:
    """Numbers from 0 to 1."""
    for name, value in _entries(config, names, section):
        checks.between(name, _number(name, value), 0.0, 1.0, closed_low=not above_zero)


def positive(config: ConfigDict, *names: str, section: str = "") -> None:
    """Finite numbers above 0."""
    for name, value in _entries(config, names, section):
        checks.positive(name, _number(name, value))


def not_negative(config: ConfigDict, *names: str, section: str = "") -> None:
    """Finite numbers, 0 or above."""
    for name, value in _entries(config, names, section):
        checks.between(name, _number(name, value), 0.0, math.inf, closed_high=False)


def words(config: ConfigDict, name: str, choices: Collection[str], *, section: str = "") -> None:
    """Known words, each at most once."""
    entries = _entries(config, (name,), section)
    for label, word in entries:
        checks.one_of(label, word, choices)
    if len({word for _, word in entries}) < len(entries):
        raise ValueError(f"config.{name} must name each choice once; got {', '.join(word for _, word in entries)}.")


def _entries(config: ConfigDict, names: tuple[str, ...], section: str) -> list[tuple[str, Any]]:
    """Every value with its name for a message."""
    entries: list[tuple[str, Any]] = []
    for field in names:
        name = f"{section}.{field}" if section else field
        value = reduce(getattr, name.split("."), config)
        if isinstance(value, tuple | list):
            if not value:
                raise ValueError(f"config.{name} is empty; it needs at least one entry.")
            entries += _flat(f"config.{name}", value)
        elif value is not None:
            entries.append((f"config.{name}", value))
    return entries


def _flat(name: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, tuple | list):
        return [(name, value)]
    return [entry for k, inner in enumerate(value) for entry in _flat(f"{name}[{k}]", inner)]


def _number(name: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name} must be a number; got {messages.describe(value)}.")
    return value
