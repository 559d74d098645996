"""Vectors in CSV, TSV or other text: a row each, with columns of numbers, of labels and of files.

    read   a file, line by line: memory is that of the numbers

A first row with names is told from one with numbers. `labels` and `files` name a column, by its name or counted from
1; without them the usual names are known. The vectors are the numbered columns (`f0`, `f1`, ... or `0`, `1`, ...), or
those from `FIRST` to `LAST` with `features="FIRST:LAST"`. A column without a name, the index that pandas writes, is
left out.
"""

import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxface.core import messages
from jaxface.data import delimited, label_files
from jaxface.data.datasets import RawVectors
from jaxface.data.delimited import Table

__all__ = []

_LOOKED_AT = 20  # rows that tell numbers from names
_SHOWN = 8  # columns that a message names


class _Roles(NamedTuple):
    """The columns of the vectors, of the labels and of the files."""

    features: list[int]
    labels: int | None
    files: int | None


def read(
    path: Path,
    *,
    features: str | None = None,
    labels: str | None = None,
    files: str | None = None,
) -> RawVectors:
    """The vectors of a text file, with labels and files where it has them."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            first = next((line for line in stream if line.strip()), "")
            stream.seek(0)
            rows = (row for row in delimited.cells(path, stream, delimited.separator(first)) if any(row))
            return _read(path, rows, features=features, labels=labels, files=files)
    except UnicodeDecodeError as error:
        raise ValueError(f"{messages.printable(path)} is not text in UTF-8 ({error}). Save it as such.") from error


def _read(path: Path, rows: Iterator[list[str]], **named: str | None) -> RawVectors:
    start = list(islice(rows, _LOOKED_AT))
    is_header = bool(start) and _is_header(start, [name for name in named.values() if name])
    body = start[is_header:]
    if not body:
        raise ValueError(f"{messages.printable(path)} holds no vectors: no row of cells below its names.")
    head = start[0] if is_header else [str(k + 1) for k in range(len(body[0]))]
    width = min(map(len, (head, *body)))  # rows of another length are refused below
    columns = tuple(zip(*(row[:width] for row in body), strict=True))
    table = Table(path, tuple(head[:width]), columns, 1 + is_header)
    roles = _roles(table, is_header, **named)
    values, kept = array("d"), (list[str](), list[str]())
    for number, row in enumerate(chain(body, rows), table.first_line):
        if len(row) != len(head):
            raise ValueError(
                f"{messages.printable(path)}, row {number}: {len(row)} cells, but the first row has {len(head)}."
            )
        values.extend(_numbers(table, number, row, roles.features))
        for place, words in zip((roles.labels, roles.files), kept, strict=True):
            if place is not None:
                words.append(row[place])
    vectors = np.frombuffer(values, np.float64).reshape(-1, len(roles.features))
    return RawVectors(vectors, kept[0] or None, tuple(kept[1]), f": its columns are {_listed(table)}")


def _numbers(table: Table, number: int, row: Sequence[str], places: Sequence[int]) -> list[float]:
    cells = [row[k] for k in places]
    try:
        text = "".join(cells)
        if not text.isascii() or "_" in text:  # float() takes digits of other scripts and `1_000`
            raise ValueError
        return [float(cell) for cell in cells]
    except ValueError:
        place = next(k for k in places if not delimited.is_number(row[k]))
        raise ValueError(
            f"{messages.printable(table.path)}, row {number}: {messages.printable(repr(row[place][:40]))} in the "
            f"column {messages.printable(table.names[place])!r} is no number."
        ) from None


def _is_header(start: list[list[str]], named: Sequence[str]) -> bool:
    """Whether the first row names the columns: one of its cells does, or stands above a number, or they count up."""
    head, below = start[0], start[1:2]
    words = {word for name in named for word in (name, *name.split(":"))}
    known = {*label_files.LABELS, *label_files.FILES}
    if any((cell in words and not delimited.is_number(cell)) or cell.lower() in known for cell in head):
        return True
    above = any(
        not delimited.is_number(cell) and delimited.is_number(under)
        for row in below
        for cell, under in zip(head, row, strict=False)
    )
    counted = [int(cell) for cell in head if cell.isascii() and cell.isdecimal()]
    return above or (len(counted) > 2 and counted == list(range(counted[0], counted[0] + len(counted))))


def _roles(table: Table, is_header: bool, *, features: str | None, labels: str | None, files: str | None) -> _Roles:
    """The roles of the columns: as given, by the usual names, by what the cells are."""
    of_files = label_files.known_column(table, label_files.FILES) if files is None else delimited.place(table, files)
    of_labels = (
        label_files.known_column(table, label_files.LABELS) if labels is None else delimited.place(table, labels)
    )
    taken = (of_labels, of_files)
    texts = [k for k, cells in enumerate(table.columns) if k not in taken and not any(map(delimited.is_number, cells))]
    if of_labels is None and len(texts) == 1 and features is None:
        of_labels = texts[0]
    if features is not None:
        return _Roles(_between(table, features), of_labels, of_files)
    rest = [k for k in range(len(table.names)) if k not in (of_labels, of_files, *texts)]
    if is_header:
        rest = [k for k in rest if table.names[k] and not table.names[k].startswith("Unnamed: ")]
    stems = {re.sub(r"\d+$", "", table.names[k]) for k in rest}
    whole = [k for k in rest if all(re.fullmatch(r"[+-]?\d+", cell) for cell in table.columns[k])]
    if not rest or len(stems) > 1 or (not is_header and 0 < len(whole) < len(rest)):
        listed = f"{_listed(table)}" if len(stems) > 1 or not rest else f"whole numbers in column {whole[0] + 1} only"
        raise ValueError(
            f"{messages.printable(table.path)}: which columns are the vector? It has {listed}. Name the first and the "
            "last with features=FIRST:LAST, by names or counted from 1, and the labels with labels=COLUMN."
        )
    return _Roles(rest, of_labels, of_files)


def _between(table: Table, span: str) -> list[int]:
    first, mark, last = span.partition(":")
    places = [delimited.place(table, name) for name in (first, last if mark else first)]
    if places[0] > places[1]:
        raise ValueError(f"features must be FIRST:LAST, the first column before the last; got {span!r}.")
    return list(range(places[0], places[1] + 1))


def _listed(table: Table) -> str:
    cells = (f"{name!r} ({column[0]!r}, ...)" for name, column in zip(table.names, table.columns, strict=True))
    more = f" and {len(table.names) - _SHOWN} more columns" if len(table.names) > _SHOWN else ""
    return messages.printable(", ".join(islice(cells, _SHOWN)) + more)
