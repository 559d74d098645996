"""Structured orthogonal random features: three Hadamard transforms with random signs, no Gaussian numbers.

One block: `V = t sqrt(D) / sigma  (H B_1)(H B_2)(H B_3) / D^(3/2)`, orthogonal rows of one length for the Gaussian.
Directions are nearly uniform and lengths fixed at their root mean square, so the kernel has a bias of order 1 / D.
"""

from typing import Any

import jax
import jax.numpy as jnp

from jaxface.core import prng
from jaxface.core.pytree import params, static
from jaxface.features import spectra
from jaxface.features.maps import Drawing, check_square, draw_blocks, initializer, sum_of_blocks, zero_padded
from jaxface.features.spectra import Spectrum
from jaxface.linalg import hadamard

__all__ = ["init"]


@params
class Sorf:
    """c blocks of three diagonals of signs and one of lengths."""

    signs: jax.Array  # [3, c, D], in the order in which they meet x
    scale: jax.Array  # [c, D], t / (sigma D)
    input_dim: int = static()
    num_features: int = static()

    def project(self, x: jax.Array) -> jax.Array:
        """`V x`."""
        first, second, third = self.signs
        u = hadamard.transform(first * zero_padded(x, first.shape[1])[None, :])
        u = hadamard.transform(third * hadamard.transform(second * u))
        return (self.scale * u).reshape(-1)[: self.num_features]

    def transpose(self, u: jax.Array) -> jax.Array:
        """`V'u`, the factors in the opposite order."""
        u = self.scale * zero_padded(u, self.scale.size).reshape(self.scale.shape)
        for signs in self.signs[::-1]:
            u = signs * hadamard.transform(u)
        return sum_of_blocks(u)[: self.input_dim]

    def inverse(self, u: jax.Array) -> jax.Array:
        """`V^-1 u` for f = D; padding is left out."""
        size = self.scale.shape[1]
        check_square(self.num_features, size)
        u = u[None, :] / self.scale
        for signs in self.signs[::-1]:
            u = hadamard.transform(u) / (size * signs)
        return u[0, : self.input_dim]


@initializer
def init(drawing: Drawing) -> Sorf:
    """Draws a map of a rotation-invariant spectrum; its first blocks are the same whatever f."""
    size = hadamard.next_power_of_two(drawing.input_dim)
    signs, lengths = draw_blocks(_block, drawing, size)
    return Sorf(
        signs=jnp.moveaxis(signs, 1, 0),
        scale=lengths / (drawing.bandwidth * size),
        input_dim=drawing.input_dim,
        num_features=drawing.num_features,
    )


def _block(key: jax.Array, size: int, spectrum: Spectrum, dtype: Any) -> tuple[jax.Array, jax.Array]:
    """Signs `[3, D]` and the scales t `[D]` of one block."""
    signs = jax.random.rademacher(prng.stream(key, "signs"), (3, size), dtype)
    return signs, spectra.rotation_invariant(prng.stream(key, "lengths"), size, size, spectrum, dtype)
