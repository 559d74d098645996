import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.faces import geometry
from tests.reference import faces_reference as reference
from tests.tolerances import assert_close

SIZES = [(5, 4), (14, 22), (7, 11), (1, 1), (13, 3)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channels", [(), (3,)])
def test_area_resize_is_the_mean_over_each_new_pixel(rng, size, channels):
    image = rng.random((7, 11, *channels))
    height, width = size
    result = geometry.resize(image, height=height, width=width, method="area")
    assert_close(result, reference.resize_area(image, height, width))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("method", "kernel", "support"), [("linear", reference.triangle, 1), ("lanczos", reference.lanczos3, 3)]
)
def test_kernel_resize_is_the_normalised_kernel_sum(rng, size, method, kernel, support):
    image = rng.random((7, 11))
    height, width = size
    expected = reference.resize_kernel(image, height, width, kernel, support)
    assert_close(geometry.resize(image, height=height, width=width, method=method), expected)


@pytest.mark.parametrize(("method", "theirs"), [("linear", "linear"), ("lanczos", "lanczos3")])
def test_kernel_resize_agrees_with_jax_image(rng, method, theirs):
    image = rng.random((25, 17)).astype("float32")
    expected = jax.image.resize(image, (10, 30), theirs, antialias=True)
    assert_close(geometry.resize(image, height=10, width=30, method=method), expected)


def test_crop_takes_the_window(rng):
    image = rng.random((6, 8, 3))
    assert_close(geometry.crop(image, top=1, left=2, height=5, width=6), image[1:6, 2:8])


def test_flip_mirrors_left_and_right(rng):
    image = rng.random((4, 5, 3))
    assert_close(geometry.flip(image), image[:, ::-1])
    assert_close(geometry.flip(geometry.flip(image)), image)


def test_to_gray_is_luma_and_leaves_gray_alone(rng):
    image = rng.random((4, 5, 3))
    expected = 0.299 * image[..., 0] + 0.587 * image[..., 1] + 0.114 * image[..., 2]
    assert_close(geometry.to_gray(image), expected)
    assert_close(geometry.to_gray(image[..., 0]), image[..., 0])
    assert_close(geometry.to_gray(np.repeat(image[..., :1], 3, axis=2)), image[..., 0])


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ({"top": 3, "left": 0, "height": 4, "width": 2}, "inside the image of 6 x 8 pixels; got rows 3 to 7"),
        ({"top": 0, "left": 7, "height": 1, "width": 2}, "columns 7 to 9"),
        ({"top": -1, "left": 0, "height": 2, "width": 2}, "top must be at least 0"),
        ({"top": 0, "left": 0, "height": 0, "width": 2}, "height must be at least 1"),
        ({"top": 0, "left": 0.5, "height": 1, "width": 2}, "left must be an integer"),
    ],
)
def test_a_crop_outside_the_image_is_refused(window, message):
    with pytest.raises(ValueError, match=message):
        geometry.crop(jnp.zeros((6, 8)), **window)


def test_an_unknown_resize_method_is_refused():
    with pytest.raises(ValueError, match=r"method must be one of .*Did you mean 'lanczos'"):
        geometry.resize(jnp.zeros((4, 4)), height=2, width=2, method="lanczos3")
    with pytest.raises(ValueError, match="width must be at least 1"):
        geometry.resize(jnp.zeros((4, 4)), height=2, width=0, method="area")
