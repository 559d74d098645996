"""Colour histograms in CIE 1976 L*u*v*, where equal distances look about equally different.

Pixels are sRGB (gamma-encoded, white D65). The ranges are fixed and hold the whole sRGB gamut, so that histograms of
different images can be compared: L* in [0, 100], u* in [-84, 176], v* in [-135, 108]. With the usual 16 bins no edge
lies at u* = v* = 0, where rounding would scatter grey pixels. Values beyond the ranges fall into the outermost bins.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import checks
from jaxface.faces import pixels

__all__ = ["hard_histogram", "rgb_to_luv", "soft_histogram"]

LUV_RANGES = ((0.0, 100.0), (-84.0, 176.0), (-135.0, 108.0))


def _srgb_to_xyz() -> np.ndarray:
    """Linear sRGB to XYZ, `[3, 3]`, from the chromaticities of the primaries and of D65 with Y = 1."""
    x, y = np.asarray([[0.64, 0.33], [0.30, 0.60], [0.15, 0.06]]).T
    primaries = np.stack([x, y, 1 - x - y]) / y
    white = np.asarray([0.3127, 0.3290, 1 - 0.3127 - 0.3290]) / 0.3290
    return primaries * np.linalg.solve(primaries, white)[None, :]


XYZ = _srgb_to_xyz()


def rgb_to_luv(image: jax.Array) -> jax.Array:
    """L*u*v* of an sRGB image, `[h, w, 3]`.

    L* = 116 y^(1/3) - 16 above y = (6/29)^3, (29/3)^3 y below; u* = 13 L* (u' - u'_white), v* alike, with
    u' = 4 X / (X + 15 Y + 3 Z) and v' = 9 Y / (X + 15 Y + 3 Z).
    """
    pixels.require_color(image)
    image = jnp.asarray(image)
    curved = ((jnp.maximum(image, 0.04045) + 0.055) / 1.055) ** 2.4
    linear = jnp.where(image <= 0.04045, image / 12.92, curved)
    xyz = jnp.matmul(linear, jnp.asarray(XYZ.T, image.dtype), precision=jax.lax.Precision.HIGHEST)
    luminance = xyz[..., 1]
    threshold = (6 / 29) ** 3
    root = 116 * jnp.cbrt(jnp.maximum(luminance, threshold)) - 16
    lightness = jnp.where(luminance > threshold, root, (29 / 3) ** 3 * luminance)
    total = xyz @ jnp.asarray([1.0, 15.0, 3.0], image.dtype)
    total = jnp.where(total > 0, total, jnp.ones_like(total))  # black: L* = 0 makes u* and v* 0
    white = XYZ.sum(axis=1)
    white_u, white_v = (white * [4, 9, 0])[:2] / (white @ [1, 15, 3])
    u = 13 * lightness * (4 * xyz[..., 0] / total - float(white_u))
    v = 13 * lightness * (9 * luminance / total - float(white_v))
    return jnp.stack([lightness, u, v], axis=-1)


def hard_histogram(image: jax.Array, *, num_bins: int = 16) -> jax.Array:
    """Share of the pixels in each box of L*u*v*, `[num_bins^3]` with L* slowest; sums to 1, or NaN with NaN pixels."""
    position = _bin_position(image, num_bins)
    index = jnp.clip(jnp.floor(position).astype(jnp.int32), 0, num_bins - 1)
    flat = _flat_index(index, num_bins)
    count = jax.ops.segment_sum(jnp.ones_like(flat), flat, num_bins**3)
    return pixels.known(position, count.astype(position.dtype) / flat.size)


def soft_histogram(image: jax.Array, *, num_bins: int = 16) -> jax.Array:
    """The same with each pixel shared trilinearly between the eight nearest bin centres; differentiable."""
    checks.at_least("num_bins", num_bins, 2, "a pixel is shared between two bins along each axis")
    position = jnp.clip(_bin_position(image, num_bins) - 0.5, 0, num_bins - 1)
    low = jnp.clip(jnp.floor(position).astype(jnp.int32), 0, num_bins - 2)
    part = position - low
    # Groups of about a thousand pixels are summed separately: one long float32 sum would lose the small shares.
    group = (np.arange(len(low)) // 1024).astype(np.int32)
    total = jnp.zeros(((int(group[-1]) + 1) * num_bins**3,), position.dtype)
    for corner in itertools.product((0, 1), repeat=3):
        upper = np.asarray(corner, np.int32)[None, :]
        share = jnp.prod(jnp.where(upper == 1, part, 1 - part), axis=1)
        total = total.at[group * num_bins**3 + _flat_index(low + upper, num_bins)].add(share)
    return pixels.known(position, total.reshape(-1, num_bins**3).sum(axis=0) / len(low))


def _bin_position(image: jax.Array, num_bins: int) -> jax.Array:
    """Where every pixel lies in units of bins, `[h w, 3]`: bin b covers [b, b + 1]."""
    checks.at_least("num_bins", num_bins, 1)
    luv = rgb_to_luv(image).reshape(-1, 3)
    low, high = np.asarray(LUV_RANGES).T
    to_bins = num_bins / (high - low)
    return (luv - jnp.asarray(low, luv.dtype)[None, :]) * jnp.asarray(to_bins, luv.dtype)[None, :]


def _flat_index(index: jax.Array, num_bins: int) -> jax.Array:
    return (index[:, 0] * num_bins + index[:, 1]) * num_bins + index[:, 2]
