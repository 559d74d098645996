import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.faces import local_norm
from tests.reference import faces_reference as reference
from tests.tolerances import assert_close

# Compiled whole: dispatched one by one, every operation would be compiled on its own.
normalize = jax.jit(local_norm.normalize, static_argnames=("window", "floor"))
gradient = jax.jit(jax.grad(lambda image: local_norm.normalize(image, window=3).sum()))


@pytest.mark.parametrize(("window", "size"), [(3, (8, 11)), (5, (8, 11)), (9, (3, 4)), (9, (1, 6))])
def test_every_window_holds_the_pixels_that_exist(rng, window, size):
    image = rng.random(size)
    assert_close(normalize(image, window=window), reference.local_norm(image, window, 1e-3))


def test_a_window_of_one_pixel_leaves_nothing(rng):
    assert_close(normalize(rng.random((3, 4)), window=1), np.zeros((3, 4)))


def test_the_floor_holds_where_contrast_is_low(rng):
    image = np.concatenate([rng.random((8, 8)), 0.5 + 1e-4 * rng.random((8, 8))], axis=1)
    result = normalize(image, window=3, floor=0.1)
    assert_close(result, reference.local_norm(image, 3, 0.1), factor=10)
    assert np.abs(result[:, 12:]).max() < 1e-2


def test_channels_are_apart(rng):
    image = rng.random((8, 9, 3)) * [1.0, 0.01, 0.3]
    expected = np.stack([reference.local_norm(image[..., c], 3, 0.9) for c in range(3)], axis=-1)
    assert_close(normalize(image, window=3, floor=0.9), expected)


def test_light_and_contrast_do_not_matter(rng):
    image = rng.random((8, 11))
    assert_close(normalize(0.3 * image + 0.6, window=5), normalize(image, window=5))


@pytest.mark.parametrize("value", [0.0, 0.1, 1.0])
def test_constant_images_give_zero_and_a_finite_gradient(value):
    image = jnp.full((12, 11), value, jnp.float32)
    assert np.all(normalize(image, window=3) == 0)
    assert np.isfinite(gradient(image)).all()


def test_constant_areas_give_exactly_zero_in_float32(rng):
    image = rng.random((12, 11)).astype("float32")
    image[3:10, 2:9] = 0.7
    assert np.all(normalize(image, window=3)[4:9, 3:8] == 0)


def test_one_pixel_is_an_image():
    assert normalize(jnp.ones((1, 1))) == 0


def test_bad_windows_and_floors_are_refused():
    with pytest.raises(ValueError, match=r"window must be odd.* got 4\. Use 5"):
        normalize(jnp.ones((5, 5)), window=4)
    with pytest.raises(ValueError, match=r"floor must lie in \(0, 1\]"):
        normalize(jnp.ones((5, 5)), floor=0.0)
