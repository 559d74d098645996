"""Measuring one row: agreement first, then both sides in turn, each with its own thread settings.

Our side runs with one BLAS thread, for XLA brings its own threads and OpenBLAS's fight with them; the peer runs with
BLAS on every core. Garbage is collected before each timing, and the clock waits for JAX results.
"""

import dataclasses
import datetime
import gc
import importlib.metadata
import os
import pathlib
import platform
import re
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import threadpoolctl

import jaxface
from benchmarks.rows import Row, Timed

# OpenBLAS threads go on spinning for some milliseconds after their work, which would slow the side that comes next.
_PAUSE = 0.05
_PACKAGES = ("jax", "jaxlib", "numpy")


class Measured(NamedTuple):
    """A quantity beside time, with its limit."""

    what: str
    unit: str
    value: float
    at_most: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """Where and when a row ran."""

    date: str
    cpu: str
    cores: int
    our_blas_threads: int
    their_blas_threads: int
    load: float  # runnable processes on average, in the minute before the row
    versions: dict[str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """All that is known of a row after it ran."""

    name: str
    work: str
    peer: str
    dtype: str
    kind: str
    target: float | None
    setting: Setting
    ours: list[float] = dataclasses.field(default_factory=list)  # seconds of each repeat
    theirs: list[float] = dataclasses.field(default_factory=list)  # of the same repeats; empty without a peer
    our_cpu: list[float] = dataclasses.field(default_factory=list)  # seconds of all threads; empty with an own clock
    their_cpu: list[float] = dataclasses.field(default_factory=list)
    compile: float | None = None  # first call less the median of the warm ones, where there is something to compile
    agreement: str = ""
    quantities: list[Measured] = dataclasses.field(default_factory=list)
    error: str = ""  # why there is no valid figure
    peer_error: str = ""  # why the peer did not run
    floor: list[float] = dataclasses.field(default_factory=list)  # seconds of the indispensable work, same repeats
    floor_cpu: list[float] = dataclasses.field(default_factory=list)
    floor_work: str = ""
    reason: str = ""  # where the rest goes
    our_memory: float | None = None  # MB of a warm call beside its data and programs
    their_memory: float | None = None


class Clocked(NamedTuple):
    """One call of a side."""

    result: Any
    seconds: float
    cpu: float | None  # seconds of all threads together; None for a side that takes its own time


class Times(NamedTuple):
    """Seconds of the repeats of a side."""

    wall: list[float]
    cpu: list[float]


class Started(NamedTuple):
    """A row after the first call of both sides."""

    data: Any
    first_call: float | None  # seconds of our side; None when it takes its own time
    agreement: str
    peer_error: str


def run(row: Row, *, repeats: int) -> Result:
    """Measures a row; an exception of either side is kept in the result."""
    result = Result(
        name=row.name,
        work=row.work,
        peer=row.peer,
        dtype=row.dtype,
        kind=row.target.kind.value,
        target=row.target.value,
        setting=current_setting(row),
        floor_work=row.floor_work,
        reason=row.reason,
    )
    try:
        with jax.enable_x64(row.x64):
            started = start(row)
            ours, theirs, floor = interleaved(row, started, repeats)
            quantities = [Measured(q.what, q.unit, q.measure(started.data), q.at_most) for q in row.quantities]
    except Exception as error:
        return dataclasses.replace(result, error=in_words(error))
    return dataclasses.replace(
        result,
        ours=ours.wall,
        theirs=theirs.wall,
        our_cpu=ours.cpu,
        their_cpu=theirs.cpu,
        floor=floor.wall,
        floor_cpu=floor.cpu,
        compile=None if started.first_call is None else max(0.0, started.first_call - statistics.median(ours.wall)),
        agreement=started.agreement,
        quantities=quantities,
        peer_error=started.peer_error,
    )


def check(row: Row) -> str:
    """Calls each side once and says what agrees; raises when they disagree or our side fails."""
    with jax.enable_x64(row.x64):
        started = start(row)
    return started.agreement or f"the peer did not run: {started.peer_error}"


def start(row: Row) -> Started:
    """Makes the data and calls each side once, from an empty compilation cache; raises when they disagree."""
    data = row.data()
    jax.clear_caches()
    ours = _clocked(row.ours, data, blas_threads=1)
    first_call = None if ours.cpu is None else ours.seconds
    try:
        theirs = _clocked(row.theirs, data, blas_threads=num_cores())
    except Exception as error:
        return Started(data, first_call, "", in_words(error))
    return Started(data, first_call, row.agree(data, ours.result, theirs.result), "")


def interleaved(row: Row, started: Started, repeats: int) -> tuple[Times, Times, Times]:
    """Times of both sides and of the floor, measured in turn; the side that goes first changes with every repeat."""
    ours, theirs, floor = Times([], []), Times([], []), Times([], [])
    sides: list[tuple[Callable[[Any], Any], int, Times]] = [(row.ours, 1, ours)]
    if not started.peer_error:
        sides.append((row.theirs, num_cores(), theirs))
    if row.floor is row.theirs:
        floor = theirs
    elif row.floor is not None:
        sides.append((row.floor, 1, floor))
        _clocked(row.floor, started.data, blas_threads=1)
    for repeat in range(repeats):
        for side, threads, times in sides if repeat % 2 == 0 else reversed(sides):
            call = _clocked(side, started.data, blas_threads=threads)
            times.wall.append(call.seconds)
            if call.cpu is not None:
                times.cpu.append(call.cpu)
    return ours, theirs, floor


def _clocked(side: Callable[[Any], Any], data: Any, *, blas_threads: int) -> Clocked:
    """One call, timed here unless the side takes its own time."""
    gc.collect()
    time.sleep(_PAUSE)
    with threadpoolctl.threadpool_limits(blas_threads, user_api="blas"):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        result = jax.block_until_ready(side(data))
        seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
    if isinstance(result, Timed):
        return Clocked(result.result, result.seconds, None)
    return Clocked(result, seconds, cpu)


def current_setting(row: Row) -> Setting:
    """The machine and the versions, without anything that tells whose machine it is."""
    versions = {"python": platform.python_version(), "jaxface": jaxface.__version__}
    for package in (*_PACKAGES, *row.packages):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return Setting(
        date=datetime.date.today().isoformat(),
        cpu=cpu_model(),
        cores=num_cores(),
        our_blas_threads=_blas_threads(1),
        their_blas_threads=_blas_threads(num_cores()),
        load=round(os.getloadavg()[0], 1),
        versions=versions,
    )


def num_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_model() -> str:
    """The processor's own name."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _blas_threads(limit: int) -> int:
    """Threads BLAS really uses under a limit."""
    with threadpoolctl.threadpool_limits(limit, user_api="blas"):
        pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    return max((pool["num_threads"] for pool in pools), default=limit)


def in_words(error: Exception) -> str:
    """Kind and first line of an error, with the folders of paths left out."""
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {re.sub(r'(?:/[^/ ]+)+/', '.../', text)}"
