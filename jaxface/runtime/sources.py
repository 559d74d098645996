"""The data of a run: their files by name, size, time and, where that is cheap, digest.

survey        paths -> Source: the files there are now
differences   Source, paths -> words: which files changed, are new or are missing; empty for the same data

A name is relative to its folder, so copied or moved data are the same data. Files with a digest are compared by the
digest, which is computed again only if the stamp differs; files without one are compared by size and time.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jaxface.core import messages

__all__ = []

Path = str | os.PathLike[str]

DIGESTED_BYTES = 2**30  # of all files of a source together: reading more would delay every start
_SHOWN = 3
_CLOCK_NS = 2_000_000_000  # the coarsest clock of a file system in use


class File(NamedTuple):
    """One file at the time of the survey."""

    size: int
    mtime_ns: int
    stamp: str | None  # equal stamps: the same bytes; None when the file was too new for that
    digest: str | None  # None in a large source, and of a file that could not be read


class Source(NamedTuple):
    """The files of some paths; the paths are as they were given."""

    paths: tuple[str, ...]
    files: dict[str, File]


def survey(paths: Iterable[Path]) -> Source:
    """Every file of the paths and below them, without hidden files and the folders of runs."""
    named = tuple(os.fspath(path) for path in paths)
    located = _find(named)
    is_cheap = sum(status.st_size for _, status in located.values()) <= DIGESTED_BYTES
    return Source(named, {name: _describe(path, status, is_cheap) for name, (path, status) in located.items()})


def exist(paths: Sequence[Path]) -> bool:
    """Whether any of the paths exists; true of an empty list."""
    return not paths or any(os.path.exists(path) for path in paths)


def differences(before: Source, paths: Iterable[Path]) -> str:
    """How the files of `paths` differ from those of `before`, in words; empty for the same data."""
    now = _find(paths)
    changed = [name for name, file in before.files.items() if name in now and not _is_same(file, *now[name])]
    new = [name for name in now if name not in before.files]
    missing = [name for name in before.files if name not in now]
    lists = (("changed", changed), ("new", new), ("missing", missing))
    return ", ".join(f"{len(names)} {what} ({_listed(names)})" for what, names in lists if names)


def to_json(source: Source) -> dict[str, Any]:
    """A source as JSON, with one line a file: size, time, digest and stamp."""
    lines = {
        name: f"{file.size} {file.mtime_ns} {file.digest or '-'} {file.stamp or '-'}"
        for name, file in source.files.items()
    }
    return {"paths": list(source.paths), "files": lines}


def from_json(value: Mapping[str, Any]) -> Source:
    """The source that `to_json` wrote; KeyError, TypeError, ValueError or AttributeError for anything else."""
    files = {name: _parse(line) for name, line in value["files"].items()}
    return Source(tuple(os.fspath(path) for path in value["paths"]), files)


def _parse(line: str) -> File:
    size, mtime_ns, digest, stamp = line.split(" ", 3)
    return File(int(size), int(mtime_ns), None if stamp == "-" else stamp, None if digest == "-" else digest)


def _find(paths: Iterable[Path]) -> dict[str, tuple[str, os.stat_result]]:
    """Path and status of every file by name, sorted; names are relative to what the paths have in common."""
    absolute = [os.path.abspath(os.fspath(path)) for path in paths]
    base = _common_folder(absolute)
    files = sorted({path: status for root in absolute for path, status in _files(root)}.items())
    return {_name(path, base): (path, status) for path, status in files}


def _common_folder(paths: list[str]) -> str | None:
    """The folder that names are relative to; None for paths on several drives."""
    if len(paths) == 1 and os.path.isdir(paths[0]):
        return paths[0]
    try:
        return os.path.commonpath([os.path.dirname(path) for path in paths]) if paths else None
    except ValueError:
        return None


def _name(path: str, base: str | None) -> str:
    return (os.path.relpath(path, base) if base else path).replace(os.sep, "/")


def _files(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """The root itself if it is a file, otherwise the files below it; every folder once, whatever links lead to it."""
    if os.path.isfile(root):
        yield root, os.stat(root)
    seen = set()
    for folder, folders, names in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen or (folder != root and _is_of_a_run(folder)):
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from _regular(os.path.join(folder, name) for name in names if not name.startswith("."))


def _regular(paths: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Regular files with their status; a link that leads nowhere is none."""
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            yield path, status


def _is_of_a_run(folder: str) -> bool:
    """Whether a folder is that of a run, whose files change while studies run."""
    return all(os.path.exists(os.path.join(folder, name)) for name in ("config.json", ".lock"))


def _describe(path: str, status: os.stat_result, is_cheap: bool) -> File:
    is_settled = max(status.st_mtime_ns, status.st_ctime_ns) < time.time_ns() - _CLOCK_NS
    return File(
        status.st_size, status.st_mtime_ns, _stamp(status) if is_settled else None, _digest(path) if is_cheap else None
    )


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def _is_same(file: File, path: str, status: os.stat_result) -> bool:
    if status.st_size != file.size or file.stamp == _stamp(status):
        return status.st_size == file.size
    if file.digest is None:
        return status.st_mtime_ns == file.mtime_ns
    return _digest(path) == file.digest


def _digest(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError:
        return None  # the study reports the error when it reads the file


def _listed(names: list[str]) -> str:
    shown = ", ".join(messages.printable(name) for name in names[:_SHOWN])
    return shown + (", ..." if len(names) > _SHOWN else "")
