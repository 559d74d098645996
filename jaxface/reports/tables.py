"""Tables of numbers with intervals: as HTML for a report, as text for a terminal, as CSV for a spreadsheet.

`latex` writes them for a paper. Names of files and people come from outside. A terminal gets no control characters,
and a spreadsheet nothing that it would run as a formula: `csv_text`.
"""

import csv
import dataclasses
import html
import io
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jaxface.core import messages
from jaxface.metrics.intervals import FEWEST, Interval

__all__ = [
    "Cell",
    "Estimate",
    "Spread",
    "Table",
    "csv_text",
    "intervals_over",
    "percent",
    "percent_interval",
    "percent_spread",
    "with_interval",
]

ABSENT = "–"  # shown where there is no number
_PLAIN = 1e5  # numbers from here on are written with an exponent


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number with its interval, in its own unit; `scale = 100` shows a rate in per cent."""

    value: float
    low: float = math.nan
    high: float = math.nan
    digits: int = 1
    scale: float = 1.0

    def __str__(self) -> str:
        if math.isnan(self.value):
            return ABSENT
        value, low, high = (_number(end * self.scale, self.digits) for end in (self.value, self.low, self.high))
        return value if math.isnan(self.low) or math.isnan(self.high) else f"{value} [{low}, {high}]"

    def parts(self) -> dict[str, float]:
        """The value and the ends of its interval in the unit of the page, by what follows the name of the column."""
        return {"": self.value * self.scale, " low": self.low * self.scale, " high": self.high * self.scale}


@dataclasses.dataclass(frozen=True)
class Spread:
    """A mean with the deviation of the values around it, or with its standard error: `kind` says which, for the CSV."""

    mean: float
    deviation: float = math.nan  # of a single value there is none
    digits: int = 1
    scale: float = 1.0
    kind: str = "SD"

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return ABSENT
        mean, deviation = (_number(end * self.scale, self.digits) for end in (self.mean, self.deviation))
        return mean if math.isnan(self.deviation) else f"{mean} ± {deviation}"

    def parts(self) -> dict[str, float]:
        """The mean and the deviation in the unit of the page, by what follows the name of the column."""
        return {"": self.mean * self.scale, f" {self.kind}": self.deviation * self.scale}


def _number(value: float, digits: int) -> str:
    """A number with so many digits after the point, or with an exponent where that would be too long to read."""
    if math.isfinite(value) and abs(value) >= _PLAIN:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        return f"{mantissa}e{int(exponent)}".replace("-", "−")
    text = f"{value:.{digits}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "−")


def percent(value: float, low: float = math.nan, high: float = math.nan, *, digits: int = 1) -> Estimate:
    """A rate in per cent."""
    return Estimate(float(value), float(low), float(high), digits, 100.0)


def percent_interval(interval: Interval, *, digits: int = 1) -> Estimate:
    """A rate with its interval, in per cent."""
    return percent(float(interval.estimate), float(interval.low), float(interval.high), digits=digits)


def percent_spread(values: npt.ArrayLike, *, digits: int = 1) -> Spread:
    """Mean and standard deviation of rates in per cent; of a single rate, or of equal ones, no deviation."""
    rates = np.asarray(values, float)
    mean, deviation = float(rates.mean()), float(rates.std(ddof=1)) if rates.size > 1 else math.nan
    return Spread(mean, deviation if deviation > 1e-9 * abs(mean) else math.nan, digits, 100.0)


def with_interval(interval: Interval, *, digits: int = 2) -> Estimate:
    """A number with its interval, in its own unit."""
    return Estimate(float(interval.estimate), float(interval.low), float(interval.high), digits)


def intervals_over(count: int, what: str) -> str:
    """Words of a caption for means over `count` things, such as random splits: with intervals, or too few for these."""
    if count >= FEWEST:
        return f"95 % intervals over {count} {what}"
    return f"mean over {count} {what if count > 1 else what.removesuffix('s')}, too few for intervals"


Cell = str | int | float | Estimate | Spread  # a plain number is shown to four digits


@dataclasses.dataclass(frozen=True)
class Table:
    """Named columns, rows of cells and a caption; numbers stand on the right.

    `name` is that of its files, without an ending; otherwise the section of a report gives them its title.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} cells in a table of {len(self.columns)} columns: {row}")

    def to_html(self) -> str:
        """A `<table>` that scrolls on a narrow page, under its caption, which may be wider."""
        numeric = self.numeric()
        head = "".join(_cell("th", name, numeric[i]) for i, name in enumerate(self.columns))
        body = "".join(
            "<tr>" + "".join(_cell("td", text(cell), numeric[i]) for i, cell in enumerate(row)) + "</tr>\n"
            for row in self.rows
        )
        caption = html.escape(messages.printable(self.caption))
        above, label = (f'<p class="caption">{caption}</p>', f' aria-label="{caption}"') if caption else ("", "")
        table = f"<table{label}>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>"
        return f'<div class="table">{above}<div class="wide">{table}</div></div>'

    def to_text(self) -> str:
        """Columns aligned with spaces."""
        numeric = self.numeric()
        lines = [
            [messages.printable(name) for name in self.columns],
            *([text(cell) for cell in row] for row in self.rows),
        ]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, numeric, strict=True)
            ).rstrip()
            for line in lines
        )

    def to_csv(self) -> str:
        """Values in full precision and in the unit of the page; intervals and deviations get columns of their own."""
        columns = [self._parts(i) for i in range(len(self.columns))]
        head = [f"{name}{part}" for name, parts in zip(self.columns, columns, strict=True) for part in parts]
        body = (
            [_csv_value(cell, part, right) for cell, parts, right in cells for part in parts]
            for row in self.rows
            for cells in (zip(row, columns, self.numeric(), strict=True),)
        )
        return csv_text([head, *body])

    def numeric(self) -> list[bool]:
        """Whether each column holds numbers only, of which some may be absent."""
        return [
            any(not isinstance(cell, str) for cell in column)
            and all(not isinstance(cell, str) or cell in ("", ABSENT) for cell in column)
            for column in ([row[i] for row in self.rows] for i in range(len(self.columns)))
        ]

    def _parts(self, index: int) -> list[str]:
        """What the CSV holds of a column: the value, and those ends and deviations that some row has."""
        parts = [""]
        for row in self.rows:
            cell = row[index]
            if isinstance(cell, Estimate | Spread):
                parts += [part for part, value in cell.parts().items() if part not in parts and not math.isnan(value)]
        return parts


# A spreadsheet runs what begins with one of these, their full-width forms in some languages; where columns are divided
# by semicolons, also what follows one.
_FORMULA = re.compile(r"(^|;)(\s*[=+\-@\uff1d\uff0b\uff0d\uff20])")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|nan)", re.IGNORECASE | re.ASCII)


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as CSV that a spreadsheet takes for data: numbers as they are, texts by `csv_cell`."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    return buffer.getvalue()


def csv_cell(value: Any) -> Any:
    """A text in one line, with an apostrophe before a text that a spreadsheet would run as a formula.

    Control characters become escapes, as on a terminal. A text that is a number, such as a formatted one, stays one.
    """
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    return _FORMULA.sub(r"\1'\2", messages.printable(value))


def text(cell: Cell) -> str:
    """A cell as a reader sees it, without control characters."""
    if isinstance(cell, bool | str | Estimate | Spread) or not math.isfinite(cell):
        return messages.printable(cell)
    if isinstance(cell, int | np.integer):
        return f"{cell:,}".replace("-", "−") if abs(cell) >= 10_000 else str(cell).replace("-", "−")
    if 1e4 <= abs(cell) < _PLAIN:
        return _number(cell, 0)
    rounded, _, exponent = f"{cell:.4g}".partition("e")
    return (f"{rounded}e{int(exponent)}" if exponent else rounded).replace("-", "−")


def _cell(tag: str, text: str, numeric: bool) -> str:
    """A cell; numbers break only between a value and its interval, so that wide tables fit narrow pages."""
    shown = html.escape(messages.printable(text))
    if numeric and tag == "td":
        shown = shown.replace(", ", ",&nbsp;").replace(" ± ", "&nbsp;±&nbsp;")
    kind = ' class="number"' if numeric else ""
    return f"<{tag}{kind}>{shown}</{tag}>"


def _csv_value(cell: Cell, part: str, numeric: bool) -> Cell:
    if isinstance(cell, Estimate | Spread):
        value = cell.parts().get(part, math.nan)
        return "" if math.isnan(value) else value
    return "" if part or (numeric and isinstance(cell, str)) else cell
