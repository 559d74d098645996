"""Figures in one style. No global state of matplotlib changes: each function makes a figure and returns it.

Matplotlib is imported when the first figure is made, and the same data give the same bytes.
"""

import dataclasses
import io
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxface.core import messages

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Curve", "curves", "intervals", "roc", "to_png", "to_svg"]

# Okabe and Ito's colours, a grey for their yellow, can be told apart with every common kind of colour blindness.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#6b6b6b")
# Lines that coincide show each other: dashes and marks differ from line to line, and each is thinner than the last.
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (9, 3)), (0, (3, 1, 1, 1, 1, 1)))
MARKS = "os^DvPX*"

_WIDTH = 5.8  # inches; narrow, so that text stays readable on a telephone
_LEGEND_LETTERS = 76  # in a row of a legend
_MOST_POINTS = 400  # of a ROC: more than a page can show
_BAND = 10.0  # a band on a log axis ends at most so many times above and below all lines

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

    A band whose ends are NaN is not drawn there. On a log axis a band ends where numbers end that are positive, and a
    decade beyond the lines at most; a line has a gap where it is not positive.
    """
    named = [plain(line.label) for line in lines if line.label]
    figure, axes = one_axes(title, x_label, y_label, legend_rows=math.ceil(len(named) / _legend_columns(named)))
    if log_x:
        axes.set_xscale("log", nonpositive="mask")
        _plain_numbers(axes.xaxis)
    if log_y:
        axes.set_yscale("log", nonpositive="mask")
        _plain_numbers(axes.yaxis)
    ends = _log_ends(lines) if log_y else (-math.inf, math.inf)
    for index, line in enumerate(lines):
        width = 2.4 - 1.0 * index / (len(lines) - 1) if len(lines) > 1 else 1.6
        _draw(axes, line, index, width=width, markers=markers, ends=ends)
    if reference is not None:
        axes.axhline(reference, color="#666666", linewidth=0.8, linestyle=":")
    if not log_x and lines and all((np.asarray(line.x, float) % 1 == 0).all() for line in lines):
        axes.xaxis.set_major_locator(_whole_numbers())  # of images, members, iterations
    if y_range is not None:
        axes.set_ylim(*y_range)
    if named:
        _legend(figure, axes, named)
    return figure


def _draw(axes: "Axes", line: Curve, index: int, *, width: float, markers: bool, ends: tuple[float, float]) -> None:
    """A line and its band, which is cut at `ends`."""
    color, dash, mark = (choices[index % len(choices)] for choices in (COLORS, DASHES, MARKS))
    x = np.asarray(line.x, float)
    label = plain(line.label) if line.label else "_"
    look: dict[str, Any] = {"color": color, "linestyle": dash, "linewidth": width, "markersize": 4.5}
    axes.plot(x, np.asarray(line.y, float), label=label, marker=mark if markers else None, **look)
    if line.low is not None and line.high is not None:
        low, high = (np.clip(np.asarray(end, float), *ends) for end in (line.low, line.high))
        axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)


def _legend(figure: "Figure", axes: "Axes", named: Sequence[str]) -> None:
    """The names below the axes, where they cover no line."""
    handles, labels = axes.get_legend_handles_labels()
    with style():
        figure.legend(
            handles, labels, loc="outside lower left", ncols=_legend_columns(named), fontsize=9, handlelength=2.8
        )


def _legend_columns(named: Sequence[str]) -> int:
    """The number of columns of a legend that fits below the axes."""
    widest = max((len(name) for name in named), default=0) + 8
    return max(1, min(len(named), _LEGEND_LETTERS // widest))


def _log_ends(lines: Sequence[Curve]) -> tuple[float, float]:
    """Between what values a log axis shows bands: positive numbers, near the lines."""
    ends = [
        np.ravel(np.asarray(end, float)) for line in lines for end in (line.y, line.low, line.high) if end is not None
    ]
    values, levels = (_positive(found) for found in (ends, [np.ravel(np.asarray(line.y, float)) for line in lines]))
    if not levels.size:
        return -math.inf, math.inf
    return max(float(values.min()), float(levels.min()) / _BAND), float(levels.max()) * _BAND


def _positive(values: Sequence[np.ndarray]) -> np.ndarray:
    together = np.concatenate([*values, np.empty(0)])
    return together[(together > 0) & np.isfinite(together)]


def _plain_numbers(axis: Any) -> None:
    """Plain numbers on a log axis of less than two decades, where powers of ten would be few."""
    from matplotlib.ticker import LogFormatterSciNotation

    class Plain(LogFormatterSciNotation):
        def __call__(self, x: float, pos: int | None = None) -> str:
            power = super().__call__(x, pos)
            low, high = axis.get_view_interval()
            return f"{x:.4g}" if power and low >= 1e-4 and high < 1e5 and high < 100 * low else power

    axis.set_major_formatter(Plain())
    axis.set_minor_formatter(Plain(minor_thresholds=(1.0, 0.4)))


def _whole_numbers() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True, min_n_ticks=1)  # one tick where there is one point


def plain(text: str) -> str:
    """A text as it is: matplotlib reads dollars as mathematics and leaves names that begin with `_` out of a legend.

    Fonts have no glyphs for control characters, which become escapes.
    """
    text = messages.printable(text)
    return ("\N{ZERO WIDTH SPACE}" if text.startswith("_") else "") + text.replace("$", r"\$")


def roc(lines: Sequence[Curve], *, title: str = "", min_far: float | None = None) -> "Figure":
    """Verification rate against false accept rate, the latter on a log scale from `min_far` on.

    Without `min_far` the axis begins at the lowest rate above 0 of any curve: below, nothing was measured. Curves are
    cut there, and the axes end where no curve has anything to tell apart. A curve that begins at a rate of 0 has the
    steps of a ROC and is drawn at some hundred rates; any other is drawn through its points.
    """
    lowest = _lowest_rate(lines) if min_far is None else min_far
    shown = [_from_rate(line, lowest) for line in lines]
    figure = curves(
        shown, x_label="false accept rate", y_label="verification rate", title=title, log_x=True, markers=False
    )
    axes = figure.axes[0]
    levels = [np.asarray(end, float) for line in shown for end in (line.y, line.low) if end is not None]
    bottom = min((float(np.nanmin(level)) for level in levels if np.isfinite(level).any()), default=0.0)
    axes.set_xlim(lowest, _last_rate(shown, lowest))
    axes.set_ylim(max(0.0, bottom - 0.05 * (1 - bottom) - 1e-3), 1 + 0.02 * (1 - bottom) + 1e-4)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda rate, _: f"{100 * rate:.6g} %")
        axis.set_minor_formatter(lambda *_: "")
    return figure


def _lowest_rate(lines: Sequence[Curve]) -> float:
    rates = _positive([np.ravel(np.asarray(line.x, float)) for line in lines])
    return float(np.clip(rates.min(), 1e-6, 0.1)) if rates.size else 1e-3


def _last_rate(lines: Sequence[Curve], lowest: float) -> float:
    """The power of ten from which on every curve is at its top."""
    rising = [np.asarray(line.x, float)[np.asarray(line.y, float) < np.nanmax(line.y)] for line in lines]
    last = max((float(rates.max()) for rates in rising if rates.size), default=lowest)
    return min(1.0, 10.0 ** (math.floor(math.log10(last) + 1e-9) + 1))


def _from_rate(line: Curve, lowest: float) -> Curve:
    """A curve over false accept rates from the lowest that is shown."""
    x = np.asarray(line.x, float)
    if x[0] > 0:
        rates = np.append(lowest, x[x > lowest]) if x[0] <= lowest else x
    else:
        rates = np.geomspace(lowest, 1.0, _MOST_POINTS)
    places = np.searchsorted(x, rates, side="right") - 1  # a rate between two points has what the lower one reaches
    ends = (None if end is None else np.asarray(end, float)[places] for end in (line.y, line.low, line.high))
    return Curve(line.label, rates, *ends)


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
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(_WIDTH, 0.9 + 0.38 * len(labels)), layout="constrained")
        axes = figure.subplots()
        rows = np.arange(len(labels))[::-1]
        axes.hlines(rows, low, high, color=COLORS[0], linewidth=2.0)
        axes.plot(values, rows, "o", color=COLORS[0], markersize=5)
        axes.set_yticks(rows, [plain(label) for label in labels])
        axes.set_ylim(-0.6, len(labels) - 0.4)
        axes.set_xlabel(plain(x_label))
        axes.set_title(plain(title))
        axes.grid(axis="y", visible=False)
    return figure


def to_svg(figure: "Figure") -> bytes:
    """The figure as SVG, without a date so that equal figures are equal bytes."""
    return _rendered(figure, "svg", metadata={"Date": None})


def to_png(figure: "Figure", *, dpi: int = 130) -> bytes:
    """The figure as PNG: right for pictures."""
    return _rendered(figure, "png", dpi=dpi, metadata={"Software": None})


def _rendered(figure: "Figure", form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    with style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # a name in a script without a font
        figure.savefig(buffer, format=form, **options)
    return buffer.getvalue()


def style() -> Any:
    """The settings of every figure, inside a `with`."""
    import matplotlib

    return matplotlib.rc_context(_STYLE)


def one_axes(title: str, x_label: str, y_label: str, *, legend_rows: int = 0) -> "tuple[Figure, Axes]":
    """An empty figure in the style of all, with room for a legend below."""
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(_WIDTH, 3.5 + 0.19 * legend_rows), layout="constrained")
        axes = figure.subplots()
        axes.set_title(plain(title))
        axes.set_xlabel(plain(x_label))
        axes.set_ylabel(plain(y_label))
    return figure, axes
