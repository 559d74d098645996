"""Verification by a committee: the mean over its members of a score of two images; larger is more similar.

A score is a function `(member, gallery [g, p], probes [q, p]) -> [g, q]`. The three here are for LDA members and also
work for people who were not in training; members of another kind need a score of their own.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, pytree
from jaxface.ensembles import lda_member
from jaxface.ensembles.lda_member import LdaMember
from jaxface.ensembles.members import check_columns
from jaxface.linalg import distances

__all__ = ["cosine", "distance", "same_class", "score_matrix", "score_pairs"]

Score = Callable[[Any, jax.Array, jax.Array], jax.Array]


def cosine(member: LdaMember, gallery: jax.Array, probes: jax.Array) -> jax.Array:
    """`cos(z_1, z_2)` `[g, q]`."""
    return distances.cosine_matrix(*_coordinates(member, gallery, probes))


def distance(member: LdaMember, gallery: jax.Array, probes: jax.Array) -> jax.Array:
    """`-|z_1 - z_2|^2` `[g, q]`."""
    return -distances.squared_distance_matrix(*_coordinates(member, gallery, probes))


def same_class(member: LdaMember, gallery: jax.Array, probes: jax.Array) -> jax.Array:
    """`sum_c P(c | x_1) P(c | x_2)` `[g, q]`: the probability that both are one of the training people."""
    return jnp.exp(lda_member.gaussian(member, gallery)) @ jnp.exp(lda_member.gaussian(member, probes)).T


def score_matrix(
    members: Any, gallery: ArrayLike, probes: ArrayLike, *, score: Score, block_size: int = 1024
) -> jax.Array:
    """Mean scores `[g, q]` of gallery `[g, p]` and probes `[q, p]`, `block_size` rows of the gallery at a time."""
    _check(members, block_size, gallery=(gallery, "g p"), probes=(probes, "q p"))
    return _score_matrix(members, jnp.asarray(gallery), jnp.asarray(probes), score=score, block_size=block_size)


@partial(jax.jit, static_argnames=("score", "block_size"))
def _score_matrix(members: Any, gallery: jax.Array, probes: jax.Array, *, score: Score, block_size: int) -> jax.Array:
    g = gallery.shape[0]

    def of_rows(rows: jax.Array) -> jax.Array:
        return _mean(lambda member: score(member, rows, probes), members)

    if g <= block_size:
        return of_rows(gallery)
    return jax.lax.map(of_rows, blocks.split(gallery, block_size)).reshape(-1, probes.shape[0])[:g]


def score_pairs(
    members: Any, first: ArrayLike, second: ArrayLike, *, score: Score, block_size: int = 1024
) -> jax.Array:
    """Mean scores `[p]` of the pairs of rows of first and second `[p, d]`, `block_size` pairs at a time."""
    _check(members, block_size, first=(first, "p d"), second=(second, "p d"))
    return _score_pairs(members, jnp.asarray(first), jnp.asarray(second), score=score, block_size=block_size)


@partial(jax.jit, static_argnames=("score", "block_size"))
def _score_pairs(members: Any, first: jax.Array, second: jax.Array, *, score: Score, block_size: int) -> jax.Array:
    def of_pair(pair: jax.Array) -> jax.Array:
        return _mean(lambda member: score(member, pair[:1], pair[1:])[0, 0], members)

    pairs = jnp.stack([first, second], axis=1)
    return blocks.map_rows(of_pair, pairs, block_size=block_size)


def _check(members: Any, block_size: int, **rows: tuple[ArrayLike, str]) -> None:
    """Checks both sides, given with their shapes, and the columns of the first."""
    checks.shapes(**rows)
    checks.floating(**{name: x for name, (x, _) in rows.items()})
    checks.at_least("block_size", block_size, 1)
    name, (x, _) = next(iter(rows.items()))
    check_columns(name, members, x)


def _mean(fn: Callable[[Any], jax.Array], members: Any) -> jax.Array:
    """The mean of `fn` over the members, one at a time, so that only the sum is in memory."""
    shape = jax.eval_shape(fn, pytree.member(members, 0))
    total, _ = jax.lax.scan(lambda sum, member: (sum + fn(member), None), jnp.zeros(shape.shape, shape.dtype), members)
    return total / pytree.num_members(members)


def _coordinates(member: LdaMember, *images: jax.Array) -> list[jax.Array]:
    return [rows[:, member.axes] @ member.basis for rows in images]
