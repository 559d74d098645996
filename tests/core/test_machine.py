import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core import machine


@pytest.mark.parametrize("dtype", [np.float32, np.float64, jnp.dtype("float32")])
def test_limits_are_those_of_the_type(dtype):
    one = np.ones((), dtype)
    assert one + one.dtype.type(machine.eps(dtype)) > one
    assert one + one.dtype.type(machine.eps(dtype) / 4) == one
    assert machine.tiny(dtype) == float(np.finfo(dtype).smallest_normal)
    assert isinstance(machine.eps(dtype), float)
