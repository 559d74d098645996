import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.spatial.distance import cdist

from jaxface.metrics import reconstruction as rec
from tests.reference import metrics_reference as ref
from tests.tolerances import assert_close


def test_psnr_by_hand():
    image, reference = np.zeros((4, 5)), np.full((4, 5), 0.1)
    assert rec.psnr(image, reference, peak=1.0) == pytest.approx(20.0)
    assert rec.psnr(image * 255, reference * 255, peak=255) == pytest.approx(20.0)
    assert rec.psnr(image, reference, peak=10.0) == pytest.approx(40.0)
    assert rec.psnr(image, image, peak=1.0) == np.inf


def test_bytes_do_not_wrap_around():
    dark, bright = np.zeros((3, 3), np.uint8), np.full((3, 3), 255, np.uint8)
    assert rec.psnr(dark, bright, peak=255) == pytest.approx(0.0)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.float32])
def test_the_peak_may_be_in_the_type_of_the_pixels(rng, dtype):
    """255 squared is 1 in bytes and infinite in half precision: a PSNR of -21.0 dB where it is 27.1."""
    image = rng.integers(0, 256, (13, 14), np.uint8)
    other = (image // 2 + 60).astype(np.uint8)
    peak = dtype(255)
    assert rec.psnr(image, other, peak=peak) == rec.psnr(image, other, peak=255.0)
    assert rec.ssim(image, other, peak=peak) == rec.ssim(image, other, peak=255.0)
    assert rec.psnr(image.astype(dtype), other.astype(dtype), peak=np.array(peak)) == pytest.approx(
        20 * np.log10(255) - 10 * np.log10(np.mean((image.astype(float) - other) ** 2)), rel=1e-12
    )


@pytest.mark.parametrize("scale", [1e200, 1e-200, 2.0**500])
def test_the_unit_of_the_pixels_changes_nothing(rng, scale):
    image, reference = rng.random((2, 12, 13))
    for measure in (rec.psnr, rec.ssim):
        expected = measure(image, reference, peak=1.0)
        assert_close(measure(scale * image, scale * reference, peak=scale), expected)


def test_psnr_of_a_batch_is_that_of_each_image(rng):
    images, references = rng.random((2, 6, 7, 8))
    images[2] = references[2]
    each = rec.psnr(images, references, peak=1.0, axis=(1, 2))
    for i in range(6):
        assert each[i] == rec.psnr(images[i], references[i], peak=1.0)
    assert each[2] == np.inf


@pytest.mark.parametrize("shape", [(11, 11), (14, 19)])
@pytest.mark.parametrize("peak", [1.0, 255.0])
def test_ssim_against_the_definition(rng, shape, peak):
    reference = peak * rng.random(shape)
    image = reference + 0.1 * peak * rng.normal(size=shape)
    assert_close(rec.ssim(image, reference, peak=peak), ref.ssim(image, reference, peak), factor=10.0)


def test_ssim_against_gaussian_filters(rng):
    """The usual implementation: filter the whole image, cut the border off."""
    x, y = rng.random((2, 40, 33))

    def smooth(a):
        return gaussian_filter(a, 1.5, truncate=3.5)

    mx, my = smooth(x), smooth(y)
    vx, vy, cov = smooth(x * x) - mx**2, smooth(y * y) - my**2, smooth(x * y) - mx * my
    c1, c2 = 0.01**2, 0.03**2
    full = (2 * mx * my + c1) * (2 * cov + c2) / ((mx**2 + my**2 + c1) * (vx + vy + c2))
    assert_close(rec.ssim_map(x, y, peak=1.0), full[5:-5, 5:-5])
    assert_close(rec.ssim(x, y, peak=1.0), full[5:-5, 5:-5].mean())


def test_ssim_of_equal_constant_and_opposite_images(rng):
    image = rng.random((16, 16))
    assert_close(rec.ssim(image, image, peak=1.0), 1.0)
    assert_close(rec.ssim(np.zeros((12, 12)), np.ones((12, 12)), peak=1.0), 1e-4 / (1.0 + 1e-4))
    checkers = np.indices((16, 16)).sum(axis=0) % 2 - 0.5
    assert rec.ssim(checkers, -checkers, peak=1.0) < -0.9


def test_ssim_of_a_batch(rng):
    images, references = rng.random((2, 2, 3, 12, 13))
    each = rec.ssim(images, references, peak=1.0)
    assert each.shape == (2, 3)
    assert_close(each[1, 2], rec.ssim(images[1, 2], references[1, 2], peak=1.0))


def test_cosine_distance_by_hand():
    assert rec.cosine_distance([1.0, 0.0], [5.0, 0.0]) == 0.0
    assert rec.cosine_distance([1.0, 0.0], [0.0, 2.0]) == 1.0
    assert rec.cosine_distance([1.0, 2.0], [-2.0, -4.0]) == pytest.approx(2.0)
    assert rec.cosine_distance([0.0, 0.0], [1.0, 0.0]) == 1.0
    assert rec.cosine_distance([0.0, 0.0], [0.0, 0.0]) == 1.0


def test_cosine_distance_of_huge_and_tiny_vectors():
    assert rec.cosine_distance([1e300, 1e300], [1e-300, 1e-300]) == pytest.approx(0.0, abs=1e-15)
    assert rec.cosine_distance([1e300, 0.0], [0.0, 1e300]) == 1.0


def test_cosine_distances_against_scipy(rng):
    gallery, probes = rng.normal(size=(7, 5)), rng.normal(size=(4, 5))
    assert_close(rec.cosine_distance(gallery[:, None], probes), cdist(gallery, probes, "cosine"))
    assert (rec.cosine_distance(gallery, gallery) >= 0.0).all()  # rounding must not make a distance negative
    many = rng.normal(size=(200, 5))
    assert (rec.cosine_distance(many, many) >= 0.0).all()
    assert (rec.cosine_distance(many, -many) <= 2.0).all()
    gallery[3] = 0.0
    assert_close(rec.cosine_distance(gallery[3], probes), np.ones(4))


def test_what_reconstruction_refuses():
    image = np.zeros((4, 4))
    with pytest.raises(TypeError, match="peak"):
        rec.psnr(image, image)
    with pytest.raises(ValueError, match="peak must lie in"):
        rec.psnr(image, image, peak=0.0)
    with pytest.raises(ValueError, match=r"peak must have shape \[\]; got shape \(2,\)"):
        rec.psnr(image, image, peak=[1.0, 2.0])
    for other in (image.astype(complex), image.astype(str), image.astype(object)):
        with pytest.raises(ValueError, match="reference must be real numbers; got an array of dtype"):
            rec.psnr(image, other, peak=1.0)
    with pytest.raises(ValueError, match=r"one shape and hold pixels; got \(4, 4\) and \(4,\)"):
        rec.psnr(image, image[0], peak=1.0)
    with pytest.raises(ValueError, match="hold pixels"):
        rec.psnr([], [], peak=1.0)
    with pytest.raises(ValueError, match="image must be finite"):
        rec.psnr(image + np.nan, image, peak=1.0)
    with pytest.raises(ValueError, match=r"h and w at least 11 \(the window\); got shape \(4, 4\)"):
        rec.ssim(image, image, peak=1.0)
    with pytest.raises(ValueError, match="peak must lie in"):
        rec.ssim(np.zeros((11, 11)), np.zeros((11, 11)), peak=-1.0)
    with pytest.raises(ValueError, match=r"y must have shape \[..., d\] with d = 2"):
        rec.cosine_distance([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="x must be finite"):
        rec.cosine_distance([np.inf, 0.0], [1.0, 0.0])
