"""Kernel methods as maps: `z = A' k(train, x) + offset`, combinations of kernel functions of the training images.

A method that centres in feature space has its centring folded into A and the offset. A linear method on the vectors
`y_i = (k(x_1, x_i), ..., k(x_n, x_i))`, the rows of the Gram matrix, becomes such a map by `from_linear`.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from jaxface.core import checks, fitinfo, machine
from jaxface.core.fitinfo import Status
from jaxface.core.pytree import params
from jaxface.linalg.gram import Kernel
from jaxface.subspace.linear_map import LinearMap

__all__ = ["KernelMap"]


@params
class KernelMap:
    """A kernel, the training images, and the coefficients of their similarities to an image."""

    kernel: Kernel  # a pytree of `linalg.gram`
    train: jax.Array  # [n, d]
    coefficients: jax.Array  # [n, r], A; columns beyond the numerical rank of the fit are zero
    offset: jax.Array  # [r]


def transform(kernel_map: KernelMap, x: jax.Array) -> jax.Array:
    """`A' k(train, x) + offset`: `[d]` to `[r]`."""
    checks.floating(x=x)
    checks.shapes(train=(kernel_map.train, "n d"), x=(x, "d"))
    # Argument order matters: distances are centred on the second argument, which must not depend on x.
    similarities = kernel_map.kernel(x[None, :], kernel_map.train)[0]
    return similarities @ kernel_map.coefficients + kernel_map.offset


def leading(kernel_map: KernelMap, width: jax.Array | int) -> KernelMap:
    """The map that keeps the first `width` outputs and zeros the rest."""
    keep = jnp.arange(kernel_map.coefficients.shape[1]) < width
    return dataclasses.replace(
        kernel_map,
        coefficients=jnp.where(keep[None, :], kernel_map.coefficients, 0),
        offset=jnp.where(keep, kernel_map.offset, 0),
    )


def from_linear(kernel: Kernel, train: jax.Array, linear_map: LinearMap) -> KernelMap:
    """The map of a linear method that was fitted on the rows of `kernel(train, train)`."""
    return KernelMap(
        kernel=kernel, train=train, coefficients=linear_map.basis, offset=-linear_map.mean @ linear_map.basis
    )


def centered_map(kernel: Kernel, train: jax.Array, k: jax.Array, coefficients: jax.Array) -> KernelMap:
    """The map of coefficients `[n, r]` whose outputs have zero mean on the training images, with Gram matrix k."""
    return from_linear(kernel, train, LinearMap(mean=k.mean(axis=0), basis=coefficients))


def status_of(kernel: Kernel, x: jax.Array, k: jax.Array, status: Any) -> jax.Array:
    """`status`, or NON_FINITE for a Gram matrix `k = kernel(x, x)` `[n, n]` that has lost its digits.

    Entries near the smallest number of the type underflow or lose digits, and so does the inverse of very large ones.
    Images may also lie so far apart that rounding of their squared distances exceeds the bandwidth: the diagonal then
    differs from the kernel of each image with itself.
    """
    largest, eps = jnp.abs(k).max(), machine.eps(k.dtype)
    least = machine.tiny(k.dtype) / eps
    has_digits = (largest == 0) | ((largest > least) & (largest < 1 / least))
    exact = jax.vmap(lambda row: kernel(row[None, :], row[None, :])[0, 0])(x)
    is_off = jnp.abs(jnp.diagonal(k) - exact).max() > eps**0.5 * largest
    is_lost = is_off | ~has_digits
    return fitinfo.diagnose((is_lost, Status.NON_FINITE), otherwise=fitinfo.or_non_finite(status, (kernel, k)))
