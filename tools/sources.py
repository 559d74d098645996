"""The numbers that pages may state: of finished runs, of benchmarks, of the papers. Used by `tools/figures.py`."""

import csv
import json
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from results import RESULTS, ROOT, RUNS

# Of the five papers; paper 2 has plots only, papers 1 and 5 are supplements without tables.
PRINTED = {
    "purity on Yale, %": (98.3, 94.2),
    "right answers among 15, 20 to 100 classes": (5.0, 1.2),
    "PSNR on FRGC, dB": (12.7, 14.1, 17.6, 18.9, 20.1),
    "gain over DW-KSVD, dB": (1.3, 2.5),
}

NUMBER = re.compile(r"(?<![\w.])(?<!\w-)(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+)(e[-+]?\d+)?(?![\w]|\.\d)")
_PLAIN = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")  # a cell of a CSV


class Number(NamedTuple):
    """A number as a page shows it."""

    text: str
    value: float
    unit: float  # of its last digit


class Known(NamedTuple):
    """What the sources hold, by names that tell what a number is."""

    runs: Mapping[str, Mapping[str, float] | None]  # None for a run that is not finished
    benchmarks: Mapping[str, float]

    def numbers(self, sources: Iterable[tuple[str, str]]) -> tuple[float, ...] | None:
        """All numbers of these sources, each a name and the words that a number's name must hold; None before a run."""
        found: list[float] = []
        for name, words in sources:
            if name == "paper":
                found += [value for values in PRINTED.values() for value in values]
                continue
            if name != "benchmarks" and name not in self.runs:
                raise ValueError(f"there is no run {name!r} in tools/results.py")
            held = self.benchmarks if name == "benchmarks" else self.runs[name]
            if held is None:
                return None
            chosen = [value for key, value in held.items() if all(word.strip() in key for word in words.split("+"))]
            if not chosen:
                raise ValueError(f"{name} has no number whose name holds {words!r}")
            found += chosen
        return tuple(found)


def number_of(text: str) -> Number:
    """`1,024`, `.31`, `3e-7` with the unit of their last digits."""
    mantissa, _, exponent = text.replace(",", "").partition("e")
    digits = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return Number(text, float(text.replace(",", "")), 10.0**-digits)


def agrees(number: Number, values: Iterable[float]) -> bool:
    """Whether some value, or a hundred times it, rounds to the number."""
    slack = 0.5 * number.unit * (1 + 1e-6)
    return any(abs(abs(value) * scale - number.value) <= slack for value in values for scale in (1, 100))


def known(results: pathlib.Path = RESULTS) -> Known:
    """The sources of the project."""
    finished = json.loads(results.read_text()) if results.exists() else {}
    runs = {run.name: of_run(finished[run.name]) if run.name in finished else None for run in RUNS}
    shown: dict[str, float] = {}
    for row in (ROOT / "benchmarks" / "RESULTS.md").read_text().split("\n"):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if len(cells) > 8:
            times = re.findall(r"(\d+\.?\d*)(?=x|\s(?:m|µ)?s)", " ".join(cells[4:]))
            shown |= {f"{cells[0]}/{place}": float(text) for place, text in enumerate(times)}
    return Known(runs, shown)


def of_run(held: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of an entry of docs/results.json: its results, its tables, and what its paragraphs say."""
    if not {"tables", "words"} <= held.keys():
        raise ValueError(
            f"{held['command']}: no tables in docs/results.json; gather them by make results ARGS=--collect"
        )
    return dict([*_flat(held["results"]), *_in_tables(held["tables"]), *_in_words(held["words"])])


def _flat(value: Any, name: str = "results") -> Iterator[tuple[str, float]]:
    """The numbers of nested JSON by their names."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _flat(part, f"{name}/{key}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value)


def _in_tables(tables: Mapping[str, list[str]]) -> Iterator[tuple[str, float]]:
    """The numbers of CSV tables by table, row and column."""
    for name, lines in tables.items():
        head, *rows = csv.reader(lines)
        for place, row in enumerate(rows):
            for column, cell in zip(head, row, strict=True):
                if _PLAIN.fullmatch(cell):
                    yield f"tables/{name}/{place}: {', '.join(row[:3])}/{column}", float(cell)


def _in_words(paragraphs: list[str]) -> Iterator[tuple[str, float]]:
    for place, paragraph in enumerate(paragraphs):
        for number in NUMBER.finditer(paragraph):
            yield f"words/{place}/{number.start()}", number_of(number.group()).value
