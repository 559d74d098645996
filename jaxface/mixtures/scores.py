"""Scores across views: do an x and a y belong to one pair?

The score is the log-likelihood ratio of "x and y have one z" against "x and y have different z",

    llr(x, y) = log p(x, y) - log p(x) - log p(y)

In a component the vector u of module `views` is a sum u_x + u_y of a part from x and a part from y, so that

    log p(x, y | k) = a(x) + b(y) + u_x'u_y

and a matrix of scores costs one product of width d for each component, whatever the dimensions of the views.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core.blocks import each_row
from jaxface.mixtures.pcca import PCCAMixture
from jaxface.mixtures.views import View, checked, distance, evaluate, factorize, log_density

__all__ = ["llr", "llr_matrix"]


def llr(model: PCCAMixture, x: ArrayLike, y: ArrayLike) -> jax.Array:
    """`log p(x, y) - log p(x) - log p(y)` of one x `[n]` and one y `[m]`, in nats; differentiable in all of them."""
    if x is None or y is None:
        raise ValueError("x and y must both be given: the ratio compares one with the other.")
    return log_density(model, x, y) - log_density(model, x, None) - log_density(model, None, y)


def llr_matrix(model: PCCAMixture, x: ArrayLike, y: ArrayLike) -> jax.Array:
    """`llr` `[g, q]` of every x `[g, n]` with every y `[q, m]`: a gallery of view x and probes of view y.

    For a gallery of view y, transpose the result. Components are added one after the other to save memory. A vector
    with NaN has NaN as its row or column.
    """
    checked(model, (x, y), ("g", "q"))
    return _llr_matrix(model, jnp.asarray(x), jnp.asarray(y))


@jax.jit
def _llr_matrix(model: PCCAMixture, x: jax.Array, y: jax.Array) -> jax.Array:
    woodbury = factorize(model.log_weights, model.views)
    n = model.mean_x.shape[1]
    r_x, r_y = (
        (v - woodbury.origin[None, part]) * woodbury.factors[None, part]
        for v, part in ((x, slice(None, n)), (y, slice(n, None)))
    )
    u_x, u_y = jnp.tensordot(r_x, woodbury.gain[:n], 1), jnp.tensordot(r_y, woodbury.gain[n:-1], 1) + woodbury.gain[-1:]
    squared_x, squared_y = (
        (u * u).sum(axis=1) - each_row(distance, whitening, r)
        for whitening, r, u in zip(woodbury.whitening, (r_x, r_y), (u_x, u_y), strict=True)
    )
    # Stands for log 0; with -inf the derivative of logaddexp would be NaN.
    log_zero = float(jnp.finfo(squared_x.dtype).min) / 4
    alone_x = jnp.maximum(woodbury.log_constant[None, :] + squared_x / 2, log_zero)

    def add(total: jax.Array, component: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        a, b, left, right = component
        return jnp.logaddexp(total, a[:, None] + b[None, :] + left @ right.T), None

    start = jnp.full((r_x.shape[0], r_y.shape[0]), log_zero, alone_x.dtype)
    parts = (alone_x.T, squared_y.T / 2, jnp.moveaxis(u_x, 2, 0), jnp.moveaxis(u_y, 2, 0))
    both, _ = jax.lax.scan(add, start, parts)
    only_x, only_y = (_log_density(model.log_weights, view, v) for view, v in zip(model.views, (x, y), strict=True))
    return both - only_x[:, None] - only_y[None, :]


def _log_density(log_weights: jax.Array, view: View, v: jax.Array) -> jax.Array:
    """`log p(v)` `[s]` of one view `[s, n]`, the other integrated out."""
    woodbury = factorize(log_weights, (view,))
    return jax.nn.logsumexp(each_row(evaluate, woodbury, v).log_joint, axis=1)
