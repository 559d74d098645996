"""The simple operations of JAX by NumPy, for calls outside of a program.

There JAX makes a program of every operation at every shape. That is 10 ms each, for five thousand of them in the table
of transformations; NumPy computes the same in microseconds, and what is compared with XLA is computed without it.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive, primitives


def broadcast_in_dim(x: np.ndarray, *, shape: Any, broadcast_dimensions: Any, sharding: Any = None) -> np.ndarray:
    aligned = [1] * len(shape)
    for size, axis in zip(x.shape, broadcast_dimensions, strict=True):
        aligned[axis] = size
    return np.broadcast_to(x.reshape(aligned), shape)


def dot_general(x: np.ndarray, y: np.ndarray, *, dimension_numbers: Any, **_: Any) -> np.ndarray:
    """Batch axes first, then those of x that are left, then those of y."""
    (sums_x, sums_y), (batch_x, batch_y) = dimension_numbers
    left_x = [axis for axis in range(x.ndim) if axis not in (*sums_x, *batch_x)]
    left_y = [axis for axis in range(y.ndim) if axis not in (*sums_y, *batch_y)]
    batch, summed = [x.shape[axis] for axis in batch_x], math.prod(x.shape[axis] for axis in sums_x)
    rows, columns = [x.shape[axis] for axis in left_x], [y.shape[axis] for axis in left_y]
    first = x.transpose(*batch_x, *left_x, *sums_x).reshape(*batch, math.prod(rows), summed)
    second = y.transpose(*batch_y, *sums_y, *left_y).reshape(*batch, summed, math.prod(columns))
    return (first @ second).reshape((*batch, *rows, *columns))


def dynamic_slice(x: np.ndarray, *starts: np.ndarray, slice_sizes: Any) -> np.ndarray:
    corner = [min(max(int(start), 0), n - size) for start, n, size in zip(starts, x.shape, slice_sizes, strict=True)]
    return x[tuple(slice(at, at + size) for at, size in zip(corner, slice_sizes, strict=True))]


def iota(*, dtype: Any, shape: Any, dimension: int, sharding: Any = None) -> np.ndarray:
    return broadcast_in_dim(np.arange(shape[dimension], dtype=dtype), shape=shape, broadcast_dimensions=(dimension,))


def part(x: np.ndarray, *, start_indices: Any, limit_indices: Any, strides: Any) -> np.ndarray:
    strides = strides or [1] * x.ndim
    return x[tuple(slice(*bounds) for bounds in zip(start_indices, limit_indices, strides, strict=True))]


def elementwise(ufunc: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda *args, **_: ufunc(*args)


def over_axes(ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    return lambda x, *, axes, **_: ufunc.reduce(x, axis=tuple(axes))


FORMS: dict[Primitive, Callable[..., np.ndarray]] = {
    primitives.broadcast_in_dim_p: broadcast_in_dim,
    primitives.dot_general_p: dot_general,
    primitives.dynamic_slice_p: dynamic_slice,
    primitives.iota_p: iota,
    primitives.slice_p: part,
    primitives.concatenate_p: lambda *parts, dimension: np.concatenate(parts, axis=dimension),
    primitives.convert_element_type_p: lambda x, *, new_dtype, **_: x.astype(new_dtype),
    primitives.integer_pow_p: lambda x, *, y: x**y,
    primitives.reshape_p: lambda x, *, new_sizes, **_: x.reshape(new_sizes),
    primitives.select_n_p: lambda which, no, yes: np.where(which, yes, no),
    primitives.squeeze_p: lambda x, *, dimensions: x.squeeze(tuple(dimensions)),
    primitives.transpose_p: lambda x, *, permutation: x.transpose(permutation),
}
ELEMENTWISE = {
    "abs": np.abs, "add": np.add, "and": np.bitwise_and, "cos": np.cos, "div": np.divide, "eq": np.equal,
    "exp": np.exp, "floor": np.floor, "ge": np.greater_equal, "gt": np.greater, "is_finite": np.isfinite,
    "le": np.less_equal, "log": np.log, "log1p": np.log1p, "lt": np.less, "max": np.maximum, "min": np.minimum,
    "mul": np.multiply, "ne": np.not_equal, "neg": np.negative, "not": np.bitwise_not, "or": np.bitwise_or,
    "rsqrt": lambda x: 1 / np.sqrt(x), "shift_left": np.left_shift, "sign": np.sign, "sin": np.sin,
    "sqrt": np.sqrt, "sub": np.subtract, "xor": np.bitwise_xor,
}  # fmt: skip
FORMS |= {getattr(primitives, f"{name}_p"): elementwise(ufunc) for name, ufunc in ELEMENTWISE.items()}
OVER_AXES = {"and": np.logical_and, "max": np.maximum, "min": np.minimum, "or": np.logical_or, "sum": np.add}
FORMS |= {getattr(primitives, f"reduce_{name}_p"): over_axes(ufunc) for name, ufunc in OVER_AXES.items()}


def is_plain(x: Any) -> bool:
    """Whether NumPy can hold it and its type is settled: no key, and no number that takes the type of the other one."""
    return isinstance(x, np.ndarray | np.generic) or (isinstance(x, jax.Array) and not getattr(x, "weak_type", True))


def has_its_form(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> bool:
    """Whether NumPy means the same: it divides whole numbers otherwise, and converts to them otherwise."""
    if not all(is_plain(x) for x in args) or params.get("weak_type"):
        return False
    if primitive is primitives.div_p:
        return np.issubdtype(args[0].dtype, np.floating)
    if primitive is primitives.convert_element_type_p:
        return not np.issubdtype(args[0].dtype, np.floating) or np.issubdtype(params["new_dtype"], np.floating)
    if primitive in (primitives.reduce_max_p, primitives.reduce_min_p):
        return args[0].size > 0
    return primitive is not primitives.select_n_p or args[0].dtype == bool


@contextlib.contextmanager
def simple_operations() -> Iterator[None]:
    """Within it, simple operations outside of a program are done by NumPy."""
    plain = {primitive: primitive.impl for primitive in FORMS}

    def stand_in(primitive: Primitive, form: Callable[..., np.ndarray]) -> Callable[..., Any]:
        def impl(*args: Any, **params: Any) -> Any:
            if not has_its_form(primitive, args, params):
                return plain[primitive](*args, **params)
            with np.errstate(all="ignore"):
                return jax.device_put(np.asarray(form(*map(np.asarray, args), **params)))

        return impl

    for primitive, form in FORMS.items():
        primitive.def_impl(stand_in(primitive, form))
    try:
        yield
    finally:
        for primitive, impl in plain.items():
            primitive.def_impl(impl)
