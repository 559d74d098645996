"""Two descriptors of every patch of a dense grid: oriented gradients (x) and local binary patterns (y).

A patch is block x block cells of `cell` pixels, and patches are `stride` pixels apart, so they may overlap. A scale is
a cell size with the radius of its patterns; patches of all scales have vectors of the same length. Pixels vote once for
each scale, and the histograms of all cells are two products with 0/1 matrices, one for each axis.

Histograms enter by the square root of their shares: the vector of a patch has unit length, and the dot product of two
is their Bhattacharyya coefficient.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import checks
from jaxface.faces import hog, lbp, pixels, separable
from jaxface.linalg import distances

__all__ = ["encode"]


class LocalDescriptors(NamedTuple):
    """Descriptors of the same places, scale by scale and row by row."""

    x: jax.Array  # [n, block^2 num_bins], gradients
    y: jax.Array  # [n, block^2 (P (P - 1) + 3)], patterns
    positions: jax.Array  # [n, 2], centre (x, y) of each patch in pixels


def encode(
    image: jax.Array,
    *,
    cells: Sequence[int],
    radii: Sequence[float],
    block: int,
    stride: int,
    num_bins: int,
    num_points: int = 8,
    signed: bool = False,
    floor: float = 1e-3,
) -> LocalDescriptors:
    """Descriptors of all patches of a grey image `[h, w]` at the scales `zip(cells, radii)`.

    A scale has `cells` of so many pixels a side and patterns of so large a radius. A patch is `block` x `block` cells,
    and patches are `stride` pixels apart. Gradients vote in `num_bins` orientations of half a turn, of a whole one if
    `signed`; patterns compare a pixel with `num_points` neighbours.

    `floor`, relative to the mean total gradient of the patches of a scale, is added to that of each patch: x of nearly
    flat patches is short, x of flat ones 0, and a image + b has the x and y of the image. Patterns exist where their
    whole circle lies inside the image; a cell at the border is normalised by its own smaller count. NaN in the image is
    NaN in all of its descriptors.
    """
    pixels.require_gray(image)
    _check_scales(np.shape(image), cells, radii, block, stride)
    checks.between("floor", floor, 0.0, 1.0, closed_low=False)
    votes = hog.cell_histograms(image, cell=1, num_bins=num_bins, signed=signed)
    x, y, positions = [], [], []
    for cell, radius in zip(cells, radii, strict=True):
        rows, columns = (_windows(size, cell=cell, block=block, stride=stride) for size in np.shape(image))
        x.append(_gradients(votes, rows, columns, floor))
        y.append(_patterns(image, rows, columns, radius, num_points))
        positions.append(_centers(rows, columns))
    where = jnp.asarray(np.concatenate(positions), votes.dtype)
    return LocalDescriptors(jnp.concatenate(x), jnp.concatenate(y), where)


def _gradients(votes: jax.Array, rows: np.ndarray, columns: np.ndarray, floor: float) -> jax.Array:
    """Root of the share of each cell and orientation in the patch's gradient `[n, block^2 num_bins]`."""
    sums = _pool(votes, rows, columns)
    total = sums.sum(axis=(1, 2))
    scale = total + floor * total.mean()
    return _roots(sums, jnp.where(scale > 0, scale, 1)[:, None, None])


def _patterns(image: jax.Array, rows: np.ndarray, columns: np.ndarray, radius: float, num_points: int) -> jax.Array:
    """Root of the frequencies of uniform patterns, each cell with an equal share `[n, block^2 bins]`."""
    codes = lbp.codes_or_none(image, radius=radius, num_points=num_points)
    table = lbp.uniform_table(num_points)
    one_hot = jax.nn.one_hot(jnp.asarray(table)[codes], int(table.max()) + 1, dtype=jnp.result_type(image))
    # The outer pixels have no code.
    border = (rows.shape[2] - codes.shape[0]) // 2
    counts = _pool(one_hot, rows[:, :, border:-border], columns[:, :, border:-border])
    return pixels.known(image, _roots(counts, counts.sum(axis=2, keepdims=True) * counts.shape[1]))


def _pool(values: jax.Array, rows: np.ndarray, columns: np.ndarray) -> jax.Array:
    """Sums of `[h, w, f]` over the cells of every patch, `[n, block^2, f]`."""
    (down, block, _), across = rows.shape, len(columns)
    sums = separable.apply(rows.reshape(down * block, -1), values, columns.reshape(across * block, -1))
    patches = sums.reshape(down, block, across, block, -1).swapaxes(1, 2)
    return patches.reshape(down * across, block * block, -1)


def _roots(sums: jax.Array, totals: jax.Array) -> jax.Array:
    return distances.safe_sqrt(sums / totals).reshape(len(sums), -1)


def _windows(size: int, *, cell: int, block: int, stride: int) -> np.ndarray:
    """Which pixels of an axis lie in cell j of patch i, 0 or 1 `[patches, block, size]`; the grid is centred."""
    room = size - block * cell
    first = np.arange(room % stride // 2, room + 1, stride)
    start = first[:, None, None] + cell * np.arange(block)[None, :, None]
    pixel = np.arange(size)[None, None, :]
    return ((pixel >= start) & (pixel < start + cell)).astype(float)


def _centers(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """(x, y) of each patch `[n, 2]`, where pixel centres are whole numbers."""
    y, x = (axis.sum(axis=1) @ np.arange(axis.shape[2]) / axis[0].sum() for axis in (rows, columns))
    return np.stack([np.tile(x, len(y)), np.repeat(y, len(x))], axis=1)


def _check_scales(
    shape: tuple[int, ...], cells: Sequence[int], radii: Sequence[float], block: int, stride: int
) -> None:
    """Checks that there are as many radii as cells, that no cell is empty, and that patches fit into the image."""
    checks.at_least("block", block, 1)
    checks.at_least("stride", stride, 1)
    if len(cells) == 0 or len(cells) != len(radii):
        raise ValueError(
            f"cells and radii must be of one length, one each a scale; got {len(cells)} cells and {len(radii)} radii."
        )
    for cell, radius in zip(cells, radii, strict=True):
        checks.at_least("cells", cell, 1)
        checks.positive("radii", radius)
        if np.ceil(radius) >= cell:
            raise ValueError(
                f"radii must be smaller than their cells, or cells at the border have no pattern; "
                f"got a radius of {radius:g} for cells of {cell} pixels. Use a smaller radius or larger cells."
            )
        if block * cell > min(shape):
            raise ValueError(
                f"patches must fit into the image of {shape[0]} x {shape[1]} pixels; got {block} x {block} cells of "
                f"{cell} pixels. Use smaller cells or fewer of them."
            )
