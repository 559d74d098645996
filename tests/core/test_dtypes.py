import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core import dtypes


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint64, np.complex64, bool, jnp.bfloat16, "U1"])
@pytest.mark.parametrize("kind", [np.floating, np.integer, np.inexact, np.number])
def test_kinds_are_those_of_jax(dtype, kind):
    assert dtypes.is_kind(np.dtype(dtype), kind) == jnp.issubdtype(np.dtype(dtype), kind)


@pytest.mark.parametrize("value", [1, 0.5, True, np.float32(1), np.zeros(2), jnp.zeros(2), np.zeros(2, jnp.bfloat16)])
def test_numbers_have_the_dtype_that_jax_gives(value):
    expected = getattr(value, "dtype", jax.dtypes.result_type(value))
    assert getattr(value, "dtype", dtypes.known(value)) == expected


@pytest.mark.parametrize("value", ["text", {}, np.array(["text"]), np.array([object()])])
def test_anything_else_has_none(value):
    assert dtypes.known(value) is None


_HOST = """
import importlib, pkgutil, sys
for room in ("core", "metrics", "data"):
    importlib.import_module(f"jaxface.{room}")
from jaxface import data, metrics
for package in (metrics, data):
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
import numpy as np
curve = metrics.roc(np.array([0.1, 0.4, 0.3, 0.8]), np.array([False, False, True, True]))
assert 0.0 <= metrics.eer(curve) <= 1.0
assert data.from_arrays(np.zeros((2, 4, 4), np.float32), ["a", "b"]).images.shape == (2, 4, 4)
print(sorted({"jax", "jaxlib", "chex", "scipy", "PIL", "grain"} & set(sys.modules)))
"""


def test_metrics_and_data_work_without_jax():
    done = subprocess.run([sys.executable, "-c", _HOST], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
