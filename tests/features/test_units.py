import numpy as np
import pytest

from jaxface.features import maps, units
from tests.features.draws import KINDS, a_map
from tests.tolerances import assert_close


@pytest.mark.parametrize("bandwidth", [1e-30, 1.5, 1e30])
@pytest.mark.parametrize("kind", KINDS)
def test_entries_are_near_one_in_the_unit_of_the_map(kind, bandwidth, rng):
    params = a_map(kind, bandwidth=bandwidth)
    rescaled, power = units.in_own_unit(params)
    x, u, unit = rng.normal(size=6), rng.normal(size=20), 2.0 ** int(power)
    assert_close(rescaled.project(x), unit * np.asarray(maps.project(params, x)))
    assert_close(rescaled.transpose(u), unit * np.asarray(maps.transpose(params, u)))
    assert 0.01 < np.abs(rescaled.project(np.ones(6))).max() < 100
    assert (rescaled.input_dim, rescaled.num_features) == (6, 20)


def test_the_inverse_is_that_of_the_rescaled_map(rng):
    rescaled, _ = units.in_own_unit(a_map("fastfood", input_dim=8, num_features=8, bandwidth=1e20))
    x = rng.normal(size=8)
    assert_close(rescaled.inverse(rescaled.project(x)), x, factor=1e3)
