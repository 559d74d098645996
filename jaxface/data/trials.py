"""Trials of any system: pairs of files, whether a pair shows one person, and scores, from text files as they come.

    read         one file: CSV, TSV, semicolons or spaces, any order and names of columns, with a header or without;
                 LFW's `pairs.txt`, VoxCeleb's `1 a b`, keys in the manner of NIST
    read_scores  two files of numbers: those of genuine and those of impostor pairs
    with_scores  trials and the scores of another file, joined by the names of the pair
    people       who is on either side, from columns or from the names of the files

A column has a role: `a` and `b` (the two files), `same` (the truth), `person_a`, `person_b`, or it holds scores. Usual
names are known (`enroll`, `test`, `target`, `label`, ...). Others are given, by name or counted from 1:
`columns={"a": "left", "same": "3"}`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from jaxface.core import checks, messages
from jaxface.data import delimited, face_bin, storage
from jaxface.data.delimited import Table

__all__ = ["Trials", "people", "read", "read_scores", "with_scores"]

_ROLES = {
    "a": "a file1 file_1 first left enroll enrol enrollment enrolment model modelid path1 image1 img1 reference utt1",
    "b": "b file2 file_2 second right test probe segment segmentid path2 image2 img2 query utt2",
    "same": "same is_same issame truth target targettype label match genuine is_match key y y_true",
    "person_a": "person_a person1 subject_a subject1 id_a id1 name_a name1 a_id",
    "person_b": "person_b person2 subject_b subject2 id_b id2 name_b name2 b_id",
}
_KNOWN = {name: role for role, names in _ROLES.items() for name in names.split()}


class Trials(NamedTuple):
    """Pairs with what is known of them; a part that the file does not have is empty or None."""

    first: tuple[str, ...]  # [p], the first file of each pair
    second: tuple[str, ...]  # [p]
    is_same: np.ndarray | None  # bool [p]
    scores: dict[str, np.ndarray]  # float64 [p] each, by the name of the system
    first_person: tuple[str, ...]  # [p]
    second_person: tuple[str, ...]  # [p]


def read(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    scores: Sequence[str] = (),
    delimiter: str | None = None,
) -> Trials:
    """The trials of a text file, or of the pairs of images of a `.bin` (see `face_bin`).

    columns: role -> name or number of a column, where the usual names do not tell.
    scores: names or numbers of the columns with scores; by default every column of numbers that has no role.
    delimiter: what separates cells; by default the tab, comma or semicolon of the first line, else white space.
    """
    path = storage.existing_file(path, "A file of trials")
    if path.suffix == ".bin":
        return _of_bin(path)
    rows = delimited.rows(path, delimiter)
    if _is_lfw(rows):
        return _lfw(rows)
    given = dict(columns or {})
    for role in given:
        checks.one_of("a role in columns", role, _ROLES)
    table = delimited.table(path, rows, named=(*given.values(), *scores), known=_KNOWN)
    roles = {role: delimited.place(table, name) for role, name in given.items()}
    return _trials(table, roles, [delimited.place(table, name) for name in scores])


def read_scores(genuine: str | Path, impostor: str | Path, *, name: str = "score") -> Trials:
    """The trials of two files of numbers, one score a line: genuine pairs and impostor pairs."""
    parts = []
    for path in (genuine, impostor):
        path = storage.existing_file(path, "A file of scores")
        rows = delimited.rows(path, None)
        table = delimited.table(path, rows)
        if len(table.names) != 1:
            raise ValueError(
                f"{messages.printable(path)} must hold one score a line; its columns are {table.listed()}."
            )
        parts.append(delimited.numbers(table, 0))
    is_same = np.repeat([True, False], [len(part) for part in parts])
    return Trials((), (), is_same, {name: np.concatenate(parts)}, (), ())


def with_scores(trials: Trials, path: str | Path, *, name: str, delimiter: str | None = None) -> Trials:
    """The trials with one more system, whose scores stand in another file.

    The file has lines `a b score` in any order, or one score a line in the order of the trials.
    """
    path = storage.existing_file(path, "A file of scores")
    table = delimited.table(path, delimited.rows(path, delimiter), known=_KNOWN)
    numeric = [k for k in range(len(table.names)) if delimited.are_numbers(table.columns[k])]
    other = _trials(table, {}, numeric if len(numeric) == 1 else [])  # one column of 0 and 1 is scores too
    if len(other.scores) != 1:
        listed = ", ".join(other.scores) or "none"
        raise ValueError(f"{messages.printable(path)} must hold one column of scores; it has {listed}.")
    if name in trials.scores:
        raise ValueError(f"two systems are called {name!r}; give each a name of its own.")
    (values,) = other.scores.values()
    if other.first and trials.first:
        values = values[_matched(trials, other, path)]
    elif len(values) != len(next(iter(trials.scores.values()), trials.first or ())):
        raise ValueError(
            f"{messages.printable(path)} has {len(values)} scores without names; they must be one a trial."
        )
    return trials._replace(scores=trials.scores | {name: values})


def people(trials: Trials) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Who is on either side of each pair `[p]`, or None where nothing tells.

    Columns of people come first. Otherwise the names of the files are read in the usual ways, `Person/photo.jpg`,
    `person/session/file.wav` and `Person_0001.jpg`, and the first way that agrees with every truth is taken.
    """
    if trials.first_person and trials.second_person:
        return trials.first_person, trials.second_person
    if trials.is_same is None or not trials.first or not trials.second:
        return None
    for person in _WAYS:
        sides = tuple(tuple(map(person, side)) for side in (trials.first, trials.second))
        if all(sides[0]) and all(sides[1]):
            agrees = np.array([a == b for a, b in zip(*sides, strict=True)]) == trials.is_same
            if agrees.all():
                return sides[0], sides[1]
    return None


def _numbered(name: str) -> str:
    match = re.fullmatch(r"(.+?)[_-]\d+", PurePosixPath(name).stem)
    return match.group(1) if match else ""


_WAYS: tuple[Callable[[str], str], ...] = (
    lambda name: str(PurePosixPath(name).parent) if "/" in name else "",
    lambda name: PurePosixPath(name).parts[0] if "/" in name else "",
    _numbered,
)


def _trials(table: Table, roles: dict[str, int], systems: list[int]) -> Trials:
    """The trials of a table, after the roles that nobody gave are guessed."""
    _guess(table, roles, taken=systems)
    if not systems:
        free = (k for k in range(len(table.names)) if k not in roles.values())
        systems = [k for k in free if delimited.are_numbers(table.columns[k])]
    _check_roles(table, roles, systems)
    cells = {role: table.columns[place] for role, place in roles.items()}
    return Trials(
        first=cells.get("a", ()),
        second=cells.get("b", ()),
        is_same=delimited.truth(table, roles["same"]) if "same" in roles else None,
        scores={_system(table, k): delimited.numbers(table, k) for k in systems},
        first_person=cells.get("person_a", ()),
        second_person=cells.get("person_b", ()),
    )


def _guess(table: Table, roles: dict[str, int], *, taken: list[int]) -> None:
    """Gives the roles that nobody gave: by the usual names, then by what the cells are."""
    for place, name in enumerate(table.names):
        role = _KNOWN.get(name.lower())
        if role and role not in roles and place not in (*roles.values(), *taken):
            roles[role] = place
    free = [k for k in range(len(table.names)) if k not in (*roles.values(), *taken)]
    if "same" not in roles:
        truths = [k for k in free if delimited.are_truths(table.columns[k])]
        roles |= {"same": truths[0]} if len(truths) == 1 and len(table.names) > 1 else {}
    texts = [k for k in free if k not in roles.values() and not delimited.are_numbers(table.columns[k])]
    if not {"a", "b"} & roles.keys() and len(texts) == 2:
        roles |= {"a": texts[0], "b": texts[1]}


def _check_roles(table: Table, roles: dict[str, int], systems: list[int]) -> None:
    """Refuses a table that tells neither pairs nor scores, half a pair, and one column in two roles."""
    where = messages.printable(table.path)
    for one, other in (("a", "b"), ("person_a", "person_b")):
        if (one in roles) != (other in roles):
            missing, there = (one, other) if other in roles else (other, one)
            raise ValueError(
                f"{where} has a column for {there!r} ({table.names[roles[there]]}) and none for {missing!r}; its "
                f"columns are {table.listed()}. Name it with columns={{{missing!r}: ...}}."
            )
    if not systems and "a" not in roles:
        raise ValueError(f"{where} holds neither pairs of names nor scores; its columns are {table.listed()}.")
    used = [*roles.values(), *systems]
    if len(set(used)) < len(used):
        twice = next(table.names[k] for k in used if used.count(k) > 1)
        raise ValueError(f"{where}: the column {twice!r} cannot have two roles.")


def _system(table: Table, place: int) -> str:
    """The name of a score."""
    name = table.names[place]
    return f"column {name}" if name.isdecimal() and len(table.names) > 1 else "score" if name.isdecimal() else name


def _matched(trials: Trials, other: Trials, path: str | Path) -> np.ndarray:
    """The row of `other` with the names of each trial, in either order."""
    rows: dict[tuple[str, str], int] = {}
    for row, pair in enumerate(zip(other.first, other.second, strict=True)):
        if rows.setdefault(pair, row) != row:
            raise ValueError(f"{messages.printable(path)} scores the pair {messages.printable(pair)} twice.")
    pairs = list(zip(trials.first, trials.second, strict=True))
    found = [rows.get(pair, rows.get(pair[::-1], -1)) for pair in pairs]
    missing = [pair for pair, row in zip(pairs, found, strict=True) if row < 0]
    if missing:
        raise ValueError(
            f"{messages.printable(path)} lacks the score of {len(missing)} of {len(pairs)} trials, the first "
            f"{messages.printable(missing[0])}; it scores {messages.printable(pair)} and others."
        )
    return np.array(found)


def _is_lfw(rows: list[list[str]]) -> bool:
    """Whether a file is in the form of LFW's `pairs.txt`: one or two counts, then `name i j` or `name i other j`."""
    head, *body = rows
    return (
        len(head) <= 2
        and all(cell.isdecimal() for cell in head)
        and bool(body)
        and all((len(row) == 3 and row[1].isdecimal() and row[2].isdecimal()) or len(row) == 4 for row in body)
        and all(row[1].isdecimal() and row[-1].isdecimal() for row in body)
    )


def _of_bin(path: Path) -> Trials:
    """The pairs of images of a `.bin`, whose people have no names."""
    faces = face_bin.scan(path)
    return Trials(*face_bin.trials(faces), faces.is_same, {}, (), ())


def _lfw(rows: list[list[str]]) -> Trials:
    """The pairs of LFW, with the names of the files and people."""
    quads = [(row[0], row[1], row[0], row[2]) if len(row) == 3 else tuple(row) for row in rows[1:]]
    first, second = (tuple(f"{q[k]}/{q[k]}_{int(q[k + 1]):04d}.jpg" for q in quads) for k in (0, 2))
    is_same = np.array([len(row) == 3 for row in rows[1:]])
    return Trials(first, second, is_same, {}, tuple(q[0] for q in quads), tuple(q[2] for q in quads))
