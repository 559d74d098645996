"""Files: natural order of names, nothing outside the data root is opened, nothing half-written is left."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path


def natural_key(name: str) -> tuple[tuple[int | str, ...], str]:
    """Sort key in which runs of digits count as numbers: `s2` stands before `s10`."""
    parts = re.split(r"([0-9]+)", name)
    return tuple(int(part) if index % 2 else part for index, part in enumerate(parts)), name


def inside(root: Path, name: str, *, source: str) -> Path:
    """`root / name`, refused when it leaves `root`: by `..`, as an absolute path, or through a symbolic link.

    `source` says where the name was read, such as `"pairs.txt, line 7"`.
    """
    path = root / name
    if Path(name).is_absolute() or not path.resolve().is_relative_to(root.resolve()):
        raise ValueError(
            f"{source}: {name!r} leads outside the data root {root}. "
            "Name files relative to the root, and copy a file into it rather than linking to it."
        )
    return path


def existing_folder(path: str | Path, what: str) -> Path:
    """`path` as a folder that is there."""
    folder = Path(path)
    if not folder.is_dir():
        kind = "is a file" if folder.exists() else "does not exist"
        raise FileNotFoundError(f"{what} must be a folder; {folder} {kind}.")
    return folder


def existing_file(path: str | Path, what: str) -> Path:
    """`path` as a file that is there."""
    file = Path(path)
    if not file.is_file():
        kind = "is a folder" if file.is_dir() else "does not exist"
        raise FileNotFoundError(f"{what} must be a file; {file} {kind}.")
    return file


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary name to write to, renamed to `path` when all went well and removed otherwise."""
    path = Path(path)
    existing_folder(path.parent, f"The folder of {path.name}")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
