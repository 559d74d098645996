"""Files on disk: nothing outside the data root is opened, nothing half-written is left.

Messages name a file by `messages.printable`, because a name may hold the codes that move a terminal's cursor. Names
that are not UTF-8 are refused, because neither a report nor a table of results could name them.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from jaxface.core import checks, messages

__all__ = []

MAX_BYTES = 2**31  # a million vectors of 512 float32; 18 MB of zeros can unpack to 5 GB
_USUAL_RATIO = 4  # numbers from a network shrink by a tenth or so when they are packed


def inside(root: Path, name: str, *, source: str) -> Path:
    """`root / name`, refused when it leaves `root`: by `..`, as an absolute path, or through a symbolic link.

    `source` says where the name was read, such as `"pairs.txt, line 7"`. A link that leads back to itself is refused
    too; one that leads to nothing is not.
    """
    path = root / name
    try:
        leaves = Path(name).is_absolute() or not path.resolve().is_relative_to(root.resolve())
        os.stat(path)
    except FileNotFoundError:
        pass
    except (OSError, RuntimeError, ValueError) as error:
        why = messages.printable(getattr(error, "strerror", None) or error)
        raise ValueError(
            f"{source}: {messages.printable(path)} cannot be opened: {why}. Remove it, or replace the link by a copy."
        ) from error
    if leaves:
        raise ValueError(
            f"{source}: {messages.printable(repr(name))} leads outside the data root {messages.printable(root)}. "
            "Name files relative to the root, and copy a file into it rather than linking to it."
        )
    return path


def existing_folder(path: str | Path, what: str) -> Path:
    """`path` as a folder that is there and may be listed."""
    folder = _checked_name(path, what)
    if not os.path.isdir(folder):
        kind = "is a file" if os.path.exists(folder) else _missing(folder)
        raise FileNotFoundError(f"{what} must be a folder; {messages.printable(folder)} {kind}.")
    return _readable(folder, what, os.R_OK | os.X_OK)


def existing_file(path: str | Path, what: str) -> Path:
    """`path` as a regular file that is there and may be read."""
    file = _checked_name(path, what)
    if not os.path.isfile(file):
        is_there = os.path.exists(file)
        kind = "is a folder" if os.path.isdir(file) else "is a pipe or a device" if is_there else _missing(file)
        raise FileNotFoundError(f"{what} must be a file; {messages.printable(file)} {kind}.")
    return _readable(file, what, os.R_OK)


def check_unpacked(path: Path, needed: int, names: Sequence[str], *, max_bytes: int, otherwise: str = "") -> None:
    """Refuses a file of which `names` unpack to more than `max_bytes`, and to more than four times its size.

    A large file may unpack to much, and packed numbers are about as large as unpacked ones.
    """
    checks.at_least("max_bytes", max_bytes, 1)
    size = path.stat().st_size
    if needed > max(max_bytes, _USUAL_RATIO * size):
        raise ValueError(
            f"{messages.printable(path)}, a file of {size:,} bytes, unpacks to {needed:,} bytes ({', '.join(names)}); "
            f"the limit is {max_bytes:,}. Raise max_bytes if you trust the file and have the memory{otherwise}."
        )


@contextlib.contextmanager
def naming_damage(path: Path, name: str = "", *, says: str = "is damaged") -> Iterator[None]:
    """Turns errors of any kind that readers raise into a ValueError that names the file and the part of it."""
    try:
        yield
    except Exception as error:
        where = f"{name!r} has no readable data: " if name else ""
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
        why = messages.printable(f"{kind}{error}").rstrip(".")
        file = messages.printable(path)
        raise ValueError(f"{file} {says}: {where}{why}. Copy it again, or write it anew.") from error


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary name to write to: renamed to `path` at the end, removed after an error."""
    path = Path(path)
    existing_folder(path.parent, f"The folder of {path.name}")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _checked_name(path: str | Path, what: str) -> Path:
    if not isinstance(path, str | os.PathLike) or isinstance(path, bytes):
        raise ValueError(f"{what} must be named by a path; got {messages.describe(path)}.")
    checks.utf8(os.fspath(path), what)
    return Path(path)


def _missing(path: Path) -> str:
    return "is a symbolic link that leads nowhere" if os.path.islink(path) else "does not exist"


def _readable(path: Path, what: str, mode: int) -> Path:
    if not os.access(path, mode):
        raise PermissionError(
            f"{what}, {messages.printable(path)}, may not be read by this user. Change its permissions, or copy it."
        )
    return path
