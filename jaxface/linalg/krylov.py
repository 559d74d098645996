"""Symmetric positive definite operators that are known by their products: solves and the range of the spectrum."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

__all__ = ["Operator", "Solution", "conjugate_gradient", "spectral_range"]

Operator = Callable[[jax.Array], jax.Array]
_State = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]


class Solution(NamedTuple):
    """Result of an iterative solve."""

    x: jax.Array  # [d]
    num_iters: jax.Array  # int32 []
    is_converged: jax.Array  # bool []


def conjugate_gradient(product: Operator, b: jax.Array, *, tol: float, num_iters: int) -> Solution:
    """Solves `A x = b` from x = 0, until `|r| <= tol |b|`, r being the residual that the recurrence keeps.

    NaN in b is NaN in all of x.
    """
    # Squares of a b in other units would leave the range of float32; a power of two changes no digit.
    _, exponent = jnp.frexp(jnp.abs(b).max())
    b = jnp.ldexp(b, -exponent)
    limit = tol**2 * (b @ b)

    def running(state: _State) -> jax.Array:
        step, _, _, _, squared = state
        return (step < num_iters) & (squared > limit)

    def body(state: _State) -> _State:
        step, x, residual, direction, squared = state
        image = product(direction)
        curvature = direction @ image
        length = jnp.where(curvature > 0, squared / jnp.where(curvature > 0, curvature, 1), 0)
        residual = residual - length * image
        after = residual @ residual
        return step + 1, x + length * direction, residual, residual + after / squared * direction, after

    start = (jnp.zeros((), jnp.int32), jnp.zeros_like(b), b, b, b @ b)
    step, x, _, _, squared = jax.lax.while_loop(running, body, start)
    x = jnp.where(jnp.isnan(squared), jnp.nan, jnp.ldexp(x, exponent))
    return Solution(x, step, squared <= limit)


def spectral_range(product: Operator, start: jax.Array, *, num_steps: int) -> tuple[jax.Array, jax.Array]:
    """Least and largest eigenvalue of A by Lanczos steps from `start` `[d]`: never beyond the true ones.

    The largest is right to a few per cent after 30 steps. The least is as good when the spectrum is narrow; below about
    `lambda_max / num_steps^2` it is only an upper bound. Gradients are stopped.
    """
    num_steps = min(num_steps, start.shape[0])

    def step(state: Any, _: None) -> tuple[Any, tuple[jax.Array, jax.Array]]:
        before, now, coupling = state
        image = product(now) - coupling * before
        diagonal = now @ image
        image = image - diagonal * now
        length = jnp.linalg.norm(image)
        return (now, image / jnp.where(length > 0, length, 1), length), (diagonal, length)

    first = start / jnp.linalg.norm(start)
    _, (diagonal, off) = jax.lax.scan(
        step, (jnp.zeros_like(first), first, jnp.zeros((), first.dtype)), length=num_steps
    )
    # A start inside an invariant subspace ends the recurrence early: what follows must not look like an eigenvalue 0.
    is_alive = jnp.cumprod(jnp.concatenate([jnp.ones(1, bool), off[:-1] > 0]))
    diagonal = jnp.where(is_alive, diagonal, diagonal[0])
    values = jnp.linalg.eigvalsh(jnp.diag(diagonal) + jnp.diag(off[:-1], 1) + jnp.diag(off[:-1], -1))
    return jax.lax.stop_gradient((values[0], values[-1]))
