"""One log-likelihood ratio from several scores and side information of a trial, by a convex fit.

    LLR = w' phi + offset,    phi = [scores, side, scores x side]    (`with_side`)

The loss is the cross-entropy of `pairwise_logistic` at a prior and `ridge / 2 |w|^2` on standardised columns; the
offset is free. In w it is convex, strictly with a ridge, so Newton's method with halved steps ends at the one minimum
in about ten steps. Scores need no common unit and no independence: a score given twice shares its weight. Products with
the side information need the side information itself beside them, so `with_side` gives both. Fit on people whom no
scorer was fitted to.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo, loops, machine
from jaxface.core.fitinfo import FitInfo
from jaxface.core.pytree import params
from jaxface.linalg import scaling
from jaxface.losses.scores import labeled, weights_of

__all__ = ["Fusion", "fit", "fuse", "with_side"]

_HALVINGS = 30


@params
class Fusion:
    """`weights' features + offset`."""

    weights: jax.Array  # [f]
    offset: jax.Array  # []


class _Data(NamedTuple):
    features: jax.Array  # [p, f], standardised
    is_same: jax.Array  # bool [p]
    weight: jax.Array  # [p], prior / n_same or (1 - prior) / n_different
    shift: jax.Array  # [], logit(prior)
    ridge: jax.Array  # []


def with_side(scores: ArrayLike, side: ArrayLike) -> jax.Array:
    """Features `[p, s + k + s k]` of scores `[p, s]` and side information `[p, k]`: both, and their products.

    The side information of a pair is a sum over its two images, such as the logarithm of their qualities or numbers of
    photos, so that the order of the two plays no part.
    """
    checks.shapes(scores=(scores, "p s"), side=(side, "p k"))
    checks.floating(scores=scores, side=side)
    scores, side = jnp.asarray(scores), jnp.asarray(side)
    products = (scores[:, :, None] * side[:, None, :]).reshape(len(scores), -1)
    return jnp.concatenate([scores, side, products], axis=1)


def fuse(fusion: Fusion, features: ArrayLike) -> jax.Array:
    """Log-likelihood ratios `[p]` of features `[p, f]`."""
    checks.shapes(features=(features, "p f"), weights=(fusion.weights, "f"))
    checks.floating(features=features)
    return jnp.asarray(features) @ fusion.weights + fusion.offset


def fit(
    features: ArrayLike,
    is_same: ArrayLike,
    *,
    prior: float = 0.5,
    ridge: float = 1e-4,
    num_iters: int = 20,
    tol: float = 0.0,
    sample_weights: ArrayLike | None = None,
) -> tuple[Fusion, FitInfo]:
    """The minimum for features `[p, f]` and labels `[p]`, by Newton's method from zero.

    Features that separate both kinds perfectly have a minimum only with a ridge; weights then grow like log(1 / ridge).
    `sample_weights` `[p]` say how much each pair counts within its kind; a pair of weight zero has no influence.
    """
    checks.samples(features=(features, "p f"), beside={"is_same": (is_same, "p")})
    checks.between("prior", prior, 0.0, 1.0, closed_low=False, closed_high=False)
    checks.between("ridge", ridge, 0.0, jnp.inf, closed_high=False)
    checks.at_least("num_iters", num_iters, 1)
    x = jnp.asarray(features)
    _, same = labeled(x[:, 0], is_same)
    weights = jnp.ones(len(x), x.dtype) if sample_weights is None else weights_of(sample_weights, x[:, 0])
    settings = (jnp.asarray(prior, x.dtype), jnp.asarray(ridge, x.dtype))
    return _fit(x, same, weights, *settings, num_iters=num_iters, tol=tol)


@partial(jax.jit, static_argnames=("num_iters", "tol"))
def _fit(
    x: jax.Array,
    is_same: jax.Array,
    weights: jax.Array,
    prior: jax.Array,
    ridge: jax.Array,
    *,
    num_iters: int,
    tol: float,
) -> tuple[Fusion, FitInfo]:
    counted = jnp.where(weights[:, None] > 0, x, 0)
    power = scaling.row_exponents(counted.T)[:, 0]  # squares of features of any unit stay within the range of the type
    x, counted = (scaling.shifted(each, -power[None, :]) for each in (x, counted))
    center = weights @ counted / weights.sum()
    centered = jnp.where(weights[:, None] > 0, x - center[None, :], 0)
    spread = jnp.sqrt(weights @ centered**2 / weights.sum())
    # A column that is constant but for rounding has nothing to say.
    says = spread > 8 * machine.eps(x.dtype) * jnp.abs(counted).max(axis=0)
    scale = jnp.where(says, 1 / jnp.where(says, spread, 1), 0)
    of_kind = jnp.where(is_same, (weights * is_same).sum(), (weights * ~is_same).sum())
    shares = weights * jnp.where(is_same, prior, 1 - prior) / of_kind
    shift = jnp.log(prior) - jnp.log1p(-prior)
    data = _Data(centered * scale[None, :], is_same, shares, shift, ridge)
    start = jnp.zeros(x.shape[1] + 1, x.dtype)
    w, trace = loops.iterate(partial(_newton, data), start, num_iters=num_iters, tol=tol)
    slopes = w[:-1] * scale
    found = Fusion(weights=scaling.shifted(slopes, -power), offset=w[-1] - slopes @ center)
    status = fitinfo.or_non_finite(trace.status, (counted, found))
    return found, fitinfo.iterative(status=status, num_iters=trace.num_iters, objective=trace.objective)


def _newton(data: _Data, w: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One step, halved until the loss does not rise, and the loss before it."""
    value, gradient = jax.value_and_grad(_loss)(w, data)
    design = jnp.concatenate([data.features, jnp.ones_like(data.features[:, :1])], axis=1)
    p = jax.nn.sigmoid(design @ w + data.shift)
    curvature = design.T @ (design * (data.weight * p * (1 - p))[:, None])
    tiny = machine.eps(w.dtype) * jnp.trace(curvature) / len(w) + machine.tiny(w.dtype)
    penalty = jnp.full_like(w, data.ridge + tiny).at[-1].set(tiny)
    step = jnp.linalg.solve(curvature + jnp.diag(penalty), gradient)

    def halve(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        size, number = state
        return size / 2, number + 1

    def rises(state: tuple[jax.Array, jax.Array]) -> jax.Array:
        size, number = state
        return (_loss(w - size * step, data) > value) & (number < _HALVINGS)

    size, number = jax.lax.while_loop(rises, halve, (jnp.ones((), w.dtype), jnp.zeros((), jnp.int32)))
    return jnp.where(number < _HALVINGS, w - size * step, w), value


def _loss(w: jax.Array, data: _Data) -> jax.Array:
    margin = data.features @ w[:-1] + w[-1] + data.shift
    cost = jax.nn.softplus(jnp.where(data.is_same, -margin, margin))
    return (data.weight * cost).sum() + data.ridge / 2 * (w[:-1] ** 2).sum()
