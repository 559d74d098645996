"""Which reader takes a file of vectors, told by its first bytes and its suffix.

read      features, labels and files as the file holds them
chosen    which arrays of an `.npz` are the features, the labels and the files
sources   every file that is read for it: the vectors, their labels, the archives of a list
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxface.core import messages
from jaxface.data import archives, kaldi, label_files, unread_formats, vector_tables
from jaxface.data.archives import Header
from jaxface.data.datasets import RawVectors

__all__ = []

_ZIP = b"PK\x03\x04"


class Chosen(NamedTuple):
    """Names of the arrays of an archive."""

    features: str
    labels: str | None  # None: there are none, or they stand in a text file
    files: str | None
    labels_are_beside: bool  # in a text file


def read(path: Path, *, features: str | None, labels: str | None, files: str | None, max_bytes: int) -> RawVectors:
    """The vectors of a file and what it says of them; options as in `embeddings.load`."""
    with path.open("rb") as stream:
        start = stream.read(4096)
    suffix = path.suffix.lower()
    if start.startswith(archives.NPY):
        refuse_options(path, features=features, files=files)
        return _with_labels(path, RawVectors(archives.read_npy(path)), labels)
    if suffix == ".npz":
        return _of_archive(path, features, labels, files, max_bytes)
    if suffix in (".ark", ".scp") or kaldi.is_text_archive(start):
        refuse_options(path, features=features, files=files)
        raw = kaldi.read_scp(path) if suffix == ".scp" else kaldi.read(path)
        return raw if labels is None else raw._replace(labels=label_files.by_name(labels, beside=path, keys=raw.files))
    unread_formats.refuse(path, start)
    if start.startswith(_ZIP):
        return _of_archive(path, features, labels, files, max_bytes)
    if labels is not None and not _is_column(labels, start) and label_files.is_there(labels, path):
        raw = vector_tables.read(path, features=features, files=files)
        return _with_labels(path, raw, labels)
    return vector_tables.read(path, features=features, labels=labels, files=files)


def sources(path: Path, *, labels: str | None) -> tuple[Path, ...]:
    """The files that `read` opens, as far as they are there."""
    archived = kaldi.archives_of(path) if path.suffix.lower() == ".scp" and path.is_file() else ()
    named = (label_files.find(labels, path)[0],) if labels is not None and label_files.is_there(labels, path) else ()
    return path, *archived, *named


def _is_column(name: str, start: bytes) -> bool:
    """Whether a table that starts so has a column of this name or number."""
    head = start.decode("utf-8", "replace").lstrip("\ufeff").partition("\n")[0]
    return name.isdecimal() or name in re.split(r'[\t;,"\s]+', head)


def _with_labels(path: Path, raw: RawVectors, labels: str | None) -> RawVectors:
    if labels is None:
        return raw
    found = label_files.read(labels, beside=path, num_rows=len(raw.features) if raw.features.ndim else 1)
    return raw._replace(labels=found.labels, files=raw.files or found.files)


def _of_archive(path: Path, features: str | None, labels: str | None, files: str | None, max_bytes: int) -> RawVectors:
    """The arrays of an `.npz`."""
    headers = archives.headers(path)
    features, of_labels, of_files, beside = chosen(path, headers, features=features, labels=labels, files=files)
    names = [name for name in (features, of_labels) if name is not None]
    optional = [of_files] if of_files is not None and files is None else []
    arrays = archives.read(path, (*names, *([files] if files else [])), optional=optional, max_bytes=max_bytes)
    named = arrays[of_files] if of_files in arrays else np.empty(0, str)
    if named.dtype.kind != "U" or named.ndim != 1:
        raise ValueError(
            f"{of_files} of {path} must be strings [n]; got dtype {named.dtype} and shape {named.shape}. "
            "Save them with numpy.asarray(files, str), or leave them out."
        )
    found = None if of_labels is None else _plain(arrays[of_labels])
    raw = RawVectors(arrays[features], found, tuple(named.tolist()), f": it holds {_listed(headers)}")
    return _with_labels(path, raw, labels) if beside else raw


def chosen(
    path: Path, headers: Mapping[str, Header | None], *, features: str | None, labels: str | None, files: str | None
) -> Chosen:
    """The arrays of an `.npz`: those that are named, those of the usual names, or the only ones of their shape."""
    features = features or _features(path, headers)
    of_features = headers.get(features)
    count = of_features.shape[:1] if of_features else ()
    beside = labels is not None and labels not in headers and label_files.is_there(labels, path)
    of_files = files or _known(headers, label_files.FILES, count)
    of_labels = None if beside else labels or _labels(path, headers, count, taken=(features, of_files))
    return Chosen(features, of_labels, of_files, beside)


def _features(path: Path, headers: Mapping[str, Header | None]) -> str:
    """The array `features`, or the only one of vectors."""
    if "features" in headers:
        return "features"
    found = [name for name, head in headers.items() if head and len(head.shape) == 2 and head.dtype.kind == "f"]
    if len(found) != 1:
        what = "several arrays of vectors" if found else "no floating array [n, d]"
        raise ValueError(
            f"{messages.printable(path)} holds {what}: {_listed(headers)}. Name the one to take with features=NAME."
        )
    return found[0]


def _labels(
    path: Path, headers: Mapping[str, Header | None], count: tuple[int, ...], *, taken: Sequence[str | None]
) -> str | None:
    """The array of a usual name, or the only one with one label a row; None where there is none."""
    if (known := _known(headers, label_files.LABELS, ())) is not None:
        return known
    found = [
        name
        for name, head in headers.items()
        if name not in taken and head and head.shape in (count, (*count, 1)) and head.dtype.kind in "iuSU"
    ]
    if len(found) > 1:
        raise ValueError(
            f"{messages.printable(path)} holds several arrays that may be the labels: {', '.join(found)}. Name the one "
            "to take with labels=NAME."
        )
    return found[0] if found else None


def _known(headers: Mapping[str, Header | None], names: Sequence[str], shape: tuple[int, ...]) -> str | None:
    """The first of the usual names that is there, with this shape if one is given."""
    found = {name.lower(): name for name, head in headers.items() if not shape or (head and head.shape == shape)}
    return next((found[name] for name in names if name in found), None)


def _plain(labels: np.ndarray) -> np.ndarray:
    """Labels as `[n]`, and bytes as text where they are ASCII."""
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    return labels.astype(str) if labels.dtype.kind == "S" else labels


def _listed(headers: Mapping[str, Header | None]) -> str:
    each = (
        f"{messages.printable(name)} {head.dtype} {list(head.shape)}"
        if head
        else f"{messages.printable(name)} (damaged)"
        for name, head in sorted(headers.items(), key=lambda item: item[0])[:20]
    )
    return ", ".join(each) or "no arrays"


def refuse_options(path: Path, **options: str | None) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} has no meaning for {messages.printable(path)}, which holds one array of vectors."
            )
