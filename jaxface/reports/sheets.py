"""Sheets of faces: a figure for the folder, and rows of pictures for a page, whose labels are text of the page."""

import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxface.reports import figures
from jaxface.reports.html import Sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["sheet"]

_WIDTH = 96  # pixels of an image in a row at least; smaller images are enlarged without blur
_GAP = 4  # pixels between two of them
_LETTER = 0.085  # inches of a letter of a label


def sheet(
    name: str,
    images: Any,
    *,
    caption: str,
    row_labels: Sequence[str] = (),
    column_labels: Sequence[str] = (),
    title: str = "",
    symmetric: bool = False,
    cell: float = 0.95,
) -> Sheet:
    """Images `[rows, columns, h, w]` (or `[..., 3]` in colour) for a page: `image_grid`, and a picture of each row."""
    images = np.asarray(images, float)
    grid = image_grid(
        images, row_labels=row_labels, column_labels=column_labels, title=title, symmetric=symmetric, cell=cell
    )
    labels = list(row_labels) or [""] * len(images)
    rows = [(label, _row(each, symmetric)) for label, each in zip(labels, images, strict=True)]
    return Sheet(
        name,
        figures.to_png(grid, dpi=110),
        caption,
        title=title,
        rows=rows,
        column_labels=column_labels,
        width=round(6.4 * cell * images.shape[1], 1),
    )


def image_grid(
    images: Any,
    *,
    row_labels: Sequence[str] = (),
    column_labels: Sequence[str] = (),
    title: str = "",
    symmetric: bool = False,
    cell: float = 0.95,
) -> "Figure":
    """Images `[rows, columns, h, w]` (or `[..., 3]` in colour) as a contact sheet.

    Grey images in [0, 1] are shown unchanged; with `symmetric` each is stretched around zero, for eigenfaces.
    """
    images = np.asarray(images, float)
    rows, columns, height, width = images.shape[:4]
    with figures.style():
        from matplotlib.figure import Figure

        left = 0.1 + _LETTER * max((len(label) for label in row_labels), default=0)
        top = (0.3 if title else 0.05) + (0.22 if column_labels else 0.0)
        tall = cell * height / width
        size = (max(left + columns * cell, 0.2 + 1.4 * _LETTER * len(title)), top + rows * tall)
        figure = Figure(figsize=size)
        axes = figure.add_axes((0, 0, 1, 1))  # one for all images, in inches: to make an axes takes long
        axes.set_axis_off()
        for i, j in np.ndindex(rows, columns):
            x, y = left + j * cell, top + i * tall
            extent = (x, x + 0.96 * cell, y + tall, y + 0.04 * tall)
            levels = _levels(images[i, j], symmetric)
            axes.imshow(levels, cmap="gray", vmin=0, vmax=1, interpolation="nearest", extent=extent, aspect="auto")
        for j, label in enumerate(column_labels):
            place = left + (j + 0.48) * cell, top + 0.04 * tall - 3 / 72
            axes.text(*place, figures.plain(label), fontsize=8, ha="center", va="bottom")
        for i, label in enumerate(row_labels):
            place = left - 0.06 * cell, top + (i + 0.52) * tall
            axes.text(*place, figures.plain(label), fontsize=8, ha="right", va="center")
        axes.set(xlim=(0, size[0]), ylim=(size[1], 0))
        if title:
            figure.text(0.1 / size[0], 1 - 0.05 / size[1], figures.plain(title), va="top", fontsize=11)
    return figure


def _row(images: np.ndarray, symmetric: bool) -> bytes:
    """Images `[n, h, w]` (or in colour) beside each other as a PNG, pixel by pixel."""
    from PIL import Image

    times = -(-_WIDTH // images.shape[2])
    pixels = np.stack([_levels(image, symmetric) for image in images]).repeat(times, axis=1).repeat(times, axis=2)
    if pixels.ndim == 3:
        pixels = np.repeat(pixels[..., None], 3, axis=-1)
    pixels = np.round(255 * pixels).astype(np.uint8)
    gap = np.full((pixels.shape[1], _GAP, 3), 255, np.uint8)
    pieces = [piece for image in pixels for piece in (gap, image)][1:]
    buffer = io.BytesIO()
    Image.fromarray(np.concatenate(pieces, axis=1)).save(buffer, format="PNG")
    return buffer.getvalue()


def _levels(image: np.ndarray, symmetric: bool) -> np.ndarray:
    """Grey levels or colours in [0, 1]; with `symmetric` zero is the middle grey."""
    return np.clip(image / (2 * _reach(image)) + 0.5 if symmetric else image, 0, 1)


def _reach(image: np.ndarray) -> float:
    return max(float(np.abs(image).max()), math.ulp(1.0))
