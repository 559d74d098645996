"""Results as a file that machines read, and the table and the figure that people read, made from it."""

import dataclasses
import json
import math
import pathlib
import statistics
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.measure import Measured, Result, Setting
from benchmarks.rows import Kind
from jaxface.reports import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEAD = """\
# Benchmarks

Written by `make bench`; every number comes from `results.json`. A time says little by itself: both sides ran on the
same machine at the same time, so the column to read is the ratio.

- Both sides take turns, {repeats} times or more, after a first call that warms them; which goes first alternates. Times
  are medians. The ratio is the median of the ratios within a repeat, with its quartiles in brackets.
- Before anything is timed both results are compared; the section "Agreement" says what was found.
- "CPU" is the same ratio of the time of all threads together: what the work costs, whatever else the machine does.
- "compile" is what our first call took beyond a warm one; it is not part of the times.
- Our side runs with one BLAS thread (XLA has threads of its own, one a core), the peer with BLAS on every core.
- "floor" is the time of the products, factorisations and passes over memory that no algorithm for the same result
  avoids, taken in turn with both sides; "× floor" is what we take in units of it, by the clock and by CPU time. The
  section "Floors" says what the floor of each row does and where the rest goes.
- "memory" is what a warm call of ours and of the peer needs beside its data and programs, each in a process of its own.
- "load" is the number of runnable processes before the row: on a machine busier than its cores only "CPU" counts.
- A target "≥ 20x" means that the peer takes at least 20 times as long as we do, "≤ 1.5x" that we take at most 1.5 times
  as long as a yardstick, and a time that we take at most that long.
"""


_FAR = 1.5  # times the floor: from here on a row says where the rest goes


_UNTIMED = """\
## Held by tests

- S2, a study on two processes against itself on one, every kill resumed, every fault a named error: nothing to time.
  `make test ARGS=tests/runtime/test_distributed.py` compares the results, `python -m tests.runtime.kills --count=20`
  kills one of two processes at random moments, and `make faults` damages files and kills processes.
- The operations and bytes of the blocks of eleven rows, without what is done for a CPU alone: `make costs` fails where
  XLA counts more than 1.5 times what is needed on paper.
"""


class Spread(NamedTuple):
    """Median and quartiles over the repeats."""

    low: float
    median: float
    high: float


def load(path: pathlib.Path) -> dict[str, Result]:
    """Results by the name of their row; none when the file is not there."""
    if not path.exists():
        return {}
    return {entry["name"]: _result(entry) for entry in json.loads(path.read_text())}


def _result(entry: dict[str, Any]) -> Result:
    quantities = [Measured(**quantity) for quantity in entry["quantities"]]
    return Result(**entry | {"setting": Setting(**entry["setting"]), "quantities": quantities})


def save(results: list[Result], folder: pathlib.Path) -> None:
    """Writes results.json, RESULTS.md and results.svg."""
    entries = [
        dataclasses.asdict(result) | {"quantities": [quantity._asdict() for quantity in result.quantities]}
        for result in results
    ]
    _replace(folder / "results.json", (json.dumps(entries, indent=1, ensure_ascii=False) + "\n").encode())
    _replace(folder / "RESULTS.md", markdown(results).encode())
    _replace(folder / "results.svg", figures.to_svg(figure(results)))


def _replace(path: pathlib.Path, content: bytes) -> None:
    """Writes beside the file first, so that an interrupted run leaves the old one."""
    temporary = path.with_suffix(path.suffix + ".tmp")
    temporary.write_bytes(content)
    temporary.replace(path)


def ratio(result: Result) -> Spread | None:
    """The figure of a row over its repeats; None when a side it needs did not run."""
    return _spread(result.kind, result.ours, result.floor if result.kind == Kind.FLOOR else result.theirs)


def cpu_ratio(result: Result) -> Spread | None:
    """The same of the time of all threads together, which a busy machine disturbs less."""
    if result.kind == Kind.SECONDS:
        return None
    return _spread(result.kind, result.our_cpu, result.floor_cpu if result.kind == Kind.FLOOR else result.their_cpu)


def above_floor(result: Result) -> tuple[Spread | None, Spread | None]:
    """Our time in units of the floor: by the clock and by CPU time."""
    return _spread(Kind.FLOOR, result.ours, result.floor), _spread(Kind.FLOOR, result.our_cpu, result.floor_cpu)


def _spread(kind: str, ours: list[float], theirs: list[float]) -> Spread | None:
    if not ours or (kind != Kind.SECONDS and not theirs):
        return None
    a, b = np.asarray(ours), np.asarray(theirs)
    values = a if kind == Kind.SECONDS else b / a if kind == Kind.SPEEDUP else a / b
    return Spread(*(float(q) for q in np.quantile(values, [0.25, 0.5, 0.75])))


def reached(result: Result) -> bool | None:
    """Whether the target and all limits are met; None when there is no target or no figure."""
    spread = ratio(result)
    if spread is None or result.target is None:
        return None
    if any(not quantity.value <= quantity.at_most for quantity in result.quantities):
        return False
    return spread.median >= result.target if result.kind == Kind.SPEEDUP else spread.median <= result.target


def markdown(results: list[Result]) -> str:
    """The whole of RESULTS.md."""
    repeats = min((len(result.ours) for result in results if result.ours), default=0)
    parts = [_HEAD.format(repeats=repeats), _times(results)]
    parts += [_listed("Limits beside time", [line for result in results for line in _limits(result)])]
    parts += [_listed("Floors", [line for result in results for line in _floors(result)])]
    parts += [_UNTIMED]
    parts += [_listed("Agreement", [f"{r.name}: {r.agreement}" for r in results if r.agreement])]
    parts += [
        _listed("Peers that did not run", [f"{r.name}, {r.peer}: {r.peer_error}" for r in results if r.peer_error])
    ]
    parts += [_listed("Rows without a figure", [f"{r.name}: {r.error}" for r in results if r.error])]
    parts += [_listed("Machines and versions", _settings(results))]
    return "\n".join(part for part in parts if part)


def _times(results: list[Result]) -> str:
    header = ["row", "work", "peer", "dtype", "ours", "peer's", "ratio", "CPU", "target", "reached"]
    header += ["floor", "× floor", "memory", "compile", "load"]
    lines = [header, ["---"] * 4 + ["---:"] * 5 + ["---"] + ["---:"] * 5]
    for result in results:
        medians = [duration(statistics.median(side)) if side else "–" for side in (result.ours, result.theirs)]
        compiled = "–" if result.compile is None else duration(result.compile)
        verdict = {None: "–", True: "yes", False: "**no**"}[reached(result)]
        row = [result.name, result.work, result.peer, result.dtype, *medians]
        cpu = cpu_ratio(result)
        whole = "–" if cpu is None else _times_sign(cpu.median)
        row += [_ratio_in_words(result), whole, target_in_words(result), verdict, *_floor_in_words(result)]
        lines.append([*row, _memory_in_words(result), compiled, f"{result.setting.load:g}"])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n![ratios against targets](results.svg)\n"


def _ratio_in_words(result: Result) -> str:
    spread = ratio(result)
    if spread is None:
        return "–"
    if result.kind == Kind.SECONDS:
        return f"{duration(spread.median)} [{duration(spread.low)}, {duration(spread.high)}]"
    return f"{_times_sign(spread.median)} [{_times_sign(spread.low)}, {_times_sign(spread.high)}]"


def _floor_in_words(result: Result) -> tuple[str, str]:
    """Its time, and ours in units of it by the clock (and by CPU time)."""
    if not result.floor:
        return "–", "–"
    wall, cpu = above_floor(result)
    beside = "" if cpu is None else f" ({_times_sign(cpu.median)})"
    return duration(statistics.median(result.floor)), "–" if wall is None else _times_sign(wall.median) + beside


def _memory_in_words(result: Result) -> str:
    sides = (result.our_memory, result.their_memory)
    return "–" if sides == (None, None) else " / ".join("–" if mb is None else f"{mb:.0f} MB" for mb in sides)


def _floors(result: Result) -> list[str]:
    """What the floor does, and why a row is far above it."""
    wall, cpu = above_floor(result)
    if not result.floor_work or wall is None:
        return []
    line = f"{result.name}: {result.floor_work}"
    is_far = min(spread.median for spread in (wall, cpu) if spread is not None) > _FAR
    return [f"{line}. Above {_FAR}x of it: {result.reason or 'not explained yet'}" if is_far else line]


def in_a_line(result: Result) -> str:
    """A result for the terminal."""
    if result.error:
        return f"{result.name}: {result.error}"
    verdict = {None: "", True: ", reached", False: ", not reached"}[reached(result)]
    line = f"{result.name}: {_ratio_in_words(result)}, target {target_in_words(result)}{verdict}"
    line += f"; {_floor_in_words(result)[1]} the floor" if result.floor else ""
    line += f"; memory {_memory_in_words(result)}" if result.our_memory is not None else ""
    return f"{line}; the peer did not run: {result.peer_error}" if result.peer_error else line


def target_in_words(result: Result) -> str:
    """Such as "≥ 20x", "≤ 1.5x" or "≤ 50 ms"."""
    if result.target is None:
        return "–"
    if result.kind == Kind.SECONDS:
        return f"≤ {duration(result.target)}"
    return f"{'≥' if result.kind == Kind.SPEEDUP else '≤'} {result.target:g}x"


def _limits(result: Result) -> list[str]:
    return [
        f"{result.name}: {q.what} {q.value:.4g} {q.unit}, at most {q.at_most:g} {q.unit}"
        f"{'' if q.value <= q.at_most else ' (**not reached**)'}"
        for q in result.quantities
    ]


def _settings(results: list[Result]) -> list[str]:
    """One line for all rows that ran alike."""
    rows: dict[str, list[str]] = {}
    for result in results:
        setting = result.setting
        versions = ", ".join(f"{name} {version}" for name, version in setting.versions.items())
        text = (
            f"{setting.date}, {setting.cpu}, {setting.cores} cores; BLAS threads: ours {setting.our_blas_threads}, "
            f"peer {setting.their_blas_threads}; XLA threads: {setting.cores}; {versions}"
        )
        rows.setdefault(text, []).append(f"{result.name} ({setting.load:g})")
    return [f"{text}. Rows (with the load before each): {', '.join(names)}" for text, names in rows.items()]


def _listed(title: str, lines: list[str]) -> str:
    return f"## {title}\n\n" + "".join(f"- {line}\n" for line in lines) if lines else ""


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size * 0.9995:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds * 1e6)} µs"


def _times_sign(value: float) -> str:
    return f"{_three_digits(value)}x"


def _three_digits(value: float) -> str:
    """12.3 and 1.23, but 1234 whole."""
    rounded = float(f"{value:.3g}")
    digits = 2 - math.floor(math.log10(rounded)) if rounded > 0.0 else 0
    return f"{value:.{max(0, digits)}f}"


def figure(results: list[Result]) -> "Figure":
    """How far the ratios are beyond their targets, with quartiles; 1 is the target, further right is better."""
    labels, points = [], []
    for result in results:
        spread = ratio(result)
        if spread is None or result.target is None or result.kind == Kind.SECONDS:
            continue
        labels.append(f"{result.name}   {_times_sign(spread.median)}  ({target_in_words(result)})")
        points.append(_beyond(Kind(result.kind), result.target, spread))
    low, median, high = np.reshape(points, (-1, 3)).T.tolist()
    drawn = figures.intervals(
        labels, median, low, high, x_label="times the target (right is better)", title="Ratios against their targets"
    )
    axes = drawn.axes[0]
    axes.set_xscale("log", base=2)
    # Powers of two on either side of the target and of every point.
    reach = max(1, math.ceil(max((abs(math.log2(value)) for value in low + high), default=1.0)))
    axes.set_xlim(2.0**-reach, 2.0**reach)
    axes.set_xticks([2.0**power for power in range(-reach, reach + 1)], minor=False)
    axes.xaxis.set_major_formatter("{x:g}x")
    axes.axvline(1.0, color="#D55E00", linewidth=1.2, zorder=0)
    return drawn


def _beyond(kind: Kind, target: float, spread: Spread) -> Spread:
    """The figure relative to the target, above 1 when it is reached whatever the kind."""
    if kind == Kind.SPEEDUP:
        return Spread(*(value / target for value in spread))
    return Spread(*(target / value for value in reversed(spread)))
