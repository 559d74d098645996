import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import cdist

from jaxface.cluster import neighbors
from tests.tolerances import assert_close


@pytest.mark.parametrize("num_neighbors", [1, 4])
@pytest.mark.parametrize("block_size", [1, 3, 7, 1000])
def test_equals_brute_force_for_every_block_size(num_neighbors, block_size, rng):
    gallery, probes = rng.normal(size=(40, 6)), rng.normal(size=(7, 6))
    found = neighbors.nearest(gallery, probes, num_neighbors=num_neighbors, block_size=block_size)
    expected = np.argsort(cdist(probes, gallery), axis=1)[:, :num_neighbors]
    np.testing.assert_array_equal(found.indices, expected)
    assert_close(found.squared, np.take_along_axis(cdist(probes, gallery) ** 2, expected, 1))


def test_ties_go_to_the_lowest_index():
    gallery = jnp.array([[5.0], [1.0], [1.0], [-1.0]])
    found = neighbors.nearest(gallery, jnp.zeros((1, 1)), num_neighbors=3)
    assert found.indices[0].tolist() == [1, 2, 3]
    labels = jnp.array([9, 7, 8, 6], jnp.int32)
    assert neighbors.classify(gallery, labels, jnp.zeros((1, 1))).tolist() == [7]


def test_errors():
    with pytest.raises(ValueError, match=r"num_neighbors must be at most 3 \(the gallery's size\); got 4"):
        neighbors.nearest(jnp.zeros((3, 2)), jnp.zeros((1, 2)), num_neighbors=4)
    with pytest.raises(ValueError, match=r"probes must have shape \[q, d\] with d = 2; got shape \(1, 3\)"):
        neighbors.nearest(jnp.zeros((3, 2)), jnp.zeros((1, 3)), num_neighbors=1)
    with pytest.raises(ValueError, match="probes must be finite; 1 of 2 values are NaN"):
        neighbors.classify(jnp.zeros((3, 2)), jnp.arange(3), jnp.array([[0.0, jnp.nan]]))
