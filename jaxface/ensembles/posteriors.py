"""From coordinates to class posteriors, in the log domain, for any kind of member.

A member's `posterior(member, x) -> log P(. | x)` maps rows `[n, d]` to `[n, c]`: `lda_member.gaussian` and
`lda_member.cosine` are two, and two lines make one for any other basis from the functions here. Priors are uniform.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, machine
from jaxface.ensembles.fusion import Rule
from jaxface.ensembles.members import check_columns, map_members
from jaxface.linalg import distances, scaling, scatter

__all__ = ["Posterior", "class_centers", "cosine", "fused", "log_posteriors"]

# posterior(member, x [n, d]) -> log P(. | x) [n, c]
Posterior = Callable[[Any, jax.Array], jax.Array]


def class_centers(z: jax.Array, labels: jax.Array, *, num_classes: int) -> jax.Array:
    """Class means `[c, r]` of coordinates `[n, r]`."""
    return scatter.class_moments(z, labels, num_classes=num_classes).mean


def gaussian(z: jax.Array, centers: jax.Array) -> jax.Array:
    """`log softmax_c(-|z - m_c|^2 / 2)` `[n, c]` of z `[n, r]`, whitened so that S_w is I, and centres `[c, r]`."""
    shift = centers.mean(axis=0)[None, :]
    z, centers = z - shift, centers - shift
    power = scaling.exponent(z, centers)
    z, centers = scaling.shifted(z, -power), scaling.shifted(centers, -power)
    return linear(z, centers.T, (centers**2).sum(axis=1) / 2, power=2 * power, offset_power=2 * power)


def cosine(z: jax.Array, centers: jax.Array) -> jax.Array:
    """`log P_c` `[n, c]` with `P_c` proportional to `(1 + cos(z, m_c)) / 2`; flat, whatever the scale of z."""
    # Rounding may take the cosine of opposite vectors below -1. The floor keeps every class possible.
    similarity = jnp.maximum(1 + distances.cosine_matrix(z, centers), machine.eps(z.dtype))
    return jnp.log(similarity) - jnp.log(similarity.sum(axis=1, keepdims=True))


def linear(
    x: jax.Array, coefficients: jax.Array, offsets: jax.Array, *, power: Any = 0, offset_power: Any = 0
) -> jax.Array:
    """`log softmax_c(2^power x'a_c - 2^offset_power b_c)` `[n, c]`: x `[n, d]`, coefficients `[d, c]`, offsets `[c]`.

    Classes may lie so far apart that their logits overflow: the largest is subtracted before scaling.
    """
    top = jnp.maximum(scaling.exponent(coefficients) + power, scaling.exponent(offsets) + offset_power)
    logits = x @ scaling.shifted(coefficients, power - top) - scaling.shifted(offsets, offset_power - top)[None, :]
    below = scaling.shifted(logits - jax.lax.stop_gradient(logits.max(axis=1, keepdims=True)), top)
    return below - jnp.log(jnp.exp(below).sum(axis=1, keepdims=True))


def log_posteriors(members: Any, x: ArrayLike, *, posterior: Posterior, block_size: int | None = 1) -> jax.Array:
    """`log P_t(c | x)` `[m, n, c]` of x `[n, d]` by every member, `block_size` members at a time.

    One at a time stays in the processor's cache and is the fastest on one device. None takes all members at once, for
    members that are sharded over devices.
    """
    checks.shapes(x=(x, "n d"))
    checks.floating(x=x)
    check_columns("x", members, x)
    return _log_posteriors(members, jnp.asarray(x), posterior=posterior, block_size=block_size)


@partial(jax.jit, static_argnames=("posterior", "block_size"))
def _log_posteriors(members: Any, x: jax.Array, *, posterior: Posterior, block_size: int | None) -> jax.Array:
    return map_members(lambda member: posterior(member, x), members, block_size=block_size)


def fused(members: Any, x: ArrayLike, *, posterior: Posterior, rule: Rule, block_size: int = 256) -> jax.Array:
    """`rule(log_posteriors)` `[n, c]`, `block_size` rows of x `[n, d]` at a time: no array of size m n c is needed."""
    n = checks.shapes(x=(x, "n d"))["n"]
    checks.floating(x=x)
    checks.at_least("number of rows", n, 1)
    checks.at_least("block_size", block_size, 1)
    check_columns("x", members, x)
    return _fused(members, jnp.asarray(x), posterior=posterior, rule=rule, block_size=min(block_size, n))


@partial(jax.jit, static_argnames=("posterior", "rule", "block_size"))
def _fused(members: Any, x: jax.Array, *, posterior: Posterior, rule: Rule, block_size: int) -> jax.Array:
    def of_rows(rows: jax.Array) -> jax.Array:
        return rule(_log_posteriors(members, rows, posterior=posterior, block_size=None))

    answers = jax.lax.map(of_rows, blocks.split(x, block_size))
    return answers.reshape(-1, answers.shape[-1])[: len(x)]
