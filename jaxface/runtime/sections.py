"""Config sections to functions and keyword arguments, so that no string of a config reaches an algorithm."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from jaxface.core import checks, messages

__all__ = ["arguments", "arguments_of", "one"]

T = TypeVar("T")


def one(name: str, choice: str, table: Mapping[str, T]) -> T:
    """`table[choice]`, or an error that lists the choices and suggests the nearest."""
    checks.one_of(name, choice, table.keys())
    return table[choice]


def arguments(section: Mapping[str, Any], *targets: Callable[..., Any]) -> dict[str, Any]:
    """A config section as keyword arguments, checked against the keyword-only parameters of the targets.

    Every key must be a parameter of some target: a typo is an error with the nearest name. Called with several
    functions it returns the union; `arguments_of` then picks the arguments of one of them.
    """
    known = {name for target in targets for name in _keywords(target)}
    values = dict(section.items())
    for key in values:
        if key not in known:
            where = ", ".join(_name(target) for target in targets)
            listed = ", ".join(sorted(known)) or "none"
            raise ValueError(
                f"{key!r} is not an argument of {where} (it takes {listed}).{messages.did_you_mean(key, known)}"
            )
    return values


def arguments_of(target: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The part of `values` that `target` takes as keyword arguments."""
    known = _keywords(target)
    return {key: value for key, value in values.items() if key in known}


def _keywords(target: Callable[..., Any]) -> set[str]:
    parameters = inspect.signature(target).parameters.values()
    return {p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def _name(target: Callable[..., Any]) -> str:
    module = getattr(target, "__module__", "").removeprefix("jaxface.")
    return f"{module}.{getattr(target, '__name__', target)}"
