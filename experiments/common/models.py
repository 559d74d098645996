"""Fitted models among the arrays of a stage, and from there into the folder of a run."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxface.runtime import params_io
from jaxface.runtime.workdir import Workdir

_PREFIX = "model/"


def arrays_of(**models: Any) -> dict[str, np.ndarray]:
    """Models of `params` classes by name, as arrays of bytes."""
    return {f"{_PREFIX}{name}": np.frombuffer(params_io.to_bytes(each), np.uint8) for name, each in models.items()}


def without(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a stage that are no models."""
    return {name: values for name, values in arrays.items() if not name.startswith(_PREFIX)}


def write(workdir: Workdir, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes the models of a stage as `params/NAME.safetensors`, for `params_io.load`."""
    for name, content in arrays.items():
        if name.startswith(_PREFIX):
            workdir.write_bytes(f"params/{name.removeprefix(_PREFIX)}.safetensors", content.tobytes())
