"""Embeddings in `.npz` files: how features of another tool (a deep network, say) come in, and ours go out.

    features  [n, d]  float16, float32 or float64, finite
    labels    [n]     strings or integers: who each row shows
    files     [n]     strings, optional: where each row comes from

Write one with `save`, or from anywhere with `numpy.savez(path, features=..., labels=...)`. Object arrays are
refused: they are pickles, and loading a pickle runs the code in it. Archives that unpack to more than `max_bytes`
(2 GiB) and four times their size are refused before they are unpacked.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from jaxface.core import checks
from jaxface.core.labels import dense
from jaxface.data import archives, storage
from jaxface.data.datasets import Name, check_files

__all__ = ["load", "save"]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Embeddings:
    """Feature vectors of known people."""

    per_row: ClassVar[tuple[str, ...]] = ("features", "ids", "files")

    features: np.ndarray  # float32 or float64 [n, d]
    ids: np.ndarray  # int32 [n], dense: names[ids[i]] is the person of features[i]
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
    """Checks features `[n, d]` and labels `[n]`; `source` is their name in error messages."""
    features = np.asarray(features)
    if features.dtype.kind != "f" or features.itemsize > 8 or features.ndim != 2 or 0 in features.shape:
        raise ValueError(
            f"features of {source} must be floating point [n, d] with at least one row and column; "
            f"got dtype {features.dtype} and shape {features.shape}. Convert them to float32 or float64."
        )
    features = archives.native(features)
    checks.finite(**{f"features of {source}": features})
    if np.ndim(labels) == 1 and len(labels) != len(features):
        raise ValueError(
            f"labels of {source} must name the person of each of the {len(features)} rows; got {len(labels)} labels."
        )
    try:
        rows, ids, names = dense(labels)
    except ValueError as error:
        raise ValueError(f"labels of {source}: {error}") from error
    if len(rows) != len(features):
        raise ValueError(
            f"labels of {source} must name the person of each of the {len(features)} rows; got {len(labels)} labels, "
            f"{len(labels) - len(rows)} of them None or -1."
        )
    checks.at_least("min_people", min_people, 1)
    if len(names) < min_people:
        raise ValueError(
            f"labels of {source} must name at least {min_people} people; all {len(ids)} rows show {names[0]!r}."
            if len(names) == 1
            else f"labels of {source} must name at least {min_people} people; got {len(names)}."
        )
    check_files(files, len(features), source=source)
    features = features.astype(np.float32) if features.dtype == np.float16 else features
    return Embeddings(features=features, ids=ids, names=names, files=tuple(str(file) for file in files))


def load(path: str | Path, *, min_people: int = 2, max_bytes: int = storage.MAX_BYTES) -> Embeddings:
    """Reads and checks an `.npz` file; every error names it.

    max_bytes: a file that unpacks to more, and to more than four times its size, is refused before it is unpacked.
    """
    path = storage.existing_file(path, "Embeddings")
    arrays = archives.read(path, ("features", "labels"), optional=("files",), max_bytes=max_bytes)
    files = arrays.get("files", np.empty(0, str))
    if files.dtype.kind != "U" or files.ndim != 1:
        raise ValueError(
            f"files of {path} must be strings [n]; got dtype {files.dtype} and shape {files.shape}. "
            "Save them with numpy.asarray(files, str), or leave them out."
        )
    return from_arrays(
        arrays["features"], arrays["labels"], files=files.tolist(), min_people=min_people, source=str(path)
    )


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
