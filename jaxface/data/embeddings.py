"""Embeddings of any tool as one type, from the files in which they come; and ours as a file that others read.

    features  [n, d]  float16, float32 or float64, finite
    labels    [n]     strings or integers: who each row shows; absent where nobody needs to know
    files     [n]     strings, optional: where each row comes from

`load` tells the format by the file: `.npz`, `.npy` with a file of labels, CSV or TSV, Kaldi's `.ark` and `.scp`.
Write one with `save`, or from anywhere with `numpy.savez(path, features=..., labels=...)`. Object arrays are
refused: they are pickles, and loading a pickle runs the code in it. Archives that unpack to more than `max_bytes`
(2 GiB) and four times their size are refused before they are unpacked.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from jaxface.core import checks, messages
from jaxface.core.labels import dense
from jaxface.data import archives, storage, vector_files
from jaxface.data.datasets import Name, check_files

__all__ = ["load", "save", "sources"]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Embeddings:
    """Feature vectors of known people."""

    per_row: ClassVar[tuple[str, ...]] = ("features", "ids", "files")

    features: np.ndarray  # float32 or float64 [n, d]
    ids: np.ndarray  # int32 [n], dense: names[ids[i]] is the person of features[i]; all -1 without labels
    names: tuple[Name, ...]  # [c]
    files: tuple[str, ...] = ()  # [n], or empty


def from_arrays(
    features: Any,
    labels: Any,
    *,
    files: Sequence[str] = (),
    min_people: int = 2,
    source: str = "these arrays",
) -> Embeddings:
    """Checks features `[n, d]` and labels `[n]`; `source` is their name in error messages.

    labels: None where nobody needs them, which `min_people=0` says: then all ids are -1.
    """
    features = np.asarray(features)
    if features.dtype.kind != "f" or features.itemsize > 8 or features.ndim != 2 or 0 in features.shape:
        raise ValueError(
            f"features of {source} must be floating point [n, d] with at least one row and column; "
            f"got dtype {features.dtype} and shape {features.shape}. Convert them to float32 or float64."
        )
    features = archives.native(features)
    checks.finite(**{f"features of {source}": features})
    checks.at_least("min_people", min_people, 0)
    ids, names = np.full(len(features), -1, np.int32), tuple[Name, ...]()
    if labels is not None or min_people > 0:
        ids, names = _people(labels, len(features), min_people=min_people, source=source)
    check_files(files, len(features), source=source)
    features = features.astype(np.float32) if features.dtype == np.float16 else features
    return Embeddings(features=features, ids=ids, names=names, files=tuple(str(file) for file in files))


def _people(labels: Any, num_rows: int, *, min_people: int, source: str) -> tuple[np.ndarray, tuple[Name, ...]]:
    """Dense ids of the labels of all rows, and their names."""
    if np.ndim(labels) == 1 and len(labels) != num_rows:
        raise ValueError(
            f"labels of {source} must name the person of each of the {num_rows} rows; got {len(labels)} labels."
        )
    try:
        rows, ids, names = dense(labels)
    except ValueError as error:
        raise ValueError(f"labels of {source}: {error}") from error
    if len(rows) != num_rows:
        raise ValueError(
            f"labels of {source} must name the person of each of the {num_rows} rows; got {len(labels)} labels, "
            f"{len(labels) - len(rows)} of them None or -1."
        )
    if len(names) < min_people:
        raise ValueError(
            f"labels of {source} must name at least {min_people} people; all {len(ids)} rows show {names[0]!r}."
            if len(names) == 1
            else f"labels of {source} must name at least {min_people} people; got {len(names)}."
        )
    if "" in names:
        raise ValueError(f"labels of {source}: {int((ids == names.index('')).sum())} rows have an empty label.")
    return ids, names


def load(
    path: str | Path,
    *,
    features: str | None = None,
    labels: str | None = None,
    files: str | None = None,
    min_people: int = 2,
    max_bytes: int = storage.MAX_BYTES,
) -> Embeddings:
    """Reads and checks a file of vectors in any of the formats above; every error names the file.

    features: the array of an archive, or `FIRST:LAST`, the columns of a table, where the file does not tell.
    labels: the array or column with labels, or a text file of them (`FILE`, or `FILE:COLUMN` of a table).
    files: the array or column with the names of files.
    min_people: with 0 the labels may be missing: then all ids are -1 and there are no names.
    max_bytes: an archive that unpacks to more, and to more than four times its size, is refused before it is unpacked.
    """
    path = storage.existing_file(path, "Embeddings")
    raw = vector_files.read(path, features=features, labels=labels, files=files, max_bytes=max_bytes)
    if raw.labels is None and min_people > 0:
        raise ValueError(
            f"{messages.printable(path)} has no labels{raw.held}. Say who each row shows with labels=NAME of an array "
            "or column, or labels=FILE, with one label a line."
        )
    return from_arrays(raw.features, raw.labels, files=raw.files, min_people=min_people, source=str(path))


def sources(path: str | Path, *, labels: str | None = None) -> tuple[Path, ...]:
    """Every file that `load` opens with these arguments: the vectors, their labels, the archives of a list."""
    return vector_files.sources(Path(path), labels=labels)


def save(path: str | Path, features: Any, labels: Any, *, files: Sequence[str] = ()) -> None:
    """Writes an `.npz` file that `load` reads and `stream.from_npz` reads in parts (it is not compressed)."""
    path = Path(path)
    if path.suffix != ".npz":
        raise ValueError(f"path must end in .npz; got {path}.")
    data = from_arrays(features, labels, files=files, min_people=1)
    arrays = {"features": data.features, "labels": np.asarray(data.names)[data.ids]}
    if data.files:
        arrays["files"] = np.asarray(data.files)
    with storage.replacing(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)
