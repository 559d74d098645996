"""Rows of an array inside an `.npz` archive without reading the rest of it.

An archive written by `numpy.savez` stores its members uncompressed, so each is a `.npy` file at some offset, which
can be mapped into memory.
"""

import struct
import zipfile
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np

# Signature, versions, times and sizes (skipped), length of the name, length of the extra field.
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_SIGNATURE = b"PK\x03\x04"


def mapped(path: Path, name: str) -> np.ndarray:
    """The array `name` of an archive as a read-only memory map; it must be stored uncompressed."""
    member = _member(path, name)
    try:
        with path.open("rb") as stream:
            start = _member_start(stream, member)
            shape, order, dtype = _array_header(stream)
            offset = stream.tell()
    except (struct.error, ValueError, OSError) as error:
        raise ValueError(f"{path} is damaged: {name!r} has no readable header: {error}") from error
    if dtype.hasobject:
        raise ValueError(f"{name!r} of {path} is an object array, which is a pickle and is not loaded.")
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if size == 0:
        raise ValueError(f"{name!r} of {path} must hold at least one value; got shape {shape}.")
    if offset - start + size != member.file_size or offset + size > path.stat().st_size:
        raise ValueError(f"{path} is damaged: {name!r} of shape {shape} needs {size} bytes, not what it has.")
    return np.memmap(path, dtype, "r", offset, shape, order)


def _member(path: Path, name: str) -> zipfile.ZipInfo:
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not an .npz archive. Write it with numpy.savez or jaxface.data.embeddings.save.")
    with zipfile.ZipFile(path) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
    if name not in members:
        raise ValueError(f"{path} must hold {name!r}; it holds {', '.join(sorted(members)) or 'nothing'}.")
    if members[name].compress_type != zipfile.ZIP_STORED:
        raise ValueError(
            f"{name!r} of {path} is compressed, so it cannot be read in parts. "
            "Write it with numpy.savez or jaxface.data.embeddings.save, not numpy.savez_compressed."
        )
    return members[name]


def _member_start(stream: BinaryIO, member: zipfile.ZipInfo) -> int:
    """Moves to the first byte of a stored member, behind its local header."""
    stream.seek(member.header_offset)
    signature, name_length, extra_length = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
    if signature != _SIGNATURE:
        raise ValueError("its local header is missing")
    return stream.seek(name_length + extra_length, 1)


def _array_header(stream: BinaryIO) -> tuple[tuple[int, ...], Literal["C", "F"], np.dtype]:
    """Shape, order and dtype from the header of a `.npy` file."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"its format version {version} is unknown")
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran_order, dtype = read_header(stream)
    return shape, "F" if fortran_order else "C", dtype
