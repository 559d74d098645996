"""Maps for tests: every kind, drawn by its own `init`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.features import MAPS, maps

FAST = ("fastfood", "sorf")
KINDS = tuple(MAPS)


@functools.lru_cache(maxsize=64)
def a_map(kind, *, input_dim=6, num_features=20, bandwidth=1.5, seed=0, dtype="float64"):
    """20 frequencies of 6 inputs: the fast maps pad to 8 and cut their third block."""
    return MAPS[kind](
        jax.random.key(seed),
        input_dim=input_dim,
        num_features=num_features,
        bandwidth=bandwidth,
        dtype=jnp.dtype(dtype),
    )


def dense(params):
    return np.asarray(maps.dense_matrix(params))


def angles(params, x):
    """|V x| of the rows of x, in float64."""
    return np.abs(np.asarray(x, float) @ dense(params).astype(float).T)
