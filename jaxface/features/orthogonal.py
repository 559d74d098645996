"""Orthogonal random features: kitchen sinks whose directions are orthogonal within blocks of d, with less variance.

Directions are uniform and lengths as those of independent frequencies, so the estimate stays unbiased.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import prng
from jaxface.core.blocks import num_blocks
from jaxface.features import spectra
from jaxface.features.kitchen_sinks import KitchenSinks
from jaxface.features.maps import (  # noqa: F401 - the interface of every map
    checked_init,
    dense_matrix,
    feature_matrix,
    gram_product,
    inverse,
    project,
    transform,
    transpose,
)
from jaxface.features.spectra import Spectrum

__all__ = ["init"]


def init(
    key: jax.Array,
    *,
    input_dim: int,
    num_features: int,
    bandwidth: ArrayLike,
    spectrum: Spectrum = spectra.gaussian,
    dtype: Any = None,
) -> KitchenSinks:
    """Draws blocks of d orthogonal rows, and as lengths those of a rotation-invariant spectrum; the last is cut."""
    bandwidth = checked_init(key, input_dim=input_dim, num_features=num_features, bandwidth=bandwidth, dtype=dtype)
    rows = _blocks(
        key, num=num_blocks(num_features, input_dim), size=input_dim, spectrum=spectrum, dtype=bandwidth.dtype
    )
    return KitchenSinks(frequencies=rows.reshape(-1, input_dim)[:num_features] / bandwidth)


@partial(jax.jit, static_argnames=("num", "size", "spectrum", "dtype"))
def _blocks(key: jax.Array, *, num: int, size: int, spectrum: Spectrum, dtype: Any) -> jax.Array:
    """`diag(lengths) Q` `[c, d, d]` with Q uniform on the orthogonal group: signs make the QR factor so."""

    def block(key: jax.Array) -> jax.Array:
        q, r = jnp.linalg.qr(jax.random.normal(prng.stream(key, "directions"), (size, size), dtype))
        q = q * jnp.where(jnp.diagonal(r) < 0, -1, 1).astype(dtype)[None, :]
        return spectra.row_lengths(prng.stream(key, "lengths"), size, size, spectrum, dtype)[:, None] * q

    return jax.vmap(block)(prng.member_keys(key, num))
