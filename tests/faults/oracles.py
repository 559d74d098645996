"""What a mutated input should give: the rule of NaN, the same program in float64, and results that must not change."""

from collections.abc import Callable

import jax
import numpy as np

from jaxface.core.fitinfo import Status
from tests.faults.calls import Args, Result, call, narrowed, widened
from tests.faults.cases import FREE_BASIS, TELLS_APART, Door
from tests.faults.verdict import Wrong, expect

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = 1e-36  # below it float32 loses bits, and XLA flushes to zero
PERTURBATION = 1e-6  # some sixteen roundings of float32
TIMES = 30.0  # that a float32 result may be farther off than one of its perturbed inputs
FLOOR, ILL = 1e-3, 5e-2  # of the largest number: for most doors, and for those whose table allows much


def equal(found: Result, expected: Result, *, rtol: float = 1e-6) -> bool:
    """Whether two results agree leaf by leaf, NaN where NaN is."""
    if len(found.leaves) != len(expected.leaves):
        return False
    return all(
        left.shape == right.shape and np.allclose(left, right, rtol=rtol, atol=rtol * _size(right), equal_nan=True)
        for left, right in zip(found.leaves, expected.leaves, strict=True)
    )


def check_finite(door: Door, found: Result, what: str) -> str:
    """Finite input gives finite results, or a fit that says why not."""
    if found.has_failed:
        return "status"
    if door.may_be_nan:
        return "right"
    expect(not any(np.isnan(leaf).any() for leaf in found.floats()), "silent NaN", what)
    expect(not found.silent_nan(), "silent NaN", f"{what}: in the report")
    return "right"


def check_against_wide(door: Door, args: Args, found: Result, what: str) -> str:
    """Compares a float32 result with that of the same numbers in float64.

    A result may be as far off as those of inputs with a few roundings; what float32 cannot hold is infinite or zero.
    """
    if found.has_failed:
        return "status"
    expect(not found.silent_nan(), "silent NaN", what)
    if door.name in TELLS_APART and any(np.isnan(leaf).any() for leaf in found.floats()):
        return "status"
    if door.is_random or door.name.startswith(FREE_BASIS):
        return check_finite(door, found, what)
    try:
        exact = call(door, args, wide=True)
    except ValueError:
        return check_finite(door, found, what)
    if exact.has_failed:
        return "right" if found.infos else check_finite(door, found, what)
    others = [_perturbed(door, args, seed) for seed in range(3)]
    for position, (left, right) in enumerate(zip(found.leaves, exact.leaves, strict=True)):
        if left.dtype.kind != "f":
            continue
        near = [other.leaves[position] for other in others if other is not None]
        whole = f"{what}: leaf {position}"
        _compare(left.astype(np.float64), right.astype(np.float64), near, door, whole, found, _largest(args))
    return "right"


def _largest(args: Args) -> float:
    sizes = [_size(leaf) for leaf in jax.tree.leaves(args) if getattr(leaf, "dtype", None) == np.float64 and leaf.size]
    return max(sizes, default=0.0)


def _perturbed(door: Door, args: Args, seed: int) -> Result | None:
    rng = np.random.default_rng(seed)

    def move(leaf):
        moves = getattr(leaf, "dtype", None) == np.float64
        return leaf * (1 + PERTURBATION * rng.standard_normal(np.shape(leaf))) if moves else leaf

    try:
        return call(door, jax.tree.map(move, args), wide=True)
    except ValueError:
        return None


def _compare(
    left: np.ndarray, right: np.ndarray, near: list[np.ndarray], door: Door, what: str, found: Result, sizes: float
) -> None:
    expect(left.shape == right.shape, "wrong result", f"{what}: shape {left.shape} for {right.shape}")
    held = np.abs(right) < LARGEST / 100
    spread = np.max([np.abs(other - right) for other in near if other.shape == right.shape], axis=0, initial=0.0)
    spread = np.maximum(spread, 0.1 * _size(spread))  # three draws may miss what an entry depends on
    spread = np.where(np.isfinite(spread), spread, np.inf)
    undefined = np.isnan(right) & held
    expect(not np.isnan(right).any() or not found.infos, "silent NaN", f"{what}: also in float64")
    # Where squares leave the range of float32, a score may be NaN; a fit has a status for that.
    is_squarable = bool(found.infos) or sizes < LARGEST**0.5 / 10
    lost = np.isnan(left) & np.isfinite(right) & held & np.isfinite(spread) & is_squarable
    expect(not lost.any(), "silent NaN", f"{what}: NaN for {right[lost][:3]}")
    beyond = np.isinf(left) & np.isfinite(right) & held & np.isfinite(spread)
    expect(not beyond.any(), "wrong result", f"{what}: infinity for {right[beyond][:3]}")
    both = np.isfinite(left) & np.isfinite(right) & held & ~undefined
    size = _size(right[held & np.isfinite(right)])
    allowed = (ILL if door.case.factor >= 100 else FLOOR) * size + TIMES * spread + SMALLEST
    # Where arguments of different scales meet, a difference is as exact as the larger of them.
    allowed = allowed + 1e-5 * min(sizes, 10.0)
    if door.name.startswith("mixtures"):  # data far from a model: densities hang on the last digits of a difference
        return
    off = both & (np.abs(left - right) > allowed)
    if off.any():
        at = np.unravel_index(np.argmax(np.where(off, np.abs(left - right), 0)), left.shape)
        raise Wrong(
            "wrong result", f"{what}: {left[at]:.6g} for {right[at]:.6g} at {tuple(map(int, at))}, size {size:.3g}"
        )


def _size(values: np.ndarray) -> float:
    finite = np.abs(values[np.isfinite(values)]) if values.dtype.kind == "f" else np.abs(values.astype(float))
    return float(finite.max(initial=0.0))


def check_law(door: Door, args: Args, factor: float, scale: Callable[[Args, float], Args], what: str) -> None:
    """Where results are proportional to a power of the unit at ordinary scales, they are so at every scale.

    All in float64, which has room for any scale that float32 holds.
    """
    steps = (4.0, 1 / 4, 256.0, 1 / 256)  # exact, and far enough that a majority does not follow a law by chance
    try:
        clean, *ordinary, far = (call(door, scale(args, step), wide=True) for step in (1.0, *steps, factor))
    except ValueError:
        return
    if any(result.has_failed for result in (clean, *ordinary, far)):
        return
    for position, (a, c) in enumerate(zip(clean.leaves, far.leaves, strict=True)):
        near = [result.leaves[position] for result in ordinary]
        if a.dtype.kind != "f" or not a.size or not _size(a) or any(b.shape != a.shape for b in (*near, c)):
            continue
        power = np.round(2 * np.log(max(_size(near[0]), 1e-300) / _size(a)) / np.log(4.0)) / 2
        if all(_is_close(b, a * step**power, 1e-7) for b, step in zip(near, steps, strict=True)):
            close = _is_close(c, a * factor**power, 1e-4)
            expect(close, "wrong result", f"{what}: leaf {position} is not of power {power:g} in the unit, in float64")


def _is_close(left: np.ndarray, right: np.ndarray, rtol: float) -> bool:
    return np.allclose(left, right, rtol=rtol, atol=rtol * _size(right), equal_nan=True)


def check_nan(
    clean: Result, found: Result, moved: list[Result], rows: list[Result], what: str, *, spreads: bool, rows_of: int
) -> str:
    """NaN stands in every number that depends on the entry, and in none that does not depend on its row.

    moved: results with other numbers in the place of the NaN; rows: with others in its whole row or array. An array
    that is one row or one image `spreads` NaN over the result. A result with as many rows, `rows_of`, goes by rows.
    """
    if found.has_failed:
        return "status"
    required = _differences(clean, moved)
    allowed = [a | b for a, b in zip(required, _differences(clean, rows, exactly=True), strict=True)]
    allowed = [_whole_rows(part) if rows_of == len(part) else part for part in map(np.atleast_1d, allowed)]
    depends = any(part.any() for part in required)
    if found.infos:
        expect(not depends and not found.silent_nan(), "silent NaN", f"{what}: a fit says {_status(found)}")
    for leaf, was, must, may in zip(found.leaves, clean.leaves, required, allowed, strict=True):
        may = may.reshape(leaf.shape)
        if leaf.dtype.kind == "f":
            expect(not (must & ~np.isnan(leaf)).any(), "NaN lost", f"{what}: {leaf[must & ~np.isnan(leaf)][:3]}")
            spread = np.isnan(leaf) & ~np.isnan(was) & ~may & (bool(rows) and not spreads)
            expect(not spread.any(), "NaN spreads", f"{what}: to {int(spread.sum())} of {leaf.size}")
        elif leaf.dtype.kind == "i" and leaf.ndim and rows:
            expect(not (may & (leaf != -1)).any(), "NaN lost", f"{what}: whole numbers {leaf[may][:5]}")
    return "nan" if depends else "right"


def _whole_rows(part: np.ndarray) -> np.ndarray:
    """Marks the rows of a result that have a mark."""
    axes = tuple(range(1, part.ndim))
    return np.broadcast_to(part.any(axis=axes, keepdims=True), part.shape)


def _differences(clean: Result, others: list[Result], *, exactly: bool = False) -> list[np.ndarray]:
    found = [np.zeros(leaf.shape, bool) for leaf in clean.leaves]
    for other in others:
        for mark, left, right in zip(found, clean.leaves, other.leaves, strict=True):
            if left.dtype.kind == "f":
                tolerance = 0.0 if exactly else 1e-5 * np.abs(left) + 1e-6 * _size(left)
                mark |= ~((np.abs(left - right) <= tolerance) | (left == right) | (np.isnan(left) & np.isnan(right)))
            else:
                mark |= left != right
    return found


def _status(found: Result) -> str:
    return ", ".join(Status(int(code)).name for info in found.infos for code in np.unique(info.status))


def rounded(args: Args) -> Args:
    """Float64 arguments that float32 holds exactly."""
    return widened(narrowed(args))
