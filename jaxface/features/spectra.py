"""Spectra of shift-invariant kernels as scale mixtures: a frequency is `w = t z / bandwidth` with `z ~ N(0, I)`.

A spectrum is a function `(key, num, dim, dtype) -> t`, of shape `[num, 1]` where the kernel depends on |x - y| alone
and `[num, dim]` where each coordinate has its own scale. Maps with orthogonal or Hadamard rows take only the first
kind: their directions are uniform, and a spectrum gives the lengths.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxface.core import checks, machine

__all__ = ["gaussian", "laplacian", "matern"]

Spectrum = Callable[[jax.Array, int, int, Any], jax.Array]


def gaussian(key: jax.Array, num: int, dim: int, dtype: Any) -> jax.Array:  # noqa: ARG001 - nothing is random
    """`k = exp(-|x - y|^2 / (2 s^2))`: t = 1."""
    return jnp.ones((num, 1), dtype)


@functools.lru_cache(maxsize=64)
def matern(*, nu: float) -> Spectrum:
    """`k = 2^(1-nu) / Gamma(nu) r^nu K_nu(r)`, `r = sqrt(2 nu) |x - y| / s`: `t^2 = 2 nu / chi^2(2 nu)`.

    Smoothness 1/2 is `exp(-|x - y| / s)`, 3/2 is `(1 + r) exp(-r)`; as nu grows, it becomes the Gaussian. Equal nu give
    the same function, so that `jit` finds the compiled program.
    """
    checks.positive("nu", nu)

    def spectrum(key: jax.Array, num: int, dim: int, dtype: Any) -> jax.Array:  # noqa: ARG001 - one scale a row
        return _student_scale(key, (num, 1), nu, dtype)

    return spectrum


def laplacian(key: jax.Array, num: int, dim: int, dtype: Any) -> jax.Array:
    """`k = exp(-|x - y|_1 / s)`: Cauchy coordinates, each with its own scale; not invariant under rotations."""
    return _student_scale(key, (num, dim), 0.5, dtype)


def row_lengths(key: jax.Array, num: int, dim: int, spectrum: Spectrum, dtype: Any) -> jax.Array:
    """Lengths `[num]` of rows with uniform directions: `t chi(dim)`."""
    length_key, scale_key = jax.random.split(key)
    scale = rotation_invariant(scale_key, num, dim, spectrum, dtype)
    return scale * jnp.sqrt(jax.random.chisquare(length_key, dim, (num,), dtype))


def rotation_invariant(key: jax.Array, num: int, dim: int, spectrum: Spectrum, dtype: Any) -> jax.Array:
    """The scales `[num]` of a spectrum that has one for each row."""
    scale = spectrum(key, num, dim, dtype)
    if scale.shape != (num, 1):
        raise ValueError(
            f"spectrum must give one scale a row, shape {(num, 1)}, for rows with uniform directions; got shape "
            f"{scale.shape}. A kernel that is not invariant under rotations, such as laplacian, needs kitchen_sinks."
        )
    return scale[:, 0]


def _student_scale(key: jax.Array, shape: tuple[int, ...], nu: float, dtype: Any) -> jax.Array:
    gamma = jax.random.gamma(key, nu, shape, dtype)
    return jnp.sqrt(nu / jnp.maximum(gamma, machine.tiny(gamma.dtype)))  # a draw of a small nu may underflow
