"""Calling a door as a user does, in either precision, and what came out of it."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core.fitinfo import FitInfo, Status
from tests.faults.cases import Door, is_key
from tests.faults.verdict import refused

Args = tuple[Any, ...]
Change = tuple[str, Callable[[], str]] | None  # a fault and how to act it out; None where a door has no place for it


class Result(NamedTuple):
    """Leaves of a result on the host; the reports of fits apart."""

    leaves: list[np.ndarray]
    infos: list[FitInfo]

    @property
    def has_failed(self) -> bool:
        """Whether a fit says that it failed."""
        return any((np.asarray(info.status) >= Status.NON_FINITE).any() for info in self.infos)

    def floats(self) -> list[np.ndarray]:
        return [leaf for leaf in self.leaves if leaf.dtype.kind == "f"]

    def silent_nan(self) -> bool:
        """NaN in parameters, objective or jitter beside OK."""
        if not self.infos or self.has_failed:
            return False
        unused = [_unused_iterations(info) for info in self.infos]
        return any(unused) or any(np.isnan(leaf).any() for leaf in self.floats())


def _unused_iterations(info: FitInfo) -> bool:
    """Whether the trace has NaN where a step was done."""
    trace = np.asarray(info.objective)
    done = np.arange(trace.shape[-1]) < np.asarray(info.num_iters)[..., None]
    closed_form = not np.asarray(info.num_iters).any()
    return bool((np.isnan(trace) & (done | closed_form)).any() or np.isnan(np.asarray(info.jitter)).any())


def narrowed(tree: Any) -> Any:
    """Floating leaves in float32; the same numbers, when they were rounded before."""
    return jax.tree.map(lambda leaf: leaf.astype(np.float32) if _is_double(leaf) else leaf, tree)


def widened(tree: Any) -> Any:
    """Floating leaves in float64."""
    return jax.tree.map(lambda leaf: leaf.astype(np.float64) if _is_single(leaf) else leaf, tree)


def call(
    door: Door, args: Args, static: dict[str, Any] | None = None, *, wide: bool = False, jit: bool = False
) -> Result:
    """Calls a door without x64, as most do, or with it; arrays that are arguments stay NumPy's, eagerly."""
    static = door.case.static if static is None else static
    static = widened(_numbers(static)) | _others(static) if wide else static
    with jax.enable_x64(wide), jax.numpy_rank_promotion("allow"):
        if door.is_host:
            return _result(door.case.fn(*args, **static))
        if jit:
            return _result(_jitted(door, tuple(sorted(static)))(*jax.tree.map(_placed, args)))
        inside = [
            arg if isinstance(arg, np.ndarray) or not _is_tree(arg) else jax.tree.map(_placed, arg) for arg in args
        ]
        return _result(door.case.fn(*inside, **static))


@functools.lru_cache(maxsize=512)
def _jitted(door: Door, _: Any) -> Any:
    return jax.jit(functools.partial(door.case.fn, **door.case.static))


def names_of(door: Door, position: int) -> tuple[str, ...]:
    """What a message may call the argument at a position."""
    return (door.parameter(position), *door.names)


def _numbers(static: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in static.items() if all(hasattr(leaf, "dtype") for leaf in jax.tree.leaves(value))
    }


def _others(static: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in static.items() if key not in _numbers(static)}


def _is_tree(arg: Any) -> bool:
    return not jax.tree_util.treedef_is_leaf(jax.tree.structure(arg))


def _placed(leaf: Any) -> Any:
    return jnp.asarray(leaf) if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "fiub" else leaf


def _is_double(leaf: Any) -> bool:
    return not is_key(leaf) and getattr(leaf, "dtype", None) == np.float64


def _is_single(leaf: Any) -> bool:
    return not is_key(leaf) and getattr(leaf, "dtype", None) == np.float32


def _result(value: Any) -> Result:
    found = jax.tree.leaves(value, is_leaf=lambda x: isinstance(x, FitInfo))
    infos = [leaf for leaf in found if isinstance(leaf, FitInfo)]
    others = [jax.random.key_data(leaf) if is_key(leaf) else leaf for leaf in found if not isinstance(leaf, FitInfo)]
    arrays = [np.asarray(leaf) for leaf in others]
    return Result([leaf for leaf in arrays if leaf.dtype.kind in "fiub"], jax.tree.map(np.asarray, infos))


class Leaf(NamedTuple):
    """A place among the arguments of a door."""

    position: int  # of the argument
    index: int  # of the leaf in the whole tree
    array: np.ndarray
    is_top: bool  # an array that is an argument itself


def leaves(args: Args, kinds: str) -> list[Leaf]:
    found, index = [], 0
    for position, arg in enumerate(args):
        for leaf in jax.tree.leaves(arg, is_leaf=_is_none):
            if not is_key(leaf) and isinstance(leaf, np.ndarray) and leaf.dtype.kind in kinds and leaf.size:
                found.append(Leaf(position, index, leaf, leaf is arg))
            index += 1
    return found


def _is_none(x: Any) -> bool:
    """A field that is None has a place too."""
    return x is None


def replaced(args: Args, leaf: Leaf, value: Any) -> Args:
    """The arguments with another value at a place."""
    flat, structure = jax.tree.flatten(args, is_leaf=_is_none)
    flat[leaf.index] = value
    return structure.unflatten(flat)


def tried(
    door: Door, position: int, args: Args, *, jit: bool = False, static: dict[str, Any] | None = None
) -> Result | str:
    """The result, or `refused`."""
    names = names_of(door, position) if static is None else (*door.names, *static)
    try:
        return call(door, args, static, jit=jit)
    except Exception as error:
        return refused(error, *names)
