"""Either kind of map by one name."""

import jax
import numpy as np

from jaxface.linalg import gram
from jaxface.subspace import KernelMap, LinearMap, kernel_map, leading, linear_map, transform
from tests.tolerances import assert_close


def test_the_type_of_the_map_decides(rng):
    x = rng.normal(size=4)
    linear = LinearMap(mean=rng.normal(size=4), basis=rng.normal(size=(4, 3)))
    kernel = KernelMap(
        kernel=gram.gaussian(bandwidth=2.0),
        train=rng.normal(size=(6, 4)),
        coefficients=rng.normal(size=(6, 3)),
        offset=rng.normal(size=3),
    )
    for fitted, room in ((linear, linear_map), (kernel, kernel_map)):
        np.testing.assert_array_equal(transform(fitted, x), room.transform(fitted, x))
        assert_close(jax.jit(transform)(fitted, x), transform(fitted, x))
        assert_close(transform(leading(fitted, 2), x), np.where(np.arange(3) < 2, transform(fitted, x), 0))
