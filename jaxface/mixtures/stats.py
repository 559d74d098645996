"""The E-step: sums over samples, additive, and all that an M-step or an encoder ever needs.

Two facts make wide products of it. zhat is linear in v, so sums of zhat zhat' follow from sums of v zhat'; and the
factor L^-T of zhat = L^-T u can wait until the sums are made: `sum g v zhat' = (sum g v u') L^-1`.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import blocks, checks
from jaxface.linalg import scaling
from jaxface.linalg.products import turned
from jaxface.linalg.psd import symmetrize
from jaxface.mixtures.views import (
    NAMES,
    Mixture,
    View,
    Woodbury,
    checked,
    is_full,
    latent_cov,
    project,
    solve,
    squares_beside,
)

__all__ = ["e_step", "log_likelihood", "merge", "stepwise"]


class ViewMoments(NamedTuple):
    """Sums of one view for r = v - about, weighted by the responsibilities g."""

    about: jax.Array  # [k, n], the means that the E-step had
    first: jax.Array  # [k, n], sum g r
    second: jax.Array  # [k, n], sum g r^2; for full noise [k, n, n], sum g r r'
    cross: jax.Array  # [k, n, d], sum g r zhat'


class Moments(NamedTuple):
    """Sums over samples; those of disjoint samples at the same parameters add."""

    weight: jax.Array  # [k], sum g
    latent: jax.Array  # [k, d], sum g zhat
    latent_second: jax.Array  # [k, d, d], (20): sum g E[zz']
    views: tuple[ViewMoments, ...]


class Rows(NamedTuple):
    """Samples in blocks, the views side by side."""

    values: jax.Array  # [b, s, n]
    weights: jax.Array  # [b, s], 0 for padding


class _Sums(NamedTuple):
    """What is summed: r = v - origin, and u for zhat."""

    weight: jax.Array  # [k]
    first: jax.Array  # [k, n]
    second: tuple[jax.Array, ...]  # [k, n] or [k, n, n] of each view
    cross: jax.Array  # [n, d, k], sum g r u'


def e_step(
    model: Mixture, *views: ArrayLike, weights: ArrayLike | None = None, block_size: int = 1024
) -> tuple[Moments, jax.Array]:
    """(13), (18)-(20): the sums of samples, `[s, n]` for each view, and their log-likelihood (12).

    `weights` `[s]` count a sample more or less often; one of weight 0 is left out, whatever it holds. Memory grows with
    `block_size` times k d, the result does not depend on it.
    """
    return collect(model.log_weights, model.views, split(model, views, weights, block_size))


def log_likelihood(
    model: Mixture, *views: ArrayLike, weights: ArrayLike | None = None, block_size: int = 1024
) -> jax.Array:
    """(12): `sum_i log sum_k w_k p(v_i | k)` of samples, `[s, n]` for each view; differentiable in all of them."""
    return log_likelihood_of_rows(model.log_weights, model.views, split(model, views, weights, block_size))


def merge(a: Moments, b: Moments) -> Moments:
    """Moments of two disjoint sets of samples at the same parameters."""
    for ours, theirs in zip(a.views, b.views, strict=True):
        known = checks.is_concrete(ours.about) and checks.is_concrete(theirs.about)
        if known and not np.array_equal(ours.about, theirs.about):
            raise ValueError("a and b must come from E-steps at the same parameters; stepwise takes others.")
    return _about(jax.tree.map(jnp.add, a, b), a)


def stepwise(old: Moments, new: Moments, rate: jax.Array | float) -> Moments:
    """Stepwise EM: `(1 - rate) old + rate new`, both for one sample on average, about the means of `new`.

    Mini-batches follow one another, each from an E-step at the parameters of its turn, and each is followed by an
    M-step. The rates must fall, for example as `(t + 2)^-0.7`.
    """
    checks.between("rate", rate, 0.0, 1.0)
    rate = jnp.asarray(rate, new.weight.dtype)
    old = recenter(old, tuple(view.about for view in new.views))
    kept, taken = (1 - rate) / safe(old.weight.sum()), rate / safe(new.weight.sum())
    return _about(jax.tree.map(lambda a, b: kept * a + taken * b, old, new), new)


def recenter(moments: Moments, means: tuple[jax.Array, ...]) -> Moments:
    """The same moments about other means, `[k, n]` for each view, exactly."""
    moved = []
    for view, mean in zip(moments.views, means, strict=True):
        move = mean - view.about
        first, second = _moved(moments.weight, view.first, view.second, move)
        moved.append(ViewMoments(mean, first, second, view.cross - _outer(move, moments.latent)))
    return moments._replace(views=tuple(moved))


def in_data_units(sums: ViewMoments, powers: jax.Array) -> ViewMoments:
    """Sums of a view from units of `2^powers` `[n]`; the means are left as they are."""
    both = powers[None, :, None] + powers[None, None, :] if is_full(sums.second) else 2 * powers[None, :]
    return sums._replace(
        first=scaling.shifted(sums.first, powers[None, :]),
        second=scaling.shifted(sums.second, both),
        cross=scaling.shifted(sums.cross, powers[None, :, None]),
    )


def safe(weight: jax.Array) -> jax.Array:
    """A sum of weights to divide by."""
    return jnp.maximum(weight, jnp.finfo(weight.dtype).tiny)


def split(
    model: Mixture,
    views: tuple[ArrayLike, ...],
    weights: ArrayLike | None,
    block_size: int = 1024,
    *,
    with_nan: bool = False,
) -> Rows:
    """Checked samples in as few blocks as `block_size` allows, nearly equal; NaN is refused unless asked for.

    A block takes every b-th sample: where the samples are cut over devices, so is each block.
    """
    given = checked(model, views, "s")
    size = given[0].shape[0]
    checks.at_least("the number of samples", size, 1)
    if weights is not None:
        checks.shapes(x=(given[0], "s n"), weights=(weights, "s"))
        checks.between("weights", weights, 0.0, jnp.inf, closed_high=False)
        weights = jnp.asarray(weights, jnp.result_type(*given))
        checks.positive("the sum of the weights", weights.sum())
    if not with_nan:
        finite_where_counted(given, weights)
    return _in_blocks([jnp.asarray(view) for view in given], weights, number=blocks.num_blocks(size, block_size))


def finite_where_counted(views: Sequence[ArrayLike], weights: ArrayLike | None) -> None:
    """Checks that views `[..., n]` are finite wherever their weight `[...]` is above 0."""
    for (name, _), view in zip(NAMES, views, strict=False):
        if weights is None or not (checks.is_concrete(view) and checks.is_concrete(weights)):
            checks.finite(**{name: view})
        else:
            checks.finite(**{name: np.where(np.asarray(weights)[..., None] > 0, view, 0)})


@partial(jax.jit, static_argnames="number")
def _in_blocks(views: list[jax.Array], weights: jax.Array | None, *, number: int) -> Rows:
    values = jnp.concatenate(views, axis=1)
    if weights is None:
        weights = jnp.ones(values.shape[0], values.dtype)
    else:
        values = jnp.where(weights[:, None] > 0, values, 0)
    return Rows(blocks.split(values, number).swapaxes(0, 1), blocks.split(weights, number).T)


@jax.jit
def collect(
    log_weights: jax.Array, views: tuple[View, ...], rows: Rows, factors: jax.Array | None = None
) -> tuple[Moments, jax.Array]:
    """`e_step` of samples in blocks, or of samples times `factors` `[n]`."""
    forms = solve(log_weights, views)

    def of_block(values: jax.Array, weights: jax.Array) -> tuple[_Sums, jax.Array]:
        values = values if factors is None else values * factors[None, :]
        return _sums_of_block(forms, views, values, weights)

    sums, log_likelihood = _fold(of_block, rows)
    return _moments(forms, views, sums), log_likelihood


@jax.jit
def log_likelihood_of_rows(log_weights: jax.Array, views: tuple[View, ...], rows: Rows) -> jax.Array:
    """`log_likelihood` of samples in blocks."""
    forms = solve(log_weights, views)

    @jax.checkpoint  # a derivative keeps the samples of a block and not what the components make of them
    def of_block(values: jax.Array, weights: jax.Array) -> jax.Array:
        log_joint = jax.vmap(lambda v: project(forms, v).log_joint)(values)
        return weights @ (jax.nn.logsumexp(log_joint, axis=1) - forms.log_unit)

    return _fold(of_block, rows)


def _fold(of_block: Any, rows: Rows) -> Any:
    """The sum of `of_block` over the blocks."""
    first = Rows(rows.values[0], rows.weights[0])
    if rows.values.shape[0] == 1:
        return of_block(*first)
    zero = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(of_block, *first))

    def step(total: Any, block: Rows) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, of_block(*block)), None

    return jax.lax.scan(step, zero, rows)[0]


def _sums_of_block(
    forms: Woodbury, views: tuple[View, ...], values: jax.Array, weights: jax.Array
) -> tuple[_Sums, jax.Array]:
    log_joint, u = jax.vmap(partial(project, forms))(values)
    highest = log_joint.max(axis=1, keepdims=True)
    joint = jnp.exp(log_joint - highest)
    density = joint.sum(axis=1, keepdims=True)
    g = joint * (weights[:, None] / density)  # [s, k]
    weighted = turned(g)
    r = (values - forms.origin[None, :]) * forms.factors[None, :]
    parts = jnp.split(r, np.cumsum([view.mean.shape[1] for view in views])[:-1], axis=1)
    if is_full(views[0].noise):
        first, second = weighted @ r, tuple(_outer_sum(g, part) for part in parts)
    else:
        halves = [jnp.split(weighted @ squares_beside(part), 2, axis=1) for part in parts]
        first, second = jnp.concatenate([half[1] for half in halves], axis=1), tuple(half[0] for half in halves)
    cross = jnp.tensordot(turned(r), g[:, None, :] * u, 1)
    log_density = (highest + jnp.log(density))[:, 0] - forms.log_unit
    return _Sums(g.sum(axis=0), first, second, cross), weights @ log_density


def _outer_sum(g: jax.Array, r: jax.Array) -> jax.Array:
    """`sum_i g_ik r_i r_i'` `[k, n, n]` as one wide product."""
    return jnp.tensordot(turned(r), g[:, :, None] * r[:, None, :], 1).transpose(1, 0, 2)


def _moments(forms: Woodbury, views: tuple[View, ...], sums: _Sums) -> Moments:
    """From the origin to the components' means, from u to z, and to the units of the data."""
    weight, mean, gain = sums.weight, forms.mean, forms.gain[:-1].transpose(2, 0, 1)  # gain [k, n, d]
    first = sums.first - weight[:, None] * mean
    latent_u = jnp.einsum("knd,kn->kd", gain, first)
    cross_u = sums.cross.transpose(2, 0, 1) - _outer(mean, latent_u)
    cross, latent_second = cross_u @ forms.inner, forms.inner.mT @ symmetrize(gain.mT @ cross_u) @ forms.inner
    parts, start = [], 0
    for view, second in zip(views, sums.second, strict=True):
        part = slice(start, start := start + view.mean.shape[1])
        moved = _moved(weight, sums.first[:, part], second, mean[:, part])
        parts.append(in_data_units(ViewMoments(view.mean, *moved, cross[:, part]), forms.powers[part]))
    return Moments(
        weight=weight,
        latent=jnp.einsum("kij,ki->kj", forms.inner, latent_u),
        latent_second=weight[:, None, None] * latent_cov(forms) + latent_second,
        views=tuple(parts),
    )


def _moved(weight: jax.Array, first: jax.Array, second: jax.Array, move: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`sum g (r - move)` and `sum g (r - move)(r - move)'`, or the diagonal of it."""
    after = first - weight[:, None] * move
    if is_full(second):
        return after, second - _outer(first, move) - _outer(move, after)
    return after, second - (first + after) * move


def _outer(a: jax.Array, b: jax.Array) -> jax.Array:
    return a[:, :, None] * b[:, None, :]


def _about(moments: Moments, source: Moments) -> Moments:
    """`moments` about the means of `source`: means do not add."""
    pairs = zip(moments.views, source.views, strict=True)
    return moments._replace(views=tuple(view._replace(about=other.about) for view, other in pairs))
