"""Faults of numbers: every public function on inputs that are not as they should be."""

import hashlib
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.faults import oracles, substitutes
from tests.faults.calls import Args, Change, Leaf, Result, call, leaves, narrowed, replaced, tried
from tests.faults.cases import TELLS_APART, Door, doors
from tests.faults.verdict import expect

ONE_UNIT = ("cluster.kmeans", "ensembles.posteriors")  # data and parameters have one unit, and meet in differences
SPREADS = (
    "sparse.kernel_ksvd.init",
    "ensembles.committee",
    "features.dekernelize",
    "cluster.kmeans.init",
)  # one row spoils all
NO_UNIT = (
    "ensembles.fusion",
    "ensembles.committee",
    "features.dekernelize",
    "sparse.kernel",
    "hallucination.kernel",
    "faces.tps.warp",
)  # logarithms, sines
COLOURS = ("faces.color_hist",)  # in [0, 1], or in the units of a file
SEEDS = 3  # example arguments; every shape is drawn, and compiled, for each of them alike


def draw(rng: np.random.Generator, names: list[str] | None = None) -> tuple[str, Callable[[pathlib.Path], str], str]:
    """A fault, what it is, and the door it comes through."""
    table = doors()
    word = rng.bytes(8)
    # The largest of hashes: a new row in a table changes the faults of that row only.
    door = table[max(table if names is None else names, key=lambda name: hashlib.sha256(word + name.encode()).digest())]
    args, change = oracles.rounded(door.args(int(rng.integers(SEEDS)))), None
    for _ in range(1000):  # not every door has ids, or weights
        kind = list(KINDS)[rng.choice(len(KINDS), p=WEIGHTS)]
        if not door.is_step or kind in OF_VALUES:
            jit = kind in ("NaN", "scale") and door.is_traceable and bool(rng.integers(4) == 0)
            change = KINDS[kind](door, args, rng, jit)
        if change is not None:
            what, act = change
            break
    else:
        raise ValueError(f"{door.name} has nothing that could be wrong: leave it out of the table.")
    return f"{door.name}{' under jit' if jit else ''}: {what}", lambda folder: act(), door.name


def _not_a_number(door: Door, args: Args, rng: np.random.Generator, jit: bool) -> Change:
    places = leaves(args, "f")
    arguments = [leaf for leaf in places if leaf.is_top]
    places = arguments if arguments and rng.random() < 0.75 else places
    if not places:
        return None
    leaf = places[rng.integers(len(places))]
    at = np.unravel_index(int(rng.integers(leaf.array.size)), leaf.array.shape)
    bad = (np.nan, np.nan, np.nan, np.inf, -np.inf)[rng.integers(5)]
    what = f"{bad} in {door.parameter(leaf.position)}{list(map(int, at))}"
    noise = rng.standard_normal(leaf.array.shape)
    return what, lambda: _with_nan(door, args, leaf, at, bad, noise, jit, what)


def _with_nan(
    door: Door, args: Args, leaf: Leaf, at: tuple[Any, ...], bad: float, noise: np.ndarray, jit: bool, what: str
) -> str:
    def put(value: Any, where: Any = at) -> Args:
        array = leaf.array.copy()
        array[where] = value
        return narrowed(replaced(args, leaf, array))

    found = tried(door, leaf.position, put(bad), jit=jit)
    if isinstance(found, str):
        return found
    if door.name in TELLS_APART and any(np.isnan(leaf).any() for leaf in found.floats()):
        return "nan"
    if np.isinf(bad):
        return "status" if found.has_failed else _infinite(found, what)
    clean = call(door, narrowed(args), jit=jit)
    unit = float(np.abs(leaf.array).mean()) or 1.0
    whole = not leaf.is_top or leaf.array.ndim < 2 or door.name.startswith("faces") or door.name.startswith(SPREADS)
    row = (slice(None),) * leaf.array.ndim if whole else at[:1]
    moved = _defined(door, [put(leaf.array[at] + step * unit) for step in (0.5, -0.7, 3.0)], jit)
    rows = _defined(door, [put(leaf.array[row] + step * unit * noise[row], row) for step in (1.0, 5.0)], jit)
    return oracles.check_nan(
        clean, found, moved, rows, what, spreads=whole, rows_of=len(leaf.array) if leaf.array.ndim else -1
    )


def _infinite(found: Result, what: str) -> str:
    """Infinity may be an answer, or lead to one; beside NaN a fit is not OK."""
    expect(not found.silent_nan(), "silent NaN", f"{what}: a fit says OK")
    return "right"


def _defined(door: Door, many: list[Args], jit: bool) -> list[Result]:
    """Results of the inputs that a door takes: not every number is a count, or a weight."""
    found = []
    for args in many:
        try:
            found.append(call(door, args, jit=jit))
        except ValueError:
            continue
    return found


def _scale(door: Door, args: Args, rng: np.random.Generator, jit: bool) -> Change:
    """Of all data or of one argument; parameters and counts stay."""
    places = [leaf for leaf in leaves(args, "f") if leaf.is_top and not (leaf.array == np.round(leaf.array)).all()]
    if not places or door.name.startswith(NO_UNIT):
        return None
    chosen = places if rng.random() < 0.5 else [places[rng.integers(len(places))]]
    if door.name.startswith(ONE_UNIT):
        chosen = leaves(args, "f")
    most = 8 if door.name.startswith(COLOURS) else 30
    power = int(rng.integers(-most, most + 1))
    which = ", ".join(door.parameter(leaf.position) for leaf in chosen)
    what = f"{which} times 1e{power}"

    def scale(args: Args, factor: float) -> Args:
        for leaf in chosen:
            args = replaced(args, leaf, leaf.array * factor)
        return args

    return what, lambda: _scaled(door, args, scale, 10.0**power, jit, what)


def _scaled(door: Door, args: Args, scale: Any, factor: float, jit: bool, what: str) -> str:
    scaled = oracles.rounded(scale(args, factor))
    found = tried(door, 0, narrowed(scaled), jit=jit)
    if isinstance(found, str):
        return found
    word = oracles.check_against_wide(door, scaled, found, what)
    oracles.check_law(door, args, factor, scale, what)
    return word


def _degenerate(door: Door, args: Args, rng: np.random.Generator, jit: bool) -> Change:
    places = [leaf for leaf in leaves(args, "f") if leaf.is_top and leaf.array.ndim]
    if not places:
        return None
    leaf = places[rng.integers(len(places))]
    name = list(DEGENERATE)[rng.integers(len(DEGENERATE))]
    other = oracles.rounded(replaced(args, leaf, DEGENERATE[name](leaf.array, rng)))
    what = f"{name} in {door.parameter(leaf.position)}"

    def act() -> str:
        found = tried(door, leaf.position, narrowed(other))
        return found if isinstance(found, str) else oracles.check_against_wide(door, other, found, what)

    return what, act


def _constant_column(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    x = x.copy()
    x[..., rng.integers(x.shape[-1])] = 2.5
    return x


def _same_rows(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    x = x.copy()
    x[rng.integers(len(x))] = x[rng.integers(len(x))]
    return x


def _one_far(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    x = x.copy()
    x[np.unravel_index(int(rng.integers(x.size)), x.shape)] *= 100
    return x


DEGENERATE: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "a constant column": _constant_column,
    "a column of zeros": lambda x, rng: np.where(np.arange(x.shape[-1]) == rng.integers(x.shape[-1]), 0.0, x),
    "two equal rows": _same_rows,
    "all rows equal": lambda x, rng: np.broadcast_to(x[:1], x.shape).copy(),
    "all ones": lambda x, rng: np.ones_like(x),
    "all zeros": lambda x, rng: np.zeros_like(x),
    "one number far off": _one_far,
    "all far from the origin": lambda x, rng: x + 300.0,
    "signs turned": lambda x, rng: -x,
}


KINDS: dict[str, Callable[[Door, Args, np.random.Generator, bool], Change]] = {
    "NaN": _not_a_number,
    "scale": _scale,
    "degenerate": _degenerate,
    "type": substitutes.types,
    "ids": substitutes.ids,
    "shape": substitutes.shapes,
    "few": substitutes.few,
    "setting": substitutes.settings,
    "weights": substitutes.weights,
}
OF_VALUES = ("NaN", "scale", "degenerate")
WEIGHTS = np.array([20, 22, 14, 14, 6, 9, 5, 7, 3]) / 100
