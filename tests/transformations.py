"""The transformation table: what every public function of a room must survive.

A room lists its functions as `CASES` in `tests/<room>/cases.py`; `tests/test_transformations.py` runs each of them
eager against jit, vmap against a loop, float32 in against float32 out, lowers it for CUDA and TPU, and checks its
gradient where one is promised; where none is, it must be right or zero.

Nearly all the time of a row is compilation, of its program and of every operation that `tests/numpy_forms.py` does not
have: vmap and the gradients are traced by JAX and computed by NumPy. So keep examples small in the number of operations
rather than of numbers, draw them with NumPy, and let rows share shapes: such an operation is compiled once for each.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """One function with example arguments (float64; a fresh draw per call of `args`). Equal to itself only."""

    fn: Callable[..., Any]
    args: Callable[[np.random.Generator], tuple[Any, ...]]
    static: dict[str, Any] = dataclasses.field(default_factory=dict)
    grad: tuple[int, ...] = ()  # positions that must have a gradient
    partial: tuple[int, ...] = ()  # positions where a part is stopped on purpose: a report, or what cancels later
    factor: float = 1.0  # widens the dtype table
    variant: str = ""

    @property
    def name(self) -> str:
        module = self.fn.__module__.removeprefix("jaxface.")
        return f"{module}.{self.fn.__name__}" + (f"[{self.variant}]" if self.variant else "")
