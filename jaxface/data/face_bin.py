"""Verification sets in one `.bin` file, as insightface and MS1M pass them on: LFW, CFP, AgeDB and others.

    scan    where the images of each pair stand in the file, and which pairs show one person
    image   one image
    names   names for the images: 00001.jpg, 00002.jpg, ...; pair k is images 2k - 1 and 2k
    trials  the names of both images of each pair
    unpack  the images as a folder of files, and the pairs as a file

Such a file is a pickle of (list of the bytes of image files, list of booleans). Loading a pickle runs the code in it,
so the pickle is read here by an interpreter of its own, whose values are bytes, lists, one tuple and booleans. Every
other instruction is refused by its name. The bytes stay in the file until an image is asked for.
"""

import io
import mmap
import pickletools
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxface.core import messages
from jaxface.data import images, pairs, storage

__all__ = ["FaceBin", "image", "names", "scan", "trials", "unpack"]

MOST = 1_000_000  # images, booleans and remembered values: the sets that circulate have some 14,000
_MARK = object()
_NAMES: dict[str, str] = {opcode.code: opcode.name for opcode in pickletools.opcodes}
_CONVERT = (
    "Where you trust the file, write it anew: python -c \"import pickle; b, s = pickle.load(open('IN', 'rb'), "
    "encoding='bytes'); pickle.dump((list(map(bytes, b)), list(map(bool, s))), open('OUT.bin', 'wb'), protocol=4)\""
)


class FaceBin(NamedTuple):
    """Pairs of images inside a file: images 2k and 2k + 1 are pair k."""

    path: Path
    starts: np.ndarray  # int64 [2p], the first byte of each image
    sizes: np.ndarray  # int64 [2p]
    is_same: np.ndarray  # bool [p]


class _Span(NamedTuple):
    """Bytes of the file."""

    start: int
    size: int


def scan(path: str | Path) -> FaceBin:
    """Reads where the images stand; none is decoded."""
    path = storage.existing_file(path, "A file of image pairs")
    if path.stat().st_size == 0:
        raise ValueError(f"{messages.printable(path)} is empty.")
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        value = _Reader(path, content).run()
    files, truths = value if isinstance(value, tuple) and len(value) == 2 else ([], [])
    are_files = bool(files) and all(isinstance(item, _Span) for item in files)
    if not are_files or not all(isinstance(item, bool) for item in truths) or len(files) != 2 * len(truths):
        raise ValueError(
            f"{messages.printable(path)} must hold (list of the bytes of 2 n image files, list of n booleans); it "
            f"holds {_shape(value)}."
        )
    spans = np.array(files, np.int64)
    return FaceBin(path, spans[:, 0], spans[:, 1], np.array(truths, bool))


def image(faces: FaceBin, row: int, **options: Any) -> np.ndarray:
    """One image as float32 in [0, 1]; options as in `images.read_image`."""
    name = f"image {names(faces)[row]} of {messages.printable(faces.path)}"
    return images.read_stream(io.BytesIO(_bytes(faces, row)), name, **options)


def names(faces: FaceBin) -> tuple[str, ...]:
    """Names for the images, counted from 1."""
    return tuple(f"{k + 1:05d}.jpg" for k in range(len(faces.starts)))


def trials(faces: FaceBin) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the first and of the second image of each pair."""
    return names(faces)[::2], names(faces)[1::2]


def unpack(path: str | Path, folder: str | Path) -> int:
    """Writes the images into a new folder, and beside them `pairs.csv` with the header `a,b,same`; returns how many."""
    faces, folder = scan(path), Path(folder)
    if folder.exists():
        raise FileExistsError(f"folder must not exist yet; {messages.printable(folder)} does.")
    folder.mkdir(parents=True)
    for row, name in enumerate(names(faces)):
        (folder / name).write_bytes(_bytes(faces, row))
    first = np.arange(0, len(faces.starts), 2)
    pairs.save(folder / "pairs.csv", pairs.Pairs(first, first + 1, faces.is_same), names(faces))
    return len(faces.starts)


def _bytes(faces: FaceBin, row: int) -> bytes:
    with faces.path.open("rb") as stream:
        stream.seek(int(faces.starts[row]))
        return stream.read(int(faces.sizes[row]))


class _Reader:
    """The instructions of a pickle that make bytes, lists of bytes or booleans, and a tuple of two lists."""

    def __init__(self, path: Path, content: mmap.mmap):
        self.path, self.content, self.at = path, content, 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.num_items = 0

    def run(self) -> Any:
        """The value that the pickle makes."""
        if self.content[:1] != b"\x80":
            raise self.refusal("does not begin like a pickle of protocol 2 to 5")
        while True:
            start = self.at
            code = self.take(1)
            if code == b".":
                if len(self.stack) != 1 or self.stack[0] is _MARK:
                    raise self.refusal("ends without one value")
                return self.stack[0]
            work = _WORK.get(code)
            if work is None:
                raise self.refusal(f"asks at byte {start} for {self.named(code)}, which is not done")
            work(self)

    def refusal(self, why: str) -> ValueError:
        """The error of a file that is not read."""
        expected = "A pickle of image bytes, lists and booleans is read and nothing else, because others can run code."
        return ValueError(f"{messages.printable(self.path)} {why}. {expected} {_CONVERT}")

    def named(self, code: bytes) -> str:
        """An instruction and what it names, for a message."""
        known = _NAMES.get(code.decode("latin1"))
        if known is None:
            return f"the unknown instruction {code!r}"
        texts = {"GLOBAL": 2, "INST": 2, "STRING": 1, "UNICODE": 1}
        following = bytes(self.content[self.at : self.at + 60])
        if known in texts:
            shown = b".".join(following.split(b"\n")[: texts[known]])
        else:
            shown = following[:24] if "UNICODE" in known else b""
        return f"{known} {messages.printable(shown.decode('latin1'))}".strip()

    def take(self, count: int) -> bytes:
        """The next bytes."""
        if self.at + count > len(self.content):
            raise self.refusal("ends too early")
        self.at += count
        return self.content[self.at - count : self.at]

    def number(self, form: str) -> int:
        """The next number."""
        return int(struct.unpack(form, self.take(struct.calcsize(form)))[0])

    def span(self, form: str) -> None:
        """Pushes bytes, which stay in the file."""
        size = self.number(form)
        if size < 0 or size > len(self.content) - self.at:
            raise self.refusal(f"announces {size:,} bytes at byte {self.at} and holds {len(self.content) - self.at:,}")
        self.push(_Span(self.at, size))
        self.at += size

    def push(self, value: Any) -> None:
        """Puts a value on the stack."""
        self.num_items += 1
        if self.num_items > 3 * MOST:
            raise self.refusal(f"holds more than {MOST:,} values")
        self.stack.append(value)

    def pop(self) -> Any:
        """The last value."""
        if not self.stack or self.stack[-1] is _MARK:
            raise self.refusal("takes a value that is not there")
        return self.stack.pop()

    def marked(self) -> list[Any]:
        """The values behind the last mark."""
        values = []
        while self.stack and self.stack[-1] is not _MARK:
            values.append(self.stack.pop())
        if not self.stack:
            raise self.refusal("takes values behind a mark that is not there")
        self.stack.pop()
        return values[::-1]

    def extend(self, values: list[Any]) -> None:
        """Appends values to the list on top."""
        target = self.pop()
        if not isinstance(target, list) or not all(isinstance(value, _Span | bool) for value in values):
            raise self.refusal("puts something else than bytes and booleans into a list")
        target.extend(values)
        self.stack.append(target)

    def pair(self, values: list[Any]) -> None:
        """Makes the tuple of two lists."""
        if not all(isinstance(value, list) for value in values):
            raise self.refusal("makes a tuple of something else than lists")
        self.push(tuple(values))

    def remember(self, key: int) -> None:
        """Keeps the last value."""
        if len(self.memo) >= MOST:
            raise self.refusal(f"remembers more than {MOST:,} values")
        self.memo[key] = self.pop()
        self.stack.append(self.memo[key])

    def recall(self, key: int) -> None:
        """Pushes a value that was kept."""
        if key not in self.memo:
            raise self.refusal(f"recalls the value {key}, which it did not keep")
        self.push(self.memo[key])


def _append(reader: _Reader) -> None:
    value = reader.pop()
    reader.extend([value])


def _two(reader: _Reader) -> None:
    second, first = reader.pop(), reader.pop()
    reader.pair([first, second])


def _frame(reader: _Reader) -> None:
    size = reader.number("<Q")
    if size > len(reader.content) - reader.at:
        raise reader.refusal(f"announces {size:,} bytes at byte {reader.at}")


def _protocol(reader: _Reader) -> None:
    if not 2 <= reader.number("<B") <= 5:
        raise reader.refusal("is of an unknown protocol")


# The instructions that are done; Python 2 wrote bytes as its strings (BINSTRING, SHORT_BINSTRING).
_WORK: dict[bytes, Callable[[_Reader], None]] = {
    b"\x80": _protocol,
    b"\x95": _frame,
    b"(": lambda reader: reader.push(_MARK),
    b"]": lambda reader: reader.push([]),
    b"a": _append,
    b"e": lambda reader: reader.extend(reader.marked()),
    b"t": lambda reader: reader.pair(reader.marked()),
    b"\x86": _two,
    b"\x88": lambda reader: reader.push(True),
    b"\x89": lambda reader: reader.push(False),
    b"U": lambda reader: reader.span("<B"),
    b"C": lambda reader: reader.span("<B"),
    b"T": lambda reader: reader.span("<i"),
    b"B": lambda reader: reader.span("<I"),
    b"\x8e": lambda reader: reader.span("<Q"),
    b"q": lambda reader: reader.remember(reader.number("<B")),
    b"r": lambda reader: reader.remember(reader.number("<I")),
    b"\x94": lambda reader: reader.remember(len(reader.memo)),
    b"h": lambda reader: reader.recall(reader.number("<B")),
    b"j": lambda reader: reader.recall(reader.number("<I")),
}


def _shape(value: Any) -> str:
    """A value in a few words, for a message."""
    if isinstance(value, tuple):
        return "a tuple of " + (", ".join(f"a list of {len(part)}" for part in value) or "nothing")
    return f"a list of {len(value)}" if isinstance(value, list) else "something else"
