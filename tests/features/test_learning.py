"""S, G and B are parameters: gradients through a map, and a few steps of optax that lower a loss."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxface.features import fastfood, forms, maps
from tests.features.draws import FAST, KINDS, a_map
from tests.tolerances import assert_close

LEARNED = {
    "kitchen_sinks": ("frequencies",),
    "orthogonal": ("frequencies",),
    "fastfood": ("signs", "gaussian", "scale"),
    "sorf": ("signs", "scale"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_equal_finite_differences(kind, rng):
    params, x = a_map(kind), rng.normal(size=6)
    weights = rng.normal(size=40)
    learned = {name: getattr(params, name) for name in LEARNED[kind]}

    def loss(learned, x):
        return weights @ maps.transform(dataclasses.replace(params, **learned), x, form=forms.cos_sin)

    @jax.jit
    def both_modes(point, direction):
        value, slope = jax.jvp(loss, point, direction)
        return value, slope, jax.grad(loss, argnums=(0, 1))(*point)

    direction = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), (learned, x))
    moved = (jax.tree.map(lambda a, b, s=s: a + s * b, (learned, x), direction) for s in (1e-6, -1e-6))
    ahead, behind = (both_modes(point, direction)[0] for point in moved)
    _, slope, gradient = both_modes((learned, x), direction)
    inner = sum(np.vdot(a, b) for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True))
    assert_close(inner, (ahead - behind) / 2e-6, factor=1e4)
    assert_close(slope, inner, factor=10)


@pytest.mark.parametrize("kind", FAST)
def test_the_gradient_in_x_is_the_transpose(kind, rng):
    params, u = a_map(kind), rng.normal(size=20)
    gradient = jax.grad(lambda x: maps.project(params, x) @ u)(rng.normal(size=6))
    assert_close(gradient, maps.transpose(params, u))
    back = jax.grad(lambda u: maps.transpose(params, u) @ np.arange(6.0))(u)
    assert_close(back, maps.project(params, np.arange(6.0)))


def test_a_learned_map_fits_a_narrow_kernel_better(rng):
    """From a bandwidth three times too wide, S, G and B learn the kernel of the data."""
    x = jnp.asarray(rng.normal(size=(24, 6)))
    exact = jnp.exp(-((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=2) / 2)
    params = fastfood.init(jax.random.key(0), input_dim=6, num_features=24, bandwidth=3.0)

    def loss(learned):
        z = maps.feature_matrix(dataclasses.replace(params, **learned), x, form=forms.cos_sin)
        return ((z @ z.T - exact) ** 2).mean()

    @jax.jit
    def step(learned, state):
        value, gradient = jax.value_and_grad(loss)(learned)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(learned, updates), state, value

    optimizer = optax.adam(0.01)
    learned = {name: getattr(params, name) for name in LEARNED["fastfood"]}
    state, values = optimizer.init(learned), []
    for _ in range(100):
        learned, state, value = step(learned, state)
        values.append(float(value))
    assert values[-1] < 0.2 * values[0]
