"""Something else in the place of an argument: other types, ids, shapes, fewer samples, settings that cannot be."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.faults import oracles
from tests.faults.calls import Args, Change, Leaf, call, leaves, narrowed, replaced, tried
from tests.faults.cases import Door
from tests.faults.verdict import expect


def types(door: Door, args: Args, rng: np.random.Generator, jit: bool) -> Change:
    """Something else in the place of an array."""
    places = [leaf for leaf in leaves(args, "fiub") if leaf.is_top]
    if not places:
        return None
    leaf = places[rng.integers(len(places))]
    name = list(INSTEAD)[rng.integers(len(INSTEAD))]
    change, accepted = INSTEAD[name]
    what = f"{name} for {door.parameter(leaf.position)}"
    return what, lambda: _instead(door, args, leaf, name, change(narrowed(leaf.array)), accepted, what)


def _instead(door: Door, args: Args, leaf: Leaf, name: str, value: Any, accepted: bool, what: str) -> str:
    found = tried(door, leaf.position, replaced(narrowed(args), leaf, value))
    if isinstance(found, str):
        return found
    if value is None and door.takes_none(door.parameter(leaf.position)):
        return oracles.check_finite(door, found, what)
    numbers = accepted or door.is_host or leaf.array.dtype.kind != "f"  # a mask may come as 0 and 1
    expect(numbers, "wrong result", f"{what}: accepted")
    if door.is_host and leaf.array.dtype.kind != "f":  # other names of the same people
        return oracles.check_finite(door, found, what)
    meant = np.asarray(value, leaf.array.dtype if door.is_host else narrowed(leaf.array).dtype)
    expected = call(door, replaced(narrowed(args), leaf, meant))
    expect(oracles.equal(found, expected), "wrong result", f"{what}: another answer than for the same numbers")
    return "right"


INSTEAD: dict[
    str, tuple[Callable[[np.ndarray], Any], bool]
] = {  # what stands there, whether it may be taken as numbers
    "float16": (lambda x: x.astype(np.float16), False),
    "bfloat16": (lambda x: x.astype(ml_dtypes.bfloat16), False),
    "complex numbers": (lambda x: x + 1j, False),
    "bytes": (lambda x: x.astype("S8"), False),
    "texts": (lambda x: x.astype(str), False),
    "objects": (lambda x: x.astype(object), False),
    "None": (lambda x: None, False),
    "a word": (lambda x: "x", False),
    "a dictionary": (lambda x: {"x": x}, False),
    "dates": (lambda x: np.abs(x).astype(np.int64).astype("datetime64[D]"), False),
    "a list": (lambda x: x.tolist(), True),
    "another byte order": (lambda x: x.astype(x.dtype.newbyteorder(">")), True),
    "every other of a longer one": (lambda x: np.repeat(x, 2, axis=0)[::2] if x.ndim else x, True),
    "a read-only one": (lambda x: (y := x.copy(), y.setflags(write=False))[0], True),
}


def ids(door: Door, args: Args, rng: np.random.Generator, jit: bool) -> Change:
    places = [leaf for leaf in leaves(args, "iu") if leaf.is_top]
    if not places:
        return None
    leaf = places[rng.integers(len(places))]
    name = list(IDS)[rng.integers(len(IDS))]
    what = f"{name} for {door.parameter(leaf.position)}"
    return what, lambda: _other_ids(door, args, leaf, name, what)


def _other_ids(door: Door, args: Args, leaf: Leaf, name: str, what: str) -> str:
    change, same = IDS[name]
    ids = change(leaf.array)
    found = tried(door, leaf.position, replaced(narrowed(args), leaf, ids))
    if isinstance(found, str):
        return found
    kept = (ids.astype(np.float64) == leaf.array).all()  # -1 has no place among unsigned numbers
    any_id = name == "an id of 10^6" and not any(key.startswith("num_") for key in door.case.static)
    expect((same and kept) or door.is_host or any_id, "wrong result", f"{what}: accepted")
    expected = call(door, narrowed(args))
    renamed = (door.is_host or any_id) and not same  # other names of the same people
    expect(renamed or oracles.equal(found, expected), "wrong result", f"{what}: another answer")
    return oracles.check_finite(door, found, what)


def _one_id(value: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(ids: np.ndarray) -> np.ndarray:
        ids = ids.astype(np.int64)
        ids[ids == ids.max()] = value
        return ids

    return change


IDS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], bool]] = {
    **{name: (lambda ids, name=name: ids.astype(name), True)
       for name in ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int64", ">i4", ">u2")},
    "floats": (lambda ids: ids.astype(np.float32), False),
    "fractions": (lambda ids: ids + 0.5, False),
    "NaN": (lambda ids: np.where(ids == ids.max(), np.nan, ids.astype(float)), False),
    "an id of 2^40": (_one_id(2**40), False),
    "an id of 2^32": (_one_id(2**32), False),
    "an id of 10^6": (_one_id(10**6), False),
    "an id of -7": (_one_id(-7), False),
    "an id of -2^31": (_one_id(-(2**31)), False),
}  # fmt: skip


def shapes(door: Door, args: Args, rng: np.random.Generator, jit: bool) -> Change:
    places = [leaf for leaf in leaves(args, "fiub") if leaf.is_top]
    if not places:
        return None
    leaf = places[rng.integers(len(places))]
    name = list(SHAPES)[rng.integers(len(SHAPES))]
    what = f"{door.parameter(leaf.position)} {name}"
    return what, lambda: _of_shape(door, args, leaf, SHAPES[name](leaf.array), what)


def _of_shape(door: Door, args: Args, leaf: Leaf, value: np.ndarray, what: str) -> str:
    if value.shape == leaf.array.shape:
        return "right"
    found = tried(door, leaf.position, narrowed(replaced(args, leaf, value)))
    if isinstance(found, str):
        return found
    others = [place for place in leaves(args, "fiub") if place.is_top and place.index != leaf.index]
    labels = leaf.array.ndim == 1 and leaf.array.dtype.kind in "iu" and value.ndim == 1
    pairs = labels and any(place.array.shape[:1] == leaf.array.shape for place in others)
    expect(not pairs, "wrong result", f"{what}: {value.size} labels for {leaf.array.size} rows were taken")
    return oracles.check_finite(door, found, what) if value.size else "right"


SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "with an axis more": lambda x: x[None],
    "with an axis at the end": lambda x: x[..., None],
    "with an axis less": lambda x: x[..., 0] if x.ndim else x,
    "with a row less": lambda x: x[:-1] if x.ndim else x,
    "with a row more": lambda x: np.concatenate([x, x[:1]]) if x.ndim else x,
    "with a column less": lambda x: x[..., :-1] if x.ndim else x,
    "with a column more": lambda x: np.concatenate([x, x[..., :1]], axis=-1) if x.ndim else x,
    "transposed": lambda x: x.T.copy(),
    "without rows": lambda x: x[:0] if x.ndim else x,
    "without columns": lambda x: x[..., :0] if x.ndim else x,
    "of one row": lambda x: x[:1] if x.ndim else x,
    "as a single number": lambda x: x.reshape(-1)[0],
}


def few(door: Door, args: Args, rng: np.random.Generator, jit: bool) -> Change:
    """Fewer samples, with their labels and weights: none, one, or two."""
    places = [leaf for leaf in leaves(args, "fiub") if leaf.is_top and leaf.array.ndim]
    if not places:
        return None
    first = places[rng.integers(len(places))]
    size, kept = first.array.shape[0], int(rng.integers(3))
    if size <= 2:
        return None
    what = f"{kept} of {size} samples of {door.parameter(first.position)}"
    fewer = args
    for leaf in places:
        if leaf.array.shape[0] == size:
            fewer = replaced(fewer, leaf, leaf.array[:kept])

    def act() -> str:
        found = tried(door, first.position, narrowed(fewer))
        return found if isinstance(found, str) else oracles.check_finite(door, found, what)

    return what, act


def weights(door: Door, args: Args, rng: np.random.Generator, jit: bool) -> Change:
    """Counts and weights that cannot be: negative, all zero, fractions of a person."""
    names = ("weight", "count", "prior", "sizes")
    places = [
        leaf for leaf in leaves(args, "fiub")
        if leaf.is_top and any(name in door.parameter(leaf.position) for name in names)
    ]  # fmt: skip
    if not places:
        return None
    leaf = places[rng.integers(len(places))]
    bad = list(BAD_WEIGHTS)[rng.integers(len(BAD_WEIGHTS))]
    what = f"{bad} in {door.parameter(leaf.position)}"

    def act() -> str:
        value = BAD_WEIGHTS[bad](leaf.array)
        found = tried(door, leaf.position, narrowed(replaced(args, leaf, value)))
        if isinstance(found, str):
            return found
        expect(bad == "zeros" or found.has_failed, "wrong result", f"{what}: accepted")
        return oracles.check_finite(door, found, what)

    return what, act


BAD_WEIGHTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "a negative number": lambda w: w - w.max() - 1,
    "zeros": lambda w: np.zeros_like(w),
}


def settings(door: Door, args: Args, rng: np.random.Generator, jit: bool) -> Change:
    """A setting that cannot be."""
    settings = [
        name
        for name, value in door.case.static.items()
        if isinstance(value, int | float | np.floating) and not isinstance(value, bool)
    ]
    if not settings:
        return None
    name = settings[rng.integers(len(settings))]
    table = WHOLE if isinstance(door.case.static[name], int) else REAL
    wrong = list(table)[rng.integers(len(table))]
    value, must_refuse = table[wrong]
    must_refuse = must_refuse and (name, wrong) != ("radius", "2.5")
    what = f"{name} = {wrong}"

    def act() -> str:
        static = door.case.static | {name: value}
        found = tried(door, 0, narrowed(args), static=static)
        if isinstance(found, str):
            return found
        optional = value is None and door.takes_none(name)
        expect(not must_refuse or optional or found.has_failed, "wrong result", f"{what}: accepted")
        return oracles.check_finite(door, found, what)

    return what, act


WHOLE: dict[str, tuple[Any, bool]] = {  # a value, whether it must be refused
    "-1": (-1, True), "0": (0, False), "2.5": (2.5, True), "'3'": ("3", True), "None": (None, True),
}  # fmt: skip
REAL: dict[str, tuple[Any, bool]] = {
    "NaN": (float("nan"), True), "-1.0": (-1.0, False), "'x'": ("x", True), "None": (None, True),
    "infinity": (float("inf"), False), "0.0": (0.0, False), "a large number": (1e30, False),
}  # fmt: skip
