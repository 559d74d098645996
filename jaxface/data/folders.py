"""One folder a person: `root/anna/1.jpg`, `root/anna/2.jpg`, `root/ben/1.png`.

scan   root -> Listing            nothing is decoded
read   Listing -> LabeledImages  all of it, or some rows
load   both in one call
"""

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from jaxface.core import checks, messages
from jaxface.core.labels import natural_key
from jaxface.data import images, storage
from jaxface.data.datasets import LabeledImages, Listing, take

__all__ = ["load", "read", "scan"]


def scan(
    root: str | Path, *, min_people: int = 2, suffixes: Collection[str] = images.SUFFIXES, credit: str = ""
) -> Listing:
    """Lists the images of every sub-folder of `root`, people and files in natural order (s2 before s10).

    Left out and named in `ignored`: hidden files and folders, files whose suffix is not one of `suffixes`, files
    beside the folders, folders inside them, and folders without images. A symbolic link that leads out of `root` or
    to itself is an error, and so are a folder that may not be read and an image whose name is not UTF-8.

    min_people: with 0, the images of a flat folder are listed too, with ids of -1: nobody says whom they show.
    """
    checks.at_least("min_people", min_people, 0)
    root = storage.existing_folder(root, "root")
    files: list[str] = []
    ids: list[int] = []
    names: list[str] = []
    ignored: list[str] = []
    for person in _entries(root, root):
        entries = _entries(root, Path(person.path)) if person.is_dir() and not _hidden(person) else []
        kept = [_relative(root, entry) for entry in entries if _is_image(entry, suffixes)]
        ignored += [messages.printable(_relative(root, entry)) for entry in entries if not _is_image(entry, suffixes)]
        for file in kept:
            checks.utf8(file, f"An image in {messages.printable(root)}")
        if kept:
            files += kept
            ids += [len(names)] * len(kept)
            names.append(person.name)
        else:
            ignored.append(messages.printable(_relative(root, person)))
    if not names and min_people == 0:
        files, ignored = _flat(root, ignored, suffixes)
        ids = [-1] * len(files)
    _check_people(root, names, ignored, min_people if files else max(min_people, 1), suffixes)
    return Listing(
        root=root,
        files=tuple(files),
        ids=np.array(ids, np.int32),
        names=tuple(names),
        ignored=tuple(ignored),
        credit=credit,
    )


def read(
    listing: Listing,
    *,
    rows: Any = None,
    color: bool = False,
    size: tuple[int, int] | None = None,
    crop: tuple[int, int, int, int] | None = None,
    max_pixels: int = images.MAX_PIXELS,
    workers: int = 4,
) -> LabeledImages:
    """Reads the files of a listing, or only `rows` of it; options as in `images.read_image`.

    Ids and names stay those of the listing, so parts that are read one by one agree.
    """
    chosen = listing if rows is None else take(listing, rows)
    return LabeledImages(
        images=images.load_images(
            chosen.paths(), color=color, size=size, crop=crop, max_pixels=max_pixels, workers=workers
        ),
        ids=chosen.ids,
        names=chosen.names,
        files=chosen.files,
        ignored=chosen.ignored,
        credit=chosen.credit,
    )


def load(
    root: str | Path,
    *,
    min_people: int = 2,
    color: bool = False,
    size: tuple[int, int] | None = None,
    crop: tuple[int, int, int, int] | None = None,
    max_pixels: int = images.MAX_PIXELS,
    workers: int = 4,
) -> LabeledImages:
    """`read(scan(root))`: every image of every person; options as in `images.read_image`."""
    listing = scan(root, min_people=min_people)
    return read(listing, color=color, size=size, crop=crop, max_pixels=max_pixels, workers=workers)


def _flat(root: Path, ignored: list[str], suffixes: Collection[str]) -> tuple[list[str], list[str]]:
    """The images that stand in `root` itself, and what else was left out."""
    files = [_relative(root, entry) for entry in _entries(root, root) if _is_image(entry, suffixes)]
    for file in files:
        checks.utf8(file, f"An image in {messages.printable(root)}")
    listed = {messages.printable(file) for file in files}
    return files, [name for name in ignored if name not in listed]


def _entries(root: Path, folder: Path) -> list["os.DirEntry[str]"]:
    """The entries of a folder in natural order; a link that leads out of `root` is refused."""
    storage.existing_folder(folder, "A folder of images")
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: natural_key(entry.name))
    for entry in entries:
        if entry.is_symlink():
            storage.inside(root, _relative(root, entry), source="symbolic link")
    return entries


def _relative(root: Path, entry: "os.DirEntry[str]") -> str:
    return Path(entry.path).relative_to(root).as_posix()


def _hidden(entry: "os.DirEntry[str]") -> bool:
    return entry.name.startswith(".")


def _is_image(entry: "os.DirEntry[str]", suffixes: Collection[str]) -> bool:
    return entry.is_file() and not _hidden(entry) and os.path.splitext(entry.name)[1].lower() in suffixes


def _check_people(root: Path, names: list[str], ignored: list[str], min_people: int, suffixes: Collection[str]) -> None:
    if len(names) >= min_people:
        return
    layout = f"Expected {root}/<person>/<image>, images ending in {', '.join(sorted(suffixes))}."
    if not names and not ignored:
        raise ValueError(f"{root} is empty. {layout}")
    if not names:
        flat = any("/" not in name and Path(name).suffix.lower() in suffixes for name in ignored)
        hint = "Put the images of each person into a folder of their own. " if flat else ""
        raise ValueError(
            f"{root} holds no folder with images; {len(ignored)} other entries, such as {ignored[0]!r}. {hint}{layout}"
        )
    raise ValueError(
        f"{root} must hold at least {min_people} people; got {len(names)}: "
        f"{', '.join(map(messages.printable, names))}. {layout}"
    )
