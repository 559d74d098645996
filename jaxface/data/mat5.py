"""Numbers and cell arrays of numbers from MATLAB files of version 5 to 7, within limits.

SciPy's reader crashes the process on cells nested some thousand deep, and unpacks a compressed variable of any size;
this one refuses both. Structures, text, sparse matrices and functions are named and not read.

A file is a header of 128 bytes and elements: a tag (kind and size), then the data, padded to 8 bytes; small data are
inside the tag. A variable is an element of kind MATRIX, or of kind COMPRESSED with such an element in zlib's format. A
matrix holds elements: flags with its class, its sizes, its name, then its numbers in column-major order, or cells.
"""

import math
import struct
import zlib
from typing import Any, NamedTuple

import numpy as np

__all__ = []

HEADER_BYTES = 128
ORDERS = {b"IM": "<", b"MI": ">"}  # the byte order of a file, by the last bytes of its header
_MATRIX, _COMPRESSED = 14, 15
_HEAD_BYTES = 4096  # enough to see the name of a packed variable
_CELL, _COMPLEX = 1, 0x0800
_CLASSES = {  # that are named in messages and not read
    2: "a structure",
    3: "an object",
    4: "text",
    5: "a sparse matrix",
    16: "a function",
    17: "an object",
}
_NUMERIC_CLASSES = range(6, 16)
_DTYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}


class Variable(NamedTuple):
    """A variable of a file, before its numbers are read."""

    name: str
    data: memoryview  # as stored
    is_packed: bool
    num_bytes: int  # unpacked
    order: str  # "<" or ">", the byte order of the file


def is_hdf5(header: bytes) -> bool:
    """Whether a file begins as one of version 7.3, which is a file of HDF5."""
    return header[:8] == b"\x89HDF\r\n\x1a\n" or header[124:128] in (b"\x00\x02IM", b"\x02\x00MI")


def variables(data: memoryview) -> dict[str, Variable]:
    """The variables of a file by name; only their heads are unpacked."""
    order = ORDERS[bytes(data[126:128])]
    found: dict[str, Variable] = {}
    at = HEADER_BYTES
    while at < len(data):
        kind, body, _ = _element(data, at, order)
        at += 8 + len(body)
        if kind in (_MATRIX, _COMPRESSED):
            variable = _variable(kind, body, order)
            found.setdefault(variable.name, variable)
    return found


def value(variable: Variable) -> Any:
    """The numbers of a variable as stored, in native byte order, or its cells as an object array of such numbers."""
    data = variable.data
    if variable.is_packed:
        data = memoryview(_unpacked(variable.data, variable.num_bytes, to_the_end=True))
        _, data, _ = _element(data, 0, variable.order)
    return _value(data, variable.order, may_be_cells=True)


def _element(data: memoryview, at: int, order: str) -> tuple[int, memoryview, int]:
    """Kind, data and end of the element at a place."""
    if at + 8 > len(data):
        raise ValueError("it ends within a tag")
    kind, size = struct.unpack_from(order + "II", data, at)
    start = at + 8
    if kind >> 16:  # up to four bytes inside the tag
        kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
        if size > 4:
            raise ValueError("a small element is larger than its tag")
    if start + size > len(data):
        raise ValueError("it ends within an element")
    return kind, data[start : start + size], at + 8 if start == at + 4 else start + size + -size % 8


def _variable(kind: int, body: memoryview, order: str) -> Variable:
    if kind == _MATRIX:
        return Variable(_head(body, order)[2], body, False, len(body), order)
    start = memoryview(_unpacked(body, _HEAD_BYTES, to_the_end=False))
    if len(start) < 8:
        raise ValueError("a packed variable is empty")
    inner, size = struct.unpack_from(order + "II", start)
    if inner != _MATRIX:
        raise ValueError(f"a packed element is of kind {inner}, not a matrix")
    return Variable(_head(start[8:], order)[2], body, True, 8 + size, order)


def _unpacked(packed: memoryview, num_bytes: int, *, to_the_end: bool) -> bytes:
    """The first bytes of a packed element; at its end the checksum is compared."""
    decoder = zlib.decompressobj()
    try:
        unpacked = decoder.decompress(packed, num_bytes)
        rest = decoder.decompress(decoder.unconsumed_tail, 1) if to_the_end else b""
    except zlib.error as error:
        raise ValueError(f"a packed variable is damaged ({error})") from error
    if to_the_end and (len(unpacked) < num_bytes or rest or not decoder.eof):
        raise ValueError(f"a packed variable is not of the {num_bytes} bytes that it says")
    return unpacked


def _head(data: memoryview, order: str) -> tuple[int, tuple[int, ...], str, int]:
    """Class and flags, sizes, name and end of the head of a matrix."""
    _, flags, at = _element(data, 0, order)
    if len(flags) < 4:
        raise ValueError("a matrix has no class")
    _, sizes, at = _element(data, at, order)
    _, name, at = _element(data, at, order)
    if len(sizes) % 4 or len(sizes) > 4 * 32:
        raise ValueError("a matrix has no sizes")
    shape = struct.unpack(f"{order}{len(sizes) // 4}i", sizes)
    if min(shape, default=-1) < 0:
        raise ValueError(f"a matrix has the sizes {shape}")
    return struct.unpack_from(order + "I", flags)[0], shape, bytes(name).decode("utf-8", "replace"), at


def _value(data: memoryview, order: str, *, may_be_cells: bool) -> Any:
    if not data:  # an empty cell
        return np.zeros((0, 0))
    flags, shape, _, at = _head(data, order)
    if flags & 0xFF == _CELL and may_be_cells:
        return _cells(data, at, shape, order)
    if flags & 0xFF not in _NUMERIC_CLASSES or flags & _COMPLEX:
        what = "complex numbers" if flags & _COMPLEX else _CLASSES.get(flags & 0xFF, "an array of cells within cells")
        raise ValueError(f"it is {what}; only real numbers and cell arrays of them are read")
    kind, numbers, _ = _element(data, at, order)
    if kind not in _DTYPES:
        raise ValueError(f"its numbers are of the unknown kind {kind}")
    dtype = np.dtype(order + _DTYPES[kind])
    if len(numbers) != dtype.itemsize * math.prod(shape):
        raise ValueError(f"sizes {shape} need {dtype.itemsize * math.prod(shape)} bytes; it has {len(numbers)}")
    return np.frombuffer(numbers, dtype).astype(dtype.newbyteorder("=")).reshape(shape, order="F")


def _cells(data: memoryview, at: int, shape: tuple[int, ...], order: str) -> np.ndarray:
    count = math.prod(shape)
    if 8 * count > len(data):  # each has a tag
        raise ValueError(f"an array of {count} cells has {len(data)} bytes")
    cells = np.empty(count, object)
    for index in range(count):
        kind, body, at = _element(data, at, order)
        if kind != _MATRIX:
            raise ValueError(f"a cell is of kind {kind}, not a matrix")
        cells[index] = _value(body, order, may_be_cells=False)
    return cells.reshape(shape, order="F")
