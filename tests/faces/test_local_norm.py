import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.faces import local_norm
from tests.reference import faces_reference as reference
from tests.tolerances import assert_close

# Compiled whole: dispatched one by one, every operation would be compiled on its own.
normalize = jax.jit(local_norm.normalize, static_argnames=("window", "floor"))
jacobian = jax.jit(jax.jacrev(local_norm.normalize))


@pytest.mark.parametrize("window", [1, 3, 5, 21])
def test_every_window_holds_the_pixels_that_exist(rng, window):
    image = rng.random((8, 11))
    if window == 1:
        assert_close(normalize(image, window=1), np.zeros_like(image))
        return
    assert_close(normalize(image, window=window), reference.local_norm(image, window, 1e-3))


def test_the_floor_holds_where_contrast_is_low(rng):
    image = np.concatenate([rng.random((8, 8)), 0.5 + 1e-4 * rng.random((8, 8))], axis=1)
    assert_close(normalize(image, floor=0.1), reference.local_norm(image, 5, 0.1), factor=10)
    assert np.abs(normalize(image, floor=0.1)[:, 12:]).max() < 1e-2


def test_channels_are_apart(rng):
    image = rng.random((8, 9, 3)) * [1.0, 0.01, 0.3]
    expected = np.stack([reference.local_norm(image[..., c], 5, 0.9) for c in range(3)], axis=-1)
    assert_close(normalize(image, floor=0.9), expected)


def test_light_and_contrast_do_not_matter(rng):
    image = rng.random((10, 9))
    assert_close(normalize(0.3 * image + 0.6), normalize(image))


@pytest.mark.parametrize("value", [0.0, 0.1, 1.0])
def test_constant_images_give_zero_and_a_finite_gradient(value):
    image = jnp.full((6, 7), value, jnp.float32)
    assert np.all(normalize(image) == 0)
    assert np.isfinite(jacobian(image)).all()


def test_constant_areas_give_exactly_zero_in_float32(rng):
    image = jnp.asarray(rng.random((12, 12)), jnp.float32).at[3:10, 2:9].set(0.7)
    assert np.all(normalize(image)[5:8, 4:7] == 0)


def test_one_pixel_is_an_image():
    assert normalize(jnp.ones((1, 1))) == 0


def test_bad_windows_and_floors_are_refused():
    with pytest.raises(ValueError, match=r"window must be odd.* got 4\. Use 5"):
        normalize(jnp.ones((5, 5)), window=4)
    with pytest.raises(ValueError, match=r"floor must lie in \(0, 1\]"):
        normalize(jnp.ones((5, 5)), floor=0.0)
