"""Iteration inside `jit`: a fixed number of steps, or until the objective settles; never a host round trip."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from jaxface.core import checks, machine
from jaxface.core.fitinfo import Status, diagnose, or_non_finite

__all__ = ["iterate"]

S = TypeVar("S")


class Trace(NamedTuple):
    """How a loop went: the head of a FitInfo."""

    status: jax.Array  # int32 []
    num_iters: jax.Array  # int32 []
    objective: jax.Array  # [num_iters asked], NaN where no step was done


def iterate(
    update: Callable[[S], tuple[S, jax.Array]], state: S, *, num_iters: int, tol: float = 0.0
) -> tuple[S, Trace]:
    """Repeats `state, objective = update(state)`.

    With `tol = 0` it is a scan of `num_iters` steps (reverse-differentiable). With `tol > 0` it is a while loop that
    ends when the relative change of the objective is at most `tol`, in `MAX_ITERS` when that does not happen.
    """
    checks.at_least("num_iters", num_iters, 1)
    checks.between("tol", tol, 0.0, 1.0)
    if tol == 0.0:
        return _fixed(update, state, num_iters)
    return _until_settled(update, state, num_iters, tol)


def _fixed(update: Callable[[S], tuple[S, jax.Array]], state: S, num_iters: int) -> tuple[S, Trace]:
    state, objective = jax.lax.scan(lambda carry, _: update(carry), state, length=num_iters)
    return state, Trace(or_non_finite(Status.OK, objective), jnp.asarray(num_iters, jnp.int32), objective)


def _until_settled(update: Callable[[S], tuple[S, jax.Array]], state: S, num_iters: int, tol: float) -> tuple[S, Trace]:
    dtype = jax.eval_shape(update, state)[1].dtype

    def running(carry: Any) -> jax.Array:
        step, _, _, status = carry
        return (step < num_iters) & (status == Status.MAX_ITERS)

    def body(carry: Any) -> Any:
        step, state, objective, _ = carry
        state, value = update(state)
        last = jnp.where(step > 0, objective[step - 1], jnp.asarray(jnp.inf, dtype))
        settled = jnp.abs(value - last) <= tol * jnp.maximum(jnp.abs(value), machine.tiny(dtype))
        status = diagnose((~jnp.isfinite(value), Status.NON_FINITE), (settled, Status.OK), otherwise=Status.MAX_ITERS)
        return step + 1, state, objective.at[step].set(value), status

    empty = jnp.full((num_iters,), jnp.nan, dtype)
    start = (jnp.zeros((), jnp.int32), state, empty, jnp.asarray(Status.MAX_ITERS, jnp.int32))
    step, state, objective, status = jax.lax.while_loop(running, body, start)
    return state, Trace(status, step, objective)
