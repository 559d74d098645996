"""Boundary checks: one clear ValueError naming the argument, what came, what was expected and what to do.

Shapes and dtypes are checked always. Values are checked only when they are concrete: under `jit`, `vmap` or
`grad` an argument is a tracer without values: the check is skipped and adds nothing to the compiled program.

Host rooms check NumPy arrays without JAX, which is not imported here; see `dtypes`.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from jaxface.core import dtypes, messages

__all__ = [
    "at_least",
    "at_most",
    "between",
    "dense_labels",
    "every_label",
    "finite",
    "fits_int32",
    "floating",
    "is_concrete",
    "not_narrow",
    "one_of",
    "positive",
    "real",
    "samples",
    "shapes",
    "typed_key",
    "utf8",
]


def is_concrete(x: Any) -> bool:
    """True when the values of `x` can be looked at now, that is outside a transformation."""
    jax = dtypes.imported_jax()
    return jax is None or not isinstance(x, jax.core.Tracer)


def shapes(**arguments: tuple[Any, str]) -> dict[str, int]:
    """Checks arrays against axis names such as `x=(x, "n d")` and returns the size of every named axis.

    A word is an axis: a number must match exactly, a name must have the same size wherever it stands, and a
    leading `...` allows any number of leading axes. Names bind from left to right in the order of the arguments.
    """
    sizes: dict[str, int] = {}
    source: dict[str, str] = {}
    for name, (value, spec) in arguments.items():
        shape = np.shape(value)
        axes = spec.split()
        tail = shape
        if axes and axes[0] == "...":
            axes = axes[1:]
            tail = shape[len(shape) - len(axes) :] if len(shape) >= len(axes) else shape
        if len(tail) != len(axes):
            raise ValueError(f"{name} must have shape [{spec.replace(' ', ', ')}]; got shape {shape}.")
        for axis, size in zip(axes, tail, strict=True):
            expected = int(axis) if axis.isdigit() else sizes.setdefault(axis, size)
            if size != expected:
                meaning = "" if axis.isdigit() else f" with {axis} = {expected}"
                origin = f" ({axis} = {expected} comes from {source[axis]})" if axis in source else ""
                raise ValueError(
                    f"{name} must have shape [{spec.replace(' ', ', ')}]{meaning}; got shape {shape}{origin}."
                )
            source.setdefault(axis, name)
    return sizes


def floating(**arguments: Any) -> None:
    """Checks that every array holds float32 or float64; narrower numbers, bytes and integers are refused.

    float16 counts no further than 2,048 and LAPACK has no routine for it, and bytes wrap around at 255.
    """
    for name, value in arguments.items():
        dtype = _dtype(name, value, f"Convert it first, e.g. numpy.asarray({name}).")
        if dtype not in (np.float32, np.float64):
            narrow = dtypes.is_kind(dtype, np.floating)
            size, why = (" of 32 or 64 bits", ", too narrow for sums and linear algebra") if narrow else ("", "")
            raise ValueError(
                f"{name} must be a floating point array{size}; got dtype {dtype}{why}. "
                f"Convert it first, e.g. {name}.astype('float32')."
            )


def samples(*, beside: Mapping[str, tuple[Any, str]] | None = None, **arguments: tuple[Any, str]) -> dict[str, int]:
    """Checks arrays of samples such as `x=(x, "n d")`: `shapes`, then `floating`, then `finite`; returns the sizes.

    Of the arrays `beside` them, such as `{"labels": (labels, "n")}`, only the shapes are checked.
    """
    sizes = shapes(**arguments, **(beside or {}))
    arrays = {name: value for name, (value, _) in arguments.items()}
    floating(**arrays)
    finite(**arrays)
    return sizes


def not_narrow(name: str, value: Any) -> None:
    """Refuses float16 and its like as `floating` does, and lets integers pass: for weights and settings."""
    if hasattr(value, "dtype") and dtypes.is_kind(value.dtype, np.inexact):
        floating(**{name: value})


def finite(**arguments: Any) -> None:
    """Checks that no concrete array holds NaN or infinity; says how many and where the first one is."""
    for name, value in arguments.items():
        if not is_concrete(value):
            continue
        values = np.asarray(value)
        if not dtypes.is_kind(values.dtype, np.number) and values.dtype != bool:
            raise ValueError(f"{name} must be an array of numbers; got {messages.describe(value)}.")
        bad = ~np.isfinite(values)
        if bad.any():
            first = tuple(int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                f"{name} must be finite; {int(bad.sum())} of {bad.size} values are NaN or infinite, "
                f"the first at index {first}. Remove or repair those rows first."
            )


def real(name: str, value: Any) -> np.ndarray:
    """The value as a NumPy array of real numbers of any width, for host functions that convert to float64.

    Text and objects are refused: NumPy would read numbers from text, and NaN from None.
    """
    array = np.asarray(value)
    if array.dtype != bool and not dtypes.is_real(array.dtype):
        raise ValueError(
            f"{name} must be real numbers; got {messages.describe(array)}. "
            f"Convert them first, e.g. {name}.astype('float64')."
        )
    return array


def typed_key(key: Any) -> None:
    """Checks that `key` is one typed PRNG key, `jax.random.key(seed)`."""
    dtype = getattr(key, "dtype", None)
    jax = dtypes.imported_jax()
    if jax is None or dtype is None or not jax.numpy.issubdtype(dtype, jax.dtypes.prng_key):
        raise ValueError(
            f"key must be a typed PRNG key such as jax.random.key(0); got {messages.describe(key)}. "
            "Wrap an old uint32 key with jax.random.wrap_key_data."
        )
    if np.shape(key) != ():
        raise ValueError(f"key must be a single key; got an array of keys of shape {np.shape(key)}. Use vmap.")


def dense_labels(name: str, labels: Any, num: int, *, padding: bool = False) -> Any:
    """The labels as int32, after a check that they lie in [0, num); with `padding`, -1 marks rows to leave out.

    A JAX array gives a JAX array, anything else a NumPy array. Use the result, not the argument: among unsigned ids a
    later -1 would wrap around to the largest.
    """
    remedy = "Turn names into integers with jaxface.core.labels.dense."
    dtype = _dtype(name, labels, remedy)
    if not dtypes.is_kind(dtype, np.integer):
        raise ValueError(f"{name} must be dense integers; got dtype {dtype}. {remedy}")
    if not is_concrete(labels):
        return _int32(labels)
    values = np.asarray(labels)
    low = -1 if padding else 0
    if values.size and (values.min() < low or values.max() >= num):
        allowed = f"in [0, {num})" + (" or -1 for padding" if padding else "")
        raise ValueError(
            f"{name} must be {allowed}; got values from {values.min()} to {values.max()}. "
            "Make them dense with jaxface.core.labels.dense."
        )
    return _int32(labels)


def fits_int32(name: str, labels: Any) -> Any:
    """The labels as int32, as `dense_labels` returns them, after a check that they fit.

    Without x64, JAX would truncate larger ones without a word.
    """
    remedy = "Turn names and large ids into integers with jaxface.core.labels.dense."
    dtype = _dtype(name, labels, remedy)
    if not dtypes.is_kind(dtype, np.integer):
        raise ValueError(f"{name} must be integers; got dtype {dtype}. {remedy}")
    if is_concrete(labels) and np.size(labels):
        values, limits = np.asarray(labels), np.iinfo(np.int32)
        low, high = int(values.min()), int(values.max())
        if low < limits.min or high > limits.max:
            raise ValueError(f"{name} must fit into 32 bits; got values from {low} to {high}. {remedy}")
    return _int32(labels)


def every_label(name: str, labels: Any, num: int) -> None:
    """Checks that each of [0, num) occurs among labels that `dense_labels` has seen."""
    if not is_concrete(labels):
        return
    occurs = np.zeros(num, bool)
    occurs[np.asarray(labels)] = True
    if not occurs.all():
        raise ValueError(
            f"{name} must use every id in [0, {num}); got {occurs.sum()} of them, {int(occurs.argmin())} is missing. "
            "Make them dense with jaxface.core.labels.dense."
        )


def between(
    name: str, value: Any, low: float, high: float, *, closed_low: bool = True, closed_high: bool = True
) -> None:
    """Checks every concrete entry of `value` against an interval; NaN is never inside."""
    not_narrow(name, value)
    if not is_concrete(value):
        return
    values = np.asarray(value)
    if values.dtype != bool and not dtypes.is_real(values.dtype):
        raise ValueError(f"{name} must be a number; got {messages.describe(value)}.")
    inside = (values >= low if closed_low else values > low) & (values <= high if closed_high else values < high)
    if not inside.all():
        interval = f"{'[' if closed_low else '('}{low:g}, {high:g}{']' if closed_high else ')'}"
        raise ValueError(f"{name} must lie in {interval}; got {_worst(values, inside)}.")


def positive(name: str, value: Any) -> None:
    """Checks that every concrete entry of `value` is finite and above zero."""
    between(name, value, 0.0, math.inf, closed_low=False, closed_high=False)


def at_least(name: str, value: int, minimum: int, why: str = "") -> None:
    """Checks a static count against its minimum."""
    _whole_number(name, value)
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}{_because(why)}; got {value}.")


def at_most(name: str, value: int, maximum: int, why: str = "") -> None:
    """Checks a static count against its maximum."""
    _whole_number(name, value)
    if value > maximum:
        raise ValueError(f"{name} must be at most {maximum}{_because(why)}; got {value}.")


def one_of(name: str, value: Any, choices: Collection[str]) -> None:
    """Checks a word against the words that are known; suggests the nearest one."""
    if not isinstance(value, str) or value not in choices:
        near = messages.did_you_mean(value, choices)
        raise ValueError(f"{name} must be one of {_listed(choices)}; got {value!r}.{near}")


def utf8(name: str, what: str) -> None:
    """Refuses a name that UTF-8 cannot write: the system holds it as bytes of another encoding."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{what} must have a name in UTF-8; got {messages.printable(name)}. Rename it; convmv renames the files of "
            "whole folders."
        ) from error


def _dtype(name: str, value: Any, remedy: str) -> np.dtype:
    """The dtype of an array or number as the caller gave it; lists and text have none."""
    dtype = dtypes.known(value)
    if not getattr(getattr(value, "dtype", dtype), "isnative", True):
        raise ValueError(
            f"{name} must have the byte order of this machine; got {messages.describe(value)}. "
            f"Convert it first, e.g. {name}.astype({name}.dtype.newbyteorder('='))."
        )
    if dtype is None or value is None:
        kind = messages.describe(value) if hasattr(value, "dtype") else f"a {type(value).__name__}"
        raise ValueError(f"{name} must be an array of numbers; got {kind}. {remedy}")
    return getattr(value, "dtype", dtype)


def _int32(labels: Any) -> Any:
    jax = dtypes.imported_jax()
    if jax is not None and isinstance(labels, jax.Array):
        return labels.astype(np.int32)
    return np.asarray(labels).astype(np.int32)


def _whole_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ValueError(f"{name} must be an integer; got {messages.describe(value)}.")


def _listed(choices: Iterable[str]) -> str:
    return ", ".join(repr(choice) for choice in choices)


def _because(why: str) -> str:
    return f" ({why})" if why else ""


def _worst(values: np.ndarray, inside: np.ndarray) -> str:
    if values.ndim == 0:
        return f"{values.item()!r}"
    bad = values[~inside]
    return f"{bad.size} values outside, the first {bad.flat[0].item()!r}"
