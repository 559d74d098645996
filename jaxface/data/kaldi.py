"""Vectors of Kaldi: archives (`.ark`), in text or binary, and the lists that point into them (`.scp`).

    read      an archive of float or double vectors, keys as names of files
    read_scp  the vectors that a list names

A list names its archives as the machine saw them that wrote it. They are looked for by their own name in the folder of
the list, so a copied folder works and no list leads elsewhere; commands (`... |`) are refused.
"""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxface.core import messages
from jaxface.data import delimited, storage
from jaxface.data.datasets import RawVectors

__all__ = []

_LONGEST_KEY = 4096
_BINARY = b"\0B"
_DTYPES: dict[bytes, np.dtype] = {b"FV ": np.dtype("<f4"), b"DV ": np.dtype("<f8")}
_SAY = "Kaldi archives of float or double vectors are read"
_AVERAGE = "matrix-sum-rows --do-average=true ark:IN.ark ark:OUT.ark"
_OTHERS = {
    b"FM ": f"a matrix of float, not a vector. To average its rows: {_AVERAGE}",
    b"DM ": f"a matrix of double, not a vector. To average its rows: {_AVERAGE}",
    b"CM": f"a compressed matrix. To average its rows: {_AVERAGE}",
}


class _Place(NamedTuple):
    """Where a vector of a list stands."""

    key: str
    archive: Path
    offset: int


def read(path: Path) -> RawVectors:
    """All vectors of an archive."""
    return _stacked(path, _vectors(path))


def read_scp(path: Path) -> RawVectors:
    """The vectors that a list names, in its order; each archive is opened once."""
    places = list(_places(path))
    content = {archive: _content(archive) for archive in archives_of(path)}
    return _stacked(path, ((key, _value(archive, content[archive], offset, key)[0]) for key, archive, offset in places))


def archives_of(path: Path) -> tuple[Path, ...]:
    """The archives that a list points into."""
    return tuple(dict.fromkeys(place.archive for place in _places(path)))


def is_text_archive(start: bytes) -> bool:
    """Whether a file that starts so holds lines `key [ 1 2 3 ]`."""
    return start.partition(b"\n")[0].split(b" ", 1)[-1].lstrip().startswith(b"[")


def _stacked(path: Path, vectors: Iterator[tuple[str, np.ndarray]]) -> RawVectors:
    rows: dict[str, np.ndarray] = {}
    size = -1
    for key, vector in vectors:
        if key in rows:
            raise ValueError(f"{messages.printable(path)} holds two vectors {messages.printable(key)!r}.")
        size = vector.size if size < 0 else size
        if vector.size != size:
            raise ValueError(
                f"{messages.printable(path)}: {messages.printable(key)!r} has {vector.size} numbers, the vectors "
                f"before have {size}. {_SAY}, all of one length."
            )
        rows[key] = vector
    if not rows:
        raise ValueError(f"{messages.printable(path)} holds no vectors.")
    return RawVectors(np.stack(list(rows.values())), None, tuple(rows))


def _vectors(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    content = _content(path)
    at = 0
    while (at := _skip_space(content, at)) < len(content):
        end = content.find(b" ", at, at + _LONGEST_KEY)
        if end < 0:
            raise ValueError(f"{messages.printable(path)}, byte {at}: no key before a space. {_SAY}.")
        key = _key(path, content[at:end])
        vector, at = _value(path, content, end + 1, key)
        yield key, vector


def _value(path: Path, content: mmap.mmap | bytes, at: int, key: str) -> tuple[np.ndarray, int]:
    """The vector at an offset and the offset behind it."""
    where = f"{messages.printable(path)}, {messages.printable(key)!r}"
    if content[at : at + 2] != _BINARY:
        return _text(where, content, at)
    kind = content[at + 2 : at + 5]
    if kind not in _DTYPES:
        what = next((what for start, what in _OTHERS.items() if kind.startswith(start)), f"{kind!r}")
        raise ValueError(f"{where} is {what}. {_SAY}.")
    header = content[at + 5 : at + 10]
    if len(header) < 5 or header[0] != 4:
        raise ValueError(f"{where} is damaged: the number of its values is missing. Copy the file again.")
    (count,), dtype = struct.unpack("<i", header[1:]), _DTYPES[kind]
    end = at + 10 + count * dtype.itemsize
    if count < 0 or end > len(content):
        raise ValueError(f"{where} is damaged: it says {count} values, and the file ends before. Copy it again.")
    return np.frombuffer(content[at + 10 : end], dtype).astype(dtype.newbyteorder("=")), end


def _text(where: str, content: mmap.mmap | bytes, at: int) -> tuple[np.ndarray, int]:
    """The numbers of a line `[ 1 2 3 ]`."""
    end = content.find(b"\n", at)
    end = len(content) if end < 0 else end
    line = content[at:end].strip()
    words = line.removeprefix(b"[").removesuffix(b"]").split()
    try:
        if not (line.startswith(b"[") and line.endswith(b"]")) or b"_" in line:
            raise ValueError
        return np.array([float(word) for word in words]), end + 1
    except ValueError:
        shown = messages.printable(repr(bytes(line[:60]))[1:])
        raise ValueError(f"{where}: expected numbers between [ and ] in one line; got {shown}. {_SAY}.") from None


def _places(path: Path) -> Iterator[_Place]:
    for number, line in enumerate(delimited.text(path).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{messages.printable(path)}, line {number}"
        key, _, rest = line.strip().partition(" ")
        file, _, offset = rest.strip().rpartition(":")
        if rest.rstrip().endswith(("|", "]")) or not offset.isdecimal() or not file:
            raise ValueError(
                f"{where}: expected `key FILE.ark:OFFSET`; got {messages.printable(line[:80])!r}. Commands and ranges "
                "are not read. Write the vectors first: copy-vector scp:FILE.scp ark:OUT.ark."
            )
        archive = path.parent / Path(file).name
        if not archive.is_file():
            raise FileNotFoundError(
                f"{where}: {messages.printable(archive.name)} is not in the folder of the list. Copy it there, or read "
                "it as the data itself."
            )
        yield _Place(key, archive, int(offset))


def _content(path: Path) -> mmap.mmap | bytes:
    """The bytes of a file, mapped into memory: only what is looked at is read."""
    with storage.existing_file(path, "A Kaldi archive").open("rb") as stream:
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""


def _skip_space(content: mmap.mmap | bytes, at: int) -> int:
    while content[at : at + 1] in (b"\n", b"\r", b" "):
        at += 1
    return at


def _key(path: Path, word: bytes) -> str:
    try:
        return word.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{messages.printable(path)}: a key is not text in UTF-8 ({error}). {_SAY}.") from error
