"""Embeddings in `.npz` files: how features of another tool (a deep network, say) come in, and ours go out.

    features  [n, d]  float16, float32 or float64, finite
    labels    [n]     strings or integers: who each row shows
    files     [n]     strings, optional: where each row comes from

Write one with `save`, or from anywhere with `numpy.savez(path, features=..., labels=...)`. Object arrays are
refused: they are pickles, and loading a pickle runs whatever is in it.
"""

import dataclasses
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from jaxface.core import checks
from jaxface.data import groups, paths
from jaxface.data.labelled import Name, check_files


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
    """Checks features `[n, d]` and labels `[n]`; `source` is what an error message calls them."""
    features = np.asarray(features)
    if features.dtype.kind != "f" or features.ndim != 2 or 0 in features.shape:
        raise ValueError(
            f"features of {source} must be floating point [n, d] with at least one row and column; "
            f"got dtype {features.dtype} and shape {features.shape}."
        )
    checks.finite(**{f"features of {source}": features})
    try:
        rows, ids, names = groups.dense(labels)
    except ValueError as error:
        raise ValueError(f"labels of {source}: {error}") from error
    if not len(labels) == len(rows) == len(features):
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


def load(path: str | Path, *, min_people: int = 2) -> Embeddings:
    """Reads and checks an `.npz` file; every error names it."""
    path = paths.existing_file(path, "Embeddings")
    arrays = _arrays(path)
    for name in ("features", "labels"):
        if name not in arrays:
            found = ", ".join(sorted(arrays)) or "nothing"
            raise ValueError(f"{path} must hold {name!r}; it holds {found}. See jaxface.data.embeddings.")
    files = arrays.get("files", np.empty(0, str))
    if files.dtype.kind != "U" or files.ndim != 1:
        raise ValueError(f"files of {path} must be strings [n]; got dtype {files.dtype} and shape {files.shape}.")
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
    with paths.replacing(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an archive; damaged files and pickles are errors that name it."""
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not an .npz archive. Write it with numpy.savez or jaxface.data.embeddings.save.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # zip, zlib and header readers each raise their own kind
        if "allow_pickle" in str(error):
            raise ValueError(
                f"{path} holds an object array, which is a pickle and is not loaded. "
                "Save features as floats and labels as strings or integers."
            ) from error
        raise ValueError(f"{path} is damaged: {type(error).__name__}: {error}") from error
