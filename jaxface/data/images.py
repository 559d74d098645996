"""Reading images safely: bounded before decoding, upright, float32 in [0, 1], no file left open.

read_image   one file -> [h, w] or [h, w, 3]
read_stream  the same of bytes at hand
load_images  many files, on threads, into one array
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from jaxface.core import checks, messages
from jaxface.data import storage

__all__ = ["SUFFIXES", "read_image"]

# The endings of the files that are read as images.
SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
MAX_PIXELS = 50_000_000  # any photograph from a telephone; below the bound at which Pillow itself warns

_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # no other decoder sees a hostile file


def read_image(
    path: str | Path,
    *,
    color: bool = False,
    size: tuple[int, int] | None = None,
    crop: tuple[int, int, int, int] | None = None,
    max_pixels: int = MAX_PIXELS,
) -> np.ndarray:
    """One image as float32 in [0, 1]: grey `[h, w]` (ITU-R 601 luma), or RGB `[h, w, 3]` with `color`.

    The EXIF orientation is applied, transparent parts become black, and of an animation the first frame is read.
    crop: (top, left, height, width) in pixels of the upright image, as in `faces.geometry.crop`.
    size: (height, width) to resize to, after the crop. Where the image shrinks, a pixel becomes the mean of those whose
        centres lie in it (`faces.geometry.resize` counts parts of pixels too); where it grows, it is bilinear.
    max_pixels: larger images are refused before they are decoded.
    """
    path = storage.existing_file(path, "An image")
    with path.open("rb") as stream:
        return read_stream(stream, path, color=color, size=size, crop=crop, max_pixels=max_pixels)


def read_stream(
    stream: BinaryIO,
    name: str | Path,
    *,
    color: bool = False,
    size: tuple[int, int] | None = None,
    crop: tuple[int, int, int, int] | None = None,
    max_pixels: int = MAX_PIXELS,
) -> np.ndarray:
    """`read_image` of the bytes of a stream; `name` is what messages call it."""
    _check_options(size, crop, max_pixels)
    image, white = _decoded(stream, name, color, size if crop is None else None, max_pixels)
    if crop is not None:
        image = image.crop(_pillow_box(crop, image, name))
    if size is not None and size != image.size[::-1]:
        image = image.resize(size[::-1], _filter(image.size, size))
    pixels = np.asarray(image, np.float32) / white
    if not (pixels.min() >= 0 and pixels.max() <= 1):  # nor NaN
        raise ValueError(
            f"{messages.printable(name)} must hold values in [0, {white:g}]; got from {pixels.min() * white:g} to "
            f"{pixels.max() * white:g}. Save it with 8 or 16 bits a channel."
        )
    return np.repeat(pixels[..., None], 3, axis=2) if color and pixels.ndim == 2 else pixels


def load_images(
    paths: Sequence[str | Path],
    *,
    color: bool = False,
    size: tuple[int, int] | None = None,
    crop: tuple[int, int, int, int] | None = None,
    max_pixels: int = MAX_PIXELS,
    workers: int = 4,
) -> np.ndarray:
    """Images of one size as float32 `[n, h, w]` or `[n, h, w, 3]`, decoded by `workers` threads.

    Memory is that of the result and of one decoded image a thread. Options as in `read_image`.
    """
    checks.at_least("workers", workers, 1)
    if not paths:
        raise ValueError("paths must name at least one image; got none.")

    def read(path: str | Path) -> np.ndarray:
        return read_image(path, color=color, size=size, crop=crop, max_pixels=max_pixels)

    first = read(paths[0])
    images = np.empty((len(paths), *first.shape), np.float32)
    images[0] = first

    def fill(index: int) -> None:
        image = read(paths[index])
        if image.shape != first.shape:
            raise ValueError(
                f"images must have one size; {messages.printable(paths[0])} is {_by(first)} and "
                f"{messages.printable(paths[index])} is {_by(image)}. "
                "Pass size=(height, width) to resize them while loading."
            )
        images[index] = image

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(fill, range(1, len(paths))):  # the first error in the order of the paths; cancels the rest
            pass
    return images


def _decoded(
    stream: BinaryIO, name: str | Path, color: bool, size: tuple[int, int] | None, max_pixels: int
) -> tuple[Any, float]:
    """The upright image in Pillow's mode L, RGB or F, and the value of white; refuses before it decodes."""
    from PIL import Image, ImageOps

    try:
        with Image.open(stream, formats=_FORMATS) as image:
            if image.width * image.height <= max_pixels:
                _draft(image, color, size)
                image.load()
                ImageOps.exif_transpose(image, in_place=True)
                return _in_mode(image, color)
            too_large = f"{image.height} x {image.width} pixels"
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        too_large = str(error).rstrip(".")
    except Exception as error:  # a decoder of damaged bytes may raise anything
        why = messages.printable(f"{type(error).__name__}: {error}").rstrip(".")
        raise ValueError(
            f"{messages.printable(name)} does not decode as an image: {why}. Replace it by a whole copy, or remove it."
        ) from error
    raise ValueError(
        f"{messages.printable(name)} is too large to decode: {too_large}; the limit is {max_pixels} pixels. "
        "Raise max_pixels if you trust the file."
    )


def _draft(image: Any, color: bool, size: tuple[int, int] | None) -> None:
    """Lets a JPEG decode luma alone, and shrunk by 2, 4 or 8 where that divides its size and leaves twice `size`."""
    least = 2 * max(size) if size is not None else max(image.size) + 1
    scale = next(
        (s for s in (8, 4, 2) if not (image.width % s or image.height % s) and min(image.size) >= s * least),
        1,
    )
    image.draft("RGB" if color else "L", (image.width // scale, image.height // scale))


def _in_mode(image: Any, color: bool) -> tuple[Any, float]:
    """A decoded image as L, RGB or (grey with more than 8 bits) F, and its value of white."""
    from PIL import Image

    if image.mode == "F":
        return image.copy(), 1.0
    if image.mode.startswith("I"):
        return image.convert("I").convert("F"), 65535.0
    if "A" in image.getbands() or "transparency" in image.info:
        opaque = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", opaque.size, (0, 0, 0, 255)), opaque)
    return image.convert("RGB" if color else "L"), 255.0


def _filter(old: tuple[int, int], new: tuple[int, int]) -> Any:
    """Mean of whole pixels when no side grows, bilinear otherwise; `old` is (width, height), `new` (height, width)."""
    from PIL.Image import Resampling

    return Resampling.BOX if new[1] <= old[0] and new[0] <= old[1] else Resampling.BILINEAR


def _pillow_box(crop: tuple[int, int, int, int], image: Any, name: str | Path) -> tuple[int, int, int, int]:
    """Pillow's (left, upper, right, lower) of (top, left, height, width), which must lie inside the image."""
    top, left, height, width = crop
    if top + height > image.height or left + width > image.width:
        raise ValueError(
            f"crop must lie inside {messages.printable(name)}, {image.height} x {image.width} pixels; "
            f"got rows {top} to {top + height} and columns {left} to {left + width}. Reduce height or width."
        )
    return left, top, left + width, top + height


def _check_options(size: tuple[int, int] | None, crop: tuple[int, int, int, int] | None, max_pixels: int) -> None:
    checks.at_least("max_pixels", max_pixels, 1)
    if size is not None and (len(size) != 2 or not _whole(size) or min(size) < 1):
        raise ValueError(f"size must be (height, width), whole numbers of at least 1; got {size}.")
    if crop is not None and (len(crop) != 4 or not _whole(crop) or min(crop[:2]) < 0 or min(crop[2:]) < 1):
        raise ValueError(
            f"crop must be (top, left, height, width), the first two at least 0 and the others at least 1; got {crop}."
        )


def _whole(numbers: Sequence[Any]) -> bool:
    return all(isinstance(number, int | np.integer) for number in numbers)


def _by(image: np.ndarray) -> str:
    return f"{image.shape[0]}x{image.shape[1]}"
