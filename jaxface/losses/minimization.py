"""Gradient descent on any loss of a pytree of parameters, as one scan."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from jaxface.core import checks, fitinfo, loops
from jaxface.core.fitinfo import FitInfo

__all__ = ["minimize"]

P = TypeVar("P")


def minimize(
    loss: Callable[..., jax.Array],
    params: P,
    data: Any,
    *,
    num_iters: int,
    learning_rate: float | None = None,
    tol: float = 0.0,
) -> tuple[P, FitInfo]:
    """Minimises `loss(params, data)` from `params`: L-BFGS with a line search, or Adam at a given `learning_rate`.

    `loss` is a static argument: pass a module-level function and its data, and a second call does not recompile.
    """
    for leaf in jax.tree.leaves(params):
        checks.floating(params=leaf)
    return _minimize(loss, params, data, num_iters=num_iters, learning_rate=learning_rate, tol=tol)


@partial(jax.jit, static_argnames=("loss", "num_iters", "learning_rate", "tol"))
def _minimize(
    loss: Callable[..., jax.Array],
    params: P,
    data: Any,
    *,
    num_iters: int,
    learning_rate: float | None,
    tol: float,
) -> tuple[P, FitInfo]:
    import optax  # takes 50 ms: a verifier that only scores does without

    def objective(candidate: P) -> jax.Array:
        # The line search needs values in the dtype of the parameters.
        return loss(candidate, data).astype(jnp.result_type(*jax.tree.leaves(candidate)))

    if learning_rate is None:
        optimizer = optax.lbfgs()
        value_and_grad = optax.value_and_grad_from_state(objective)
        extra = {"value_fn": objective}
    else:
        optimizer = optax.adam(learning_rate)
        value_and_grad = _stateless(jax.value_and_grad(objective))
        extra = {}

    def step(carry: Any) -> tuple[Any, jax.Array]:
        candidate, state = carry
        value, gradient = value_and_grad(candidate, state=state)
        more = {"value": value, "grad": gradient} | extra if extra else {}
        updates, state = optimizer.update(gradient, state, candidate, **more)
        return (optax.apply_updates(candidate, updates), state), value

    (params, _), trace = loops.iterate(step, (params, optimizer.init(params)), num_iters=num_iters, tol=tol)
    # L-BFGS may report a finite loss from its line search although the parameters are not finite.
    status = fitinfo.or_non_finite(trace.status, params)
    return params, fitinfo.iterative(status=status, num_iters=trace.num_iters, objective=trace.objective)


def _stateless(value_and_grad: Callable[[P], tuple[jax.Array, P]]) -> Callable[..., tuple[jax.Array, P]]:
    """The same function with the signature of the version for L-BFGS, which takes the optimizer's state."""

    def with_state(candidate: P, *, state: Any) -> tuple[jax.Array, P]:
        del state
        return value_and_grad(candidate)

    return with_state
