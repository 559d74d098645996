import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.stats

from jaxface.features import fastfood, forms, maps
from tests.features import draws
from tests.features.draws import NUM_DRAWS, SQUARE, a_map, many
from tests.reference import features_reference as reference
from tests.tolerances import assert_close


@pytest.mark.parametrize(("input_dim", "num_features"), [(8, 8), (8, 24), (6, 20), (5, 3), (1, 4)])
def test_fastfood_is_its_definition(input_dim, num_features, rng):
    size = 1 << (input_dim - 1).bit_length()
    count = -(-num_features // size)
    diagonals = {
        "signs": rng.choice([-1.0, 1.0], size=(count, size)),
        "permutation": rng.permuted(np.tile(np.arange(size, dtype=np.int32), (count, 1)), axis=1),
        "gaussian": rng.normal(size=(count, size)),
        "scale": rng.uniform(0.1, 1.0, size=(count, size)),
    }
    sizes = {"input_dim": input_dim, "num_features": num_features}
    params = fastfood.Fastfood(**jax.tree.map(jnp.asarray, diagonals), **sizes)
    assert_close(maps.dense_matrix(params), reference.fastfood_matrix(*diagonals.values(), **sizes))


def test_padded_row_lengths_follow_chi_of_the_input():
    lengths = np.linalg.norm(draws.dense(a_map("fastfood", input_dim=11, num_features=2000, bandwidth=2.0)), axis=1)
    assert scipy.stats.kstest(2.0 * lengths, scipy.stats.chi(11).cdf).pvalue > 1e-3


def test_without_lengths_fastfood_has_more_variance():
    params, spread = many("fastfood", **SQUARE), np.random.default_rng(0).normal(size=16)
    params = dataclasses.replace(params, scale=jnp.full((NUM_DRAWS, 1, 16), 16**-0.5))  # S = I
    assert 2.2 < draws.variance_ratio(params, 1.2 * spread / np.linalg.norm(spread)) < 3.1


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
    learned = {name: getattr(params, name) for name in ("signs", "gaussian", "scale")}
    state, values = optimizer.init(learned), []
    for _ in range(100):
        learned, state, value = step(learned, state)
        values.append(float(value))
    assert values[-1] < 0.2 * values[0]
