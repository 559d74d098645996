"""Histograms of oriented gradients, with soft orientation bins: differentiable almost everywhere.

gradient      g = (d_row, d_column), central differences, one-sided at the border
vote          |g| shared linearly between the two nearest bin centres (b + 1/2) 2 pi / B  (pi / B unsigned)
cell          mean of the votes over equal cells, fractional pixels by their part
block         L2-Hys: normalise, clip, normalise again
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import checks
from jaxface.faces import pixels, separable
from jaxface.linalg import scaling

__all__ = ["cell_histograms", "encode"]


def cell_histograms(image: jax.Array, *, cell: int, num_bins: int, signed: bool = False) -> jax.Array:
    """Mean gradient magnitude by orientation in each cell, `[rows, columns, num_bins]`.

    There are h // cell rows and w // cell columns of equal cells that cover the image: if `cell` does not divide the
    size, they are a little larger than `cell` pixels. Unsigned bins span half a turn, signed bins a whole one.
    """
    pixels.require_gray(image)
    checks.at_least("num_bins", num_bins, 2)
    rows, columns = _grid(np.shape(image), cell)
    height, width = np.shape(image)
    image = jnp.asarray(image)
    power = scaling.exponent(image)
    votes = scaling.shifted(_votes(scaling.shifted(image, -power), num_bins, signed), power)
    return separable.apply(separable.area_weights(height, rows), votes, separable.area_weights(width, columns))


def encode(
    image: jax.Array,
    *,
    cell: int,
    num_bins: int,
    block: int,
    signed: bool = False,
    clip: float = 0.2,
    floor: float = 1e-3,
) -> jax.Array:
    """Normalised blocks, `[rows - block + 1, columns - block + 1, block, block, num_bins]` flattened.

    Blocks of block x block cells overlap by all but one cell. `floor`, relative to the mean squared norm over the
    image, is added to each squared norm: flat areas stay weak, and a constant image gives 0. The code of a x + b is
    that of x.
    """
    checks.at_least("block", block, 1)
    checks.between("clip", clip, 0.0, 1.0, closed_low=False)
    checks.between("floor", floor, 0.0, 1.0, closed_low=False)
    pixels.require_gray(image)
    image = jnp.asarray(image)
    image = scaling.shifted(image, -scaling.exponent(image))  # the code has no unit
    cells = cell_histograms(image, cell=cell, num_bins=num_bins, signed=signed)
    rows, columns = (size - block + 1 for size in cells.shape[:2])
    if rows < 1 or columns < 1:
        raise ValueError(
            f"block must fit into the grid of {cells.shape[0]} x {cells.shape[1]} cells; got {block}. "
            "Use smaller cells or a smaller block."
        )
    corners = [(i, j) for i in range(block) for j in range(block)]
    blocks = jnp.stack([cells[i : i + rows, j : j + columns] for i, j in corners], axis=2)
    return _l2_hys(blocks.reshape(rows * columns, -1), clip, floor).ravel()


def _votes(image: jax.Array, num_bins: int, signed: bool) -> jax.Array:
    """Magnitude of the gradient by orientation bin, `[h, w, num_bins]`; a pixel without gradient votes 0."""
    d_row, d_column = _difference(image, 0), _difference(image, 1)
    squared = d_row**2 + d_column**2
    flat = squared == 0
    # Without a gradient, root and arctangent get the argument 1, so that derivatives stay finite.
    magnitude = jnp.where(flat, 0, jnp.sqrt(jnp.where(flat, 1, squared)))
    angle = jnp.arctan2(d_row, jnp.where(flat, 1, d_column))
    turn = 2 * math.pi if signed else math.pi
    position = angle * (num_bins / turn) - 0.5
    distance = position[..., None] - jnp.arange(num_bins, dtype=image.dtype)[None, None, :]
    distance = jnp.abs(distance - num_bins * jnp.round(distance / num_bins))
    return magnitude[..., None] * jnp.maximum(1 - distance, 0)


def _difference(image: jax.Array, axis: int) -> jax.Array:
    """Derivative along one axis; an axis of a single pixel has none."""
    return jnp.asarray(jnp.gradient(image, axis=axis)) if image.shape[axis] > 1 else jnp.zeros_like(image)


def _l2_hys(blocks: jax.Array, clip: float, floor: float) -> jax.Array:
    """Rows `[n, d]`: v / sqrt(|v|^2 + floor mean |v|^2), clipped, c / sqrt(|c|^2 + floor)."""
    energy = jnp.sum(blocks**2, axis=1, keepdims=True)
    scale = energy + floor * energy.mean()
    clipped = jnp.minimum(blocks / jnp.sqrt(jnp.where(scale > 0, scale, jnp.ones_like(scale))), clip)
    return clipped / jnp.sqrt(jnp.sum(clipped**2, axis=1, keepdims=True) + floor)


def _grid(shape: Sequence[int], cell: int) -> tuple[int, int]:
    checks.at_least("cell", cell, 1)
    rows, columns = shape[0] // cell, shape[1] // cell
    if rows < 1 or columns < 1:
        raise ValueError(
            f"cell must not be larger than the image of {shape[0]} x {shape[1]} pixels; got {cell}. Use smaller cells."
        )
    return rows, columns
