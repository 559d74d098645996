"""Random kitchen sinks: a dense matrix of independent frequencies, for any spectrum.

It holds d f numbers and takes d f multiplications a vector. The other maps approximate it; for small d it is fastest.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxface.core import prng
from jaxface.core.pytree import params
from jaxface.features.maps import Drawing, check_square, initializer
from jaxface.features.spectra import Spectrum

__all__ = ["init"]


@params
class KitchenSinks:
    """The matrix V itself."""

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


@initializer
def init(drawing: Drawing) -> KitchenSinks:
    """Draws f independent frequencies; the first rows are the same whatever f."""
    sizes = {"num": drawing.num_features, "size": drawing.input_dim}
    rows = _rows(drawing.key, **sizes, spectrum=drawing.spectrum, dtype=drawing.bandwidth.dtype)
    return KitchenSinks(frequencies=rows / drawing.bandwidth)


@partial(jax.jit, static_argnames=("num", "size", "spectrum", "dtype"))
def _rows(key: jax.Array, *, num: int, size: int, spectrum: Spectrum, dtype: Any) -> jax.Array:
    """`t z` `[f, d]`."""
    z = jax.random.normal(prng.stream(key, "directions"), (num, size), dtype)
    return spectrum(prng.stream(key, "lengths"), num, size, dtype) * z
