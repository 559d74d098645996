"""Fastfood: Gaussian frequencies from diagonal matrices, a permutation and Hadamard transforms.

(8), one block: `V = S H G Pi H B / (sigma sqrt D)`, with D the next power of two (the input is padded with zeros),
H unnormalised, and f rows kept of `ceil(f / D)` independent blocks stacked. Four numbers a row, log(D) operations.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxface.core import prng
from jaxface.core.program import program
from jaxface.core.pytree import params, static, whole
from jaxface.features import spectra
from jaxface.features.maps import Drawing, check_square, draw_blocks, initializer, sum_of_blocks, zero_padded
from jaxface.features.spectra import Spectrum
from jaxface.linalg import distances, hadamard

__all__ = ["Fastfood", "init"]

# Places of a permutation need no care: none is negative, outside, or there twice.
_AS_THEY_ARE: Any = {"mode": "promise_in_bounds", "unique_indices": True, "wrap_negative_indices": False}


@params
class Fastfood:
    """c blocks of the diagonals of (8); all but the permutation may be learned by gradient descent."""

    signs: jax.Array  # [c, D], B
    permutation: jax.Array = whole()  # int32 [c, D], (Pi z)_i = z[permutation_i]
    gaussian: jax.Array  # [c, D], G
    scale: jax.Array  # [c, D], S / (sigma sqrt D)
    input_dim: int = static()
    num_features: int = static()

    def project(self, x: jax.Array) -> jax.Array:
        """`V x`."""
        u = hadamard.transform(self.signs * zero_padded(x, self.signs.shape[1])[None, :])
        u = hadamard.transform(self.gaussian * _permuted(u, self.permutation))
        return (self.scale * u).reshape(-1)[: self.num_features]

    def transpose(self, u: jax.Array) -> jax.Array:
        """`V'u = sum_c B_c H Pi_c' G_c H S_c u_c / (sigma sqrt D)`."""
        u = hadamard.transform(self.scale * zero_padded(u, self.scale.size).reshape(self.scale.shape))
        u = _permuted_back(self.gaussian * u, self.permutation)
        return sum_of_blocks(self.signs * hadamard.transform(u))[: self.input_dim]

    def inverse(self, u: jax.Array) -> jax.Array:
        """`V^-1 u = sigma sqrt D  B^-1 H Pi' G^-1 H S^-1 u / D^2` for f = D; the padding is left out."""
        size = self.signs.shape[1]
        check_square(self.num_features, size)
        u = hadamard.transform(u[None, :] / self.scale)
        u = _permuted_back(u / self.gaussian, self.permutation)
        return (hadamard.transform(u / size) / (size * self.signs))[0, : self.input_dim]


@initializer
def init(drawing: Drawing) -> Fastfood:
    """Draws a map; its first blocks are the same whatever f.

    Every row of `H G Pi H B` is `sqrt D |G|` long and isotropic, so `S_ii = s_i / |G|` with `s_i ~ chi(D)` makes it
    exactly Gaussian with covariance `I / sigma^2`. Without S all rows of a block share one length, which no test of
    unbiasedness can see. Other rotation-invariant spectra change s_i alone.
    """
    size = hadamard.next_power_of_two(drawing.input_dim)
    signs, permutation, gaussian, lengths = draw_blocks(_block, drawing, size)
    return Fastfood(
        signs=signs,
        permutation=permutation,
        gaussian=gaussian,
        scale=lengths / (drawing.bandwidth * size**0.5 * distances.norm(gaussian)[:, None]),
        input_dim=drawing.input_dim,
        num_features=drawing.num_features,
    )


def _block(key: jax.Array, size: int, spectrum: Spectrum, dtype: Any) -> tuple[jax.Array, ...]:
    """B, Pi, G and the lengths of the rows of one block, each `[D]`."""
    return (
        jax.random.rademacher(prng.stream(key, "signs"), (size,), dtype),
        jax.random.permutation(prng.stream(key, "permutation"), jnp.arange(size, dtype=jnp.int32)),
        jax.random.normal(prng.stream(key, "gaussian"), (size,), dtype),
        spectra.row_lengths(prng.stream(key, "lengths"), size, size, spectrum, dtype),
    )


@program
def _permuted(u: jax.Array, permutation: jax.Array) -> jax.Array:
    """`Pi u`: entry `permutation[c, i]` of row c in the place i.

    As the solution v of `Pi'v = u`, with a gather for `Pi` and for `Pi'`: the transpose that JAX finds by itself is a
    scatter, which makes the gradient of a map three times slower.
    """
    places = _places(permutation)
    return jax.lax.custom_linear_solve(
        partial(_scattered, places), u, lambda _, v: _gathered(places, v), lambda _, v: _gathered(_inverse(places), v)
    )


@program
def _permuted_back(u: jax.Array, permutation: jax.Array) -> jax.Array:
    """`Pi'u`, the solution v of `Pi v = u`."""
    places = _places(permutation)
    return jax.lax.custom_linear_solve(
        partial(_gathered, places), u, lambda _, v: _gathered(_inverse(places), v), lambda _, v: _gathered(places, v)
    )


def _places(permutation: jax.Array) -> jax.Array:
    """Where `[c, D]` the entries come from in a flat array: for a batch that is quicker than places along an axis."""
    count, size = permutation.shape
    return permutation + (jnp.arange(count, dtype=permutation.dtype) * size)[:, None]


def _gathered(places: jax.Array, u: jax.Array) -> jax.Array:
    return u.reshape(-1).at[places].get(**_AS_THEY_ARE)


def _scattered(places: jax.Array, u: jax.Array) -> jax.Array:
    return jnp.zeros(u.size, u.dtype).at[places].set(u, **_AS_THEY_ARE).reshape(u.shape)


def _inverse(places: jax.Array) -> jax.Array:
    return _scattered(places, jnp.arange(places.size, dtype=places.dtype).reshape(places.shape))
