"""Kernels as pytrees: `kernel(x [n, d], y [m, d]) -> [n, m]`.

A kernel is a parameter like any other: its bandwidth may be traced, vmapped or differentiated, and changing it does
not recompile. Any function of two row matrices serves as well.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxface.core import checks, messages
from jaxface.core.pytree import params, static
from jaxface.linalg import distances, scaling

__all__ = ["Gaussian", "Kernel", "as_kernel", "cosine", "gaussian", "linear", "polynomial"]

Kernel = Callable[[jax.Array, jax.Array], jax.Array]  # (x [n, d], y [m, d]) -> [n, m]


@params
class Linear:
    """`k(x, y) = x'y`."""

    def __call__(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """Gram matrix `[n, m]`."""
        return scaling.as_floating(x) @ scaling.as_floating(y).T


@params
class Gaussian:
    """`k(x, y) = exp(-|x - y|^2 / (2 s^2))` with bandwidth s."""

    bandwidth: jax.Array  # []

    def __call__(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """Gram matrix `[n, m]`."""
        x, y = scaling.as_floating(x), scaling.as_floating(y)
        bandwidth = jnp.asarray(self.bandwidth, jnp.result_type(x, y))
        # In units of the bandwidth nothing leaves the range that matters.
        power = scaling.exponent(bandwidth)
        squared = distances.squared_distance_matrix(scaling.shifted(x, -power), scaling.shifted(y, -power))
        return jnp.exp(-squared / (2 * scaling.shifted(bandwidth, -power) ** 2))


@params
class Cosine:
    """`k(x, y) = x'y / (|x| |y|)`."""

    def __call__(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """Gram matrix `[n, m]`."""
        return distances.cosine_matrix(x, y)


@params
class Polynomial:
    """`k(x, y) = (x'y + offset)^degree`."""

    offset: jax.Array  # []
    degree: int = static()

    def __call__(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """Gram matrix `[n, m]`."""
        inner = scaling.as_floating(x) @ scaling.as_floating(y).T
        return (inner + jnp.asarray(self.offset, inner.dtype)) ** self.degree


def linear() -> Linear:
    """The linear kernel."""
    return Linear()


def gaussian(*, bandwidth: jax.Array | float) -> Gaussian:
    """The Gaussian kernel; a formula `exp(-d^2 / sigma^2)` is `bandwidth = sigma / sqrt(2)`."""
    checks.positive("bandwidth", bandwidth)
    return Gaussian(bandwidth=jnp.asarray(bandwidth))


def cosine() -> Cosine:
    """The cosine kernel."""
    return Cosine()


def polynomial(*, degree: int, offset: jax.Array | float = 1.0) -> Polynomial:
    """The polynomial kernel; `offset >= 0` keeps it positive semidefinite."""
    checks.at_least("degree", degree, 1)
    checks.between("offset", offset, 0.0, jnp.inf, closed_high=False)
    return Polynomial(offset=jnp.asarray(offset), degree=degree)


def as_kernel(kernel: Any) -> Kernel:
    """The kernel itself, or a plain function of `[n, d]` and `[m, d]` as a pytree; what cannot be called is refused.

    Name such a function at module level, so that jit recognises it.
    """
    if not callable(kernel):
        raise ValueError(
            "kernel must be one of jaxface.linalg.gram, such as gram.gaussian(bandwidth=2.0), or a function of two row "
            f"matrices; got {messages.describe(kernel)}."
        )
    return jax.tree_util.Partial(kernel) if jax.tree_util.all_leaves([kernel]) else kernel
