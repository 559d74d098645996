"""Text files of columns: cells between tabs, commas, semicolons or spaces, with a header or without.

text     a file in UTF-8
rows     the cells of all lines
cells    the cells of lines one after another
table    the columns with their names
place    a column by its name or its number
truth    a column that says which pairs show one person
numbers  a column of scores
"""

import csv
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxface.core import messages

__all__ = []

_SAME = frozenset({"1", "true", "yes", "same", "target", "genuine", "match", "mated", "client", "positive"})
_DIFFERENT = frozenset({"0", "-1", "false", "no", "different", "impostor", "imposter", "negative"}) | frozenset(
    prefix + word for prefix in ("non", "non-", "non_", "not-") for word in ("target", "match", "mated")
)


SEPARATORS = "\t;,"


class Table(NamedTuple):
    """The cells of a file."""

    path: Path
    names: tuple[str, ...]  # [c], from the header or counted from 1
    columns: tuple[tuple[str, ...], ...]  # [c] of [p]
    first_line: int  # of the first row

    def line(self, row: int) -> str:
        """Where a row stands, for a message."""
        return f"{messages.printable(self.path)}, row {row + self.first_line}"

    def listed(self) -> str:
        """The columns with their first cells, for a message."""
        cells = (f"{name} ({column[0]!r}, ...)" for name, column in zip(self.names, self.columns, strict=True))
        return messages.printable(", ".join(cells))


def rows(path: Path, delimiter: str | None) -> list[list[str]]:
    """The cells of all lines that are neither empty nor comments."""
    lines = [line for line in text(path).splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        raise ValueError(f"{messages.printable(path)} holds no trials: it has no line that is not empty.")
    return list(cells(path, lines, delimiter or separator(lines[0])))


def text(path: Path) -> str:
    """The text of a file in UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{messages.printable(path)} is not text in UTF-8 ({error}). Save it as such.") from error


def separator(line: str) -> str | None:
    """The tab, semicolon or comma of a line, in this order; None where white space separates its cells."""
    return next((mark for mark in SEPARATORS if mark in line), None)


def cells(path: Path, lines: Iterable[str], mark: str | None) -> Iterator[list[str]]:
    """The cells of each line between `mark`, or between spaces; a cell in quotes may hold the mark."""
    if mark is None:
        yield from (line.split() for line in lines)
        return
    try:
        yield from ([cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark))
    except csv.Error as error:
        raise ValueError(f"{messages.printable(path)} cannot be read as lines of cells: {error}.") from error


def table(path: Path, rows: list[list[str]], *, named: Collection[str] = (), known: Collection[str] = ()) -> Table:
    """The columns, by the names in the first row if that is a header.

    A first row with one of the names `named` is a header, and so is a row without numbers that has a `known` word.
    """
    head = rows[0]
    is_header = any(name in head for name in named) or _is_header(rows, known)
    body = rows[1:] if is_header else rows
    if not body:
        raise ValueError(f"{messages.printable(path)} holds no trials below its header {messages.printable(head)}.")
    for number, row in enumerate(body, 1 + is_header):
        if len(row) != len(head):
            raise ValueError(
                f"{messages.printable(path)}, row {number}: {len(row)} cells ({messages.printable(row[:6])}), but the "
                f"first row has {len(head)}. Is another delimiter needed?"
            )
    names = tuple(head) if is_header else tuple(str(k + 1) for k in range(len(head)))
    if len(set(names)) < len(names):
        raise ValueError(f"{messages.printable(path)} has two columns of one name: {messages.printable(names)}.")
    return Table(path, names, tuple(zip(*body, strict=True)), 1 + is_header)


def _is_header(rows: list[list[str]], known: Collection[str]) -> bool:
    """Whether the first row names the columns: the truth, too, may be a word such as `target`, in every row."""
    head, below = [cell.lower() for cell in rows[0]], rows[1:]
    if any(map(is_number, head)):
        return False
    if len(head) == 1:
        return bool(below) and is_number(below[0][0])

    def is_name(place: int) -> bool:
        word = head[place]
        return word in known and not (
            is_truth(word) and any(word in " ".join(row[place : place + 1]).lower() for row in below)
        )

    return any(map(is_name, range(len(head))))


def place(table: Table, name: str) -> int:
    """The number of a column, from its name or its place counted from 1."""
    if name in table.names:
        return table.names.index(name)
    if name.isascii() and name.isdecimal() and 1 <= int(name) <= len(table.names):
        return int(name) - 1
    near = messages.did_you_mean(name, table.names)
    raise ValueError(f"{messages.printable(table.path)} has no column {name!r}; it has {table.listed()}.{near}")


def truth(table: Table, place: int) -> np.ndarray:
    """A column as bool `[p]`: whether each pair shows one person."""
    column = table.columns[place]
    meaning = {cell: cell.lower() in _SAME for cell in set(column)}
    if not are_truths(column):
        row = next(row for row, cell in enumerate(column) if not is_truth(cell))
        raise ValueError(
            f"{table.line(row)}: {messages.printable(repr(column[row]))} in the column {table.names[place]!r} does not "
            "say whether the pair shows one person; expected 1 or 0, true or false, same or different, target or "
            "nontarget."
        )
    return np.array([meaning[cell] for cell in column])


def numbers(table: Table, place: int) -> np.ndarray:
    """A column as scores float64 `[p]`; infinities are legal, NaN is not."""
    column = table.columns[place]
    values = _floats(column)
    if values is None or np.isnan(values).any():
        row = next(row for row, cell in enumerate(column) if not is_number(cell) or math.isnan(float(cell)))
        raise ValueError(
            f"{table.line(row)}: {messages.printable(repr(column[row]))} in the column {table.names[place]!r} is no "
            "score. A comparison that failed scores -inf."
        )
    return values


def are_numbers(cells: Sequence[str]) -> bool:
    """Whether every cell is a number."""
    return is_number(cells[0]) and _floats(cells) is not None


def are_truths(cells: Sequence[str]) -> bool:
    """Whether every cell says that a pair shows one person, or that it does not."""
    return is_truth(cells[0]) and all(map(is_truth, set(cells)))


def is_truth(cell: str) -> bool:
    """Whether a cell says that a pair shows one person, or that it does not."""
    return cell.lower() in _SAME or cell.lower() in _DIFFERENT


def is_number(cell: str) -> bool:
    """Whether a cell is a number in digits, an infinity or NaN."""
    return _floats((cell,)) is not None


def _floats(cells: Sequence[str]) -> np.ndarray | None:
    """Cells as float64, or None where one is no number; digits of other scripts and `1_000` are none."""
    joined = "".join(cells)
    if not joined.isascii() or "_" in joined:
        return None
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return None
