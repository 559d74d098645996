"""Faults of text files: pairs, and the protocol files of LFW. Lines, fields, encodings, damaged bytes."""

import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxface.data import lfw, pairs
from jaxface.data.datasets import Listing
from tests.faults import damage
from tests.faults.verdict import Wrong, expect, refused

PEOPLE, IMAGES = ("Ann_Lee", "Ben_Ode", "Cem_Öz", "Dot_Ray"), 3
FILES = tuple(f"{name}/{name}_{i:04d}.jpg" for name in PEOPLE for i in range(1, IMAGES + 1))
LISTING = Listing(
    root=pathlib.Path("faces"), files=FILES, ids=np.repeat(np.arange(4, dtype=np.int32), IMAGES), names=PEOPLE
)


class Format(NamedTuple):
    """One kind of text file: what is in it, who reads it, and how many rows what is read has."""

    name: str
    lines: tuple[str, ...]
    separator: str
    read: Callable[[pathlib.Path], Any]


def _rows(first: Any, second: Any, *more: Any) -> list[tuple[Any, ...]]:
    return [tuple(np.asarray(part).tolist()) for part in (first, second, *more)]


def _read_pairs(path: pathlib.Path) -> Any:
    return _rows(*pairs.load(path, FILES))


def _read_unlabeled(path: pathlib.Path) -> Any:
    return _rows(*pairs.load_unlabeled(path, FILES))


def _read_lfw_pairs(path: pathlib.Path) -> Any:
    found, fold = lfw.read_pairs(path, LISTING)
    return _rows(*found, fold)


def _read_people(path: pathlib.Path) -> Any:
    return [tuple(lfw.read_people(path, LISTING).tolist())]


_SOME = tuple(f"{FILES[i]},{FILES[j]}" for i, j in ((0, 1), (0, 3), (4, 5), (6, 9), (10, 11)))
FORMATS = (
    Format("pairs", ("a,b,same", *(f"{pair},{int(i % 2 == 0)}" for i, pair in enumerate(_SOME))), ",", _read_pairs),
    Format("unlabelled pairs", ("a,b", *_SOME), ",", _read_unlabeled),
    Format("LFW pairs", ("2\t1", "Ann_Lee\t1\t2", "Ann_Lee\t1\tBen_Ode\t3", "Cem_Öz\t1\t3", "Cem_Öz\t2\tDot_Ray\t1"),
           "\t", _read_lfw_pairs),
    Format("LFW people", ("2", "2", "Ann_Lee\t3", "Ben_Ode\t3", "2", "Cem_Öz\t3", "Dot_Ray\t3"), "\t", _read_people),
)  # fmt: skip


def draw(rng: np.random.Generator) -> tuple[str, Callable[[pathlib.Path], str]]:
    form = FORMATS[rng.integers(len(FORMATS))]
    kind = rng.integers(8)
    if kind < 2:
        return f"{form.name}: damaged bytes", lambda folder: _damaged(folder, form, rng)
    if kind == 2:
        return f"{form.name}: another thing", lambda folder: _another(folder, form, rng)
    table = ENCODINGS if kind < 5 else LINES
    name = list(table)[rng.integers(len(table))]
    act = _encoded if kind < 5 else _lines_changed
    return f"{form.name}: {name}", lambda folder: act(folder, form, name, rng)


def _write(folder: pathlib.Path, form: Format) -> tuple[pathlib.Path, bytes]:
    path = folder / "protocol.txt"
    data = "".join(line + "\n" for line in form.lines).encode()
    path.write_bytes(data)
    return path, data


def _damaged(folder: pathlib.Path, form: Format, rng: np.random.Generator) -> str:
    """Damage that leaves a file of the right form may change what it says, within what there is."""
    path, data = _write(folder, form)
    clean = form.read(path)
    done = damage.damage_bytes(path, rng)
    try:
        found = form.read(path)
    except Exception as error:
        return refused(error, str(path))
    values = np.concatenate([np.asarray(part, int) for part in found])
    kept = data.startswith(path.read_bytes()) and len(path.read_bytes()) < len(data) - 1
    expect(values.min() >= -1 and values.max() < len(FILES), "wrong result", f"{done.what}: rows {found}")
    expect(not (kept and found == clean), "wrong result", f"{done.what}: read as if it were whole")
    return "right"


def _another(folder: pathlib.Path, form: Format, rng: np.random.Generator) -> str:
    path, _ = _write(folder, form)
    what = damage.replace_file(path, rng)
    try:
        form.read(path)
    except Exception as error:
        return refused(error, str(path))
    raise Wrong("wrong result", f"{what} was read")


ENCODINGS: dict[str, tuple[Callable[[str], bytes], bool]] = {  # the bytes of a text; whether they say the same
    "CRLF": (lambda text: text.replace("\n", "\r\n").encode(), True),
    "no new line at the end": (lambda text: text.rstrip("\n").encode(), True),
    "a byte-order mark": (lambda text: text.encode("utf-8-sig"), True),
    "empty lines between": (lambda text: text.replace("\n", "\n\n").encode(), True),
    "CRLF and a byte-order mark": (lambda text: text.replace("\n", "\r\n").encode("utf-8-sig"), True),
    "Latin-1": (lambda text: text.replace("Ann_Lee", "\xc4nn").encode("latin-1"), False),
    "UTF-16": (lambda text: text.encode("utf-16"), False),
    "UTF-32": (lambda text: text.encode("utf-32"), False),
    "NUL in a line": (lambda text: text.replace("Ann", "A\x00nn", 1).encode(), False),
    "NUL behind the last line": (lambda text: text.encode() + b"\x00" * 40, False),
    "a surrogate": (lambda text: text.replace("Ann", "A\ud800nn").encode("utf-8", "surrogatepass"), False),
    "semicolons": (lambda text: text.replace(",", ";").replace("\t", ";").encode(), False),
    "an escape": (lambda text: text.replace("Ann", "\x1b[2JAnn").encode(), False),
}


def _encoded(folder: pathlib.Path, form: Format, name: str, rng: np.random.Generator) -> str:
    path, _ = _write(folder, form)
    clean = form.read(path)
    change, same = ENCODINGS[name]
    path.write_bytes(change("".join(line + "\n" for line in form.lines)))
    return _judge(path, form, clean, same)


def _judge(path: pathlib.Path, form: Format, clean: Any, same: bool | None) -> str:
    """`same` is None where a reader may do either."""
    try:
        found = form.read(path)
    except Exception as error:
        if same:
            raise Wrong("wrong result", f"refused: {error}") from error
        return refused(error, str(path))
    expect(same is not False, "wrong result", "it was read")
    expect(found == clean, "wrong result", f"{found} for {clean}")
    return "right"


def _line(change: Callable[[list[str]], list[str]]) -> Callable[[list[str], int, str], list[str]]:
    """Changes the fields of one line."""

    def apply(lines: list[str], at: int, separator: str) -> list[str]:
        lines[at] = separator.join(change(lines[at].split(separator)))
        return lines

    return apply


LINES: dict[str, tuple[Callable[[list[str], int, str], list[str]], bool | None]] = {
    "a line twice": (lambda lines, at, _: [*lines[: at + 1], *lines[at:]], False),
    "a line missing": (lambda lines, at, _: [*lines[:at], *lines[at + 1 :]], None),
    "a field missing": (_line(lambda fields: fields[:-1]), None),
    "a field more": (_line(lambda fields: [*fields, "x"]), False),
    "an empty field": (_line(lambda fields: ["", *fields[1:]]), False),
    "a path out of the root": (_line(lambda fields: ["../../etc/passwd", *fields[1:]]), False),
    "an absolute path": (_line(lambda fields: ["/etc/passwd", *fields[1:]]), False),
    "an unknown name": (_line(lambda fields: ["Eve_Ray", *fields[1:]]), False),
    "a name in other letters": (_line(lambda fields: [fields[0].upper(), *fields[1:]]), None),
    "a last field of 2": (_line(lambda fields: [*fields[:-1], "7"]), False),
    "a last field that is text": (_line(lambda fields: [*fields[:-1], "yes"]), False),
    "a last field of -1": (_line(lambda fields: [*fields[:-1], "-1"]), False),
    "a last field of 10^30": (_line(lambda fields: [*fields[:-1], "1" + "0" * 30]), False),
    "a last field of 5000 digits": (_line(lambda fields: [*fields[:-1], "9" * 5000]), False),
    "a last field in other digits": (_line(lambda fields: [*fields[:-1], "\u0663\u00b2"]), False),
    "a field of 200 kB": (_line(lambda fields: ["x" * 200_000, *fields[1:]]), False),
    "an open quotation mark": (_line(lambda fields: ['"' + fields[0], *fields[1:]]), False),
    "no header": (lambda lines, at, _: lines[1:], False),
    "a header alone": (lambda lines, at, _: lines[:1], None),
    "a header twice": (lambda lines, at, _: [lines[0], *lines], False),
    "a header of other words": (lambda lines, at, separator: [f"x{separator}y", *lines[1:]], False),
    "a huge header": (lambda lines, at, separator: [f"1000000000{separator}1000000000", *lines[1:]], False),
    "a comment": (lambda lines, at, _: [*lines[:at], "# a comment", *lines[at:]], False),
    "nothing": (lambda lines, at, _: [], False),
}


def _lines_changed(folder: pathlib.Path, form: Format, name: str, rng: np.random.Generator) -> str:
    path, _ = _write(folder, form)
    clean = form.read(path)
    change, same = LINES[name]
    at = int(rng.integers(1, len(form.lines)))
    lines = change(list(form.lines), at, form.separator)
    same = True if lines == list(form.lines) else same
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    if same is None:
        try:
            form.read(path)
        except Exception as error:
            return refused(error, str(path))
        expect(form.separator == ",", "wrong result", f"{name} at line {at + 1} was read")  # counts are in the header
        return "right"
    return _judge(path, form, clean, same)
