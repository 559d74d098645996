"""Every measured number of README and docs names its source, and agrees with it.

    python tools/figures.py         numbers without a source, and numbers that their source does not have; exit 1 if any
    python tools/figures.py --list  every block with measured numbers and its marker

A marker is an HTML comment before a paragraph, a list, an item of a list or a table, and holds for that block:

    <!-- from verify:lfw -->                 the numbers of this run of `tools/results.py`, kept in docs/results.json
    <!-- from retrieve:classes (top 5) -->   only those whose names hold the words in brackets
    <!-- from benchmarks (K3) -->            this row of benchmarks/RESULTS.md
    <!-- from paper -->                      figures in print, `sources.PRINTED`
    <!-- from column study -->               a table whose column `study` names the runs of each row
    <!-- measured: COMMAND, DATE -->         one measurement, which COMMAND repeats
    <!-- settings -->                        numbers that were chosen, counted or derived, not measured

Several sources stand with commas between them. After a source, `; given 0.5 30` names settings among the measured
numbers, and `; 3.5 = 21.4 - 17.9` says that a number follows from numbers of the source. Measured is what has a
decimal point or a unit, outside of code and formulae.

A number agrees if some number of the source rounds to it, a rate also in per cent. That says little where a run has
hundreds of numbers, so what stands together must come from one place. The numbers of a row of a table come from one
group of each source: a row or a column of a table of its report, or results that share a part of their names. An
interval (A to B) or [A, B] and the number before it are one estimate. A table with the column `study` sums up: it
states what another page states of the same runs. Standard library only.
"""

import argparse
import ast
import collections
import functools
import operator
import pathlib
import re
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from results import ROOT
from sources import NUMBER, Entry, Known, Number, Source, known, number_of

_FENCE = re.compile(r"^(```.*?^```|\$\$.*?\$\$|<!--\n.*?-->)$", re.MULTILINE | re.DOTALL)
_MARKER = re.compile(r"<!-- ((?:from |measured: |settings)(?:(?!-->).)*?) ?-->", re.DOTALL)
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
_QUIET = re.compile(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)|<!--.*?-->|95 % (?:confidence )?intervals?", re.DOTALL)
_UNIT = re.compile(r"\s(?:%|dB|points?|nats?|bits?|m?s|seconds?|minutes?|hours?|CPU|[KkMGT]B)(?!\w)|\s?%")
_JOINT = re.compile(r"(?:\s±\s|,\s|\s/\s|\s(?:and|or|to|against)\s|,\sand\s)$")
_NAMED = re.compile(r"(?:[Ss]ections?|[Vv]ersion|Python|MATLAB|jaxlib|JAX)\s$")
_COMMAND = re.compile(
    r"python -m (?:pytest )?((?:experiments|benchmarks|tests)[\w./]*)(?: --config=(configs/\w+\.py)(?::(\w+))?)?.*"
)
_ENDS = r"[+−-]?(\d*\.?\d+) to [+−-]?(\d*\.?\d+)"
_INTERVAL = re.compile(rf"\((?:[^()]*?(\d*\.\d+)[^()\d]*, )?{_ENDS}")  # (2.9 points, 0.1 to 5.7)
_AFTER = re.compile(rf"(\d*\.\d+)[^()\d.;]{{0,60}}\({_ENDS}")  # 4.9 points against the source (4.1 to 5.8)
_BRACKETS = re.compile(r"(\d*\.?\d+) \[[−-]?(\d*\.?\d+), [−-]?(\d*\.?\d+)\]")  # 5.4 [3.4, 8.4]
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


Sources = tuple[tuple[str, str], ...]  # name, words in brackets


class Block(NamedTuple):
    """A paragraph, an item of a list, or a row of a table."""

    line: int
    text: str
    marker: str | None
    head: tuple[str, ...] = ()  # of a table: the names of its columns


class Marker(NamedTuple):
    """What a marker says."""

    sources: Sources
    given: frozenset[str] = frozenset()
    follow: tuple[tuple[str, str], ...] = ()  # number, expression


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page, without code and formulae, each with the marker that holds for it."""
    text = _FENCE.sub(lambda match: "\n" * match.group().count("\n"), page)
    marker: str | None = None
    for start, group in _groups(text):
        if (only := _MARKER.fullmatch(group.strip())) is not None:
            marker = only.group(1)
            continue
        if (first := _MARKER.match(group)) is not None:
            marker, group = first.group(1), group[first.end() :].lstrip("\n")
            start += first.group().count("\n") + 1
        split = _rows if group.lstrip().startswith("|") else _items
        yield from split(start, group, marker)
        marker = None


def _groups(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of what stands between blank lines."""
    for match in re.finditer(r"(?:^.*\S.*$\n?)+", text, re.MULTILINE):
        yield text.count("\n", 0, match.start()) + 1, match.group()


def _rows(line: int, table: str, marker: str | None) -> Iterator[Block]:
    head, _, *rows = table.strip().split("\n")
    names = tuple(name.strip() for name in head.strip("| ").split("|"))
    for number, row in enumerate(rows, start=line + 2):
        if marker == "from column study":  # what the paper says has another source than what the runs say
            cells = row.strip().strip("|").split("|")
            printed = [cell for name, cell in zip(names, cells, strict=True) if name.startswith("paper")]
            yield from (Block(number, cell, "from paper") for cell in printed)
            row = "|" + "|".join("" if cell in printed else cell for cell in cells) + "|"
        yield Block(number, row, marker, names)


def _items(line: int, text: str, marker: str | None) -> Iterator[Block]:
    """A list in its items, each with its own marker or that of the list; a paragraph as it is."""
    parts: list[list[str]] = [[]]
    for row in text.split("\n"):
        if _ITEM.match(row) and parts[-1]:
            parts.append([])
        parts[-1].append(row)
    for part in parts:
        own = _MARKER.search("\n".join(part))
        yield Block(line, "\n".join(part), own.group(1) if own else marker)
        line += len(part)


def measured(block: Block) -> list[Number]:
    """The numbers of a block that a measurement may have given."""
    if not block.head:
        return list(_in_text(block.text))
    cells = [cell.strip() for cell in block.text.strip().strip("|").split("|")]
    found: list[Number] = []
    columns = list(zip(block.head, cells, strict=False))
    for name, cell in columns if NUMBER.fullmatch(cells[0]) and "." in cells[0] else columns[1:]:
        found += _in_text(cell, is_unit_known=re.search(r"%|dB|nats|points|seconds", name) is not None)
    return found


def _in_text(text: str, *, is_unit_known: bool = False) -> Iterator[Number]:
    text = _QUIET.sub(lambda match: "#" * len(match.group()), text)
    matches = list(NUMBER.finditer(text))
    end, has_unit = len(text), False
    kept = []
    for match in reversed(matches):
        joined = _JOINT.match(text[match.end() : end]) if end > match.end() else None
        has_unit = _UNIT.match(text, match.end()) is not None or (has_unit and joined is not None)
        is_named = _NAMED.search(text[: match.start()]) is not None
        if not is_named and ("." in match.group() or match.group(2) or has_unit or is_unit_known):
            kept.append(number_of(match.group()))
        end = match.start()
    return reversed(kept)


def parsed(marker: str) -> Marker:
    """The parts of a `from` marker."""
    head, *rest = (part.strip() for part in " ".join(marker.split()).split(";"))
    names = re.findall(r"([^\s,(]+)(?: \(([^)]*)\))?", head.removeprefix("from "))
    given = frozenset(word for part in rest if part.startswith("given ") for word in part.split()[1:])
    follow = tuple(tuple(map(str.strip, part.split("=", 1))) for part in rest if "=" in part)
    return Marker(tuple(names), given, follow)


def _result(node: ast.expr) -> float:
    if isinstance(node, ast.Constant):
        return float(node.value)
    if isinstance(node, ast.BinOp):
        return float(_OPERATORS[type(node.op)](_result(node.left), _result(node.right)))
    raise ValueError(f"only numbers and + - * / are possible, not {ast.unparse(node)}")


def _runs_of_row(block: Block) -> list[str]:
    """`a:b`, then `:c` for `a:c`, in the column `study`."""
    cells = dict(zip(block.head, block.text.strip().strip("|").split("|"), strict=False))
    names = re.findall(r"`(.+?)`", cells["study"])
    return [names[0].partition(":")[0] + name if name.startswith(":") else name for name in names]


def sources_of(block: Block) -> tuple[Sources, Marker]:
    """The sources of a block with a `from` marker, and the marker."""
    marker = parsed(str(block.marker))
    if str(block.marker).startswith("from column study"):
        return tuple((name, "") for name in _runs_of_row(block)), marker
    return marker.sources, marker


def wrong(block: Block, held: Known) -> list[str]:
    """What is wrong with the numbers of a block, in words."""
    numbers = measured(block)
    if block.marker is None:
        return [f"no source of {', '.join(number.text for number in numbers)}"] if numbers else []
    if block.marker == "settings":
        return []
    if block.marker.startswith("measured:"):
        return _wrong_command(" ".join(block.marker.removeprefix("measured:").split()))
    try:
        named, marker = sources_of(block)
        sides = held.of(named)
        return [] if sides is None else list(_disagreeing(block, numbers, marker, sides))
    except (ValueError, KeyError, SyntaxError) as error:
        return [f"marker {block.marker!r}: {error}"]


def stated(pages: Sequence[pathlib.Path]) -> Known:
    """The numbers that pages state of every run, as sources of a page that sums up."""
    found: dict[str, list[Entry]] = collections.defaultdict(list)
    for page in pages:
        for block in blocks(page.read_text()):
            if (block.marker or "").startswith("from ") and "study" not in block.head:
                marker = parsed(str(block.marker))
                entries = [Entry(page.name, number.value, frozenset(), page.name) for number in measured(block)]
                for name, _ in marker.sources:
                    found[name] += [entry for entry in entries if entry.value]
    return Known({name: tuple(entries) for name, entries in found.items()}, (), {})


def not_repeated(block: Block, on_pages: Known) -> list[str]:
    """What a row of a table that sums up has and no page has of the runs of the row."""
    if "study" not in block.head or not block.marker:
        return []
    sides = on_pages.of([(name, "") for name in _runs_of_row(block)])
    missing = [number.text for number in measured(block) if number.value and not _held(number, sides or [])]
    return [f"{', '.join(missing)}: on no page of these runs"] if missing else []


def is_compared(block: Block, held: Known) -> bool:
    """Whether the numbers of a block have sources that are there."""
    return (block.marker or "").startswith("from ") and held.of(sources_of(block)[0]) is not None


def _disagreeing(block: Block, numbers: list[Number], marker: Marker, sides: list[Source]) -> Iterator[str]:
    """What the sources of a block do not have, in words."""
    followed = set()
    for text, expression in marker.follow:
        for term in re.findall(r"[\d.]+", expression):
            if "." in term and term not in marker.given and not _held(number_of(term), sides):
                yield f"{term} of {text} = {expression} is not in the source"
        number, result = number_of(text), _result(ast.parse(expression, mode="eval").body)
        if abs(abs(result) - number.value) > 1.01 * number.unit:
            yield f"{text} is not {expression}"
        followed.add(text)
    left = [number for number in numbers if number.text not in marker.given | followed]
    if missing := [number.text for number in left if not _held(number, sides)]:
        yield f"{', '.join(missing)} not in the source"
        return
    if block.head and "study" not in block.head and not _from_one_place(left, sides):
        yield f"{', '.join(number.text for number in left)} in the source, but not together"
    shown = {number.text for number in left}
    patterns = (_INTERVAL, _BRACKETS) if block.head else (_INTERVAL, _BRACKETS, _AFTER)
    for value, low, high in (match for pattern in patterns for match in pattern.findall(block.text)):
        estimate = number_of(value) if value in shown else None
        ends = number_of(low), number_of(high)
        if {low, high} <= shown and not any(side.has_interval(estimate, *ends) for side in sides):
            yield f"no estimate {value} has the interval ({low} to {high})".replace("  ", " ")


def _held(number: Number, sides: list[Source]) -> bool:
    return any(side.find(number) for side in sides)


def _from_one_place(numbers: list[Number], sides: list[Source]) -> bool:
    """Whether one group of each source covers the numbers together."""
    reached = {frozenset[int]()}
    for side in sides:
        covers: dict[str, set[int]] = collections.defaultdict(set)
        for k, number in enumerate(numbers):
            for entry in side.find(number):
                for group in entry.groups:
                    covers[group].add(k)
        reached |= {one | frozenset(other) for one in reached for other in covers.values()}
    return any(len(cover) == len(numbers) for cover in reached)


@functools.cache
def _wrong_command(text: str) -> list[str]:
    command, _, date = text.rpartition(", ")
    match = _COMMAND.fullmatch(command)
    if match is None or not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        return [f"a measurement is COMMAND, DATE; got {text!r}"]
    module, config, variant = match.groups()
    path = ROOT / (module if "/" in module else module.replace(".", "/"))
    wrongs = [] if path.exists() or path.with_suffix(".py").exists() else [f"there is no {module}"]
    if config and not (ROOT / config).exists():
        wrongs.append(f"there is no {config}")
    elif config and variant and f'"{variant}"' not in (ROOT / config).read_text():
        wrongs.append(f"{config} has no variant {variant}")
    return wrongs


def pages() -> list[pathlib.Path]:
    """README and the pages of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def main() -> None:
    """Prints what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="every block with measured numbers")
    given = parser.parse_args()
    held, on_pages, count = known(), stated(pages()[1:]), 0
    for page in pages():
        for block in blocks(page.read_text()):
            if given.list and (numbers := measured(block)):
                print(f"{page.name}:{block.line} [{block.marker}] {' '.join(number.text for number in numbers)}")
            for message in [*wrong(block, held), *not_repeated(block, on_pages)]:
                count += 1
                print(f"{page.relative_to(ROOT)}:{block.line}: {message}")
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
