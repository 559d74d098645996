"""Words for messages: values by type and shape, near misses by name, and texts from outside as safe lines."""

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["describe", "did_you_mean", "printable", "printable_lines"]


def describe(value: Any) -> str:
    """How a value is named in a message: dtype and shape of an array, the value and type of anything else."""
    if hasattr(value, "dtype"):
        return f"an array of dtype {value.dtype} and shape {np.shape(value)}"
    return f"{value!r} of type {type(value).__name__}"


def did_you_mean(word: Any, choices: Iterable[str]) -> str:
    """` Did you mean 'x'?` for the nearest choice, or nothing."""
    near = difflib.get_close_matches(str(word), [str(choice) for choice in choices], n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def printable(text: Any) -> str:
    """A text from outside as one line for a terminal: control, format and undecodable characters as escapes.

    A file name may hold the codes that move a cursor or turn the direction of writing, or bytes that are not UTF-8.
    """
    return "".join(c if c.isprintable() else _escape(c) for c in str(text))


def printable_lines(text: str) -> str:
    """`printable`, line by line, for texts of our own that quote others."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python holds a byte of a name that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()
