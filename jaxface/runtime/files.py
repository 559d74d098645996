"""Files that are whole or absent, errors that name them, and digests that show a change."""

import contextlib
import errno
import hashlib
import io
import json
import os
import pathlib
import sys
import zlib
from typing import Any

import numpy as np

from jaxface.core import messages

__all__ = []

Arrays = dict[str, np.ndarray]

# A file system that cannot flush a folder says so by one of these.
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF, errno.EACCES, errno.EPERM, errno.ENOSYS)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_RESERVED_CHARACTERS = '<>:"\\|?*'
_RESERVED_NAMES = {"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10)}


class Digests:
    """A journal of the files that a run wrote: one line a file, with a checksum, appended before the file is replaced.

    After a kill between the two the file is still the old one, so a file may match any earlier digest of its name. A
    kill can leave an incomplete last line, which the next line overwrites.
    """

    def __init__(self, file: pathlib.Path):
        self._file = file
        self._known: dict[str, set[str]] = {}
        self._length = 0
        content = read_bytes(file) if file.exists() else b""
        for number, line in enumerate(content.splitlines(keepends=True), start=1):
            if line.endswith(b"\n"):
                self._take(number, line[:-1])
                self._length += len(line)

    def _take(self, number: int, line: bytes) -> None:
        text, _, checksum = line.rpartition(b" ")
        if checksum != _checksum(text):
            raise ValueError(
                f"{self._file} is damaged in line {number}. Delete it and run the same command again: files of this "
                "run are then taken as they are."
            )
        entry = json.loads(text)
        self._known.setdefault(entry["file"], set()).add(entry["blake2b"])

    def names(self) -> list[str]:
        """Every file that was written, sorted."""
        return sorted(self._known)

    def add(self, name: str, data: bytes) -> None:
        """Records the digest of data before they are written under a name."""
        digest = _digest(data)
        if digest in self._known.get(name, ()):
            return
        text = json.dumps({"file": name, "blake2b": digest}).encode()
        line = text + b" " + _checksum(text) + b"\n"
        try:
            with open(self._file, "r+b" if self._file.exists() else "xb") as journal:
                journal.truncate(self._length)
                journal.seek(self._length)
                journal.write(line)
                journal.flush()
                os.fsync(journal.fileno())
        except OSError as error:
            # An error of a full disk names the file to be written, any other error the journal.
            raise storage_error(self._file.parent / name if error.errno in _FULL else self._file, error) from error
        self._length += len(line)
        self._known.setdefault(name, set()).add(digest)

    def is_original(self, name: str, data: bytes) -> bool:
        """Whether the run wrote these bytes under this name; true of every name without a journal."""
        return not self._known or _digest(data) in self._known.get(name, ())


def write_atomically(file: pathlib.Path, data: bytes) -> None:
    """Writes `data` under a temporary name, flushes it to the disk, renames it to `file` and flushes the folder."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as target:
            target.write(data)
            target.flush()
            os.fsync(target.fileno())
        os.replace(temporary, file)
        sync_folder(file.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise storage_error(file, error) from error


def sync_folder(folder: pathlib.Path) -> None:
    """Flushes the names in a folder to the disk: without it a power cut can undo a rename. Windows has no such call."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(handle)


def make_folder(folder: pathlib.Path) -> None:
    """Makes a folder and those above it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(folder, error) from error


def storage_error(path: pathlib.Path, error: OSError) -> OSError:
    """The error with the name of the file, and with a remedy for a full disk."""
    if error.errno in _FULL:
        text = f"the disk is full: {path} was not written. Free some space and run the same command again."
    else:
        text = f"{path} could not be written: {error.strerror}."
    return OSError(error.errno, text)


def parse_arrays(file: pathlib.Path, data: bytes) -> Arrays:
    """The arrays of an `.npz` that was read from `file`."""
    try:
        if not data.startswith(b"PK"):  # NumPy would advise to load it as a pickle
            raise ValueError("no .npz archive")
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:
        raise ValueError(f"{file} is damaged ({error}). Delete it and run the same command again.") from error


def read_bytes(file: pathlib.Path) -> bytes:
    """The content of a file; an error names the file."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise OSError(error.errno, f"{file} could not be read: {error.strerror}.") from error


def parse_object(file: pathlib.Path, data: bytes, remedy: str) -> dict[str, Any]:
    """The JSON object that was read from `file`; anything else is an error with a remedy."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is damaged ({error}). {remedy}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{file} is damaged (it holds {messages.printable(repr(value)[:40])}, no object). {remedy}")
    return value


def portable(name: str) -> str:
    """A file name that every system takes; what Windows reserves becomes `_`, with a digest that keeps names apart."""
    return "/".join(_portable_part(part) for part in name.split("/"))


def _portable_part(part: str) -> str:
    plain = "".join("_" if c in _RESERVED_CHARACTERS or ord(c) < 32 else c for c in part)
    stem = plain.partition(".")[0].rstrip().lower()
    if plain == part and plain == plain.rstrip(". ") and stem not in _RESERVED_NAMES:
        return part
    return f"{_digest(part.encode(errors='surrogateescape'))[:6]}_{plain.rstrip('. ')}"


def _checksum(data: bytes) -> bytes:
    return f"{zlib.crc32(data):08x}".encode()


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
