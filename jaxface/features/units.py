"""A map for vectors in another unit: with a very small or large bandwidth, V'V is out of the range of its type."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxface.features import maps
from jaxface.features.maps import FeatureMap
from jaxface.linalg import scaling

__all__ = ["in_own_unit"]


class Rescaled(NamedTuple):
    """The map `2^power V`."""

    params: FeatureMap
    power: jax.Array  # int32 []

    @property
    def input_dim(self) -> int:
        """The dimension d of V."""
        return self.params.input_dim

    @property
    def num_features(self) -> int:
        """The number of frequencies f of V."""
        return self.params.num_features

    def project(self, x: jax.Array) -> jax.Array:
        """`2^power V x`."""
        return scaling.shifted(self.params.project(x), self.power)

    def transpose(self, u: jax.Array) -> jax.Array:
        """`2^power V'u`."""
        return scaling.shifted(self.params.transpose(u), self.power)

    def inverse(self, u: jax.Array) -> jax.Array:
        """`2^-power V^-1 u`."""
        return scaling.shifted(self.params.inverse(u), -self.power)


def in_own_unit(params: FeatureMap) -> tuple[Rescaled, jax.Array]:
    """The map for vectors in units of `2^power`, in which its entries are near 1, and the power."""
    ones = jnp.ones(params.input_dim, maps.dtype_of(params))
    power = -scaling.exponent(params.project(ones))
    return Rescaled(params, power), power
