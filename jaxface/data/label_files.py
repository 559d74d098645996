"""Labels of vectors in a file of their own: one label a line, a table with a column of labels, or a `.npy` `[n]`.

    read      the labels of rows that have no names, in their order
    by_name   the labels of rows with names, such as Kaldi's `utt2spk`

`FILE:COLUMN` names the column of a table, by its name or counted from 1, where the usual names do not tell.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxface.core import messages
from jaxface.data import archives, delimited, storage
from jaxface.data.delimited import Table

__all__ = []

LABEL_NAMES = "labels label y people person person_id identity identities subject subjects speaker speakers spk class"
LABELS = (*LABEL_NAMES.split(), "target", "targets", "ids")
FILE_NAMES = "files file filename filenames file_name path paths image images image_path photo utt utts utterance key"
FILES = tuple(FILE_NAMES.split())


class Labels(NamedTuple):
    """What a text file says of the rows of another file."""

    labels: Sequence[str] | np.ndarray  # [n]
    files: tuple[str, ...]  # [n], or empty


def read(name: str, *, beside: Path, num_rows: int) -> Labels:
    """The labels of `num_rows` rows in their order; names of files too where the table has a column of them.

    name: `FILE` or `FILE:COLUMN`, as seen from the working directory, or from the folder of `beside`.
    """
    path, column = find(name, beside)
    found = Labels(_of_array(path), ()) if _is_npy(path) else _of_text(path, column, num_rows)
    if len(found.labels) != num_rows:
        raise ValueError(
            f"{messages.printable(path)} must have a label for each of the {num_rows} rows of "
            f"{messages.printable(beside)}; it has {len(found.labels)}, the first {found.labels[0]!r}."
        )
    return found


def _is_npy(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(archives.NPY)) == archives.NPY


def _of_array(path: Path) -> np.ndarray:
    """The labels of a `.npy` file; -1 where nobody knows."""
    labels = archives.read_npy(path)
    if labels.ndim != 1 or labels.dtype.kind not in "iuU" or not labels.size:
        raise ValueError(
            f"{messages.printable(path)} must hold integers or strings [n], a label each; got dtype {labels.dtype} and "
            f"shape {labels.shape}."
        )
    return labels


def _of_text(path: Path, column: str | None, num_rows: int) -> Labels:
    lines = _lines(path)
    if column is not None or any(mark in lines[0] for mark in delimited.SEPARATORS):
        return _of_table(path, lines, column)
    lines = lines[1:] if len(lines) == num_rows + 1 and lines[0].lower() in LABELS else lines
    return Labels(tuple(lines), ())


def by_name(name: str, *, beside: Path, keys: Sequence[str]) -> tuple[str, ...]:
    """The label of each of `keys`, from lines `key label`."""
    path, _ = find(name, beside)
    label_of: dict[str, str] = {}
    for number, line in enumerate(_lines(path), 1):
        cells = line.split()
        if len(cells) != 2:
            raise ValueError(
                f"{messages.printable(path)}, row {number}: expected a key and a label between spaces, as in utt2spk; "
                f"got {messages.printable(line[:80])!r}."
            )
        if label_of.setdefault(cells[0], cells[1]) != cells[1]:
            raise ValueError(
                f"{messages.printable(path)}, row {number}: {cells[0]!r} has a second label, {cells[1]!r}."
            )
    missing = [key for key in keys if key not in label_of]
    if missing:
        raise ValueError(
            f"{messages.printable(path)} lacks the label of {len(missing)} of the {len(keys)} vectors of "
            f"{messages.printable(beside)}, the first {messages.printable(missing[0])!r}; "
            f"it has {next(iter(label_of))!r} and others."
        )
    return tuple(label_of[key] for key in keys)


def find(name: str, beside: Path) -> tuple[Path, str | None]:
    """The file and the column of `FILE` or `FILE:COLUMN`."""
    found = _found(name, beside)
    if found is None:
        raise FileNotFoundError(
            f"labels must be a text file, FILE:COLUMN of a table, or a .npy; {messages.printable(name)} is there "
            f"neither as it stands nor in the folder of {messages.printable(beside)}."
        )
    return storage.existing_file(found[0], "A file of labels"), found[1]


def is_there(name: str, beside: Path) -> bool:
    """Whether `name` is a file of labels rather than an array or a column."""
    return _found(name, beside) is not None


def _found(name: str, beside: Path) -> tuple[Path, str | None] | None:
    file, _, column = name.rpartition(":")
    for path, of_path in ((name, None), (file, column)):
        for place in (Path(path), beside.parent / path):
            if path and place.is_file():
                return place, of_path
    return None


def _lines(path: Path) -> list[str]:
    """The lines of a file without those at its end that are empty; an empty line between others is refused."""
    lines = [line.strip() for line in delimited.text(path).rstrip().split("\n")]
    if lines == [""]:
        raise ValueError(f"{messages.printable(path)} is empty; expected one label a line, or a table.")
    if "" in lines:
        raise ValueError(f"{messages.printable(path)}, line {lines.index('') + 1} is empty: a row lacks its label.")
    return lines


def _of_table(path: Path, lines: list[str], column: str | None) -> Labels:
    """The labels and names of files of a table."""
    named = () if column is None else (column,)
    rows = list(delimited.cells(path, lines, delimited.separator(lines[0])))
    table = delimited.table(path, rows, named=named, known=(*LABELS, *FILES))
    if column is not None:
        place = delimited.place(table, column)
    elif len(table.names) == 1:
        place = 0
    elif (known := known_column(table, LABELS)) is not None:
        place = known
    else:
        raise ValueError(
            f"{messages.printable(path)} has the columns {table.listed()}: which of them holds the labels? "
            "Name it with labels=FILE:COLUMN."
        )
    files = known_column(table, FILES)
    return Labels(table.columns[place], () if files in (None, place) else table.columns[files or 0])


def known_column(table: Table, names: Sequence[str]) -> int | None:
    """The only column with one of the usual names, or None."""
    places = [k for k, name in enumerate(table.names) if name.lower() in names]
    return places[0] if len(places) == 1 else None
