import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.features import MAPS, choose_bandwidth, forms, kitchen_sinks, maps, median_distance
from tests.features import draws
from tests.features.draws import KINDS


def test_median_distance_is_that_of_different_rows(rng):
    x = rng.normal(size=(40, 5))
    pairs = np.linalg.norm(x[:, None] - x[None, :], axis=2)[np.triu_indices(40, 1)]
    np.testing.assert_allclose(median_distance(jax.random.key(0), x), np.median(pairs), rtol=0.03)
    # A row is never paired with itself: with two rows there is one distance.
    np.testing.assert_allclose(median_distance(jax.random.key(0), x[:2], num_pairs=5), pairs[0], rtol=1e-12)


def test_median_distance_scales_and_keeps_the_dtype(rng):
    x = rng.normal(size=(30, 4)).astype(np.float32)
    once, twice = (median_distance(jax.random.key(1), factor * x) for factor in (1, 2))
    assert once.dtype == jnp.float32
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-6)


@pytest.mark.parametrize("quantile", [1.0, 0.999, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_the_share_in_range_is_the_quantile(kind, quantile, rng):
    x = rng.normal(size=(30, 6))
    chosen = choose_bandwidth(jax.random.key(0), x, init=MAPS[kind], num_features=20, quantile=quantile)
    sizes = draws.angles(draws.a_map(kind, bandwidth=chosen), x)
    limit = np.pi / 2 * (1 + 1e-12)
    assert np.mean(sizes <= limit) >= quantile
    assert np.mean(sizes <= limit) < quantile + 2 / sizes.size


def test_rounding_carries_no_entry_over_the_end(rng):
    """The angle of a pair beyond pi is one of the other sign, and with it the vector is lost."""
    x = rng.normal(size=(20, 6)).astype(np.float32)
    drawing = {"input_dim": 6, "num_features": 20, "dtype": jnp.float32}
    for number in range(30):
        key = jax.random.key(number)
        chosen = choose_bandwidth(key, x, init=kitchen_sinks.init, num_features=20, quantile=1.0, form=forms.cos_sin)
        params = kitchen_sinks.init(key, bandwidth=chosen, **drawing)
        assert np.abs(maps.feature_matrix(params, x, form=forms.identity)).max() <= np.pi


def test_pairs_need_half_the_bandwidth_of_the_sine(rng):
    x = rng.normal(size=(30, 6))
    sine, pairs = (
        choose_bandwidth(jax.random.key(0), x, init=MAPS["fastfood"], num_features=20, quantile=0.99, form=form)
        for form in (forms.sin, forms.cos_sin)
    )
    np.testing.assert_allclose(sine, 2 * pairs, rtol=1e-12)


@pytest.mark.parametrize(("quantile", "factor"), [(0.99, 1.64), (0.999, 2.09)])
def test_it_is_the_quantile_of_a_normal_for_vectors_of_one_length(quantile, factor, rng):
    x = rng.normal(size=(200, 32))
    x *= 3 / np.linalg.norm(x, axis=1)[:, None]
    chosen = choose_bandwidth(jax.random.key(0), x, init=MAPS["fastfood"], num_features=320, quantile=quantile)
    np.testing.assert_allclose(chosen, factor * 3, rtol=0.03)


def test_the_map_follows_its_bandwidth_in_float32(rng):
    """With x64 on a Python number would draw the map in float64: other frequencies, some of them out of range."""
    x = rng.normal(size=(50, 20)).astype(np.float32)
    for number in range(12):
        key, settings = jax.random.key(number), {"num_features": 64}
        chosen = choose_bandwidth(key, x, init=MAPS["fastfood"], quantile=1.0, **settings)
        params = MAPS["fastfood"](key, input_dim=20, bandwidth=chosen, **settings)
        assert maps.dtype_of(params) == jnp.float32
        assert np.abs(maps.feature_matrix(params, x, form=forms.identity)).max() <= np.pi / 2
