import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core import prng
from jaxface.faces import variation
from tests.tolerances import assert_close

SHAPE = (7, 6)
NOTHING = {"flip": False, "shift": 0.0, "scale": 0.0, "brightness": 0.0}


@pytest.fixture
def image(rng):
    return 0.2 + 0.6 * rng.random(SHAPE)


@jax.jit
def varied(key, image, flip, shift, scale, brightness):
    """Of 40 keys, in one program for all tests."""
    one = lambda key: variation.vary(key, image, flip=flip, shift=shift, scale=scale, brightness=brightness)  # noqa: E731
    return jax.vmap(one)(prng.member_keys(key, 40))


def of_keys(image, **changes):
    return np.asarray(varied(jax.random.key(0), jnp.asarray(image), *(NOTHING | changes).values()))


def sampled(image, rows, columns):
    """Linear interpolation at every pair of places, the border repeated outside, one pixel after the other."""
    found = np.zeros((len(rows), len(columns)))
    for i, y in enumerate(np.clip(rows, 0, image.shape[0] - 1)):
        for j, x in enumerate(np.clip(columns, 0, image.shape[1] - 1)):
            (top, left), (dy, dx) = (int(y), int(x)), (y % 1, x % 1)
            down, right = min(top + 1, image.shape[0] - 1), min(left + 1, image.shape[1] - 1)
            found[i, j] = (1 - dy) * ((1 - dx) * image[top, left] + dx * image[top, right]) + dy * (
                (1 - dx) * image[down, left] + dx * image[down, right]
            )
    return found


def test_nothing_asked_for_is_nothing_done(image):
    assert_close(of_keys(image), np.tile(image, (40, 1, 1)))


def test_one_image_in_two_is_mirrored(image):
    found = of_keys(image, flip=True)
    is_mirrored = np.isclose(found, image[:, ::-1], atol=1e-12).all(axis=(1, 2))
    assert_close(found[~is_mirrored], np.tile(image, ((~is_mirrored).sum(), 1, 1)))
    assert 10 < is_mirrored.sum() < 30


def test_the_change_of_place_is_an_interpolation(image):
    """The ramps of rows and columns say where each pixel came from, and the image itself is sampled there."""
    rows, columns = np.meshgrid(*(np.arange(size) / 10 for size in SHAPE), indexing="ij")
    settings = {"shift": 1.5, "scale": 0.2}
    places = [10 * of_keys(ramp, **settings) for ramp in (rows, columns)]
    for down, right, found in zip(*places, of_keys(image, **settings), strict=True):
        assert_close(found, sampled(image, down[:, 0], right[0]))
        middle = down[3, 0], right[0, 2:4].mean()
        assert np.abs(np.array(middle) - [3, 2.5]).max() <= 1.5 / 0.8 + 1e-9
    zoom = np.diff(places[0][:, 2:5, 0]).mean(axis=1)
    assert 1 / 1.2 - 1e-9 <= zoom.min() < 0.95
    assert 1.05 < zoom.max() <= 1 / 0.8 + 1e-9


def test_brightness_multiplies_all_values_alike(image):
    found = of_keys(image, brightness=0.4)
    gain = found.min(axis=(1, 2)) / image.min()
    assert_close(found, np.minimum(gain[:, None, None] * image, 1))
    assert (gain.min() < 0.8) & (gain.max() > 1.2) & (np.abs(gain - 1) <= 0.4).all()
    assert found.max() == 1


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("shift", -1, r"\[0, inf\)"), ("scale", 1.0, r"\[0, 1\)"), ("brightness", 2, "0, 1")],
)
def test_impossible_ranges_are_refused(name, value, expected, image):
    with pytest.raises(ValueError, match=rf"{name} must lie in .*{expected}"):
        variation.vary(jax.random.key(0), image, **(NOTHING | {name: value}))
