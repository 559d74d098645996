"""Photos, faces or vectors without an order, and what is known of them."""

import dataclasses
import re
from collections.abc import Callable

import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs
from experiments.common.inputs import Vectors
from experiments.embed import faces, photos
from experiments.embed import study as embed
from experiments.embed.photos import Photos
from jaxface.core.labels import dense
from jaxface.faces.pipeline import ImagePipeline
from jaxface.runtime.workdir import Workdir

_SIDE = 96  # pixels of a face on a page


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Heap:
    """Vectors, pairs of them that cannot show one person, and their faces."""

    vectors: Vectors
    apart: np.ndarray  # int [p, 2]
    picture: Callable[[int], np.ndarray] | None  # of a row, [h, w] or [h, w, 3] in [0, 1]

    @property
    def is_known(self) -> bool:
        """Whether the data say who is on every photo."""
        return len(self.vectors.ids) > 0 and bool((self.vectors.ids >= 0).all())


def load(config: ConfigDict, workdir: Workdir, steps: ImagePipeline) -> Heap:
    """What `config.data` names; faces of one photo are kept apart."""
    if config.data.loader == "photos":
        return _of_photos(config, workdir)
    vectors = inputs.load_vectors(config.data, steps)
    images = vectors.images
    picture = None if images is None else lambda row: images[row]
    return Heap(vectors=vectors, apart=of_one_photo(vectors.files), picture=picture)


def of_one_photo(files: tuple[str, ...]) -> np.ndarray:
    """Pairs of rows `[p, 2]` whose names are faces of one photo, `photo.jpg#1` and `photo.jpg#2`."""
    rows_of: dict[str, list[int]] = {}
    for row, name in enumerate(files):
        if match := re.fullmatch(r"(.+)#\d+", name):
            rows_of.setdefault(match.group(1), []).append(row)
    found = [(rows[i], rows[j]) for rows in rows_of.values() for j in range(len(rows)) for i in range(j)]
    return np.array(found, np.int64).reshape(-1, 2)


def _of_photos(config: ConfigDict, workdir: Workdir) -> Heap:
    """Every face of the photos of a folder, or one of each; labelled only if one is taken."""
    fields.words(config, "face", faces.CHOICES)
    found = photos.find(config.data.root)
    arrays = embed.embed_photos(config, workdir, faces.load_networks(config.min_score), found)
    names = embed.row_names(config, found, arrays)
    embed.write_lists(workdir, found, arrays, names)
    if found.labels and config.face != "all":
        _, ids, people = dense([found.labels[k] for k in arrays["photo"]])
    else:
        ids, people = np.full(len(names), -1, np.int32), ()
    vectors = Vectors(x=arrays["features"], ids=ids, names=people, files=names)

    def picture(row: int) -> np.ndarray:
        return cropped(found, int(arrays["photo"][row]), arrays["boxes"][row])

    return Heap(vectors=vectors, apart=of_one_photo(names), picture=picture)


def cropped(found: Photos, photo: int, box: np.ndarray) -> np.ndarray:
    """The face of a photo in a box of left, top, width and height, `[96, 96, 3]`: the nearest pixels."""
    pixels = found.read(photo)
    left, top, width, height = (float(side) for side in box)
    steps = (np.arange(_SIDE) + 0.5) / _SIDE
    rows = np.clip((top + steps * height).astype(int), 0, pixels.shape[0] - 1)
    columns = np.clip((left + steps * width).astype(int), 0, pixels.shape[1] - 1)
    return pixels[np.ix_(rows, columns)]
