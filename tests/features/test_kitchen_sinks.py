import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxface.features import kitchen_sinks, maps, spectra
from tests.tolerances import assert_close

SIZES = {"input_dim": 3, "num_features": 4000}


def test_products_are_those_of_its_matrix(rng):
    params = kitchen_sinks.KitchenSinks(frequencies=jnp.asarray(rng.normal(size=(3, 3))))
    x = rng.normal(size=3)
    assert_close(maps.project(params, x), np.asarray(params.frequencies) @ x)
    assert_close(maps.transpose(params, x), np.asarray(params.frequencies).T @ x)
    assert_close(maps.inverse(params, maps.project(params, x)), x, factor=1e3)


@pytest.mark.parametrize(("spectrum", "law"), [(spectra.gaussian, "norm"), (spectra.laplacian, "cauchy")])
def test_entries_follow_the_spectrum(spectrum, law):
    params = kitchen_sinks.init(jax.random.key(0), bandwidth=2.0, spectrum=spectrum, **SIZES)
    entries = 2.0 * np.asarray(params.frequencies)
    for column in entries.T:
        assert scipy.stats.kstest(column, law).pvalue > 1e-3
    assert abs(scipy.stats.spearmanr(entries[:, 0], entries[:, 1]).statistic) < 0.05
