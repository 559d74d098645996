"""Orthogonal random features: kitchen sinks whose directions are orthogonal within blocks of d, with less variance.

Directions are uniform and lengths as those of independent frequencies, so the estimate stays unbiased.
"""

from typing import Any

import jax
import jax.numpy as jnp

from jaxface.core import prng
from jaxface.features import spectra
from jaxface.features.kitchen_sinks import KitchenSinks
from jaxface.features.maps import Drawing, draw_blocks, initializer
from jaxface.features.spectra import Spectrum

__all__ = ["init"]


@initializer
def init(drawing: Drawing) -> KitchenSinks:
    """Draws blocks of d orthogonal rows with the lengths of a rotation-invariant spectrum; the last block is cut."""
    rows = draw_blocks(_block, drawing, drawing.input_dim)
    return KitchenSinks(frequencies=rows.reshape(-1, drawing.input_dim)[: drawing.num_features] / drawing.bandwidth)


def _block(key: jax.Array, size: int, spectrum: Spectrum, dtype: Any) -> jax.Array:
    """`diag(lengths) Q` `[d, d]`, Q uniform on the orthogonal group: a QR factor whose R has a positive diagonal."""
    q, r = jnp.linalg.qr(jax.random.normal(prng.stream(key, "directions"), (size, size), dtype))
    q = q * jnp.where(jnp.diagonal(r) < 0, -1, 1).astype(dtype)[None, :]
    return spectra.row_lengths(prng.stream(key, "lengths"), size, size, spectrum, dtype)[:, None] * q
