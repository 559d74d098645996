"""A program is traced once, whoever calls it, and is the function otherwise."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core.program import program


def test_one_trace_serves_all_callers():
    traces = []

    def twice(x: jax.Array) -> jax.Array:
        """2 x."""
        traces.append(x.shape)
        return 2 * x

    found = program(twice)
    x = jnp.arange(3.0)
    for value in (found(x), jax.jit(lambda x: found(found(x)) / 2)(x), jax.vmap(found)(x[:, None])[:, 0]):
        np.testing.assert_array_equal(value, [0, 2, 4])
    assert traces == [(3,), (1,)]
    np.testing.assert_array_equal(jax.grad(lambda x: found(x) @ x)(x), 4 * x)
    assert (found.__name__, found.__doc__, inspect.signature(found)) == ("twice", "2 x.", inspect.signature(twice))
