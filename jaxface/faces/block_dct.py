"""Texture as the first DCT coefficients of each block of a grid: its mean, its two slopes, and so on."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.core import checks
from jaxface.faces import pixels, separable

__all__ = ["encode"]


def dct_matrix(size: int) -> np.ndarray:
    """Orthonormal DCT-II, `[size, size]`: C_uj = sqrt((2 - [u = 0]) / n) cos(pi (2 j + 1) u / (2 n))."""
    checks.at_least("size", size, 1)
    frequency = np.arange(size)[:, None]
    wave = np.cos(np.pi * (2 * np.arange(size)[None, :] + 1) * frequency / (2 * size))
    return wave * np.sqrt(np.where(frequency == 0, 1, 2) / size)


def zigzag(size: int) -> np.ndarray:
    """Frequencies (row, column) of a block in zig-zag order, `[size^2, 2]`: (0,0) (0,1) (1,0) (2,0) ..."""
    checks.at_least("size", size, 1)
    pairs = [(row, column) for row in range(size) for column in range(size)]
    # Along odd antidiagonals the row grows, along even ones the column does.
    return np.asarray(sorted(pairs, key=lambda p: (sum(p), p[0] if sum(p) % 2 else p[1])))


def encode(image: jax.Array, *, grid: Sequence[int] = (16, 16), block: int = 8, num_coefficients: int = 4) -> jax.Array:
    """First zig-zag DCT-II coefficients of each block, `[rows, columns, num_coefficients]` flattened.

    The image is resized by area to `block` pixels for each cell of the grid, so images of any size give a vector of the
    same length, 16 x 16 x 4 = 1,024 by default. Resizing and transform are one matrix for each axis.
    """
    pixels.require_gray(image)
    if len(grid) != 2:
        raise ValueError(f"grid must be (rows, columns); got {grid!r}.")
    checks.at_least("block", block, 1)
    checks.at_least("num_coefficients", num_coefficients, 1)
    checks.at_most("num_coefficients", num_coefficients, block**2, "a block has block^2 of them")
    chosen = zigzag(block)[:num_coefficients]
    height, width = np.shape(image)
    basis = dct_matrix(block)[: chosen.max() + 1]
    num_frequencies = len(basis)
    spectrum = separable.apply(_axis_matrix(height, grid[0], basis), image, _axis_matrix(width, grid[1], basis))
    blocks = spectrum.reshape(grid[0], num_frequencies, grid[1], num_frequencies)
    return jnp.stack([blocks[:, row, :, column] for row, column in chosen], axis=-1).ravel()


def _axis_matrix(size: int, num_blocks: int, basis: np.ndarray) -> np.ndarray:
    """Resizing by area to whole blocks, then `basis [f, block]` on each: `[num_blocks f, size]`."""
    return np.kron(np.eye(num_blocks), basis) @ separable.area_weights(size, num_blocks * basis.shape[1])
