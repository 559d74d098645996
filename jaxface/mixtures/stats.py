"""The E-step: additive sums over samples, the only statistics that an M-step or an encoder needs.

The sums of a view are over the samples that have it, and so are the sums of z beside them. Two facts turn the sums into
wide products. zhat is linear in v, so sums of zhat zhat' follow from sums of v zhat'; and the factor L^-T of
zhat = L^-T u is applied after the summation: `sum g v zhat' = (sum g v u') L^-1`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, machine
from jaxface.linalg import scaling
from jaxface.linalg.products import transposed_copy
from jaxface.linalg.psd import symmetrize
from jaxface.mixtures.patterns import Blocks, Pattern, Samples, to_blocks
from jaxface.mixtures.views import (
    Mixture,
    View,
    Woodbury,
    evaluate,
    factorize,
    is_full,
    latent_cov,
    squares_beside,
)

__all__ = ["e_step", "log_likelihood", "merge", "stepwise"]


class ViewMoments(NamedTuple):
    """Sums over the samples that have this view, for r = v - center, weighted by the responsibilities g."""

    center: jax.Array  # [k, n], the means of the components in the E-step
    first: jax.Array  # [k, n], sum g r
    second: jax.Array  # [k, n], sum g r^2; for full noise [k, n, n], sum g r r'
    cross: jax.Array  # [k, n, d], sum g r zhat'
    weight: jax.Array  # [k], sum g
    latent: jax.Array  # [k, d], sum g zhat
    latent_second: jax.Array  # [k, d, d], (20): sum g E[zz']


class Moments(NamedTuple):
    """Sums over samples; those of disjoint samples at the same parameters can be added."""

    weight: jax.Array  # [k], sum g
    latent: jax.Array  # [k, d], sum g zhat
    views: tuple[ViewMoments, ...]


class _Sums(NamedTuple):
    """Sums of a block, of r = v - origin and of u instead of zhat."""

    weight: jax.Array  # [k]
    first: jax.Array  # [k, n]
    second: tuple[jax.Array, ...]  # [k, n] or [k, n, n] of each view
    cross: jax.Array  # [n, d, k], sum g r u'


def e_step(
    model: Mixture,
    *views: ArrayLike,
    present: ArrayLike | None = None,
    sample_weights: ArrayLike | None = None,
    block_size: int = 1024,
) -> tuple[Moments, jax.Array]:
    """(13), (18)-(20): the sums of samples, `[s, n]` for each view, and their log-likelihood (12).

    `present` bool `[s, v]` says which views each sample has; the other entries are never read. `sample_weights` `[s]`
    say how often each sample counts; a sample of weight 0 is left out and may hold anything. Memory grows with
    `block_size` times k d; the result does not depend on it.
    """
    samples = to_blocks(model, views, sample_weights, block_size, present=present)
    return e_step_blocks(model.log_weights, model.views, samples)


def log_likelihood(
    model: Mixture,
    *views: ArrayLike,
    present: ArrayLike | None = None,
    sample_weights: ArrayLike | None = None,
    block_size: int = 1024,
) -> jax.Array:
    """(12): `sum_i log sum_k w_k p(v_i | k)` of samples, `[s, n]` for each view; differentiable in all of them.

    Of a sample that lacks views, as `present` bool `[s, v]` says, v_i are the views that it has.
    """
    samples = to_blocks(model, views, sample_weights, block_size, present=present)
    return log_likelihood_of_blocks(model.log_weights, model.views, samples)


def merge(a: Moments, b: Moments) -> Moments:
    """Moments of two disjoint sets of samples at the same parameters."""
    for ours, theirs in zip(a.views, b.views, strict=True):
        known = checks.is_concrete(ours.center) and checks.is_concrete(theirs.center)
        if known and not np.array_equal(ours.center, theirs.center):
            raise ValueError("a and b must come from E-steps at the same parameters; stepwise takes others.")
    return _about(jax.tree.map(jnp.add, a, b), a)


def stepwise(old: Moments, new: Moments, rate: jax.Array | float) -> Moments:
    """Stepwise EM: `(1 - rate) old + rate new`, both divided by their total weight, about the means of `new`.

    Each mini-batch has its own E-step, at the parameters of that moment, and is followed by an M-step. The rates must
    fall, for example as `(t + 2)^-0.7`.
    """
    checks.between("rate", rate, 0.0, 1.0)
    rate = jnp.asarray(rate, new.weight.dtype)
    old = recenter(old, tuple(view.center for view in new.views))
    kept, taken = (1 - rate) / positive_floor(old.weight.sum()), rate / positive_floor(new.weight.sum())
    return _about(jax.tree.map(lambda a, b: kept * a + taken * b, old, new), new)


def recenter(moments: Moments, means: tuple[jax.Array, ...]) -> Moments:
    """The same moments about other means, `[k, n]` for each view, exactly."""
    moved = []
    for view, mean in zip(moments.views, means, strict=True):
        move = mean - view.center
        first, second = _moved(view.weight, view.first, view.second, move)
        cross = view.cross - _outer(move, view.latent)
        moved.append(view._replace(center=mean, first=first, second=second, cross=cross))
    return moments._replace(views=tuple(moved))


def in_data_units(sums: ViewMoments, powers: jax.Array) -> ViewMoments:
    """Sums of a view from units of `2^powers` `[n]` to those of the data; the means stay as they are."""
    both = powers[None, :, None] + powers[None, None, :] if is_full(sums.second) else 2 * powers[None, :]
    return sums._replace(
        first=scaling.shifted(sums.first, powers[None, :]),
        second=scaling.shifted(sums.second, both),
        cross=scaling.shifted(sums.cross, powers[None, :, None]),
    )


def positive_floor(weight: jax.Array) -> jax.Array:
    """A sum of weights, raised to the smallest normal number: a divisor that is never zero."""
    return jnp.maximum(weight, machine.tiny(weight.dtype))


def mean_of(sums: jax.Array, weight: jax.Array) -> jax.Array:
    """Sums `[k, ...]` divided by the component's weight."""
    return sums / positive_floor(weight).reshape(-1, *[1] * (sums.ndim - 1))


@jax.jit
def e_step_blocks(
    log_weights: jax.Array, views: tuple[View, ...], samples: Samples, factors: jax.Array | None = None
) -> tuple[Moments, jax.Array]:
    """`e_step` of samples in blocks, or of samples times `factors` `[n]`, one for each dimension of all views."""
    total = None
    for pattern, group in zip(samples.patterns, samples.groups, strict=True):
        part = _e_step_of_group(log_weights, views, pattern, group, factors)
        total = part if total is None else jax.tree.map(jnp.add, total, part)
    if total is None:
        raise ValueError("the number of samples must be at least 1; got none that has a view.")
    moments, log_likelihood = total
    pairs = zip(moments.views, views, strict=True)
    return moments._replace(views=tuple(sums._replace(center=view.mean) for sums, view in pairs)), log_likelihood


def _e_step_of_group(
    log_weights: jax.Array, views: tuple[View, ...], pattern: Pattern, group: Blocks, factors: jax.Array | None
) -> tuple[Moments, jax.Array]:
    """The sums of samples that have the views of `pattern`; those of the other views are zero."""
    given = tuple(views[v] for v in pattern)
    woodbury = factorize(log_weights, given)
    if factors is not None:
        parts = jnp.split(factors, np.cumsum([view.mean.shape[1] for view in views])[:-1])
        factors = jnp.concatenate([parts[v] for v in pattern])

    def of_block(values: jax.Array, sample_weights: jax.Array) -> tuple[_Sums, jax.Array]:
        values = values if factors is None else values * factors[None, :]
        return _sums_of_block(woodbury, given, values, sample_weights)

    sums, log_likelihood = _fold(of_block, group)
    moments = _moments(woodbury, given, sums)
    by_view = dict(zip(pattern, moments.views, strict=True))
    filled = (by_view.get(v) or _no_sums(view) for v, view in enumerate(views))
    return moments._replace(views=tuple(filled)), log_likelihood


def _no_sums(view: View) -> ViewMoments:
    """The sums of a view that no sample has."""
    k, _, d = view.loadings.shape
    shapes = view.mean.shape, view.noise.shape, view.loadings.shape, (k,), (k, d), (k, d, d)
    return ViewMoments(view.mean, *(jnp.zeros(shape, view.mean.dtype) for shape in shapes))


@jax.jit
def log_likelihood_of_blocks(log_weights: jax.Array, views: tuple[View, ...], samples: Samples) -> jax.Array:
    """`log_likelihood` of samples in blocks."""

    def of_group(pattern: Pattern, group: Blocks) -> jax.Array:
        woodbury = factorize(log_weights, tuple(views[v] for v in pattern))

        @jax.checkpoint  # for a derivative, keep the samples of a block and recompute the densities of the components
        def of_block(values: jax.Array, sample_weights: jax.Array) -> jax.Array:
            log_joint = blocks.each_row(evaluate, woodbury, values).log_joint
            return sample_weights @ (jax.nn.logsumexp(log_joint, axis=1) - woodbury.log_unit)

        return _fold(of_block, group)

    parts = [of_group(*each) for each in zip(samples.patterns, samples.groups, strict=True)]
    return jnp.stack(parts).sum()


def _fold(of_block: Any, samples: Blocks) -> Any:
    """The sum of `of_block` over the blocks."""
    first = Blocks(samples.values[0], samples.sample_weights[0])
    if samples.values.shape[0] == 1:
        return of_block(*first)
    zero = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(of_block, *first))

    def step(total: Any, block: Blocks) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, of_block(*block)), None

    return jax.lax.scan(step, zero, samples)[0]


def _sums_of_block(
    woodbury: Woodbury, views: tuple[View, ...], values: jax.Array, sample_weights: jax.Array
) -> tuple[_Sums, jax.Array]:
    log_joint, u = blocks.each_row(evaluate, woodbury, values)
    highest = log_joint.max(axis=1, keepdims=True)
    joint = jnp.exp(log_joint - highest)
    density = joint.sum(axis=1, keepdims=True)
    g = joint * (sample_weights[:, None] / density)  # [s, k]
    weighted = transposed_copy(g)
    r = (values - woodbury.origin[None, :]) * woodbury.factors[None, :]
    parts = jnp.split(r, np.cumsum([view.mean.shape[1] for view in views])[:-1], axis=1)
    if is_full(views[0].noise):
        first, second = weighted @ r, tuple(_outer_sum(g, part) for part in parts)
    else:
        halves = [jnp.split(weighted @ squares_beside(part), 2, axis=1) for part in parts]
        first, second = jnp.concatenate([half[1] for half in halves], axis=1), tuple(half[0] for half in halves)
    cross = jnp.tensordot(transposed_copy(r), g[:, None, :] * u, 1)
    log_density = (highest + jnp.log(density))[:, 0] - woodbury.log_unit
    return _Sums(g.sum(axis=0), first, second, cross), sample_weights @ log_density


def _outer_sum(g: jax.Array, r: jax.Array) -> jax.Array:
    """`sum_i g_ik r_i r_i'` `[k, n, n]` as one wide product."""
    return jnp.tensordot(transposed_copy(r), g[:, :, None] * r[:, None, :], 1).transpose(1, 0, 2)


def _moments(woodbury: Woodbury, views: tuple[View, ...], sums: _Sums) -> Moments:
    """From the origin to the components' means, from u to z, and to the units of the data."""
    weight, mean, gain = sums.weight, woodbury.mean, woodbury.gain[:-1].transpose(2, 0, 1)  # gain [k, n, d]
    first = sums.first - weight[:, None] * mean
    latent_u = jnp.einsum("knd,kn->kd", gain, first)
    cross_u = sums.cross.transpose(2, 0, 1) - _outer(mean, latent_u)
    cross, latent_second = cross_u @ woodbury.inner, woodbury.inner.mT @ symmetrize(gain.mT @ cross_u) @ woodbury.inner
    latent = jnp.einsum("kij,ki->kj", woodbury.inner, latent_u)
    of_latent = weight, latent, weight[:, None, None] * latent_cov(woodbury) + latent_second
    parts, start = [], 0
    for view, second in zip(views, sums.second, strict=True):
        part = slice(start, start := start + view.mean.shape[1])
        moved = _moved(weight, sums.first[:, part], second, mean[:, part])
        parts.append(in_data_units(ViewMoments(view.mean, *moved, cross[:, part], *of_latent), woodbury.powers[part]))
    return Moments(weight, latent, tuple(parts))


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
    return moments._replace(views=tuple(view._replace(center=other.center) for view, other in pairs))
