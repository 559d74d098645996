"""Repairs of an M-step: noise that is too small, and components without samples.

The likelihood of a mixture has no maximum where the noise of a component may vanish, and a component without samples
has no parameters at all. Both are repaired in every M-step, and the report of the fit tells of them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxface.core import machine
from jaxface.core.program import program
from jaxface.linalg import spectral
from jaxface.linalg.psd import symmetrize
from jaxface.linalg.small_cholesky import inverse_factor
from jaxface.mixtures.stats import ViewMoments, mean_of, positive_floor
from jaxface.mixtures.views import diagonal, is_full, is_not_constant, typical_variance

__all__ = []

# A component with less than this share of the samples is empty.
_EMPTY = 1e-8
# Keeps squared, noise-scaled distances below 1 / (16 eps); above that u has no correct digits.
_RESOLUTION = 16


class Donors(NamedTuple):
    """The component that each component continues."""

    source: jax.Array  # int32 [k], the component itself unless it is empty
    log_weights: jax.Array  # [k]
    steps: jax.Array  # [k], how far a copy moves away from its source; 0 without a copy
    num_empty: jax.Array  # int32 []


def reseed(weight: jax.Array) -> Donors:
    """The r-th empty component becomes a copy of the r-th heaviest component and shares its weight."""
    share = weight / positive_floor(weight.sum())
    empty = is_empty(weight, weight)
    num_alive = jnp.maximum((~empty).sum(), 1)
    turn = jnp.cumsum(empty) - 1
    heaviest = jnp.argsort(-share).astype(jnp.int32)
    source = jnp.where(empty, heaviest[turn % num_alive], jnp.arange(share.shape[0], dtype=jnp.int32))
    parts = jnp.zeros_like(share).at[source].add(1)
    # The first copy of a component moves one step, the second two, so that no two components are equal.
    steps = jnp.where(empty, 1 + turn // num_alive, 0).astype(share.dtype)
    return Donors(source, jnp.log(share[source] / parts[source]), steps, empty.sum().astype(jnp.int32))


def is_empty(weight: jax.Array, of_all: jax.Array) -> jax.Array:
    """Bool `[k]`, whether a weight `[k]` is next to nothing of the sum of `of_all` `[k]`.

    False for NaN, which does not mean that samples are missing.
    """
    return weight / positive_floor(of_all.sum()) <= _EMPTY


def least_noise(sums: ViewMoments, floor: float) -> jax.Array:
    """The least noise `[k, n]`: `floor` times the overall variance of the dimension, or more where rounding needs it.

    An E-step measures distances from the mean of all samples. With noise of at least `n _RESOLUTION eps` times the
    component's mean squares about that mean, the distances of its own samples keep correct digits: float32 needs this
    where a component has few samples. A constant dimension takes the mean variance of the view instead of its own, and
    a constant view the square of its mean.
    """
    number = positive_floor(sums.weight.sum())
    share = sums.weight / number
    overall = share @ sums.center
    offset = sums.center - overall[None, :]
    second = diagonal(sums.second) + (2 * sums.first + sums.weight[:, None] * offset) * offset
    mean = share @ offset + sums.first.sum(axis=0) / number
    variance = second.sum(axis=0) / number - mean**2
    squares = _RESOLUTION * machine.eps(variance.dtype) * mean_of(second, sums.weight)
    variance = jnp.where(is_not_constant(variance, overall), variance, typical_variance(variance, overall))
    return jnp.maximum(floor * variance[None, :], variance.shape[0] * squares)


@program
def raise_noise(noise: jax.Array, least: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The likeliest noise with variances of at least `least` `[k, n]`, and the floor `[]` where one was raised.

    Full noise is bounded in every direction: `F^-1/2 Psi F^-1/2` with `F = diag(least)` gets eigenvalues of at least 1.
    """
    if not is_full(noise):
        low = noise < least
        return jnp.where(low, least, noise), jnp.where(low, least, 0).max()
    noise, root = symmetrize(noise), jnp.sqrt(least)
    units = root[:, :, None] * root[:, None, :]
    white = jax.lax.stop_gradient(noise / units)
    # trace(A^-1) <= 1 implies that every eigenvalue is at least 1; NaN (no Cholesky factor) fails the test.
    is_high = ((inverse_factor(white) ** 2).sum(axis=(1, 2)) <= 1).all()
    clipped, low = jax.lax.cond(is_high, lambda a: (a, jnp.zeros(len(a), bool)), _clipped, white)
    return jnp.where(low[:, None, None], clipped * units, noise), jnp.where(low, least.max(axis=1), 0).max()


def _clipped(white: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Matrices `[k, n, n]` with eigenvalues raised to 1, and bool `[k]` where one was lower."""
    values, vectors = jax.lax.map(spectral.eigh, white)
    return (vectors * jnp.maximum(values, 1)[:, None, :]) @ vectors.mT, (values < 1).any(axis=1)
