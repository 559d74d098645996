import jax
import numpy as np

from jaxface.subspace import linear_map
from jaxface.subspace.linear_map import LinearMap
from tests.tolerances import assert_close


def test_reconstruction_is_the_nearest_point_of_the_subspace(rng):
    basis = np.linalg.qr(rng.normal(size=(5, 2)))[0]
    fitted = LinearMap(mean=rng.normal(size=5), basis=basis)
    x = rng.normal(size=5)
    nearest = fitted.mean + basis @ np.linalg.lstsq(basis, x - fitted.mean, rcond=None)[0]
    assert_close(linear_map.reconstruct(fitted, linear_map.transform(fitted, x)), nearest)


def test_vmap_over_members_and_samples(rng):
    maps = LinearMap(mean=rng.normal(size=(3, 5)), basis=rng.normal(size=(3, 5, 2)))
    x = rng.normal(size=(7, 5))
    out = jax.vmap(jax.vmap(linear_map.transform, in_axes=(None, 0)), in_axes=(0, None))(maps, x)
    assert_close(out[2], (x - maps.mean[2]) @ maps.basis[2])


def test_composition_is_one_map_after_the_other(rng):
    first = LinearMap(mean=rng.normal(size=6), basis=np.linalg.qr(rng.normal(size=(6, 4)))[0])
    second = LinearMap(mean=rng.normal(size=4), basis=rng.normal(size=(4, 2)))
    x = rng.normal(size=6)
    expected = linear_map.transform(second, linear_map.transform(first, x))
    assert_close(linear_map.transform(linear_map.compose(first, second), x), expected)


def test_leading_columns_of_many_widths(rng):
    fitted = LinearMap(mean=np.zeros(4), basis=rng.normal(size=(4, 3)))
    kept = jax.vmap(linear_map.leading, in_axes=(None, 0))(fitted, np.array([1, 3]))
    assert_close(kept.basis[0], np.pad(fitted.basis[:, :1], ((0, 0), (0, 2))))
    assert_close(kept.basis[1], fitted.basis)
