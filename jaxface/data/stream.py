"""Data larger than memory: batches of one size, each read when it is needed.

    from_array, from_npy, from_npz  -> Source   rows that can be read in any order
    from_file             the reader told by the file, with labels found as in `embeddings.load`
    num_batches           how many batches a pass has; the same for every process
    batches               a pass as a plain iterator
    grain_batches         the same pass as a grain dataset, read ahead by threads; its iterator has get_state, set_state

A pass is a pure function of its arguments. A random order is `rows=rng.permutation(source.num_rows)`, a training
fold is `rows=<its rows>`, another epoch is another call. Process p of P reads the p-th of P consecutive shares of
the rows; all processes have the same number of batches, the last ones padded.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxface.core import checks
from jaxface.core.labels import dense
from jaxface.data import archives, label_files, row_files, storage, vector_files
from jaxface.data.datasets import Name

__all__ = ["Source", "batches", "from_array", "from_file", "from_npy", "from_npz", "grain_batches"]


class Source(NamedTuple):
    """Rows on disk or in memory, read by number."""

    num_rows: int
    read: Callable[[np.ndarray], np.ndarray]  # row numbers [k] -> features [k, ...]
    row_shape: tuple[int, ...]
    dtype: np.dtype
    ids: np.ndarray  # int32 [n]; -1 for a row without a label
    names: tuple[Name, ...]  # [c]
    read_range: Callable[[int, int], np.ndarray]  # start, stop -> the rows between as stored, float16 among them
    name: str = "the source"  # for messages


class Batch(NamedTuple):
    """A batch of one size; the rows that are not valid are zero."""

    features: np.ndarray  # [b, ...]
    ids: np.ndarray  # int32 [b], -1 for padding
    valid: np.ndarray  # bool [b]


def from_array(features: Any, labels: Any = None) -> Source:
    """Rows of an array (or memory map) `[n, ...]`; labels `[n]` of any kind, -1 or None where unknown.

    Batches have native byte order, and float32 where the array is float16. Rows of a memory map of a whole file are
    read from the file (`row_files`).
    """
    features = features if isinstance(features, np.ndarray) else np.asarray(features)
    if features.ndim < 2 or len(features) == 0:
        raise ValueError(f"features must have shape [n, ...] with n > 0; got shape {features.shape}.")
    if features.dtype.kind not in "biuf" or features.itemsize > 8:
        raise ValueError(
            f"features must be numbers of at most 64 bits; got dtype {features.dtype}. Convert them to float32."
        )
    dtype = np.dtype(np.float32) if features.dtype.kind == "f" and features.itemsize == 2 else features.dtype
    dtype = dtype.newbyteorder("=")
    ids, names = _ids(labels, len(features))

    file = row_files.behind(features)

    def read(index: np.ndarray) -> np.ndarray:
        rows = features[index] if file is None else file.read(index)
        return rows.astype(dtype, copy=False)

    def read_range(start: int, stop: int) -> np.ndarray:
        if file is not None:
            return file.read_range(start, stop)
        return np.ascontiguousarray(archives.native(features[start:stop]))

    return Source(len(features), read, features.shape[1:], dtype, ids, names, read_range)


def from_npy(path: str | Path, labels: Any = None) -> Source:
    """Rows of a `.npy` file `[n, ...]`, read as they are needed, with labels `[n]` of any kind or none.

    NaN among the features is not looked for: that would take reading all of them.
    """
    path = storage.existing_file(path, "Embeddings")
    with storage.naming_damage(path):
        rows = np.lib.format.open_memmap(path, mode="r")
    try:
        return from_array(rows, labels)._replace(name=str(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def from_npz(path: str | Path, *, features: str = "features", labels: str | None = "labels") -> Source:
    """Rows of an uncompressed `.npz` (see `embeddings`); labels are read at once, features as they are needed.

    A batch with NaN or infinite features is an error that names the file. The checksum of the labels is compared, that
    of the features is not: it would take reading all of them.
    """
    path = storage.existing_file(path, "Embeddings")
    rows = archives.mapped(path, features)
    if rows.dtype.kind != "f" or rows.ndim < 2:
        raise ValueError(
            f"{features!r} of {path} must be floating point [n, ...]; got dtype {rows.dtype} and shape {rows.shape}. "
            "Save them as float32 or float64."
        )
    people = None if labels is None else archives.read(path, (labels,))[labels]
    try:
        source = from_array(rows, people)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error

    def read(index: np.ndarray) -> np.ndarray:
        values = source.read(index)
        checks.finite(**{f"{features} of {path}, in rows {index.min()} to {index.max()},": values})
        return np.asarray(values)

    return source._replace(read=read, name=str(path))


def from_file(path: str | Path, *, features: str | None = None, labels: str | None = None) -> Source:
    """Rows of a `.npy`, with labels in a file of their own, or of an uncompressed `.npz`.

    `features` and `labels` name arrays of an `.npz`, or labels a file, as in `embeddings.load`; rows without a
    label have the id -1.
    """
    path = storage.existing_file(path, "Embeddings")
    with path.open("rb") as stream:
        is_npy = stream.read(len(archives.NPY)) == archives.NPY
    if not is_npy and path.suffix.lower() != ".npz":
        raise ValueError(
            f"{path} cannot be read in parts: that takes a .npy or an uncompressed .npz. Convert it once: "
            "jaxface.data.embeddings.save('NEW.npz', found.features, labels), with found = embeddings.load(...)."
        )
    if is_npy:
        vector_files.refuse_options(path, features=features)
        source = from_npy(path)
        is_beside = labels is not None
    else:
        names = vector_files.chosen(path, archives.headers(path), features=features, labels=labels, files=None)
        source = from_npz(path, features=names.features, labels=names.labels)
        is_beside = names.labels_are_beside
    if is_beside and labels is not None:
        listed = label_files.read(labels, beside=path, num_rows=source.num_rows)
        ids, people = _ids(listed.labels, source.num_rows)
        source = source._replace(ids=ids, names=people)
    return source


def num_batches(num_rows: int, *, batch_size: int, process_count: int = 1) -> int:
    """Batches that each process reads in a pass over `num_rows` rows."""
    checks.at_least("batch_size", batch_size, 1)
    checks.at_least("process_count", process_count, 1)
    return -(-_share(num_rows, process_count) // batch_size)


def batches(
    source: Source,
    *,
    batch_size: int,
    rows: Any = None,
    process_index: int = 0,
    process_count: int = 1,
    start: int = 0,
) -> Iterator[Batch]:
    """One pass over `rows` `[r]` (default: all, in order), from batch `start` on.

    To resume, keep the number of batches consumed and pass it as `start`.
    """
    batch_at, count = _pass(source, batch_size, rows, process_index, process_count)
    checks.at_least("start", start, 0)
    checks.at_most("start", start, count, "the batches of a pass")
    return (batch_at(index) for index in range(start, count))


def grain_batches(
    source: Source,
    *,
    batch_size: int,
    rows: Any = None,
    process_index: int = 0,
    process_count: int = 1,
    num_threads: int = 2,
    read_ahead: int = 4,
) -> Any:
    """The pass of `batches` as a `grain.IterDataset`, with `read_ahead` batches prepared by `num_threads` threads.

    `iterator = iter(dataset)` has `get_state()` and `set_state(state)`, and grain's checkpoint handlers take it.
    """
    try:
        import grain
    except ImportError as error:
        raise ImportError("grain is not installed. Run: pip install 'jaxface[stream]'.") from error
    batch_at, count = _pass(source, batch_size, rows, process_index, process_count)
    dataset = grain.MapDataset.range(count).map(batch_at)
    return dataset.to_iter_dataset(grain.ReadOptions(num_threads=num_threads, prefetch_buffer_size=read_ahead))


def _ids(labels: Any, num_rows: int) -> tuple[np.ndarray, tuple[Name, ...]]:
    ids = np.full(num_rows, -1, np.int32)
    if labels is None:
        return ids, ()
    if np.ndim(labels) == 0 or len(labels) != num_rows:
        count = len(labels) if np.ndim(labels) else 1
        raise ValueError(f"labels must name the person of each of the {num_rows} rows; got {count} labels.")
    known = dense(labels)
    ids[known.rows] = known.ids
    return ids, known.names


def _share(num_rows: int, process_count: int) -> int:
    return -(-num_rows // process_count)


def _pass(
    source: Source, batch_size: int, rows: Any, process_index: int, process_count: int
) -> tuple[Callable[[int], Batch], int]:
    """Batch number -> batch, for the share of one process, and the number of batches."""
    checks.at_least("process_index", process_index, 0)
    checks.at_most("process_index", process_index, process_count - 1, "process_count - 1")
    order = None if rows is None else np.asarray(rows)
    if order is not None:
        checks.shapes(rows=(order, "r"))
        order = checks.dense_labels("rows", order, source.num_rows)
    total = source.num_rows if order is None else len(order)
    share = _share(total, process_count)
    begin, end = min(process_index * share, total), min((process_index + 1) * share, total)

    def batch_at(index: int) -> Batch:
        low = min(begin + index * batch_size, end)
        high = min(low + batch_size, end)
        return _padded(source, np.arange(low, high) if order is None else order[low:high], batch_size)

    return batch_at, num_batches(total, batch_size=batch_size, process_count=process_count)


def _padded(source: Source, rows: np.ndarray, batch_size: int) -> Batch:
    features = np.zeros((batch_size, *source.row_shape), source.dtype)
    ids = np.full(batch_size, -1, np.int32)
    if rows.size:
        features[: rows.size] = source.read(rows)
        ids[: rows.size] = source.ids[rows]
    return Batch(features, ids, np.arange(batch_size) < rows.size)
