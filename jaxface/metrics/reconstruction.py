"""Reconstruction: PSNR, SSIM and the normalised cosine distance.

`peak` is the largest possible pixel value (1 or 255) and must be given: images alone do not say. Clip a
reconstruction to the valid range first if the protocol does; nothing is clipped here.
"""

import math

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from jaxface.core import checks
from jaxface.metrics import arguments
from jaxface.metrics.arguments import Array

__all__ = ["cosine_distance", "psnr", "ssim"]

_RADIUS, _SIGMA = 5, 1.5  # an 11 x 11 window
_K1, _K2 = 0.01, 0.03


def psnr(
    image: npt.ArrayLike, reference: npt.ArrayLike, *, peak: float, axis: int | tuple[int, ...] | None = None
) -> Array:
    """Peak signal-to-noise ratio in dB, 10 log10(peak^2 / mean squared error); +inf for a perfect reconstruction.

    One image of any shape by default; for a batch `[n, h, w]` give the axes of an image, `axis=(1, 2)`, and
    average the `[n]` results yourself: the mean of PSNRs is not the PSNR of the mean error.
    """
    x, y, peak = _scaled(image, reference, peak)
    with np.errstate(divide="ignore"):
        return 10.0 * np.log10(peak**2 / np.mean((x - y) ** 2, axis=axis))


def ssim(image: npt.ArrayLike, reference: npt.ArrayLike, *, peak: float) -> Array:
    """Structural similarity `[...]` of grey images `[..., h, w]`: the mean of `ssim_map`, 1 when they are equal."""
    return ssim_map(image, reference, peak=peak).mean(axis=(-2, -1))


def ssim_map(image: npt.ArrayLike, reference: npt.ArrayLike, *, peak: float) -> Array:
    """SSIM `[..., h - 10, w - 10]` where the 11 x 11 Gaussian window (sigma 1.5) fits into `[..., h, w]`.

    (2 mx my + c1)(2 sxy + c2) / ((mx^2 + my^2 + c1)(sxx + syy + c2)) from the window's weighted means and
    (population) covariances, with c1 = (0.01 peak)^2 and c2 = (0.03 peak)^2.
    """
    x, y, peak = _scaled(image, reference, peak)
    if x.ndim < 2 or min(x.shape[-2:]) < 2 * _RADIUS + 1:
        raise ValueError(
            f"image must be [..., h, w] with h and w at least {2 * _RADIUS + 1} (the window); got shape {x.shape}."
        )
    mean_x, mean_y = _window_mean(x), _window_mean(y)
    var_x = _window_mean(x * x) - mean_x**2
    var_y = _window_mean(y * y) - mean_y**2
    cov = _window_mean(x * y) - mean_x * mean_y
    c1, c2 = (_K1 * peak) ** 2, (_K2 * peak) ** 2
    luminance = (2.0 * mean_x * mean_y + c1) / (mean_x**2 + mean_y**2 + c1)
    return luminance * (2.0 * cov + c2) / (var_x + var_y + c2)


def _window_mean(image: Array) -> Array:
    """Gaussian-weighted mean over every full window, one axis after the other."""
    offsets = np.arange(-_RADIUS, _RADIUS + 1)
    weights = np.exp(-0.5 * (offsets / _SIGMA) ** 2)
    weights /= weights.sum()
    rows = sliding_window_view(image, weights.size, axis=-2) @ weights
    return sliding_window_view(rows, weights.size, axis=-1) @ weights


def cosine_distance(x: npt.ArrayLike, y: npt.ArrayLike) -> Array:
    """Normalised cosine distance 1 - x.y / (|x| |y|) in [0, 2] of vectors `[..., d]` and `[..., d]`.

    It is a distance, 0 for the same direction: use its negative as a score. A zero vector has no direction
    and is at distance 1 from everything, itself included. `x[:, None]` against y gives all pairs.
    """
    a, b = _directions("x", x), _directions("y", y)
    checks.shapes(x=(a, "... d"), y=(b, "... d"))
    return np.clip(1.0 - np.sum(a * b, axis=-1), 0.0, 2.0)


def _directions(name: str, x: npt.ArrayLike) -> Array:
    """Unit vectors `[..., d]`, zero for zero; scaled by the largest entry first, so squares cannot overflow."""
    vectors = arguments.numbers(name, x)
    checks.shapes(**{name: (vectors, "... d")})
    checks.finite(**{name: vectors})
    largest = np.max(np.abs(vectors), axis=-1, keepdims=True, initial=0.0)
    scaled = vectors / np.where(largest > 0.0, largest, 1.0)
    norm = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return scaled / np.where(norm > 0.0, norm, 1.0)


def _scaled(image: npt.ArrayLike, reference: npt.ArrayLike, peak: float) -> tuple[Array, Array, float]:
    """Both images in float64, finite and of one shape, and the peak, all divided by a power of two near the peak.

    Broadcasting would compare the wrong pixels. The square of a peak of 255 in bytes is 1, and that of 1e200 is
    infinite; a power of two changes no bit of the result.
    """
    x, y = arguments.numbers("image", image), arguments.numbers("reference", reference)
    if x.shape != y.shape or x.size == 0:
        raise ValueError(f"image and reference must have one shape and hold pixels; got {x.shape} and {y.shape}.")
    checks.finite(image=x, reference=y)
    checks.shapes(peak=(peak, ""))
    largest = arguments.numbers("peak", peak)
    checks.positive("peak", largest)
    fraction, exponent = math.frexp(float(largest))
    return np.ldexp(x, -exponent), np.ldexp(y, -exponent), fraction
