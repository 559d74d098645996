"""Thin-plate splines: the smoothest map through landmarks, and the warp of a face onto a reference.

Points are `[k, 2]` as (x, y) = (column, row) in pixels; (0, 0) is the centre of the first pixel. The spline is

    f(p) = A [1, q] + sum_i w_i U(|q - q_i|),   U(r) = r^2 log r,   q = (p - mean) / scale,

whose weights solve

    [K + ridge I   P] [w]   [y]
    [P'            0] [a] = [0],   K_ij = U(|q_i - q_j|),   P = [1, q].

Coordinates are measured from the landmarks' mean in units of their root mean square distance, so the ridge
means the same at every image size and the system stays well conditioned in float32.

Landmarks on one line leave the direction across it undetermined. They are refused where their values are known. Inside
a transformation the map is finite and passes through the landmarks, but is arbitrary across the line. Coinciding
landmarks need a ridge above 0 and are refused without one where their values are known.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.core.pytree import params
from jaxface.faces import pixels
from jaxface.linalg import scaling

__all__ = ["warp"]


@params
class ThinPlateSpline:
    """A fitted spline from the plane to the plane."""

    mean: jax.Array  # [2], of the source landmarks
    scale: jax.Array  # [], their root mean square distance from the mean
    knots: jax.Array  # [k, 2], source landmarks in normalised coordinates
    weights: jax.Array  # [k, 2]
    affine: jax.Array  # [3, 2], rows: constant, x, y


def interpolant(source_points: ArrayLike, target_points: ArrayLike, *, ridge: ArrayLike) -> ThinPlateSpline:
    """The spline that takes `source_points [k, 2]` to `target_points [k, 2]`: exactly when `ridge` is 0.

    A larger ridge gives a smoother map that misses the landmarks, up to the affine least squares fit. Differentiable in
    both.
    """
    k = checks.shapes(source_points=(source_points, "k 2"), target_points=(target_points, "k 2"))["k"]
    checks.floating(source_points=source_points, target_points=target_points)
    checks.at_least("the number of landmarks", k, 3, "an affine map of the plane has three")
    checks.between("ridge", ridge, 0.0, np.inf, closed_high=False)
    checks.finite(source_points=source_points, target_points=target_points)
    _check_spread("source_points", source_points, ridge)
    source_points, target_points = jnp.asarray(source_points), jnp.asarray(target_points)
    mean = jnp.mean(source_points, axis=0)
    centered = source_points - mean[None, :]
    power = scaling.exponent(centered)
    scale = scaling.shifted(jnp.sqrt(jnp.mean(jnp.sum(scaling.shifted(centered, -power) ** 2, axis=1))), power)
    knots = centered / scale
    values = jnp.concatenate([target_points, jnp.zeros_like(target_points, shape=(3, 2))])
    solution = jnp.linalg.solve(_system(knots, ridge), values)
    return ThinPlateSpline(mean=mean, scale=scale, knots=knots, weights=solution[:k], affine=solution[k:])


def transform(spline: ThinPlateSpline, points: ArrayLike) -> jax.Array:
    """f(p) of every row of `points [n, 2]`: `[n, 2]`."""
    checks.shapes(points=(points, "n 2"))
    checks.floating(points=points)
    local = (jnp.asarray(points) - spline.mean[None, :]) / spline.scale
    return _with_ones(local) @ spline.affine + _radial(local, spline.knots) @ spline.weights


def warp(
    image: ArrayLike,
    landmarks: ArrayLike,
    reference: ArrayLike,
    *,
    height: int,
    width: int,
    ridge: ArrayLike,
) -> jax.Array:
    """The face `[height, width, ...]` with the image's `landmarks [k, 2]` moved to `reference [k, 2]`.

    Every pixel of the result is looked up in the image, at the spline that takes reference to landmarks, by
    bilinear interpolation; beyond the border the nearest pixel is repeated. There is no smoothing: resize an
    image first if it is much larger than the result. Differentiable in the image and in both sets of landmarks.
    """
    pixels.require(image)
    checks.at_least("height", height, 1)
    checks.at_least("width", width, 1)
    sizes = checks.shapes(landmarks=(landmarks, "k 2"), reference=(reference, "k 2"))
    checks.at_least("the number of landmarks", sizes["k"], 3, "an affine map of the plane has three")
    checks.finite(landmarks=landmarks, reference=reference)
    checks.between("ridge", ridge, 0.0, np.inf, closed_high=False)
    _check_spread("reference", reference, ridge)
    spline = interpolant(reference, landmarks, ridge=ridge)
    grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).reshape(-1, 2)
    places = transform(spline, jnp.asarray(grid, spline.knots.dtype))
    return bilinear(image, places).reshape(height, width, *np.shape(image)[2:])


def bilinear(image: ArrayLike, points: ArrayLike) -> jax.Array:
    """Values between pixels, at `points [n, 2]` as (x, y): `[n, ...]`; outside, those of the nearest pixel."""
    pixels.require(image)
    checks.shapes(points=(points, "n 2"))
    checks.floating(points=points)
    image, points = jnp.asarray(image), jnp.asarray(points)
    height, width = image.shape[:2]
    last = np.asarray([width, height]) - 1
    inside = jnp.clip(points, 0, jnp.asarray(last, points.dtype)[None, :])
    low = jnp.minimum(jnp.floor(inside).astype(jnp.int32), np.maximum(last - 1, 0).astype(np.int32)[None, :])
    high = jnp.minimum(low + 1, last.astype(np.int32)[None, :])
    part = (inside - low).reshape(*points.shape, *(1,) * (image.ndim - 2))
    left, top = low[:, 0], low[:, 1]
    right, bottom = high[:, 0], high[:, 1]
    above = image[top, left] * (1 - part[:, 0]) + image[top, right] * part[:, 0]
    below = image[bottom, left] * (1 - part[:, 0]) + image[bottom, right] * part[:, 0]
    return above * (1 - part[:, 1]) + below * part[:, 1]


def _radial(points: jax.Array, knots: jax.Array) -> jax.Array:
    """U(r) = r^2 log(r^2) / 2 between `[n, 2]` and `[k, 2]`; value and gradient are 0 at r = 0."""
    squared = jnp.sum((points[:, None, :] - knots[None, :, :]) ** 2, axis=-1)
    positive = jnp.where(squared == 0, jnp.ones_like(squared), squared)
    return positive * jnp.log(positive) / 2


def _with_ones(points: jax.Array) -> jax.Array:
    return jnp.concatenate([jnp.ones_like(points[:, :1]), points], axis=1)


def _system(knots: jax.Array, ridge: ArrayLike) -> jax.Array:
    """The bordered matrix `[k + 3, k + 3]`.

    The corner holds -k eps / (1 + ridge) for the two slopes: at rounding level beside P' (K + ridge I)^-1 P for
    landmarks in general position, and enough to keep the system regular when they lie on one line. Without a ridge the
    spline still passes through the landmarks.
    """
    k, dtype = knots.shape[0], knots.dtype
    ridge = jnp.asarray(ridge, dtype)
    bending = _radial(knots, knots) + ridge * jnp.eye(k, dtype=dtype)
    border = _with_ones(knots)
    corner = jnp.diag(jnp.asarray([0.0, 1.0, 1.0], dtype)) * (-k * jnp.finfo(dtype).eps / (1 + ridge))
    return jnp.block([[bending, border], [border.T, corner]])


def _check_spread(name: str, source_points: ArrayLike, ridge: ArrayLike) -> None:
    """Refuses concrete landmarks that lie on one line, and coinciding ones without a ridge."""
    if not checks.is_concrete(source_points):
        return
    points = np.asarray(source_points, np.float64)
    centered = points - points.mean(axis=0)
    largest, smallest = np.linalg.svd(centered, compute_uv=False)
    if smallest <= 1e-6 * largest:
        raise ValueError(
            f"{name} must not lie on one line; the smaller spread of the {len(points)} points is "
            f"{smallest:.3g}, the larger {largest:.3g}. Add a landmark off the line."
        )
    gaps = np.linalg.norm(points[:, None] - points[None], axis=-1) + largest * np.eye(len(points))
    if checks.is_concrete(ridge) and ridge == 0 and gaps.min() <= 1e-9 * largest:
        first, second = (int(i) for i in np.unravel_index(gaps.argmin(), gaps.shape))
        raise ValueError(
            f"{name} must differ when ridge is 0; points {first} and {second} coincide. "
            "Remove one of them or use a ridge above 0."
        )
