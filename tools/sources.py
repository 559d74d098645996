"""The numbers that pages may state: of finished runs, of benchmarks, of the papers. Used by `tools/figures.py`."""

import bisect
import collections
import csv
import functools
import json
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from results import RESULTS, ROOT, RUNS

# What the papers state in numbers, by table and row; paper 2 has plots only, papers 1 and 5 have no results.
PRINTED = {
    "weak labels, table 1, groups of 3, kernel RCA": (94.2, 3.7, 96.0, 2.2),
    "weak labels, table 1, groups of 3, kernel NP-PER": (98.3, 2.4, 98.8, 1.7),
    "weak labels, table 1, groups of 5, kernel RCA": (96.9, 3.0, 97.9, 2.0),
    "weak labels, table 1, groups of 5, kernel NP-PER": (99.7, 1.2, 99.8, 0.7),
    "weak labels, table 1, groups of 7, kernel RCA": (93.5, 4.2, 95.7, 2.5),
    "weak labels, table 1, groups of 7, kernel NP-PER": (97.7, 2.9, 98.4, 1.6),
    "weak labels, right among the first 15, 20 and 100 queries": (5.0, 1.2),
    # Mean and deviation in dB, then VR and EER of table 2.
    "dictionaries, PCA": (12.7439, 2.1288, 0.046, 0.452),
    "dictionaries, K-SVD": (14.0720, 2.0532, 0.438, 0.165),
    "dictionaries, DW-KSVD": (17.6402, 2.3757, 0.826, 0.056),
    "dictionaries, Fastfood 5x, de-kernelised": (17.7842, 2.2480, 0.848, 0.050),
    "dictionaries, Fastfood 5x": (18.9251, 2.3213, 0.919, 0.033),
    "dictionaries, Fastfood 10x": (20.1496, 2.4243, 0.951, 0.025),
    "dictionaries, original faces": (0.982, 0.014),
    "dictionaries, gain of Fastfood 5x and 10x over DW-KSVD, dB": (18.9251 - 17.6402, 20.1496 - 17.6402),
}

NUMBER = re.compile(r"(?<![\w.])(?<!\w-)(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.\d+|\d+)(e[-+]?\d+)?(?![\w]|\.\d)")
_PLAIN = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")  # a cell of a CSV
_ENDS = re.compile(r" (low|high|SD|SE)$")  # of a column: the interval or the deviation of the column before
_NO_RATE = re.compile(r"%|Cllr|PSNR|dB|nats|points|DCF")  # a number with such a name is never shown in per cent


_LAST = ("\uffff",)  # after every entry


class Number(NamedTuple):
    """A number as a page shows it."""

    text: str
    value: float
    unit: float  # of its last digit


class Entry(NamedTuple):
    """A number of a source."""

    name: str
    value: float
    groups: frozenset[str]  # what it shares with others: the row, the column, a word of its name
    cell: str  # an estimate and the ends of its interval share it
    end: str = ""  # low, high, SD or SE

    @property
    def shown(self) -> tuple[float, ...]:
        """The values that a page may show, without sign: as it is, and a rate also in per cent."""
        size = abs(self.value)
        return (size,) if size > 1 or _NO_RATE.search(self.name) else (size, 100 * size)


class Source:
    """The numbers of one source that a marker names."""

    def __init__(self, entries: Sequence[Entry]):
        self._values = sorted((value, entry) for entry in entries for value in entry.shown)
        self._cells: dict[str, list[Entry]] = collections.defaultdict(list)
        for entry in entries:
            self._cells[entry.cell].append(entry)

    def find(self, number: Number) -> list[Entry]:
        """The numbers that round to the one of a page."""
        slack = 0.5 * number.unit * (1 + 1e-6)
        first = bisect.bisect_left(self._values, (number.value - slack,))
        last = bisect.bisect_right(self._values, (number.value + slack, _LAST))
        return [entry for _, entry in self._values[first:last]]

    def has_interval(self, value: Number | None, low: Number, high: Number) -> bool:
        """Whether some estimate, rounded to `value` if there is one, has these ends, whatever their order and sign."""
        for one in self.find(low):
            cell = self._cells[one.cell]
            other = {"low": "high", "high": "low"}.get(one.end)
            estimates = [each for each in cell if not each.end]
            has_value = value is None or not estimates or bool(set(estimates) & set(self.find(value)))
            if has_value and any(each.end == other and each.cell == one.cell for each in self.find(high)):
                return True
        return False


class Known(NamedTuple):
    """What the sources hold."""

    runs: Mapping[str, tuple[Entry, ...] | None]  # None for a run that is not finished
    benchmarks: tuple[Entry, ...]
    made: dict[tuple[str, str], Source]  # by what a marker names

    def of(self, named: Sequence[tuple[str, str]]) -> list[Source] | None:
        """Sources, each by its name and words that the names of its numbers must hold; None before a run."""
        found = []
        for name, words in named:
            if (name, words) in self.made:
                found.append(self.made[name, words])
                continue
            entries = self._entries(name)
            if entries is None:
                return None
            chosen = tuple(each for each in entries if all(word.strip() in each.name for word in words.split("+")))
            if not chosen:
                raise ValueError(f"{name} has no number whose name holds {words!r}")
            found.append(self.made.setdefault((name, words), Source(chosen)))
        return found

    def _entries(self, name: str) -> tuple[Entry, ...] | None:
        if name == "paper":
            return tuple(
                Entry(what, value, frozenset({what}), what) for what, all_ in PRINTED.items() for value in all_
            )
        if name == "benchmarks":
            return self.benchmarks
        if name not in self.runs:
            raise ValueError(f"there is no run {name!r} in tools/results.py")
        return self.runs[name]


def number_of(text: str) -> Number:
    """`1,024`, `.31`, `3e-7` with the unit of their last digits."""
    mantissa, _, exponent = text.replace(",", "").partition("e")
    digits = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return Number(text, float(text.replace(",", "")), 10.0**-digits)


@functools.cache
def known(results: pathlib.Path = RESULTS) -> Known:
    """The sources of the project."""
    finished = json.loads(results.read_text()) if results.exists() else {}
    runs = {run.name: of_run(finished[run.name]) if run.name in finished else None for run in RUNS}
    shown = []
    for row in (ROOT / "benchmarks" / "RESULTS.md").read_text().split("\n"):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if len(cells) > 8:
            times = re.findall(r"(\d+\.?\d*)(?=x|\s(?:m|µ)?s)", " ".join(cells[4:]))
            shown += [Entry(f"{cells[0]}, ", float(text), frozenset({cells[0]}), cells[0]) for text in times]
    return Known(runs, tuple(shown), {})


def of_run(held: Mapping[str, Any]) -> tuple[Entry, ...]:
    """The numbers of an entry of docs/results.json: its results, its tables, and what its paragraphs say."""
    if not {"tables", "words"} <= held.keys():
        raise ValueError(
            f"{held['command']}: no tables in docs/results.json; gather them by make results ARGS=--collect"
        )
    return (*_flat(held["results"]), *_in_tables(held["tables"]), *_in_words(held["words"]))


def _flat(value: Any, name: str = "results") -> Iterator[Entry]:
    """The numbers of nested JSON; two in a list are the ends of an interval."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _flat(part, f"{name}/{key}")
    elif isinstance(value, list):
        for place, part in enumerate(value):
            for entry in _flat(part, name):
                yield entry._replace(end=("low", "high")[place]) if len(value) == 2 else entry
    elif isinstance(value, int | float) and not isinstance(value, bool):
        words = re.split(r"/|, |: ", name)
        yield Entry(name, float(value), frozenset(words[1:]), name)


def _in_tables(tables: Mapping[str, list[str]]) -> Iterator[Entry]:
    """The numbers of CSV tables; the cells of a row that are words name the row."""
    for table, lines in tables.items():
        head, *rows = csv.reader(lines)
        for place, row in enumerate(rows):
            labels = [cell for cell in row if cell and not _PLAIN.fullmatch(cell)]
            for column, cell in zip(head, row, strict=True):
                if _PLAIN.fullmatch(cell):
                    of, end = _ENDS.sub("", column), _ENDS.search(column)
                    groups = {f"{table} {place}", f"{table}, {of}", *labels}
                    name = f"tables/{table}/{', '.join(row[:3])}/{column}"
                    yield Entry(name, float(cell), frozenset(groups), f"{table} {place} {of}", end[1] if end else "")


def _in_words(paragraphs: list[str]) -> Iterator[Entry]:
    for place, paragraph in enumerate(paragraphs):
        group = f"paragraph {place}"
        for number in NUMBER.finditer(paragraph):
            yield Entry(f"words/{paragraph}", number_of(number.group()).value, frozenset({group}), group)
        for triple in re.finditer(r"([\d.]+) \[[−-]?([\d.]+), [−-]?([\d.]+)\]", paragraph):
            for end, text in zip(("", "low", "high"), triple.groups(), strict=True):
                yield Entry(f"words/{paragraph}", float(text), frozenset({group}), f"{group} {triple.start()}", end)
