"""The parts of the study of feature maps, against plain NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import kernel_maps
from experiments.kernel_maps import cost, estimates, ridge
from jaxface.features import MAPS, feature_matrix, forms
from tests.reference import features_reference as reference
from tests.tolerances import assert_close


@pytest.mark.parametrize(("form", "plain"), [(estimates.cos_sin, forms.cos_sin), (estimates.sin, forms.sin)])
def test_growing_estimates_are_those_of_smaller_maps(form, plain, rng):
    key, x = jax.random.key(0), jnp.asarray(rng.normal(size=(5, 6)))
    found = estimates.growing(key, x, init=MAPS["fastfood"], form=form, sizes=(5, 20))
    for size, gram in zip((5, 20), found, strict=True):
        params = MAPS["fastfood"](estimates.map_key(key), input_dim=6, num_features=size, bandwidth=1.0)
        z = feature_matrix(params, x, form=plain)
        assert_close(gram, z @ z.T)


def test_phases_of_different_parts_are_different(rng):
    u = jnp.asarray(rng.normal(size=(4, 20)))
    first, second = (estimates.random_phase(jax.random.fold_in(jax.random.key(0), k), u) for k in (0, 10))
    assert np.abs(first - second).max() > 0.1


def test_sine_kernel_is_the_closed_form(rng):
    x = rng.normal(size=(4, 3))
    expected = [[reference.gaussian_sine_kernel(a, b, 1.0) for b in x] for a in x]
    assert_close(estimates.sine_kernel(jnp.asarray(x), jnp.asarray(x)), np.array(expected))


def test_crossover_is_the_last_one():
    dims = np.array([64, 128, 256, 512])
    assert cost.crossover(dims, np.array([0.5, 1.2, 0.9, 2.0])) == 512
    assert cost.crossover(dims, np.array([1.5, 1.2, 1.9, 2.0])) == 64
    assert cost.crossover(dims, np.array([0.5, 1.2, 1.9, 0.9])) is None


def problems(rng):
    config = kernel_maps.get_config("smoke").unlock()
    config.ridge.num_train, config.ridge.num_held_out, config.ridge.num_splits = 3, 1, 2
    ids = np.repeat(np.arange(4, dtype=np.int32), 6)
    return list(ridge.random_problems(config, jnp.asarray(rng.normal(size=(24, 5)) + 3), ids))


def test_splits_share_nothing_and_are_centred_on_training_images(rng):
    for x, ids, targets, split in problems(rng):
        parts = split
        assert sorted(np.concatenate(parts)) == list(range(24))
        assert [np.bincount(ids[rows]).tolist() for rows in parts] == [[3] * 4, [2] * 4, [1] * 4]
        assert_close(x[split.train].mean(axis=0), np.zeros(5))
        np.testing.assert_array_equal(np.argmax(targets, axis=1), ids[split.train])


def test_kernel_ridge_is_ridge_regression_on_the_features(rng):
    x, _, targets, split = problems(rng)[0]
    z = np.asarray(x)
    train, queries, ridge_part = z[split.train], z[split.test], 0.1
    strength = ridge_part * np.trace(train @ train.T) / len(train)
    weights = np.linalg.solve(train.T @ train + strength * np.eye(5), train.T @ np.asarray(targets))
    found = ridge._answers((x @ x.T)[None], targets, split.train, split.test, ridge_part)
    np.testing.assert_array_equal(found[0], np.argmax(queries @ weights, axis=1))
