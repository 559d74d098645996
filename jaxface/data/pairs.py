"""Pairs of rows for verification: same person or not.

all_pairs      every pair of a set
limited        rows with at most so many of a person, so that nobody decides a test alone
largest_share  the part of the same pairs that one person makes
load, save     text files: a header `a,b,same`, then two file names and 1 or 0 a line; `load_unlabeled` without 1 or 0
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from jaxface.core import checks, messages
from jaxface.data import storage

__all__ = ["Pairs", "all_pairs", "has_truth", "largest_share", "limited", "load", "load_unlabeled"]

_HEADER = ["a", "b", "same"]


class Pairs(NamedTuple):
    """Pairs of rows."""

    first: np.ndarray  # int32 [p]
    second: np.ndarray  # int32 [p]
    is_same: np.ndarray  # bool [p], whether both rows show one person


def all_pairs(ids: Any) -> Pairs:
    """All n (n - 1) / 2 pairs of different rows, each once with first < second; ids: integers `[n]`."""
    ids = _check_ids(ids)
    first, second = np.triu_indices(ids.size, k=1)
    return Pairs(first.astype(np.int32), second.astype(np.int32), ids[first] == ids[second])


def limited(ids: Any, *, max_rows: int) -> np.ndarray:
    """Rows `[r]`, ascending: all of a person with at most `max_rows`, and `max_rows` of everybody else.

    A person with n rows makes n (n - 1) / 2 pairs of one person, so the person with most photos would decide an error
    rate or a calibration alone: with 530 photos beside people with 2 to 10, 98 % of the pairs. The kept rows are spread
    evenly over the rows of the person, in their order, without randomness.
    """
    checks.at_least("max_rows", max_rows, 2, "one row makes no pair")
    ids = _check_ids(ids)
    order = np.argsort(ids, kind="stable")
    _, start, counts = np.unique(ids[order], return_index=True, return_counts=True)
    place = np.arange(ids.size) - np.repeat(start, counts)
    total = np.repeat(counts, counts)
    kept = np.minimum(total, max_rows)
    # Row j of n is one of k rows spread evenly when floor((j + 1) k / n) exceeds floor(j k / n).
    chosen = (place + 1) * kept // total > place * kept // total
    return np.sort(order[chosen])


def largest_share(ids: Any, pairs: Pairs) -> float:
    """The largest part that one person has in the pairs of one person; NaN where there are none."""
    ids = _check_ids(ids)
    people = np.unique(ids[pairs.first[pairs.is_same]], return_counts=True)[1]
    return float(people.max() / people.sum()) if people.size else float("nan")


def load(path: str | Path, files: Sequence[str]) -> Pairs:
    """Reads a pairs file; names must be among `files`, such as those of a `Listing`, whose positions are the rows.

    A wrong header, a line of another form, an unknown name, a name that leads outside the root, a row paired with
    itself and a repeated pair are errors that name the file and the line.
    """
    first, second, last = _read(path, files, _HEADER, "two file names and 1 (same) or 0")
    return Pairs(first, second, np.array([word == "1" for word in last], bool))


def load_unlabeled(path: str | Path, files: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Reads a file with the header `a,b`, of pairs that may show one person or two: their rows `[p]`."""
    first, second, _ = _read(path, files, _HEADER[:2], "two file names")
    return first, second


def has_truth(path: str | Path) -> bool:
    """Whether a pairs file says which pairs are the same: then `load` reads it, otherwise `load_unlabeled`."""
    path = storage.existing_file(path, "A pairs file")
    with path.open(newline="", encoding="utf-8-sig") as stream:
        return next(_lines(csv.reader(stream), path), None) != _HEADER[:2]


def _read(
    path: str | Path, files: Sequence[str], header: list[str], form: str
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Rows of both names `[p]`, and the last field of each line."""
    path = storage.existing_file(path, "A pairs file")
    row_of = {file: row for row, file in enumerate(files)}
    twice = {file for row, file in enumerate(files) if row_of[file] != row} if len(row_of) < len(files) else set()
    seen: dict[tuple[int, int], int] = {}
    last: list[str] = []
    with path.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.reader(stream)
        lines = _lines(reader, path)
        if next(lines, None) != header:
            raise ValueError(f"{path}, line 1: expected the header {','.join(header)!r}.")
        for fields in lines:
            where = f"{path}, line {reader.line_num}"
            if len(fields) != len(header) or (len(header) == 3 and fields[2] not in ("0", "1")):
                raise ValueError(f"{where}: expected {form}; got {','.join(fields)!r}.")
            a, b = (_row(name, row_of, where) for name in fields[:2])
            if both := twice.intersection(fields[:2]):
                raise ValueError(f"{where}: {min(both)!r} names several rows. Give each row a name of its own.")
            if a == b:
                raise ValueError(f"{where}: {fields[0]!r} is paired with itself.")
            if (earlier := seen.setdefault((min(a, b), max(a, b)), reader.line_num)) != reader.line_num:
                raise ValueError(f"{where}: this pair stands in line {earlier} already.")
            last.append(fields[-1])
    if not last:
        raise ValueError(f"{path} holds no pairs.")
    rows = np.array(list(seen), np.int32)
    return rows[:, 0], rows[:, 1], last


def _lines(reader: Any, path: Path) -> Iterator[list[str]]:
    """The fields of each line that is not empty."""
    try:
        yield from (fields for fields in reader if fields)
    except (UnicodeDecodeError, csv.Error) as error:
        where = f"{path}, after line {reader.line_num}"
        raise ValueError(f"{where}: not CSV in UTF-8 ({error}). Save it as such.") from error


def save(path: str | Path, pairs: Pairs, files: Sequence[str]) -> None:
    """Writes pairs as a text file that `load` reads."""
    with storage.replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(_HEADER)
        writer.writerows((files[a], files[b], int(same)) for a, b, same in zip(*pairs, strict=True))


def _check_ids(ids: Any) -> np.ndarray:
    ids = np.asarray(ids)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(f"ids must be integers [n]; got dtype {ids.dtype} and shape {ids.shape}.")
    return ids


def _row(name: str, row_of: dict[str, int], where: str) -> int:
    if name in row_of:
        return row_of[name]
    if name.startswith("/") or ".." in PurePosixPath(name).parts:
        raise ValueError(f"{where}: {name!r} leads outside the data root. Name files relative to it.")
    raise ValueError(f"{where}: {name!r} is not among the {len(row_of)} files.{messages.did_you_mean(name, row_of)}")
