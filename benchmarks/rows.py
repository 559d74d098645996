"""What a row is: one piece of work, done by us and by the peer a user would pick, and the target to reach."""

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, NamedTuple


class Kind(enum.StrEnum):
    """How the two times become the figure of a row."""

    SPEEDUP = "speedup"  # peer / ours, at least the target
    COST = "cost"  # ours / peer, at most the target: the peer is a yardstick such as a GEMM
    SECONDS = "seconds"  # ours alone, at most the target
    FLOOR = "floor"  # ours / the floor, at most the target; the peer is there for comparison


class Target(NamedTuple):
    """The figure to reach; None reports the figure without a verdict."""

    kind: Kind
    value: float | None


class Timed(NamedTuple):
    """What a side returns when it takes its own time, as a side that starts a process does."""

    result: Any
    seconds: float


class Quantity(NamedTuple):
    """Something beside time that has a limit, such as the peak memory."""

    what: str
    unit: str
    measure: Callable[[Any], float]  # of the row's data
    at_most: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table. `ours` and `theirs` take what `data` made; only they are timed.

    `agree(data, ours, theirs)` raises AssertionError when the results differ and says in a few words what was compared.
    The clock waits for JAX results. `x64` is the precision in force while the row runs. `floor` does the products and
    factorisations that no algorithm for the same result avoids, and nothing else; it is timed beside both sides.
    """

    name: str
    work: str
    peer: str
    dtype: str
    data: Callable[[], Any]
    ours: Callable[[Any], Any]
    theirs: Callable[[Any], Any]
    agree: Callable[[Any, Any, Any], str]
    target: Target
    quantities: tuple[Quantity, ...] = ()
    packages: tuple[str, ...] = ()  # distributions of the peer, whose versions are recorded
    x64: bool = False
    floor: Callable[[Any], Any] | None = None
    floor_work: str = ""  # what the floor does
    reason: str = ""  # where the rest goes, when the row is far above its floor
    is_weighed: bool = True  # whether the memory of both sides is measured; not of sides that start processes


def speedup(at_least: float | None = None) -> Target:
    """The peer takes at least that many times as long as we do."""
    return Target(Kind.SPEEDUP, at_least)


def cost(at_most: float | None = None) -> Target:
    """We take at most that many times as long as the yardstick."""
    return Target(Kind.COST, at_most)


def seconds(at_most: float | None = None) -> Target:
    """We take at most that long; the peer is there for comparison."""
    return Target(Kind.SECONDS, at_most)


def at_floor(at_most: float | None = None) -> Target:
    """We take at most that many times as long as the indispensable work."""
    return Target(Kind.FLOOR, at_most)


def selected(rows: tuple[Row, ...], names: str) -> list[Row]:
    """The rows of a comma-separated list such as "F1,F4"; a name also takes the rows below it, F1.core with F1."""
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if not any(_belongs(row.name, name) for row in rows):
            raise ValueError(f"--rows: no row {name!r}; the rows are {', '.join(row.name for row in rows)}.")
    return [row for row in rows if any(_belongs(row.name, name) for name in wanted)]


def _belongs(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")
