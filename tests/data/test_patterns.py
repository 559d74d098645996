"""Photographs that a generator made."""

import numpy as np
import pytest

from jaxface.data import patterns
from tests.tolerances import assert_close

PLAIN = {"num_classes": 3, "images_per_class": 4, "size": (32, 40)}


def made(seed=0, **options):
    return patterns.patterns(np.random.default_rng(seed), **{**PLAIN, **options})


def test_has_images_of_every_class():
    found = made(off_topic=0.0)
    assert found.data.images.shape == (12, 32, 40, 3)
    assert found.data.images.dtype == np.float32
    assert found.data.ids.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert found.data.names == ("class000", "class001", "class002")
    assert 0 <= found.data.images.min() < found.data.images.max() <= 1
    assert "generator" in found.data.credit
    assert not found.is_off_topic.any()
    assert len(found.kinds) == 3


def test_the_same_seed_makes_the_same_pictures():
    first, again, other = made(0), made(0), made(1)
    np.testing.assert_array_equal(first.data.images, again.data.images)
    assert (first.data.images != other.data.images).mean() > 0.9


def test_without_variation_a_class_has_one_set_of_colours():
    """Means over the image: layout and texture have zero mean, the shares of the colours are those of the class."""
    found = made(variation=0.0, off_topic=0.0, spread=0.6)
    mean = found.data.images.mean(axis=(1, 2))
    for kind, rows in zip(found.kinds, np.split(mean, 3), strict=True):
        np.testing.assert_allclose(rows, np.broadcast_to(kind.shares @ kind.colors, (4, 3)), atol=0.03)


def test_classes_without_spread_are_alike():
    found = made(spread=0.0)
    for kind in found.kinds:
        assert_close(kind.colors, np.full((3, 3), 0.45))
        assert_close(kind.frequency, 9.0)


def test_the_texture_has_its_frequency_and_direction(rng):
    kind = patterns.Kind(np.full((3, 3), 0.5), np.full(3, 1 / 3), 10.0, 0.0, 20.0, 0.1)
    image = patterns.draw(rng, kind, size=(64, 64), variation=0.0).mean(axis=2)
    power = np.abs(np.fft.rfft2(image - image.mean())) ** 2
    down, right = np.fft.fftfreq(64)[:, None] * 64, np.fft.rfftfreq(64)[None, :] * 64
    assert abs(np.log((power * np.hypot(down, right)).sum() / power.sum() / 10)) < 0.3
    assert (power * right**2).sum() > 10 * (power * down**2).sum()  # waves that run to the right
    assert abs(image.std() - 0.1) < 0.03


def test_some_images_show_something_else():
    found = made(images_per_class=40, size=(8, 8), variation=0.0, off_topic=0.25)
    assert 0.1 < found.is_off_topic.mean() < 0.4
    mean = found.data.images.mean(axis=(1, 2))
    away = np.linalg.norm(mean - np.array([kind.shares @ kind.colors for kind in found.kinds])[found.data.ids], axis=1)
    assert np.median(away[found.is_off_topic]) > 3 * np.median(away[~found.is_off_topic])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_classes": 0}, "num_classes must be at least 1; got 0"),
        ({"images_per_class": 0}, "images_per_class must be at least 1; got 0"),
        ({"size": (4, 40)}, "the shorter side of size must be at least 8; got 4"),
        ({"spread": -1.0}, "spread must lie in"),
        ({"variation": np.nan}, "variation must"),
        ({"off_topic": 1.5}, r"off_topic must lie in \[0, 1\]; got 1.5"),
    ],
)
def test_messages(options, message):
    with pytest.raises(ValueError, match=message):
        made(**options)
