"""`jax.jit` for small functions that many others call: traced once, and one program where no other is around."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import jax

__all__ = ["program"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def program(fn: _Function) -> _Function:
    """The function as a program, with the types of its arguments and of its result as they were declared."""
    return cast(_Function, jax.jit(fn))
