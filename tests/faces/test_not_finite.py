"""A pixel that is not a number, an image in another unit, and types that are too narrow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.faces import (
    block_dct,
    color_hist,
    geometry,
    hog,
    lbp,
    local_descriptors,
    local_norm,
    pipeline,
    tps,
)
from tests.tolerances import assert_close

SCALES = {"cells": (4,), "radii": (1,), "block": 2, "stride": 4, "num_bins": 6}
OF_IMAGES = {
    "lbp": lambda image: lbp.encode(image, cells=(2, 2), radii=(1, 2)),
    "hog": lambda image: hog.encode(image, cell=4, num_bins=6, block=2),
    "hog cells": lambda image: hog.cell_histograms(image, cell=4, num_bins=6),
    "local norm": local_norm.normalize,
    "block dct": lambda image: block_dct.encode(image, grid=(2, 2)),
    "gradients": lambda image: local_descriptors.encode(image, **SCALES).x,
    "patterns": lambda image: local_descriptors.encode(image, **SCALES).y,
    "luv": lambda image: color_hist.hard_histogram(jnp.stack([image] * 3, axis=-1)),
    "luv soft": lambda image: color_hist.soft_histogram(jnp.stack([image] * 3, axis=-1)),
}
WITHOUT_UNIT = ("lbp", "hog", "local norm", "gradients", "patterns")


def image(rng):
    return rng.uniform(size=(16, 16)).astype(np.float32)


def with_nan(pixels):
    pixels = pixels.copy()
    pixels[0, 3] = np.nan
    return pixels


@pytest.mark.parametrize("name", OF_IMAGES)
def test_one_pixel_of_nan_makes_all_of_its_image_unknown(name, rng):
    x = image(rng)
    found = jax.vmap(OF_IMAGES[name])(jnp.stack([x, with_nan(x)]))
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()
    assert np.isnan(OF_IMAGES[name](with_nan(x))).all()


def test_codes_of_nan_are_refused_or_none(rng):
    x = image(rng)
    with pytest.raises(ValueError, match="image must be finite; 1 of 256 values are NaN"):
        lbp.codes(with_nan(x), radius=1)
    found = jax.jit(lambda image: lbp.codes(image, radius=1))(with_nan(x))
    assert (found == -1).all()
    np.testing.assert_array_equal(jax.jit(lambda image: lbp.codes(image, radius=1))(x), lbp.codes(x, radius=1))


def test_a_batch_keeps_the_images_that_are_known(rng):
    steps = pipeline.build([("lbp", {"cells": (2, 2), "radii": (1,)})])
    images = np.stack([image(rng) for _ in range(5)])
    expected = pipeline.encode_batch(steps, images, block_size=2)
    images[3] = with_nan(images[3])
    found = pipeline.encode_batch(steps, images, block_size=2)
    assert np.isnan(found[3]).all()
    kept = np.array([0, 1, 2, 4])
    assert_close(found[kept], expected[kept])


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**100])
@pytest.mark.parametrize("name", WITHOUT_UNIT)
def test_textures_have_no_unit(name, scale, rng):
    x = image(rng)
    assert_close(OF_IMAGES[name](np.float32(scale) * x), OF_IMAGES[name](x))


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**100])
def test_splines_have_no_unit(scale, rng):
    source, target = rng.uniform(size=(2, 6, 2)).astype(np.float32)
    expected = tps.transform(tps.interpolant(source, target, ridge=0.0), source[:3])
    scale = np.float32(scale)
    found = tps.transform(tps.interpolant(scale * source, scale * target, ridge=0.0), scale * source[:3])
    assert_close(found / scale, expected)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_narrow_types_are_refused(dtype, rng):
    x = jnp.asarray(image(rng), dtype)
    for function in (lambda x: geometry.resize(x, height=4, width=4, method="area"), OF_IMAGES["lbp"]):
        with pytest.raises(ValueError, match=r"image must be float32 or float64.*got dtype b?float16.*astype"):
            function(x)
    spline = tps.interpolant(np.eye(3, 2), np.eye(3, 2), ridge=0.0)
    with pytest.raises(ValueError, match=r"got dtype b?float16"):
        tps.transform(spline, x[:, :2])
