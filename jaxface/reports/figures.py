"""Figures in one style. No global state of matplotlib changes: each function makes a figure and returns it.

Matplotlib is imported when the first figure is made, and the same data give the same bytes.
"""

import dataclasses
import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxface.core import messages

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Curve", "curves", "image_grid", "intervals", "roc", "to_png", "to_svg"]

# Okabe and Ito's colours can be told apart with every common kind of colour blindness.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
DASHES = ("-", "--", "-.", ":")

_STYLE = {
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "jaxface",
}


@dataclasses.dataclass(frozen=True)
class Curve:
    """A named line with an optional band."""

    label: str
    x: Any  # [k]
    y: Any  # [k]
    low: Any = None  # [k]
    high: Any = None  # [k]


def curves(
    lines: Sequence[Curve],
    *,
    x_label: str,
    y_label: str,
    title: str = "",
    log_x: bool = False,
    log_y: bool = False,
    markers: bool = True,
    y_range: tuple[float, float] | None = None,
    reference: float | None = None,
) -> "Figure":
    """Lines over a common axis, each with its band; `reference` draws a level to compare with.

    A band whose ends are NaN is not drawn there, and on a log axis a band ends at the lowest value that is drawn.
    """
    figure, axes = _one_axes(title, x_label, y_label)
    bottom = _lowest_positive(lines) if log_y else -math.inf
    for index, line in enumerate(lines):
        color, dash = COLORS[index % len(COLORS)], DASHES[index // len(COLORS) % len(DASHES)]
        x, y = np.asarray(line.x, float), np.asarray(line.y, float)
        marker = "o" if markers else None
        label = _plain(line.label)
        axes.plot(x, y, color=color, linestyle=dash, marker=marker, markersize=3.5, linewidth=1.6, label=label)
        if line.low is not None and line.high is not None:
            low, high = (np.maximum(np.asarray(end, float), bottom) for end in (line.low, line.high))
            axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
    if reference is not None:
        axes.axhline(reference, color="#666666", linewidth=0.8, linestyle=":")
    axes.set_xscale("log" if log_x else "linear")
    if not log_x and lines and all((np.asarray(line.x, float) % 1 == 0).all() for line in lines):
        axes.xaxis.set_major_locator(_whole_numbers())  # of images, members, iterations
    axes.set_yscale("log" if log_y else "linear")
    if y_range is not None:
        axes.set_ylim(*y_range)
    if len(lines) > 1 or (lines and lines[0].label):
        axes.legend(fontsize=9)
    return figure


def _lowest_positive(lines: Sequence[Curve]) -> float:
    """The least positive number of all lines and bands: where a log axis can begin."""
    ends = [
        np.ravel(np.asarray(end, float)) for line in lines for end in (line.y, line.low, line.high) if end is not None
    ]
    values = np.concatenate(ends) if ends else np.empty(0)
    positive = values[(values > 0) & np.isfinite(values)]
    return float(positive.min()) if positive.size else -math.inf


def _whole_numbers() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True)


def _plain(text: str) -> str:
    """A name as it is: matplotlib reads dollars as mathematics and leaves names that begin with `_` out of a legend.

    Fonts have no glyphs for control characters, which become escapes.
    """
    text = messages.printable(text)
    return ("\N{ZERO WIDTH SPACE}" if text.startswith("_") else "") + text.replace("$", r"\$")


def roc(lines: Sequence[Curve], *, title: str = "", min_far: float = 1e-3) -> "Figure":
    """Verification rate against false accept rate, the latter on a log scale down to `min_far`."""
    shown = [dataclasses.replace(line, x=np.maximum(np.asarray(line.x, float), min_far)) for line in lines]
    figure = curves(
        shown,
        x_label="false accept rate",
        y_label="verification rate",
        title=title,
        log_x=True,
        markers=False,
        y_range=(0.0, 1.02),
    )
    figure.axes[0].set_xlim(min_far, 1.0)
    return figure


def intervals(
    labels: Sequence[str],
    values: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    *,
    x_label: str,
    title: str = "",
) -> "Figure":
    """Values with their intervals, one row a method, the first on top; a value whose ends are NaN has no line."""
    with _style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 0.9 + 0.38 * len(labels)), layout="constrained")
        axes = figure.subplots()
        rows = np.arange(len(labels))[::-1]
        axes.hlines(rows, low, high, color=COLORS[0], linewidth=2.0)
        axes.plot(values, rows, "o", color=COLORS[0], markersize=5)
        axes.set_yticks(rows, [_plain(label) for label in labels])
        axes.set_ylim(-0.6, len(labels) - 0.4)
        axes.set_xlabel(x_label)
        axes.set_title(title)
        axes.grid(axis="y", visible=False)
    return figure


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
    with _style():
        from matplotlib.figure import Figure

        left = 0.1 + 0.085 * max((len(label) for label in row_labels), default=0)
        top = (0.3 if title else 0.05) + (0.22 if column_labels else 0.0)
        size = (left + columns * cell, top + rows * cell * height / width)
        figure = Figure(figsize=size)
        for i in range(rows):
            for j in range(columns):
                box = (
                    (left + j * cell) / size[0],
                    1 - (top + (i + 1) * cell * height / width) / size[1],
                    0.96 * cell / size[0],
                    0.96 * cell * height / width / size[1],
                )
                axes = figure.add_axes(box)
                _show(axes, images[i, j], symmetric)
                if i == 0 and column_labels:
                    axes.set_title(_plain(column_labels[j]), fontsize=8, loc="center", pad=3)
                if j == 0 and row_labels:
                    axes.text(
                        -0.06, 0.5, _plain(row_labels[i]), transform=axes.transAxes, ha="right", va="center", fontsize=8
                    )
        if title:
            figure.text(0.02, 1 - 0.05 / size[1], title, va="top", fontsize=11)
    return figure


def to_svg(figure: "Figure") -> bytes:
    """The figure as SVG, without a date so that equal figures are equal bytes."""
    return _rendered(figure, "svg", metadata={"Date": None})


def to_png(figure: "Figure", *, dpi: int = 130) -> bytes:
    """The figure as PNG: right for pictures."""
    return _rendered(figure, "png", dpi=dpi, metadata={"Software": None})


def _rendered(figure: "Figure", form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    with _style():
        figure.savefig(buffer, format=form, **options)
    return buffer.getvalue()


def _style() -> Any:
    import matplotlib

    return matplotlib.rc_context(_STYLE)


def _one_axes(title: str, x_label: str, y_label: str) -> "tuple[Figure, Axes]":
    with _style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        axes = figure.subplots()
        axes.set_title(title)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
    return figure, axes


def _show(axes: "Axes", image: np.ndarray, symmetric: bool) -> None:
    axes.set_axis_off()
    if image.ndim == 3:
        axes.imshow(np.clip(image, 0, 1), interpolation="nearest")
        return
    reach = max(float(np.abs(image).max()), math.ulp(1.0)) if symmetric else 1.0
    axes.imshow(image, cmap="gray", vmin=-reach if symmetric else 0.0, vmax=reach, interpolation="nearest")
