"""Checks that the parameters of a mixture define a density, on the host: for models that come from files."""

import jax
import numpy as np

from jaxface.core import checks
from jaxface.linalg import psd

__all__ = []


def check_weights(log_weights: jax.Array) -> None:
    """Refuses logarithms of weights that do not add up to one; on the host."""
    total = np.exp(np.asarray(log_weights, np.float64)).sum(axis=-1)
    if not np.allclose(total, 1, atol=1e-3):
        raise ValueError(f"log_weights must be logarithms of weights that add up to 1; these add up to {total!s:.40}.")


def check_noise(name: str, noise: jax.Array, mean: jax.Array) -> None:
    """Refuses noise of means `[..., k, n]` that is not positive, diagonal or full; on the host."""
    if noise.ndim == mean.ndim:
        checks.shapes(mean=(mean, "... k n"), **{name: (noise, "... k n")})
        checks.positive(name, noise)
    else:
        checks.shapes(mean=(mean, "... k n"), **{name: (noise, "... k n n")})
        psd.check_covariance(name, noise)
