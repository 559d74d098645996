"""Faults of images and of folders of images: damaged files, files that are no images, links, names."""

import io
import os
import pathlib
import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from jaxface.data import folders, images
from tests.faults import damage
from tests.faults.verdict import Wrong, expect, refused

HEIGHT, WIDTH = 9, 7
FORMATS = {".png": "PNG", ".pgm": "PPM", ".bmp": "BMP", ".jpg": "JPEG", ".gif": "GIF", ".tif": "TIFF", ".webp": "WEBP"}
PEOPLE, SHOTS = ("ann", "ben", "cem"), 2


def pixels(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (HEIGHT, WIDTH), np.uint8)


def draw(rng: np.random.Generator) -> tuple[str, Callable[[pathlib.Path], str]]:
    kind = rng.integers(8)
    if kind < 3:
        suffix = list(FORMATS)[rng.integers(len(FORMATS))]
        return f"image {suffix}: damaged bytes", lambda folder: _damaged(folder, suffix, rng)
    if kind == 3:
        name = list(IMAGES)[rng.integers(len(IMAGES))]
        return f"image: {name}", lambda folder: _odd_image(folder, name)
    if kind == 4:
        return "folder: a damaged image", lambda folder: _damaged_in_folder(folder, rng)
    name = list(FOLDERS)[rng.integers(len(FOLDERS))]
    return f"folder: {name}", lambda folder: _odd_folder(folder, name)


def _damaged(folder: pathlib.Path, suffix: str, rng: np.random.Generator) -> str:
    """Formats without checksums show other pixels; what is cut off is never filled in."""
    path = folder / f"face{suffix}"
    Image.fromarray(pixels(0)).save(path, FORMATS[suffix])
    whole, size = images.read_image(path), path.stat().st_size
    before = path.read_bytes()
    done = damage.damage_bytes(path, rng)
    try:
        found = images.read_image(path)
    except Exception as error:
        return refused(error, str(path))
    sane = found.dtype == np.float32 and found.ndim == 2 and np.isfinite(found).all()
    expect(sane and found.min() >= 0 and found.max() <= 1, "wrong result", f"{done.what}: {found.dtype} {found.shape}")
    if path.stat().st_size < size and before.startswith(path.read_bytes()):
        expect(np.array_equal(found, whole), "wrong result", f"{done.what}: pixels that are not in the file")
    return "right"


def _save(array: np.ndarray, name: str, **options: Any) -> Callable[[pathlib.Path], None]:
    def write(path: pathlib.Path) -> None:
        buffer = io.BytesIO()
        Image.fromarray(array).save(buffer, name, **options)
        path.write_bytes(buffer.getvalue())

    return write


def _text(content: bytes) -> Callable[[pathlib.Path], None]:
    return lambda path: path.write_bytes(content)


GREY = pixels(0)
IMAGES: dict[str, tuple[Callable[[pathlib.Path], None], bool]] = {  # how it is written, whether it may be read
    "a GIF called PNG": (_save(GREY, "GIF"), True),
    "16 bits": (_save(GREY.astype(np.uint16) * 257, "PNG"), True),
    "two values": (_save(GREY > 127, "PNG"), True),
    "a PGM of 10^5 x 10^5": (_text(b"P5 100000 100000 255\n" + b"\x00" * 99), False),
    "a PGM of no rows": (_text(b"P5 5 0 255\n"), False),
    "a PGM with white at 0": (_text(b"P5 2 2 0\n\x01\x02\x03\x04"), False),
    "a PGM of negative size": (_text(b"P5 -2 2 255\n\x01\x02\x03\x04"), False),
    "a PFM with NaN": (_text(b"Pf\n2 1\n-1.0\n" + np.array([np.nan, 0.5], "<f4").tobytes()), False),
    "a PFM above 1": (_text(b"Pf\n2 1\n-1.0\n" + np.array([3.0, 0.5], "<f4").tobytes()), False),
    "PostScript": (_text(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 7\nshowpage\n"), False),
    "SVG": (_text(b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='7'/>"), False),
    "a pickle": (_text(b"\x80\x04K\x01."), False),
    "a page of an error": (_text(b"<html>404</html>"), False),
    "an empty file": (_text(b""), False),
}


def _odd_image(folder: pathlib.Path, name: str) -> str:
    path = folder / "face.png"
    write, accepted = IMAGES[name]
    write(path)
    try:
        found = images.read_image(path)
    except Exception as error:
        expect(not accepted, "wrong result", f"refused: {error}")
        return refused(error, str(path))
    expect(accepted, "wrong result", f"read as {found.shape}")
    close = (found > 0.5) == (GREY > 127)
    expect(found.shape == GREY.shape and close.all(), "wrong result", "other pixels")
    return "right"


def faces(root: pathlib.Path) -> None:
    """A folder of three people with two images each."""
    for number, person in enumerate(PEOPLE):
        (root / person).mkdir(parents=True)
        for shot in range(SHOTS):
            Image.fromarray(pixels(10 * number + shot)).save(root / person / f"{shot}.png")


def _load(root: pathlib.Path, changed: str) -> str:
    """Loads a folder where one entry is odd: it is named in an error, or left out, or a person like any other."""
    try:
        data = folders.load(root)
    except Exception as error:
        return refused(error, changed)
    for name in (*data.files, *data.ignored, *map(str, data.names)):
        expect(isinstance(name, str), "wrong result", f"the name {name!r}")
    for row, file in enumerate(data.files):
        person, _, shot = file.partition("/")
        expect(data.names[data.ids[row]] == person, "wrong result", f"{file} shows {data.names[data.ids[row]]}")
        if person in PEOPLE and shot in ("0.png", "1.png"):
            clean = pixels(10 * PEOPLE.index(person) + int(shot[0])).astype(np.float32) / 255
            expect(np.allclose(data.images[row], clean), "wrong result", f"{file} has other pixels")
    left = {f"{person}/{shot}.png" for person in PEOPLE for shot in range(SHOTS)} - set(data.files)
    for name in left:
        told = any(name == entry or name.startswith(f"{entry}/") for entry in data.ignored)
        expect(told, "wrong result", f"{name} is left out in silence; ignored: {data.ignored}")
    return "right"


def _damaged_in_folder(folder: pathlib.Path, rng: np.random.Generator) -> str:
    root = folder / "faces"
    faces(root)
    file = root / PEOPLE[rng.integers(3)] / f"{rng.integers(2)}.png"
    whole = file.read_bytes()
    what = damage.replace_file(file, rng) if rng.integers(2) else damage.damage_bytes(file, rng).what
    name = str(file.relative_to(root))
    try:
        return _load(root, name)
    except Wrong as wrong:
        if what == "missing" or (
            file.is_file() and file.read_bytes()[:33] != whole[:33] and "other pixels" in str(wrong)
        ):
            return "right"  # a file that is not there is no fault of the folder; another header is another image
        raise Wrong(wrong.kind, f"{what} at {name}: {wrong}") from wrong


def _copy(root: pathlib.Path, name: bytes | str) -> None:
    target = os.path.join(os.fsencode(root), name if isinstance(name, bytes) else os.fsencode(name))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy(root / "ann" / "0.png", target)


def _link(source: str, name: str) -> Callable[[pathlib.Path], None]:
    return lambda root: os.symlink(source, root / name)


FOLDERS: dict[str, tuple[Callable[[pathlib.Path], None], str]] = {  # what is added, and what names it
    "a link to itself among people": (_link("loop", "loop"), "loop"),
    "a link to itself among images": (_link("loop.png", "ann/loop.png"), "ann/loop.png"),
    "a link to its own folder": (_link(".", "ann/again"), "ann/again"),
    "a link to the root": (_link("..", "ann/up"), "ann/up"),
    "a link to nothing": (_link("nowhere.png", "ann/9.png"), "ann/9.png"),
    "a link out of the root": (_link("/etc/hostname", "ann/9.png"), "ann/9.png"),
    "a link to another person": (_link("../ben/0.png", "ann/9.png"), "ann/9.png"),
    "a named pipe": (lambda root: os.mkfifo(root / "ann" / "9.png"), "ann/9.png"),
    "a folder called an image": (lambda root: (root / "ann" / "9.png").mkdir(), "ann/9.png"),
    "an image among people": (lambda root: _copy(root, "9.png"), "9.png"),
    "an empty folder": (lambda root: (root / "dot").mkdir(), "dot"),
    "an image of another size": (
        lambda root: Image.fromarray(np.zeros((3, 4), np.uint8)).save(root / "cem" / "9.png"), "cem/9.png"),
    "a folder in a folder": (lambda root: _copy(root, "ann/more/9.png"), "ann/more"),
    "an image whose name is not UTF-8": (lambda root: _copy(root, b"ann/\xff\xfe.png"), "ann/"),
    "a person whose name is not UTF-8": (lambda root: _copy(root, b"d\xe4n/0.png"), "d"),
    "an image with a new line in its name": (lambda root: _copy(root, "ann/a\nb.png"), "ann/"),
    "a person with an escape in the name": (lambda root: _copy(root, "\x1b[31mdot/0.png"), "dot"),
    "a damaged image with an escape in its name": (
        lambda root: (root / "ann" / "\x1b]0;x\x07.png").write_bytes(b"x"), "ann/"),
    "a damaged image whose name is not UTF-8": (
        lambda root: open(os.fsencode(root) + b"/ann/\xff.png", "wb").close(), "ann/"),
    "a name in two forms": (lambda root: (_copy(root, "e\u0301va/0.png"), _copy(root, "\xe9va/0.png")), "va"),
    "a very long name": (lambda root: _copy(root, f"ann/{'x' * 250}.png"), "ann/"),
    "a suffix in capitals": (lambda root: _copy(root, "ann/9.PNG"), "ann/9.PNG"),
    "a hidden image": (lambda root: _copy(root, "ann/.9.png"), "ann/.9.png"),
    "a file of the desktop": (lambda root: (root / "ann" / "Thumbs.db").write_bytes(b"x"), "ann/Thumbs.db"),
    "a table of the same suffix": (lambda root: (root / "ann" / "9.png").write_text("a,b\n"), "ann/9.png"),
    "one person": (lambda root: [shutil.rmtree(root / name) for name in PEOPLE[1:]], "ann"),
    "nobody": (lambda root: [shutil.rmtree(root / name) for name in PEOPLE], "/faces"),
    "no folder": (lambda root: shutil.rmtree(root), "/faces"),
    "a file for a folder": (lambda root: (shutil.rmtree(root), root.write_text("x")), "/faces"),
    "a link to itself for a folder": (lambda root: (shutil.rmtree(root), os.symlink("faces", root)), "/faces"),
}  # fmt: skip


def _odd_folder(folder: pathlib.Path, name: str) -> str:
    root = folder / "faces"
    faces(root)
    change, changed = FOLDERS[name]
    change(root)
    if name == "one person" or not changed.startswith("/"):
        return _load(root, changed)
    try:
        folders.load(root)
    except Exception as error:
        return refused(error, changed)
    raise Wrong("wrong result", f"{name} was read")
