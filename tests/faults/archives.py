"""Faults of `.npz` archives: damaged bytes, crafted members, arrays of another kind. Read whole and in parts."""

import io
import pathlib
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxface.data import embeddings, stream
from tests.faults import damage
from tests.faults.verdict import Wrong, expect, refused

ROWS, DIMS = 8, 3
NAMES = ("ann", "ben", "cem", "dot")
Arrays = dict[str, Any]


def clean() -> Arrays:
    features = np.random.default_rng(0).normal(size=(ROWS, DIMS)).astype(np.float32)
    labels = np.array(NAMES)[np.arange(ROWS) % 4]
    return {"features": features, "labels": labels, "files": np.array([f"{i}.png" for i in range(ROWS)])}


def draw(rng: np.random.Generator) -> tuple[str, Callable[[pathlib.Path], str]]:
    """A fault of one archive, read by one of the two readers."""
    reader = (_whole, _parts)[rng.integers(2)]
    kind = rng.integers(10)
    if kind < 4:
        return f"{reader.__name__[1:]}: damaged bytes", lambda folder: _damaged(folder, reader, rng)
    if kind == 4:
        return f"{reader.__name__[1:]}: another thing", lambda folder: _another(folder, reader, rng)
    if kind < 8:
        name = list(ARRAYS)[rng.integers(len(ARRAYS))]
        return f"{reader.__name__[1:]}: {name}", lambda folder: _of_arrays(folder, reader, name)
    name = list(MEMBERS)[rng.integers(len(MEMBERS))]
    return f"{reader.__name__[1:]}: {name}", lambda folder: _of_members(folder, reader, name)


def _whole(path: pathlib.Path) -> tuple[np.ndarray, list[str]]:
    data = embeddings.load(path)
    return data.features, [str(data.names[i]) for i in data.ids]


def _parts(path: pathlib.Path) -> tuple[np.ndarray, list[str]]:
    source = stream.from_npz(path)
    batches = list(stream.batches(source, batch_size=3))
    features = np.concatenate([batch.features[batch.valid] for batch in batches])
    ids = np.concatenate([batch.ids[batch.valid] for batch in batches])
    return features, [str(source.names[i]) for i in ids]


def _judge(path: pathlib.Path, reader: Callable[..., Any], features: Any, labels: Any, free: bool = False) -> str:
    """Refused, or what stands in the file; with `free`, features may be other finite numbers."""
    try:
        found, people = reader(path)
    except Exception as error:
        return refused(error, str(path))
    expect(found.dtype.isnative, "wrong result", f"features come back as {found.dtype!r}, foreign to this machine")
    expect(found.dtype in (np.float32, np.float64), "wrong result", f"features come back as {found.dtype}")
    expect(np.isfinite(found).all(), "silent NaN", "features come back with NaN or infinity")
    expect(people == [str(label) for label in labels], "wrong result", f"labels come back as {people}")
    same = found.shape == np.shape(features) and (free or np.array_equal(found, np.asarray(features, found.dtype)))
    expect(same, "wrong result", f"features come back as other numbers of shape {found.shape}")
    return "right"


def _damaged(folder: pathlib.Path, reader: Callable[..., Any], rng: np.random.Generator) -> str:
    path, arrays = folder / "faces.npz", clean()
    np.savez(path, **arrays)
    with zipfile.ZipFile(path) as archive:  # features come first; reading rows of them does not pass their checksum
        first, second = (archive.getinfo(name).header_offset for name in ("features.npy", "labels.npy"))
    done = damage.damage_bytes(path, rng)
    within = reader is _parts and first < done.first < second
    try:
        return _judge(path, reader, arrays["features"], arrays["labels"], free=within)
    except Wrong as wrong:
        raise Wrong(wrong.kind, f"{done.what}: {wrong}") from wrong


def _another(folder: pathlib.Path, reader: Callable[..., Any], rng: np.random.Generator) -> str:
    path = folder / "faces.npz"
    np.savez(path, **clean())
    what = damage.replace_file(path, rng)
    try:
        reader(path)
    except Exception as error:
        return refused(error, str(path))
    raise Wrong("wrong result", f"{what} was read as an archive")


def _of_arrays(folder: pathlib.Path, reader: Callable[..., Any], name: str) -> str:
    path, arrays = folder / "faces.npz", clean()
    change, accepted = ARRAYS[name]
    arrays |= change(arrays)
    np.savez(path, allow_pickle=True, **{key: value for key, value in arrays.items() if value is not None})
    return _judged(path, reader, arrays, accepted)


def _judged(path: pathlib.Path, reader: Callable[..., Any], arrays: Arrays, accepted: bool) -> str:
    if not accepted:
        try:
            found, people = reader(path)
        except Exception as error:
            return refused(error, str(path))
        raise Wrong("wrong result", f"read as features of {found.dtype} {found.shape} of {people}")
    features = np.asarray(arrays["features"])
    return _judge(path, reader, features.astype(np.float64), arrays["labels"])


def _put(key: str, change: Callable[[np.ndarray], Any]) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {key: change(np.array(arrays[key]))}


def _with(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def put(x: np.ndarray) -> np.ndarray:
        x[3, 1] = value
        return x

    return put


NUMBERS = np.arange(ROWS) % 4
ARRAYS: dict[str, tuple[Callable[[Arrays], Arrays], bool]] = {  # change, whether it may be read
    "big-endian features": (_put("features", lambda x: x.astype(">f4")), True),
    "big-endian doubles": (_put("features", lambda x: x.astype(">f8")), True),
    "float16": (_put("features", lambda x: x.astype(np.float16)), True),
    "float64": (_put("features", lambda x: x.astype(np.float64)), True),
    "column-major": (_put("features", np.asfortranarray), True),
    "integers": (_put("features", lambda x: np.arange(24).reshape(8, 3)), False),
    "complex numbers": (_put("features", lambda x: x + 1j), False),
    "booleans": (_put("features", lambda x: x > 0), False),
    "NaN": (_put("features", _with(np.nan)), False),
    "infinity": (_put("features", _with(-np.inf)), False),
    "an object array": (_put("features", lambda x: x.astype(object)), False),
    "texts": (_put("features", lambda x: x.astype(str)), False),
    "one axis": (_put("features", np.ravel), False),
    "no rows": (lambda a: {"features": a["features"][:0], "labels": a["labels"][:0], "files": None}, False),
    "no columns": (_put("features", lambda x: x[:, :0]), False),
    "fewer rows than labels": (_put("features", lambda x: x[:-1]), False),
    "fewer labels than rows": (_put("labels", lambda x: x[:-1]), False),
    "no labels": (lambda a: {"labels": None}, False),
    "no features": (lambda a: {"features": None}, False),
    "labels that are fractions": (_put("labels", lambda x: NUMBERS + 0.5), False),
    "labels that are objects": (_put("labels", lambda x: x.astype(object)), False),
    "labels in two axes": (_put("labels", lambda x: x.reshape(4, 2)), False),
    "one label for all": (_put("labels", lambda x: np.array("ann")), False),
    "labels that are -1": (_put("labels", lambda x: np.full(ROWS, -1)), False),
    "labels that are dates": (_put("labels", lambda x: NUMBERS.astype("datetime64[D]")), False),
    "labels of 8 bits": (_put("labels", lambda x: NUMBERS.astype(np.uint8)), True),
    "large labels": (_put("labels", lambda x: NUMBERS.astype(np.uint64) + 2**63), True),
    "big-endian labels": (_put("labels", lambda x: NUMBERS.astype(">i4")), True),
    "big-endian names": (_put("labels", lambda x: x.astype(">U3")), True),
    "an array more": (lambda a: {"more": np.arange(3)}, True),
    "column-major doubles of the other order": (_put("features", lambda x: np.asfortranarray(x.astype(">f8"))), True),
}


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _header(text: str, data: bytes, version: bytes = b"\x01\x00") -> bytes:
    body = text.encode("latin-1") + b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(body)) + body + data


def _of_members(folder: pathlib.Path, reader: Callable[..., Any], name: str) -> str:
    """Archives that no writer makes by mistake; all are refused, or read as what stands in them."""
    path, arrays = folder / "faces.npz", clean()
    members = {f"{key}.npy": _npy(value) for key, value in arrays.items()}
    data = arrays["features"].tobytes()
    MEMBERS[name](path, members, data)
    return _judge(path, reader, arrays["features"], arrays["labels"])


def _write(path: pathlib.Path, members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for key, content in members.items():
            archive.writestr(key, content)


def _shape(shape: str, descr: str = "'<f4'") -> Callable[..., None]:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    return lambda path, members, data: _write(path, members | {"features.npy": _header(text, data)})


def _claims(size: int, method: int) -> Callable[..., None]:
    """An archive whose directory and header claim more than there is: a small part of a bomb."""

    def write(path: pathlib.Path, members: dict[str, bytes], data: bytes) -> None:
        text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({size // 12}, 3), }}"
        _write(path, members | {"features.npy": _header(text, data)}, method)
        raw = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            found = archive.getinfo("features.npy")
        old = struct.pack("<I", found.file_size)
        directory = raw.rindex(b"PK\x01\x02", 0, raw.rindex(b"labels.npy") - 46)
        at = raw.index(old, directory)
        at = at + 4 if method == zipfile.ZIP_STORED else at  # both sizes are the same; the second is the unpacked one
        path.write_bytes(raw[:at] + struct.pack("<I", size) + raw[at + 4 :])

    return write


EMPTY = b"PK\x05\x06" + b"\x00" * 18  # an archive without members


def _twice(path: pathlib.Path, members: dict[str, bytes], data: bytes) -> None:
    _write(path, members)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("features.npy", members["labels.npy"])


def _encrypted(path: pathlib.Path, members: dict[str, bytes], data: bytes) -> None:
    _write(path, members)
    raw = bytearray(path.read_bytes())
    raw[6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(raw))


def _method(path: pathlib.Path, members: dict[str, bytes], data: bytes) -> None:
    _write(path, members)
    raw = bytearray(path.read_bytes())
    raw[8] = raw[raw.index(b"PK\x01\x02") + 10] = 97
    path.write_bytes(bytes(raw))


MEMBERS: dict[str, Callable[..., None]] = {
    "compressed": lambda path, members, data: _write(path, members, zipfile.ZIP_DEFLATED),
    "packed by LZMA": lambda path, members, data: _write(path, members, zipfile.ZIP_LZMA),
    "a header of 10^12 rows": _shape("(1000000000000, 3)"),
    "a header of 2^62 rows": _shape("(4611686018427387904, 3)"),
    "a header with a negative size": _shape("(-8, 3)"),
    "a header with fewer rows": _shape("(7, 3)"),
    "a header without a shape": _shape("None"),
    "a header with fractions": _shape("(8.0, 3)"),
    "a header with code": _shape("__import__('os').getpid()"),
    "a header of objects": _shape("(8, 3)", "'|O'"),
    "a header of an unknown type": _shape("(8, 3)", "'<q9'"),
    "a header of fields": _shape("(8,)", "[('a', '<f4', (3,))]"),
    "a header of 3 GB, stored": _claims(3_000_000_000, zipfile.ZIP_STORED),
    "a header of 3 GB, packed": _claims(3_000_000_000, zipfile.ZIP_DEFLATED),
    "a member twice": _twice,
    "an encrypted member": _encrypted,
    "an unknown way of packing": _method,
    "a member that is text": lambda path, members, data: _write(path, members | {"features.npy": b"hello"}),
    "a member that is empty": lambda path, members, data: _write(path, members | {"features.npy": b""}),
    "labels that are text": lambda path, members, data: _write(path, members | {"labels.npy": b"ann ben"}),
    "a member that leads away": lambda path, members, data: _write(path, members | {"../x.npy": _npy(np.arange(3))}),
    "a member without a name": lambda path, members, data: _write(path, members | {".npy": _npy(np.arange(3))}),
    "a member that is no array": lambda path, members, data: _write(path, members | {"note.txt": b"hello"}),
    "no members": lambda path, members, data: _write(path, {}),
    "an archive in the archive": lambda path, members, data: _write(path, members | {"features.npy": EMPTY}),
}  # fmt: skip
