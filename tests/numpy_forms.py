"""The operations of JAX by NumPy: for each name a function of its operands and of the settings of the operation.

Results have the types that JAX gives them.
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

from tests import array_indices

Arrays = Sequence[Any]


def broadcast_in_dim(x: np.ndarray, *, shape: Any, broadcast_dimensions: Any, **_: Any) -> np.ndarray:
    aligned = [1] * len(shape)
    for size, axis in zip(x.shape, broadcast_dimensions, strict=True):
        aligned[axis] = size
    return np.broadcast_to(x.reshape(aligned), shape)


def dot_general(
    x: np.ndarray, y: np.ndarray, *, dimension_numbers: Any, preferred_element_type: Any, **_: Any
) -> np.ndarray:
    """Batch axes first, then those of x that are left, then those of y."""
    (sums_x, sums_y), (batch_x, batch_y) = dimension_numbers
    left_x = [axis for axis in range(x.ndim) if axis not in (*sums_x, *batch_x)]
    left_y = [axis for axis in range(y.ndim) if axis not in (*sums_y, *batch_y)]
    batch, summed = [x.shape[axis] for axis in batch_x], math.prod(x.shape[axis] for axis in sums_x)
    rows, columns = [x.shape[axis] for axis in left_x], [y.shape[axis] for axis in left_y]
    first = x.transpose(*batch_x, *left_x, *sums_x).reshape(*batch, math.prod(rows), summed)
    second = y.transpose(*batch_y, *sums_y, *left_y).reshape(*batch, summed, math.prod(columns))
    return (first @ second).reshape((*batch, *rows, *columns)).astype(preferred_element_type or x.dtype, copy=False)


def iota(*, dtype: Any, shape: Any, dimension: int, **_: Any) -> np.ndarray:
    return broadcast_in_dim(np.arange(shape[dimension], dtype=dtype), shape=shape, broadcast_dimensions=(dimension,))


def part(x: np.ndarray, *, start_indices: Any, limit_indices: Any, strides: Any) -> np.ndarray:
    strides = strides or [1] * x.ndim
    return x[tuple(slice(*bounds) for bounds in zip(start_indices, limit_indices, strides, strict=True))]


def corner(x: np.ndarray, starts: Arrays, sizes: Any) -> tuple[slice, ...]:
    low = [min(max(int(start), 0), n - size) for start, n, size in zip(starts, x.shape, sizes, strict=True)]
    return tuple(slice(at, at + size) for at, size in zip(low, sizes, strict=True))


def dynamic_update_slice(x: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[corner(x, starts, update.shape)] = update
    return out


def pad(x: np.ndarray, value: np.ndarray, *, padding_config: Any) -> np.ndarray:
    """Of each axis: how much before, after and between; what is negative is cut off."""
    inner = [max(n + (n - 1) * between, 0) for n, (_, _, between) in zip(x.shape, padding_config, strict=True)]
    out = np.full([n + max(a, 0) + max(b, 0) for n, (a, b, _) in zip(inner, padding_config, strict=True)], value)
    at = [slice(max(a, 0), max(a, 0) + n, c + 1) for n, (a, _, c) in zip(inner, padding_config, strict=True)]
    out[tuple(at)] = x
    return out[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b, _) in zip(out.shape, padding_config, strict=True))]


def convert(x: np.ndarray, *, new_dtype: Any, **_: Any) -> np.ndarray:
    """Numbers beyond whole ones become the last of those, and NaN becomes zero."""
    if not (np.issubdtype(x.dtype, np.floating) and np.issubdtype(new_dtype, np.integer)):
        return x.astype(new_dtype)
    least, most = np.iinfo(new_dtype).min, np.iinfo(new_dtype).max
    inside = (x > least) & (x < most)
    rest = np.where(np.isnan(x), 0, np.where(x <= least, least, most))
    return np.where(inside, np.where(inside, x, 0).astype(new_dtype), rest.astype(new_dtype))


def quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of whole numbers towards zero."""
    if np.issubdtype(x.dtype, np.floating):
        return np.divide(x, y)
    size = np.abs(x) // np.abs(np.where(y == 0, 1, y))
    return np.where(y == 0, -1, np.where((x < 0) == (y < 0), size, -size))


def remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """With the sign of x."""
    return np.fmod(x, y) if np.issubdtype(x.dtype, np.floating) else np.where(y == 0, x, np.fmod(x, y))


def shift_right_logical(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Zeros move in, also into a negative number."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return (x.view(unsigned) >> y.view(unsigned)).view(x.dtype)


def same_bits(x: np.ndarray, *, new_dtype: Any) -> np.ndarray:
    return np.ascontiguousarray(x).view(new_dtype).reshape(x.shape)


def sort(*operands: np.ndarray, dimension: int, num_keys: int, **_: Any) -> list[np.ndarray]:
    order = np.lexsort(operands[:num_keys][::-1], axis=dimension)
    return [np.take_along_axis(x, order, dimension) for x in operands]


def along(ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    def form(x: np.ndarray, *, axis: int, reverse: bool) -> np.ndarray:
        if reverse:
            return np.flip(ufunc.accumulate(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)
        return ufunc.accumulate(x, axis=axis, dtype=x.dtype)

    return form


def extreme(ufunc: np.ufunc, of_nothing: Callable[[Any], Any]) -> Callable[..., np.ndarray]:
    def form(x: np.ndarray, *, axes: Any, **_: Any) -> np.ndarray:
        return ufunc.reduce(x, axis=tuple(axes), **({} if x.size else {"initial": of_nothing(x.dtype)}))

    return form


def least(dtype: Any) -> Any:
    if np.issubdtype(dtype, np.bool_):
        return False
    return -np.inf if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).min


def most(dtype: Any) -> Any:
    if np.issubdtype(dtype, np.bool_):
        return True
    return np.inf if np.issubdtype(dtype, np.floating) else np.iinfo(dtype).max


def elementwise(ufunc: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda *args, **_: ufunc(*args)


def over_axes(ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    return lambda x, *, axes, **_: ufunc.reduce(x, axis=tuple(axes), dtype=x.dtype)


def cholesky(x: np.ndarray, **_: Any) -> np.ndarray:
    """The lower factor; NaN where there is none."""
    factor, out = scipy.linalg.get_lapack_funcs("potrf", (x,)), np.empty_like(x)
    for at in np.ndindex(x.shape[:-2]):
        found, failed = factor(x[at], lower=1, clean=1)
        out[at] = np.nan if failed else found
    return out


def triangular_solve(
    a: np.ndarray,
    b: np.ndarray,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,  # of numbers that are real
    unit_diagonal: bool,
) -> np.ndarray:
    solve, out = scipy.linalg.get_blas_funcs("trsm", (a, b)), np.empty_like(b)
    for at in np.ndindex(b.shape[:-2] if b.size else (0,)):
        out[at] = solve(1, a[at], b[at], side=not left_side, lower=lower, trans_a=transpose_a, diag=unit_diagonal)
    return out


def split(x: np.ndarray, *, sizes: Any, axis: int) -> list[np.ndarray]:
    return np.split(x, np.cumsum(sizes)[:-1], axis=axis)


def iota_2x32_shape(*, shape: Any) -> list[np.ndarray]:
    """Whole numbers of 64 bits from zero on, as their upper and their lower half."""
    numbers = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    return [(numbers >> np.uint64(32)).astype(np.uint32), numbers.astype(np.uint32)]


def threefry2x32(first: np.ndarray, second: np.ndarray, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Threefry-2x32 in 20 rounds (Salmon et al., 2011): two counters, mixed with a key of two words."""
    keys = first, second, first ^ second ^ np.uint32(0x1BD11BDA)
    x, y = x + keys[0], y + keys[1]
    for group in range(5):
        for turn in (13, 15, 26, 6) if group % 2 == 0 else (17, 29, 16, 24):
            x = x + y
            y = (y << np.uint32(turn) | y >> np.uint32(32 - turn)) ^ x
        x, y = x + keys[(group + 1) % 3], y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return [x, y]


FORMS: dict[str, Callable[..., Any]] = {
    "argmax": lambda x, *, axes, index_dtype: np.argmax(x, axis=axes[0]).astype(index_dtype),
    "argmin": lambda x, *, axes, index_dtype: np.argmin(x, axis=axes[0]).astype(index_dtype),
    "bitcast_convert_type": same_bits,
    "broadcast_in_dim": broadcast_in_dim,
    "cholesky": cholesky,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "concatenate": lambda *parts, dimension: np.concatenate(parts, axis=dimension),
    "convert_element_type": convert,
    "cummax": along(np.maximum),
    "cummin": along(np.minimum),
    "cumprod": along(np.multiply),
    "cumsum": along(np.add),
    "dot_general": dot_general,
    "dynamic_slice": lambda x, *starts, slice_sizes: x[corner(x, starts, slice_sizes)],
    "dynamic_update_slice": dynamic_update_slice,
    "gather": array_indices.gather,
    "integer_pow": lambda x, *, y: x**y,
    "iota": iota,
    "iota_2x32_shape": iota_2x32_shape,
    "optimization_barrier": lambda *operands: list(operands),
    "pad": pad,
    "reduce_max": extreme(np.maximum, least),
    "reduce_min": extreme(np.minimum, most),
    "reshape": lambda x, *, new_sizes, dimensions, **_: x.transpose(dimensions or range(x.ndim)).reshape(new_sizes),
    "rev": lambda x, *, dimensions: np.flip(x, dimensions),
    "round": lambda x, *, rounding_method: np.round(x) if rounding_method else np.trunc(x + np.copysign(0.5, x)),
    "scatter": array_indices.scatter(operator.setitem),
    "scatter-add": array_indices.scatter(np.add.at),
    "scatter_add": array_indices.scatter(np.add.at),
    "scatter_max": array_indices.scatter(np.maximum.at),
    "scatter_min": array_indices.scatter(np.minimum.at),
    "scatter_mul": array_indices.scatter(np.multiply.at),
    "select_n": lambda which, *cases: np.where(which, *cases[::-1]) if len(cases) == 2 else np.choose(which, cases),
    "slice": part,
    "sort": sort,
    "split": split,
    "squeeze": lambda x, *, dimensions: x.squeeze(tuple(dimensions)),
    "stack": lambda *parts, axis: np.stack(parts, axis),
    "threefry2x32": threefry2x32,
    "tile": lambda x, *, reps: np.tile(x, reps),
    "transpose": lambda x, *, permutation: x.transpose(permutation),
    "triangular_solve": triangular_solve,
    "unstack": lambda x, *, axis: list(np.moveaxis(x, axis, 0)),
}
ELEMENTWISE = {
    "abs": np.abs, "add": np.add, "add_any": np.add, "and": np.bitwise_and, "atan2": np.arctan2, "ceil": np.ceil,
    "copy": np.array, "copy_p": np.array, "cos": np.cos, "cosh": np.cosh, "digamma": scipy.special.digamma,
    "div": quotient, "eq": np.equal, "erf": scipy.special.erf, "erf_inv": scipy.special.erfinv,
    "erfc": scipy.special.erfc, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "floor": np.floor,
    "ge": np.greater_equal, "gt": np.greater, "is_finite": np.isfinite, "le": np.less_equal,
    "lgamma": scipy.special.gammaln, "log": np.log, "log1p": np.log1p, "logistic": scipy.special.expit, "lt": np.less,
    "max": np.maximum, "min": np.minimum, "mul": np.multiply, "name": np.array, "ne": np.not_equal, "neg": np.negative,
    "not": np.bitwise_not, "or": np.bitwise_or, "pow": lambda x, y: np.power(x, y).astype(x.dtype), "rem": remainder,
    "rsqrt": lambda x: 1 / np.sqrt(x), "shift_left": np.left_shift, "shift_right_arithmetic": np.right_shift,
    "shift_right_logical": shift_right_logical, "sign": np.sign, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt,
    "square": np.square, "stop_gradient": np.array, "sub": np.subtract, "tan": np.tan, "tanh": np.tanh,
    "xor": np.bitwise_xor,
}  # fmt: skip
FORMS |= {name: elementwise(ufunc) for name, ufunc in ELEMENTWISE.items()}
OVER_AXES = {"and": np.logical_and, "or": np.logical_or, "prod": np.multiply, "sum": np.add}
FORMS |= {f"reduce_{name}": over_axes(ufunc) for name, ufunc in OVER_AXES.items()}
