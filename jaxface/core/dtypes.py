"""Kinds of dtypes, told without JAX where NumPy knows the type: host rooms must not wait for the import of JAX.

bfloat16, typed keys and their like are known to JAX alone, which is imported when one of them is asked about.
"""

import sys
from typing import Any

import numpy as np

__all__ = ["imported_jax", "is_kind", "is_real", "known"]

_NUMBERS = "biufc"  # the letters of NumPy's own kinds of numbers


def known(value: Any) -> Any:
    """The dtype of an array of numbers or of one number; None of anything else."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in _NUMBERS:
        return value.dtype
    import jax

    try:
        return jax.dtypes.result_type(value)
    except (TypeError, ValueError):  # as of a dictionary
        return None


def is_kind(dtype: Any, kind: type) -> bool:
    """Whether a dtype belongs to an abstract type of NumPy's such as `np.floating`."""
    if getattr(dtype, "kind", "") in tuple(_NUMBERS):
        return bool(np.issubdtype(dtype, kind))
    import jax

    return bool(jax.numpy.issubdtype(dtype, kind))


def is_real(dtype: Any) -> bool:
    """Whether a dtype holds real numbers; booleans are none."""
    return is_kind(dtype, np.integer) or is_kind(dtype, np.floating)


def imported_jax() -> Any:
    """JAX where the program has imported it, else None: then nothing can be a tracer, a key or a JAX array."""
    return sys.modules.get("jax")
