"""Damage to the bytes of one file, and things that stand in its place."""

import os
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Damage(NamedTuple):
    """What was done to a file; `first` is the first byte that differs from the whole file."""

    what: str
    first: int


def damage_bytes(file: pathlib.Path, rng: np.random.Generator) -> Damage:
    """Damages the content of a file; what it was is never what it is."""
    before = file.read_bytes()
    while True:
        what, after = _OPERATIONS[rng.integers(len(_OPERATIONS))](before, rng)
        if after != before:
            break
    file.write_bytes(after)
    shared = min(len(before), len(after))
    different = np.flatnonzero(np.frombuffer(before[:shared], np.uint8) != np.frombuffer(after[:shared], np.uint8))
    return Damage(what, int(different[0]) if different.size else shared)


def replace_file(file: pathlib.Path, rng: np.random.Generator) -> str:
    """Puts something that is no file of data where the file was."""
    what, put = _THINGS[rng.integers(len(_THINGS))]
    file.unlink()
    put(file)
    return what


def _truncated(data: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    keep = int(rng.integers(len(data)))
    return f"cut to {keep} of {len(data)} bytes", data[:keep]


def _bit(data: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    at, bit = int(rng.integers(len(data))), int(rng.integers(8))
    return f"bit {bit} of byte {at} flipped", data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]


def _bytes(data: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    at = np.sort(rng.integers(0, len(data), int(rng.integers(2, 9))))
    changed = bytearray(data)
    for place in at:
        changed[place] = int(rng.integers(256))
    return f"bytes {at.tolist()} overwritten", bytes(changed)


def _head(data: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    """Headers are a small part of a file and most of what can go wrong."""
    at = int(rng.integers(min(len(data), 128)))
    return f"byte {at} overwritten", data[:at] + bytes([int(rng.integers(256))]) + data[at + 1 :]


def _zeroed(data: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    at = int(rng.integers(len(data)))
    size = int(rng.integers(1, 513))
    filling = (b"\x00", b"\xff")[rng.integers(2)]
    return f"{size} bytes from {at} set to {filling!r}", data[:at] + (filling * size)[: len(data) - at] + data[
        at + size :
    ]


def _missing(data: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    at, size = int(rng.integers(len(data))), int(rng.integers(1, 65))
    return f"{size} bytes from {at} missing", data[:at] + data[at + size :]


def _inserted(data: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    at, size = int(rng.integers(len(data))), int(rng.integers(1, 65))
    return f"{size} bytes inserted at {at}", data[:at] + rng.bytes(size) + data[at:]


def _noise(data: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    return "replaced by noise", rng.bytes(len(data))


def _empty(data: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    return "emptied", b""


def _text(data: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    return "replaced by a page of an error", b"<!DOCTYPE html>\n<html><title>404</title></html>\n"


def _other(data: bytes, rng: np.random.Generator) -> tuple[str, bytes]:
    heads = {
        "a PNG": b"\x89PNG\r\n\x1a\n", "a zip": b"PK\x03\x04", "an empty zip": b"PK\x05\x06" + b"\x00" * 18,
        "a JPEG": b"\xff\xd8\xff\xe0", "a pickle": b"\x80\x04\x95", "an .npy": b"\x93NUMPY\x01\x00",
    }  # fmt: skip
    name = list(heads)[rng.integers(len(heads))]
    return f"begins like {name}", heads[name] + data[len(heads[name]) :]


_OPERATIONS = (_truncated, _truncated, _bit, _bit, _bytes, _head, _head, _zeroed, _missing, _inserted, _noise, _empty,
               _text, _other)  # fmt: skip


def _folder(file: pathlib.Path) -> None:
    file.mkdir()


def _link_to(target: Callable[[pathlib.Path], str]) -> Callable[[pathlib.Path], None]:
    return lambda file: os.symlink(target(file), file)


_THINGS: tuple[tuple[str, Callable[[pathlib.Path], None]], ...] = (
    ("missing", lambda file: None),
    ("a folder", _folder),
    ("a link to itself", _link_to(lambda file: file.name)),
    ("a link to nothing", _link_to(lambda file: "nowhere")),
    ("a named pipe", os.mkfifo),
)
