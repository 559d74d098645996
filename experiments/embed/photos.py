"""What is embedded: photos in folders, in one flat folder, or in the `.bin` of a verification set."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxface.core import messages
from jaxface.data import Listing, face_bin, folders, images
from jaxface.data.face_bin import FaceBin

_REASONS = {
    ".heic .heif .hif": "HEIC is not read. Convert it: heif-convert IN.heic OUT.jpg",
    ".avif": "AVIF is not read. Convert it: ffmpeg -i IN.avif OUT.jpg",
    ".jxl .jp2 .j2k": "JPEG XL and JPEG 2000 are not read. Convert it: magick IN OUT.jpg",
    ".cr2 .cr3 .nef .arw .dng .orf .rw2 .raf": "raw data of a camera. Export JPEG with the program of the camera",
    ".mp4 .mov .avi .mkv .webm": "a video. Take photos from it: ffmpeg -i IN -r 1 OUT%05d.jpg",
}
_REASON = {suffix: reason for suffixes, reason in _REASONS.items() for suffix in suffixes.split()}


class Photos(NamedTuple):
    """Photos by number; none is read yet."""

    files: tuple[str, ...]  # [n]
    labels: tuple[str, ...]  # [n], or empty: nobody says whom they show
    read: Callable[[int], np.ndarray]  # a photo as RGB float32 in [0, 1]
    left_out: tuple[tuple[str, str], ...] = ()  # files that are no photos, and why
    pairs: FaceBin | None = None  # where the photos are pairs with a truth


def find(root: str) -> Photos:
    """The photos of one folder a person, of a flat folder, or of a `.bin`."""
    if not os.path.isfile(root):
        return of_listing(folders.scan(root, min_people=0))
    if Path(root).suffix != ".bin":
        raise ValueError(
            f"config.data.root must be a folder of photos or the .bin of a verification set; "
            f"{messages.printable(root)} is another file."
        )
    faces = face_bin.scan(root)
    return Photos(face_bin.names(faces), (), lambda row: face_bin.image(faces, row, color=True), pairs=faces)


def of_listing(listing: Listing) -> Photos:
    """The photos of folders, and why other files were left out."""
    paths = listing.paths()
    return Photos(
        files=listing.files,
        labels=tuple(str(listing.names[k]) for k in listing.ids if k >= 0),
        read=lambda row: images.read_image(paths[row], color=True),
        left_out=tuple((name, _reason(listing.root, name)) for name in listing.ignored),
    )


def _reason(root: Path, name: str) -> str:
    """Why a file was left out."""
    path, suffix = root / name, Path(name).suffix.lower()
    if path.name.startswith("."):
        return "hidden"
    if path.is_dir():
        return "a folder inside a folder" if "/" in name else "a folder without photos"
    if suffix in images.SUFFIXES:
        return "beside the folders of the people: nobody says whom it shows"
    return _REASON.get(suffix, "not a photo by its name")
