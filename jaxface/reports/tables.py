"""Tables of numbers with intervals: as HTML for a report, as text for a terminal, as CSV for a spreadsheet.

Names of files and people come from outside. A terminal gets no control characters, and a spreadsheet nothing that it
would run as a formula: `csv_text`.
"""

import csv
import dataclasses
import html
import io
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from jaxface.core import messages
from jaxface.metrics.intervals import FEWEST, Interval

__all__ = ["Cell", "Estimate", "Table", "csv_text", "intervals_over", "percent", "percent_interval", "with_interval"]


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
            return "–"
        text = self._number(self.value)
        if math.isnan(self.low) or math.isnan(self.high):
            return text
        return f"{text} [{self._number(self.low)}, {self._number(self.high)}]"

    def _number(self, value: float) -> str:
        text = f"{value * self.scale:.{self.digits}f}"
        return (text.lstrip("-") if float(text) == 0 else text).replace("-", "−")


def percent(value: float, low: float = math.nan, high: float = math.nan, *, digits: int = 1) -> Estimate:
    """A rate in per cent."""
    return Estimate(float(value), float(low), float(high), digits, 100.0)


def percent_interval(interval: Interval, *, digits: int = 1) -> Estimate:
    """A rate with its interval, in per cent."""
    return percent(float(interval.estimate), float(interval.low), float(interval.high), digits=digits)


def with_interval(interval: Interval, *, digits: int = 2) -> Estimate:
    """A number with its interval, in its own unit."""
    return Estimate(float(interval.estimate), float(interval.low), float(interval.high), digits)


def intervals_over(count: int, what: str) -> str:
    """Words of a caption for means over `count` things, such as random splits: with intervals, or too few for these."""
    if count >= FEWEST:
        return f"95 % intervals over {count} {what}"
    return f"mean over {count} {what if count > 1 else what.removesuffix('s')}, too few for intervals"


Cell = str | int | float | Estimate  # a number without an interval is shown as it is


@dataclasses.dataclass(frozen=True)
class Table:
    """Named columns, rows of cells and a caption; numbers stand on the right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row of {len(row)} cells in a table of {len(self.columns)} columns: {row}")

    def to_html(self) -> str:
        """A `<table>` element."""
        numeric = self._numeric()
        head = "".join(_cell("th", name, numeric[i]) for i, name in enumerate(self.columns))
        body = "".join(
            "<tr>" + "".join(_cell("td", _text(cell), numeric[i]) for i, cell in enumerate(row)) + "</tr>\n"
            for row in self.rows
        )
        caption = f"<caption>{html.escape(messages.printable(self.caption))}</caption>" if self.caption else ""
        return f"<table>{caption}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table>"

    def to_text(self) -> str:
        """Columns aligned with spaces."""
        numeric = self._numeric()
        lines = [
            [messages.printable(name) for name in self.columns],
            *([_text(cell) for cell in row] for row in self.rows),
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
        """Values in full precision and in the unit of the page; the ends of an interval get columns of their own."""
        with_interval = [any(isinstance(row[i], Estimate) for row in self.rows) for i in range(len(self.columns))]
        head = (
            title
            for name, wide in zip(self.columns, with_interval, strict=True)
            for title in ((name, f"{name} low", f"{name} high") if wide else (name,))
        )
        body = (
            [value for cell, wide in zip(row, with_interval, strict=True) for value in _csv_values(cell, wide)]
            for row in self.rows
        )
        return csv_text([head, *body])

    def _numeric(self) -> list[bool]:
        return [
            bool(self.rows) and all(not isinstance(row[i], str) for row in self.rows) for i in range(len(self.columns))
        ]


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


def _text(cell: Cell) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else messages.printable(cell)


def _cell(tag: str, text: str, numeric: bool) -> str:
    kind = ' class="number"' if numeric else ""
    return f"<{tag}{kind}>{html.escape(messages.printable(text))}</{tag}>"


def _csv_values(cell: Cell, wide: bool) -> tuple[Cell, ...]:
    if isinstance(cell, Estimate):
        return tuple("" if math.isnan(end) else end * cell.scale for end in (cell.value, cell.low, cell.high))
    return (cell, "", "") if wide else (cell,)
