"""Operators that are known by their products: solves, the ends of a spectrum, leading directions, a norm."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from jaxface.core import machine
from jaxface.linalg import distances

__all__ = [
    "Operator",
    "Solution",
    "conjugate_gradient",
    "frobenius_norm",
    "leading_eigenvector",
    "leading_subspace",
    "spectral_range",
]

Operator = Callable[[jax.Array], jax.Array]  # x -> A x
_KRYLOV_DIM = 8  # of each of the spaces in which `leading_eigenvector` looks
_NUM_PROBES = 8  # random vectors of `frobenius_norm`
_State = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]


class Solution(NamedTuple):
    """Result of an iterative solve."""

    x: jax.Array  # [d]
    num_iters: jax.Array  # int32 []
    is_converged: jax.Array  # bool []


def conjugate_gradient(product: Operator, b: jax.Array, *, tol: float, num_iters: int) -> Solution:
    """Solves `A x = b`, A symmetric positive definite, from x = 0 until `|r| <= tol |b|`.

    r is the residual that the recurrence keeps. NaN in b is NaN in all of x.
    """
    # Squares of b could leave the range of float32; a power of two changes no digit.
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
    """Least and largest eigenvalue of a symmetric A by Lanczos steps from `start` `[d]`: never beyond the true ones.

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
    # A start inside an invariant subspace ends the recurrence early: the rest must not add eigenvalues of 0.
    is_alive = jnp.cumprod(jnp.concatenate([jnp.ones(1, bool), off[:-1] > 0]))
    diagonal = jnp.where(is_alive, diagonal, diagonal[0])
    values = jnp.linalg.eigvalsh(jnp.diag(diagonal) + jnp.diag(off[:-1], 1) + jnp.diag(off[:-1], -1))
    return jax.lax.stop_gradient((values[0], values[-1]))


def leading_eigenvector(product: Operator, start: jax.Array, *, num_restarts: int) -> jax.Array:
    """The unit eigenvector `[d]` of the largest eigenvalue of a positive semidefinite A, zero where `start` `[d]` is.

    Lanczos steps from `start`, restarted until the vector is right to rounding, at most `num_restarts` times.
    """
    eps = machine.eps(start.dtype)

    def running(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        _, error, step = state
        return (error > 16 * eps) & (step < num_restarts)

    def restart(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        vector, error = _ritz_vector(product, state[0])
        return vector, error, state[2] + 1

    error = jnp.where((start != 0).any(), jnp.inf, 0).astype(start.dtype)
    return jax.lax.while_loop(running, restart, (distances.normalize(start), error, jnp.int32(0)))[0]


def _ritz_vector(product: Operator, start: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The best unit vector for A in the Krylov space of a unit vector, and `|A v - l v| / l`."""

    def grow(basis: jax.Array, step: jax.Array) -> tuple[jax.Array, jax.Array]:
        image = product(basis[step])
        beyond = image
        for _ in range(2):  # a second time against rounding
            beyond = beyond - (basis @ beyond) @ basis
        # In an invariant subspace the rest is rounding, not a direction.
        is_new = distances.norm(beyond) > 16 * machine.eps(start.dtype) * distances.norm(image)
        return basis.at[step + 1].set(jnp.where(is_new, distances.normalize(beyond), 0), mode="drop"), image

    basis = jnp.zeros((_KRYLOV_DIM, start.shape[0]), start.dtype).at[0].set(start)
    basis, images = jax.lax.scan(grow, basis, jnp.arange(_KRYLOV_DIM, dtype=jnp.int32))
    projected = basis @ images.T
    weights = jnp.linalg.eigh((projected + projected.T) / 2)[1][:, -1]
    weights = weights * jnp.where(weights[0] < 0, -1, 1)
    vector, image = weights @ basis, weights @ images
    value = vector @ image
    error = jnp.linalg.norm(image - value * vector) / jnp.where(value > 0, value, 1)
    return distances.normalize(vector), error


def leading_subspace(product: Operator, transposed: Operator, start: jax.Array, *, num_passes: int) -> jax.Array:
    """Orthonormal directions `[d, k]` near the k leading right singular vectors of A, by block power iteration.

    `product` takes `[d, k]` to A times it, `transposed` takes `[n, k]` to A' times it; `start` `[d, k]` may be random.
    """

    def both(directions: jax.Array, _: None) -> tuple[jax.Array, None]:
        samples = jnp.linalg.qr(product(directions))[0]
        return jnp.linalg.qr(transposed(samples))[0], None

    return jax.lax.scan(both, jnp.linalg.qr(start)[0], length=num_passes)[0]


def frobenius_norm(product: Operator, size: int, *, dtype: DTypeLike) -> jax.Array:
    """About `|A|_F`, from one product with 8 vectors `[size, 8]`: for random ones their mean square is `|A|_F^2`.

    The vectors are fixed; no symmetry of data hides a direction from `cos(j^2)`.
    """
    vectors = jnp.cos(jnp.arange(_NUM_PROBES * size, dtype=dtype) ** 2).reshape(size, _NUM_PROBES)
    # A cosine has the mean square 1/2.
    return jnp.sqrt(2 / _NUM_PROBES * (product(vectors) ** 2).sum())
