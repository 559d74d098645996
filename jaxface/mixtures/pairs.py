"""One view against another: do x and y belong to one pair?

The score is the log-likelihood ratio of "both come from one z" against "each has its own",

    llr(x, y) = log p(x, y) - log p(x) - log p(y)

In a component, with u = u_x + u_y of (views) that splits into a part of x and a part of y,

    log p(x, y | k) = a(x) + b(y) + u_x'u_y

so a matrix of scores costs one product of width d a component, whatever the dimensions of the views.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.mixtures.pcca import PCCAMixture
from jaxface.mixtures.views import View, checked, distance, log_density, project, solve

__all__ = ["llr", "llr_matrix"]


def llr(model: PCCAMixture, x: ArrayLike, y: ArrayLike) -> jax.Array:
    """`log p(x, y) - log p(x) - log p(y)` of one x `[n]` and one y `[m]`, in nats; differentiable in all of them."""
    if x is None or y is None:
        raise ValueError("x and y must both be given: the ratio is about the two of them.")
    return log_density(model, x, y) - log_density(model, x, None) - log_density(model, None, y)


def llr_matrix(model: PCCAMixture, x: ArrayLike, y: ArrayLike) -> jax.Array:
    """`llr` of every x `[a, n]` with every y `[b, m]`, `[a, b]`; components one after the other, for memory.

    A vector with NaN has no ratio with any other: its row or column is NaN.
    """
    checked(model, (x, y), ("a", "b"))
    return _llr_matrix(model, jnp.asarray(x), jnp.asarray(y))


@jax.jit
def _llr_matrix(model: PCCAMixture, x: jax.Array, y: jax.Array) -> jax.Array:
    forms = solve(model.log_weights, model.views)
    n = model.mean_x.shape[1]
    r_x, r_y = (
        (v - forms.origin[None, part]) * forms.factors[None, part]
        for v, part in ((x, slice(None, n)), (y, slice(n, None)))
    )
    u_x, u_y = jnp.tensordot(r_x, forms.gain[:n], 1), jnp.tensordot(r_y, forms.gain[n:-1], 1) + forms.gain[-1:]
    own_x, own_y = (
        (u * u).sum(axis=1) - jax.vmap(distance, in_axes=(None, 0))(whitening, r)
        for whitening, r, u in zip(forms.whitening, (r_x, r_y), (u_x, u_y), strict=True)
    )
    # A component of no weight at all: the derivative of the sum of two such is not a number.
    nothing = float(jnp.finfo(own_x.dtype).min) / 4
    own_x = jnp.maximum(forms.log_constant[None, :] + own_x / 2, nothing)

    def add(total: jax.Array, component: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        a, b, left, right = component
        return jnp.logaddexp(total, a[:, None] + b[None, :] + left @ right.T), None

    start = jnp.full((r_x.shape[0], r_y.shape[0]), nothing, own_x.dtype)
    parts = (own_x.T, own_y.T / 2, jnp.moveaxis(u_x, 2, 0), jnp.moveaxis(u_y, 2, 0))
    both, _ = jax.lax.scan(add, start, parts)
    alone_x, alone_y = (_log_density(model.log_weights, view, v) for view, v in zip(model.views, (x, y), strict=True))
    return both - alone_x[:, None] - alone_y[None, :]


def _log_density(log_weights: jax.Array, view: View, v: jax.Array) -> jax.Array:
    """`log p(v)` `[s]` of one view `[s, n]`, the other integrated out."""
    forms = solve(log_weights, (view,))
    return jax.nn.logsumexp(jax.vmap(lambda row: project(forms, row).log_joint)(v), axis=1)
