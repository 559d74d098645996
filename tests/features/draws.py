"""Maps for tests: every kind, drawn by its own `init`.

To compile an `init` takes longer than nearly any test, and does so for each number of blocks: share shapes.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.features import MAPS, maps, spectra

FAST = ("fastfood", "sorf")
KINDS = tuple(MAPS)
NUM_DRAWS = 4000
SQUARE = {"input_dim": 16, "num_features": 16, "bandwidth": 1.0}


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


def first_blocks(key, *, input_dim, num_features, bandwidth, dtype):
    """`fastfood.init` at d = 1024, by the first blocks of one draw: the same map, and one compilation for all sizes."""
    assert input_dim == 1024
    whole = MAPS["fastfood"](key, input_dim=1024, num_features=10240, bandwidth=bandwidth, dtype=dtype)
    names, count = ("signs", "permutation", "gaussian", "scale"), num_features // 1024
    kept = {name: getattr(whole, name)[:count] for name in names}
    return dataclasses.replace(whole, **kept, num_features=num_features)


@functools.lru_cache(maxsize=4)
def many(kind, spectrum=spectra.gaussian, *, input_dim, num_features, bandwidth):
    """Thousands of maps, stacked."""
    settings = {"input_dim": input_dim, "num_features": num_features, "bandwidth": bandwidth, "spectrum": spectrum}
    return jax.vmap(functools.partial(MAPS[kind], **settings))(jax.random.split(jax.random.key(1), NUM_DRAWS))


def dense(params):
    return np.asarray(maps.dense_matrix(params))


def angles(params, x):
    """|V x| of the rows of x, in float64."""
    return np.abs(np.asarray(x, float) @ dense(params).astype(float).T)


@jax.jit
def variance_ratio(params, delta):
    """Variance of the cos_sin estimate for f = d = 16 over the one of independent frequencies, t = |delta| = 1.2."""
    found = jax.vmap(lambda one: jnp.cos(maps.project(one, delta)).mean())(params)
    return found.var() * 2 * 16 / (1 - jnp.exp(-(delta @ delta))) ** 2
