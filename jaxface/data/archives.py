"""Arrays of `.npz` archives: read whole within a limit, or mapped into memory without reading the rest.

    read      some arrays of an archive, packed or not; their sizes are checked before anything is unpacked
    headers   the shape and dtype of every array of an archive
    read_npy  the array of a `.npy` file
    mapped    one array of an archive that `numpy.savez` wrote: it stores its members uncompressed, so each is a
              `.npy` file at some offset, which can be mapped into memory
    native    an array in the byte order of this machine

The directory of an archive and the header of a member may be wrong. They are compared with each other, and no more
bytes are read than they announce. Object arrays are refused: they are pickles, and loading a pickle runs its code.
"""

import io
import math
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import numpy as np

from jaxface.core import messages
from jaxface.data import storage

__all__ = []

# Signature, versions, times and sizes (skipped), length of the name, length of the extra field.
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_SIGNATURE = b"PK\x03\x04"
NPY = b"\x93NUMPY"  # how a .npy begins
_LONGEST_HEADER = 1 << 14  # numpy refuses headers above 10,000 characters
_STEP = 1 << 20  # bytes unpacked at once
_ENCRYPTED = 1  # bit of the flags of a member
_WRITE_IT = "Write it with numpy.savez or jaxface.data.embeddings.save."


class Header(NamedTuple):
    """The `.npy` header of a member."""

    shape: tuple[int, ...]
    order: Literal["C", "F"]
    dtype: np.dtype
    length: int  # bytes before the data

    @property
    def num_bytes(self) -> int:
        return self.dtype.itemsize * math.prod(self.shape)


def read(
    path: Path, names: Sequence[str], *, optional: Sequence[str] = (), max_bytes: int = storage.MAX_BYTES
) -> dict[str, np.ndarray]:
    """The arrays `names`, and those of `optional` that are there, in native byte order; other members stay packed.

    max_bytes: arrays that need more memory, and more than four times the size of the file, are refused before they
        are unpacked.
    """
    members = _members(path)
    for name in names:
        _check_present(path, name, members)
    chosen = {name: members[name] for name in (*names, *optional) if name in members}
    found = {name: _packed_header(path, name, member) for name, member in chosen.items()}
    for name, header in found.items():
        _check_header(path, name, chosen[name].file_size, header)
    needed = sum(max(header.num_bytes, math.prod(header.shape)) for header in found.values())
    otherwise = ", or save it with numpy.savez and read it in parts with jaxface.data.stream.from_npz"
    storage.check_unpacked(path, needed, tuple(chosen), max_bytes=max_bytes, otherwise=otherwise)
    return {name: _unpacked(path, name, member, found[name]) for name, member in chosen.items()}


def headers(path: Path) -> dict[str, "Header | None"]:
    """Shape and dtype of each array of an archive, None where they cannot be read; no values are unpacked."""

    def header(name: str, member: zipfile.ZipInfo) -> Header | None:
        try:
            return _packed_header(path, name, member)
        except ValueError:  # of a member that nobody may want
            return None

    return {name: header(name, member) for name, member in _members(path).items()}


def read_npy(path: Path) -> np.ndarray:
    """The array of a `.npy` file in native byte order."""
    with storage.naming_damage(path), path.open("rb") as stream:
        header = _header(stream.read(_LONGEST_HEADER))
    _check_header(path, "its array", path.stat().st_size, header)
    with storage.naming_damage(path):
        return _shaped(np.fromfile(path, np.uint8, header.num_bytes, offset=header.length), header)


def mapped(path: Path, name: str) -> np.ndarray:
    """The array `name` of an archive as a read-only memory map, as stored; it must be uncompressed.

    Its checksum is not compared: that would read all of it.
    """
    members = _members(path)
    _check_present(path, name, members)
    member = members[name]
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError(
            f"{name!r} of {path} is compressed, so it cannot be read in parts. "
            "Write it with numpy.savez or jaxface.data.embeddings.save, not numpy.savez_compressed."
        )
    with storage.naming_damage(path, name), path.open("rb") as stream:
        start = _member_start(stream, member)
        header = _header(stream.read(_LONGEST_HEADER))
    _check_header(path, name, member.file_size, header)
    if header.num_bytes == 0:
        raise ValueError(f"{name!r} of {path} must hold at least one value; got shape {header.shape}.")
    if start + header.length + header.num_bytes > path.stat().st_size:
        raise ValueError(f"{path} is damaged: it ends within {name!r} of shape {header.shape}. {_WRITE_IT}")
    return np.memmap(path, header.dtype, "r", start + header.length, header.shape, header.order)


def native(array: np.ndarray) -> np.ndarray:
    """The array in the byte order of this machine: JAX takes the bytes of another order for other numbers."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _members(path: Path) -> dict[str, zipfile.ZipInfo]:
    """The arrays of an archive by name: its members ending in `.npy`, without that."""
    with storage.naming_damage(path):
        if not zipfile.is_zipfile(path):
            members = None
        else:
            with zipfile.ZipFile(path) as archive:
                members = archive.infolist()
    if members is None:
        raise ValueError(f"{path} is not an .npz archive. {_WRITE_IT}")
    arrays = [member for member in members if member.filename.endswith(".npy")]
    by_name = {member.filename.removesuffix(".npy"): member for member in arrays}
    if len(by_name) < len(arrays):
        names = [member.filename for member in arrays]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{path} holds two members {twice!r}, so its data are in doubt. {_WRITE_IT}")
    return by_name


def _check_present(path: Path, name: str, members: dict[str, zipfile.ZipInfo]) -> None:
    if name not in members:
        listed = ", ".join(messages.printable(each) for each in sorted(members)[:20]) or "no arrays"
        near = messages.did_you_mean(name, members)
        raise ValueError(f"{path} must hold {name!r}; it holds {listed}.{near} See jaxface.data.embeddings.")
    if members[name].flag_bits & _ENCRYPTED:
        raise ValueError(f"{name!r} of {path} is encrypted. {_WRITE_IT}")
    if members[name].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name!r} of {path} is packed in a way that numpy does not write. {_WRITE_IT}")


def _packed_header(path: Path, name: str, member: zipfile.ZipInfo) -> Header:
    with storage.naming_damage(path, name), zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        return _header(stream.read(_LONGEST_HEADER))


def _header(start: bytes) -> Header:
    """The header at the start of a `.npy` file."""
    stream = io.BytesIO(start)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"its format version {version} is unknown")
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran_order, dtype = read_header(stream)
    if min(shape, default=0) < 0:
        raise ValueError(f"its shape {shape} is negative")
    return Header(shape, "F" if fortran_order else "C", dtype, stream.tell())


def _check_header(path: Path, name: str, size: int, header: Header) -> None:
    if header.dtype.hasobject:
        raise ValueError(
            f"{name!r} of {path} is an object array, which is a pickle and is not loaded. "
            "Save features as floats and labels as strings or integers."
        )
    if header.length + header.num_bytes != size:
        raise ValueError(
            f"{path} is damaged: {name!r} of shape {header.shape} needs {header.num_bytes} bytes, not what it has. "
            f"{_WRITE_IT}"
        )


def _unpacked(path: Path, name: str, member: zipfile.ZipInfo, header: Header) -> np.ndarray:
    """The values of a member, read in steps and no further than its header says; its checksum is compared."""
    values = np.empty(header.num_bytes, np.uint8)
    with storage.naming_damage(path, name), zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        stream.read(header.length)
        for start in range(0, values.size, _STEP):
            size = min(_STEP, values.size - start)
            part = stream.read(size)
            if len(part) < size:
                raise ValueError("it ends too early")
            values[start : start + size] = np.frombuffer(part, np.uint8)
        stream.read(1)  # at the end the checksum is compared
        return _shaped(values, header)


def _shaped(values: np.ndarray, header: Header) -> np.ndarray:
    """Bytes as the array of a header."""
    if values.size == 0:
        return native(np.zeros(header.shape, header.dtype))
    return native(values.view(header.dtype).reshape(header.shape, order=header.order))


def _member_start(stream: BinaryIO, member: zipfile.ZipInfo) -> int:
    """Moves to the first byte of a stored member, behind its local header."""
    stream.seek(member.header_offset)
    signature, name_length, extra_length = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
    if signature != _SIGNATURE:
        raise ValueError("its local header is missing")
    return stream.seek(name_length + extra_length, 1)
