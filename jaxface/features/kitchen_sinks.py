"""Random kitchen sinks: a dense matrix of independent frequencies, for any spectrum.

d f numbers and d f multiplications a vector: what the other maps approximate, and the faster one for small d.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import prng
from jaxface.core.pytree import params
from jaxface.features import spectra
from jaxface.features.maps import (  # noqa: F401 - the interface of every map
    check_square,
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


@params
class KitchenSinks:
    """V as it is."""

    frequencies: jax.Array  # [f, d], Z of (7)

    @property
    def input_dim(self) -> int:
        """The dimension d."""
        return self.frequencies.shape[-1]

    @property
    def num_features(self) -> int:
        """The number of frequencies f."""
        return self.frequencies.shape[-2]

    def project(self, x: jax.Array) -> jax.Array:
        """`V x`."""
        return self.frequencies @ x

    def transpose(self, u: jax.Array) -> jax.Array:
        """`V'u`."""
        return u @ self.frequencies

    def inverse(self, u: jax.Array) -> jax.Array:
        """`V^-1 u` for f = d."""
        check_square(self.num_features, self.input_dim)
        return jnp.linalg.solve(self.frequencies, u)


def init(
    key: jax.Array,
    *,
    input_dim: int,
    num_features: int,
    bandwidth: ArrayLike,
    spectrum: Spectrum = spectra.gaussian,
    dtype: Any = None,
) -> KitchenSinks:
    """Draws f independent frequencies; the first rows are the same whatever f."""
    bandwidth = checked_init(key, input_dim=input_dim, num_features=num_features, bandwidth=bandwidth, dtype=dtype)
    rows = _rows(key, num=num_features, size=input_dim, spectrum=spectrum, dtype=bandwidth.dtype)
    return KitchenSinks(frequencies=rows / bandwidth)


@partial(jax.jit, static_argnames=("num", "size", "spectrum", "dtype"))
def _rows(key: jax.Array, *, num: int, size: int, spectrum: Spectrum, dtype: Any) -> jax.Array:
    """`t z` `[f, d]`."""
    z = jax.random.normal(prng.stream(key, "directions"), (num, size), dtype)
    return spectrum(prng.stream(key, "lengths"), num, size, dtype) * z
