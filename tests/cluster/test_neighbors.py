"""Nearest neighbours against brute force in float64; ties, units, NaN, gradients."""

import jax
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


def test_a_large_gallery_is_searched_in_tiles(rng, monkeypatch):
    monkeypatch.setattr(neighbors, "_AT_ONCE", 599)
    gallery = np.sign(rng.normal(size=(700, 1))) * 3000 + rng.normal(size=(700, 5)).astype(np.float32)
    gallery[500] = gallery[20]
    gallery = gallery.astype(np.float32)
    found = neighbors.nearest(gallery, gallery[::100], num_neighbors=3)
    true = cdist(gallery[::100], gallery, "sqeuclidean")
    np.testing.assert_array_equal(found.indices, np.argsort(true, axis=1, kind="stable")[:, :3])


def test_ties_go_to_the_lowest_index():
    gallery = jnp.array([[5.0], [1.0], [1.0], [-1.0]])
    found = neighbors.nearest(gallery, jnp.zeros((1, 1)), num_neighbors=3)
    assert found.indices[0].tolist() == [1, 2, 3]
    labels = jnp.array([9, 7, 8, 6], jnp.int32)
    assert neighbors.classify(gallery, labels, jnp.zeros((1, 1))).tolist() == [7]


FAR = {
    "in one dimension": lambda r: r.normal(size=(600, 1)),
    "in clusters far apart": lambda r: np.sign(r.normal(size=(400, 1))) * 3000 + r.normal(size=(400, 5)),
    "one row far away": lambda r: np.concatenate([r.normal(size=(299, 5)), np.full((1, 5), 1e6)]),
    "each row five times": lambda r: np.repeat(r.normal(size=(60, 4)) + 100, 5, axis=0),
}


@pytest.mark.parametrize("num_neighbors", [1, 3])
@pytest.mark.parametrize("where", FAR)
def test_float32_is_exact(where, num_neighbors, rng):
    """Products of rows lose the digits in which these differ, and differences do not."""
    x = FAR[where](rng).astype(np.float32)
    found = neighbors.nearest(x, x, num_neighbors=num_neighbors, block_size=128)
    true = cdist(x.astype(float), x.astype(float), "sqeuclidean")
    expected = np.argsort(true, axis=1, kind="stable")[:, :num_neighbors]
    squared = np.take_along_axis(true, np.asarray(found.indices), 1)
    np.testing.assert_allclose(squared, np.take_along_axis(true, expected, 1), rtol=1e-5)
    np.testing.assert_allclose(found.squared, squared, rtol=1e-5)
    np.testing.assert_array_equal(found.indices[:, 0], expected[:, 0])
    of_part = jax.vmap(lambda p: neighbors.nearest(x, p, num_neighbors=num_neighbors).indices)
    batched = of_part(x.reshape(10, -1, x.shape[1]))
    np.testing.assert_array_equal(batched.reshape(-1, num_neighbors), found.indices)


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**100])
def test_any_unit_gives_the_same_neighbours(scale, rng):
    gallery, probes = rng.normal(size=(9, 3)).astype(np.float32), rng.normal(size=(4, 3)).astype(np.float32)
    expected = neighbors.nearest(gallery, probes, num_neighbors=3)
    found = neighbors.nearest(np.float32(scale) * gallery, np.float32(scale) * probes, num_neighbors=3)
    np.testing.assert_array_equal(found.indices, expected.indices)
    # One row far away leaves the others their neighbours.
    mixed = np.concatenate([gallery, np.full((1, 3), scale, np.float32)])
    np.testing.assert_array_equal(neighbors.nearest(mixed[:-1], probes, num_neighbors=3).indices, expected.indices)


def test_nan_inside_a_transformation_has_no_neighbour(rng):
    gallery, probes = rng.normal(size=(9, 3)), rng.normal(size=(4, 3))
    expected = neighbors.nearest(gallery, probes, num_neighbors=2)
    probes[1, 2] = np.nan
    found = jax.jit(lambda g, p: neighbors.nearest(g, p, num_neighbors=2))(gallery, probes)
    assert found.indices[1].tolist() == [-1, -1]
    assert np.isnan(found.squared[1]).all()
    kept = np.array([0, 2, 3])
    assert_close(jax.tree.map(lambda leaf: leaf[kept], found), jax.tree.map(lambda leaf: leaf[kept], expected))
    labels = np.arange(9, dtype=np.uint8)
    assert jax.jit(neighbors.classify)(gallery, labels, probes)[1] == -1
    gallery[8, 0] = np.nan
    assert (jax.jit(neighbors.classify)(gallery, labels, probes) == -1).all()


def test_distances_have_a_gradient(rng):
    gallery, probes = rng.normal(size=(9, 3)), rng.normal(size=(4, 3))
    gradient = jax.grad(lambda p: neighbors.nearest(gallery, p, num_neighbors=2).squared.sum())(jnp.asarray(probes))
    indices = neighbors.nearest(gallery, probes, num_neighbors=2).indices
    assert_close(gradient, 2 * (probes[:, None, :] - gallery[indices]).sum(axis=1))


def test_errors():
    for labels, message in (
        (np.array([0, 1, 2**40]), "labels must fit into 32 bits; got values from 0 to 1099511627776"),
        (np.array(["a", "b", "c"]), "labels must be an array of numbers"),
        (np.zeros(3), "labels must be integers; got dtype float64"),
    ):
        with pytest.raises(ValueError, match=message):
            neighbors.classify(jnp.zeros((3, 2)), labels, jnp.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"num_neighbors must be at most 3 \(the gallery's size\); got 4"):
        neighbors.nearest(jnp.zeros((3, 2)), jnp.zeros((1, 2)), num_neighbors=4)
    with pytest.raises(ValueError, match=r"probes must have shape \[q, d\] with d = 2; got shape \(1, 3\)"):
        neighbors.nearest(jnp.zeros((3, 2)), jnp.zeros((1, 3)), num_neighbors=1)
    with pytest.raises(ValueError, match="probes must be finite; 1 of 2 values are NaN"):
        neighbors.classify(jnp.zeros((3, 2)), jnp.arange(3), jnp.array([[0.0, jnp.nan]]))
