"""Local binary patterns: which of the neighbours on a circle are at least as bright as the centre.

A code is `sum_p 2^p [g_p >= g_c]` over P neighbours at angle 2 pi p / P and distance R (counter-clockwise
from the right), interpolated bilinearly. Uniform codes have at most two changes around the circle; each has a
bin of its own and all others share one: P (P - 1) + 3 bins, 59 for P = 8.

Ties count as brighter. Values are equal if they differ by less than 8 eps of the largest value of the image, so that
the rounding of interpolation in a flat or regular area is no pattern: such an area gets the all-ones code, in float32
and in float64.

Borders: only pixels whose whole circle lies inside the image have a code, and histograms count only these pixels. A
cell at the border is normalised by its own smaller count.
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import checks, machine
from jaxface.faces import pixels

__all__ = ["codes", "encode"]


def codes(image: jax.Array, *, radius: float, num_points: int = 8) -> jax.Array:
    """LBP codes, int32 `[h - 2b, w - 2b]` with b = ceil(radius), in [0, 2^num_points).

    An image with NaN is refused; inside a transformation, where values are unknown, all of its codes are -1.
    """
    pixels.require_gray(image)
    checks.finite(image=image)
    return codes_or_none(image, radius=radius, num_points=num_points)


def codes_or_none(image: jax.Array, *, radius: float, num_points: int = 8) -> jax.Array:
    """`codes` without a check of the values: all codes of an image with NaN are -1."""
    pixels.require_gray(image)
    _check_circle(radius, num_points)
    image = jnp.asarray(image)
    border = math.ceil(radius)
    rows, columns = (size - 2 * border for size in image.shape)
    if rows < 1 or columns < 1:
        raise ValueError(
            f"radius must leave pixels whose circle lies inside the image; got {radius:g} for an image of "
            f"{image.shape[0]} x {image.shape[1]} pixels. Use a smaller radius or a larger image."
        )

    def shifted(row: int, column: int) -> jax.Array:
        return image[border + row : border + row + rows, border + column : border + column + columns]

    threshold = shifted(0, 0) - 8 * machine.eps(image.dtype) * jnp.max(jnp.abs(image))
    code = jnp.zeros((rows, columns), jnp.int32)
    for point, taps in enumerate(_circle(radius, num_points)):
        value = sum(weight * shifted(row, column) for row, column, weight in taps)
        code |= (value >= threshold).astype(jnp.int32) << point
    return jnp.where(jnp.isfinite(image).all(), code, -1)


def uniform_table(num_points: int) -> np.ndarray:
    """Bin of every code, int32 `[2^P]`: uniform codes in increasing order, then one bin for the others."""
    _check_circle(1, num_points)
    code = np.arange(2**num_points)
    bits = (code[:, None] >> np.arange(num_points)) & 1
    uniform = (bits != np.roll(bits, 1, axis=1)).sum(axis=1) <= 2
    return np.where(uniform, np.cumsum(uniform) - 1, uniform.sum()).astype(np.int32)


def histograms(image: jax.Array, *, radius: float, cells: Sequence[int], num_points: int = 8) -> jax.Array:
    """Frequencies of the uniform patterns in a grid of `cells = (rows, columns)`: `[rows, columns, bins]`.

    Cell boundaries are at i h / rows, rounded up to whole pixels; each histogram sums to 1. Those of an image with NaN
    are NaN.
    """
    pixels.require_gray(image)
    _check_circle(radius, num_points)
    table = uniform_table(num_points)
    num_bins = num_points * (num_points - 1) + 3
    cell = _cell_of_pixel(np.shape(image), math.ceil(radius), cells)
    rows, columns = cells
    pattern = jnp.asarray(table)[codes_or_none(image, radius=radius, num_points=num_points)]
    # Integer counts: exact, and on a CPU many times faster than one-hot products.
    count = jax.ops.segment_sum(
        jnp.ones_like(pattern).ravel(), cell.ravel() * num_bins + pattern.ravel(), rows * columns * num_bins
    )
    size = np.bincount(cell.ravel(), minlength=rows * columns)
    frequency = count.reshape(rows * columns, num_bins) * jnp.asarray(1 / size, jnp.result_type(image))[:, None]
    return pixels.known(image, frequency.reshape(rows, columns, num_bins))


def encode(
    image: jax.Array,
    *,
    radii: Sequence[float] = (1, 2, 3),
    cells: Sequence[int],
    num_points: int = 8,
    root: bool = False,
) -> jax.Array:
    """Histograms of all cells at all radii, `[radii, rows, columns, bins]` flattened.

    With `root` the square root of the frequencies is taken: cells get unit length, and the dot product of two
    of them becomes their Bhattacharyya coefficient.
    """
    if len(radii) == 0:
        raise ValueError("radii must hold at least one radius; got none.")
    parts = [histograms(image, radius=radius, cells=cells, num_points=num_points) for radius in radii]
    vector = jnp.stack(parts).ravel()
    return jnp.sqrt(vector) if root else vector


def _circle(radius: float, num_points: int) -> list[list[tuple[int, int, float]]]:
    """For each neighbour its bilinear taps (row, column, weight); weights of 0 are left out."""
    angle = 2 * np.pi * np.arange(num_points) / num_points
    offsets = radius * np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    # Points on the axes are pixels and need no interpolation. The weights of the others are not rounded: with exact
    # weights 8-bit images have exact ties, such as 187 among 185, 188, 186, 191 at radius 2.
    whole = np.round(offsets)
    offsets = np.where(np.abs(offsets - whole) < 1e-9, whole, offsets)
    neighbours = []
    for row, column in offsets:
        top, left = math.floor(row), math.floor(column)
        down, right = row - top, column - left
        taps = [
            (top, left, (1 - down) * (1 - right)),
            (top, left + 1, (1 - down) * right),
            (top + 1, left, down * (1 - right)),
            (top + 1, left + 1, down * right),
        ]
        neighbours.append([(y, x, float(weight)) for y, x, weight in taps if weight > 0])
    return neighbours


def _cell_of_pixel(shape: tuple[int, ...], border: int, cells: Sequence[int]) -> np.ndarray:
    """Index of the cell of every pixel that has a code, int32 `[h - 2b, w - 2b]`; no cell may be empty."""
    if len(cells) != 2:
        raise ValueError(f"cells must be (rows, columns); got {cells!r}.")
    indices = []
    for name, size, count in zip(("rows", "columns"), shape, cells, strict=True):
        checks.at_least(f"cells ({name})", count, 1)
        index = np.arange(border, size - border) * count // size
        if len(np.unique(index)) < count:
            raise ValueError(
                f"cells must each hold a pixel with a code; {count} {name} of cells in {size} pixels leave "
                f"an empty one, the outer {border} pixels having no code. Use fewer cells or a larger image."
            )
        indices.append(index)
    return (indices[0][:, None] * cells[1] + indices[1][None, :]).astype(np.int32)


def _check_circle(radius: float, num_points: int) -> None:
    checks.positive("radius", radius)
    checks.at_least("num_points", num_points, 2)
    checks.at_most("num_points", num_points, 16, "the table of codes has 2^num_points rows")
