"""Rows of a file read by number, without mapping it: pages of a map that were read count as memory of the process."""

import io
import itertools
import math
import mmap
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxface.data import archives

__all__ = []


class RowFile(NamedTuple):
    """Rows of one shape and type in a file, one after the other."""

    path: str | Path
    offset: int  # bytes before the first row
    num_rows: int
    row_shape: tuple[int, ...]
    dtype: np.dtype

    def read_range(self, start: int, stop: int) -> np.ndarray:
        """Rows [start, stop) in native byte order."""
        rows = np.empty((stop - start, *self.row_shape), self.dtype)
        with open(self.path, "rb", buffering=0) as stream:
            self._fill(stream, start, rows)
        return archives.native(rows)

    def read(self, index: np.ndarray) -> np.ndarray:
        """Rows `[k]` in native byte order; each run of neighbours is read at once."""
        index = np.asarray(index)
        if index.size and (index.min() < 0 or index.max() >= self.num_rows):
            raise IndexError(
                f"rows of {self.path} must be in [0, {self.num_rows}); got {index.min()} to {index.max()}."
            )
        order = np.argsort(index, kind="stable")
        rising = index[order]
        rows = np.empty((index.size, *self.row_shape), self.dtype)
        bounds = [0, *(np.flatnonzero(np.diff(rising) != 1) + 1).tolist(), index.size]
        with open(self.path, "rb", buffering=0) as stream:
            for begin, end in itertools.pairwise(bounds):
                if end > begin:
                    self._fill(stream, int(rising[begin]), rows[begin:end])
        placed = np.empty_like(rows)
        placed[order] = rows
        return archives.native(placed)

    def _fill(self, stream: io.FileIO, start: int, rows: np.ndarray) -> None:
        """Reads rows from `start` on into an array."""
        left = memoryview(rows.reshape(-1).view(np.uint8).data)
        stream.seek(self.offset + start * self.dtype.itemsize * math.prod(self.row_shape))
        while left:  # one call may give fewer bytes than asked for
            size = stream.readinto(left)
            if not size:
                raise ValueError(
                    f"{self.path} ends before row {start + len(rows)}: it has become shorter since it was opened."
                )
            left = left[size:]


def behind(features: np.ndarray) -> RowFile | None:
    """The file behind a memory map of a whole array; None for an array that is no such map."""
    is_file = isinstance(features, np.memmap) and isinstance(features.base, mmap.mmap) and features.flags.c_contiguous
    path, offset = getattr(features, "filename", None), getattr(features, "offset", 0)
    if not is_file or path is None:
        return None
    return RowFile(path, offset, len(features), features.shape[1:], features.dtype)
