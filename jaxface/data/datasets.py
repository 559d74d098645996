"""Sets of images of known people: files on disk (`Listing`), and images in memory (`LabeledImages`).

A person is an id: `ids` are int32 and `names[ids[i]]` is who row i shows, also after selecting. As loaded, and after
`take_people`, ids are dense: everybody in `names` has a row.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from jaxface.core import checks, messages
from jaxface.core.labels import dense

__all__ = ["LabeledImages", "Listing", "from_arrays", "people_with", "take", "take_people"]

Name = str | int


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Listing:
    """Image files and whom they show; nothing has been read or decoded yet."""

    per_row: ClassVar[tuple[str, ...]] = ("files", "ids")  # what `take` selects from

    root: Path
    files: tuple[str, ...]  # [n], relative to root, "/" between folders
    ids: np.ndarray  # int32 [n], dense: names[ids[i]] is the person of files[i]; all -1 of a flat folder
    names: tuple[Name, ...]  # [c]
    ignored: tuple[str, ...] = ()  # hidden files, other kinds of files, folders without images
    credit: str = ""  # for the foot of a report

    def paths(self) -> list[Path]:
        """Where the files are."""
        return [self.root / file for file in self.files]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class LabeledImages:
    """Images of known people, in memory."""

    per_row: ClassVar[tuple[str, ...]] = ("images", "ids", "files")

    images: np.ndarray  # float32 [n, h, w] or [n, h, w, 3], in [0, 1]
    ids: np.ndarray  # int32 [n], dense: names[ids[i]] is the person of images[i]
    names: tuple[Name, ...]  # [c]
    files: tuple[str, ...] = ()  # [n] relative to the data root, or empty
    ignored: tuple[str, ...] = ()
    credit: str = ""


class RawVectors(NamedTuple):
    """Vectors as a file holds them, before they are checked."""

    features: np.ndarray  # [n, d]
    labels: Any = None  # [n] of any kind, or None
    files: tuple[str, ...] = ()  # [n], or empty
    held: str = ""  # what the file holds, for a message


Rows = TypeVar("Rows", bound=Any)  # Listing, LabeledImages, Embeddings: dataclasses with per-row fields


def from_arrays(images: Any, labels: Any, *, files: Sequence[str] = (), credit: str = "") -> LabeledImages:
    """LabeledImages from arrays at hand: images `[n, h, w(, 3)]` floating in [0, 1], labels `[n]` of any kind."""
    images = np.asarray(images)
    if np.issubdtype(images.dtype, np.integer):
        raise ValueError(
            f"images must be floating in [0, 1]; got dtype {images.dtype}. Divide 8-bit grey values by 255."
        )
    if images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3):
        raise ValueError(f"images must have shape [n, h, w] or [n, h, w, 3]; got shape {images.shape}.")
    checks.finite(images=images)
    images = images.astype(np.float32, copy=False)
    checks.between("images", images, 0.0, 1.0)
    rows, ids, names = dense(labels)
    if not len(labels) == len(rows) == len(images):
        raise ValueError(
            f"labels must name the person of each of the {len(images)} images; got {len(labels)} labels, "
            f"{len(labels) - len(rows)} of them None or -1."
        )
    check_files(files, len(images))
    return LabeledImages(images=images, ids=ids, names=names, files=tuple(files), credit=credit)


def take(data: Rows, rows: Any) -> Rows:
    """The given rows (indices or a mask). Ids and names stay as they are, so train and test parts agree."""
    num_rows = len(data.ids)
    rows = np.asarray(rows)
    if rows.size == 0 and rows.dtype != bool:
        rows = rows.astype(int)
    if rows.ndim != 1 or rows.dtype.kind not in "biu" or (rows.dtype == bool and len(rows) != num_rows):
        raise ValueError(
            f"rows must be whole numbers [r] or a mask [{num_rows}]; got {messages.describe(rows)}. "
            "Turn a condition into rows with numpy.flatnonzero."
        )
    if rows.dtype != bool and rows.size and not -num_rows <= int(rows.min()) <= int(rows.max()) < num_rows:
        raise ValueError(f"rows must be below {num_rows}, the rows there are; got {rows.min()} to {rows.max()}.")
    index = np.arange(num_rows)[rows]
    return dataclasses.replace(data, **{name: _rows_of(getattr(data, name), index) for name in data.per_row})


def take_people(data: Rows, people: Any) -> Rows:
    """All rows of the given ids `[k]`; the ids are made dense again: person `people[j]` becomes j."""
    people = np.asarray(checks.dense_labels("people", np.asarray(people), len(data.names)))
    if people.ndim != 1 or np.unique(people).size != people.size:
        raise ValueError(f"people must be a list of different ids; got {people.tolist()}.")
    new_id = np.full(len(data.names), -1, np.int32)
    new_id[people] = np.arange(people.size, dtype=np.int32)
    chosen = take(data, new_id[data.ids] >= 0)
    return dataclasses.replace(chosen, ids=new_id[chosen.ids], names=tuple(data.names[person] for person in people))


def people_with(ids: Any, *, min_rows: int) -> np.ndarray:
    """Ids of the people who have at least `min_rows` rows, ascending: for `take_people`."""
    ids = checks.dense_labels("ids", np.asarray(ids), np.iinfo(np.int32).max)
    return np.flatnonzero(np.bincount(ids) >= min_rows).astype(np.int32)


def _rows_of(values: Any, index: np.ndarray) -> Any:
    if isinstance(values, tuple):
        return tuple(values[i] for i in index) if values else values
    return values[index]


def check_files(files: Sequence[str], num_rows: int, *, source: str = "") -> None:
    """Checks that file names are given for every row or not at all, in UTF-8; `source` is where they come from."""
    where = f" of {source}" if source else ""
    for file in files:
        checks.utf8(str(file), f"files{where}")
    if files and len(files) != num_rows:
        raise ValueError(f"files{where} must name each of the {num_rows} rows or be empty; got {len(files)} names.")
