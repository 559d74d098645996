"""Groups without names: the checks that all fits to groups share, and the differences that span their scatters.

Rows of one group show one person; two groups may show the same one. Groups are dense int32 in [0, R), each with at
least one row: `jaxface.core.labels.dense` and `kept_rows` make them from any ids and drop the rows of no group.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.core.fitinfo import FitInfo
from jaxface.core.pytree import stack
from jaxface.subspace.group_sums import GroupSums

__all__ = []


class Contrasts(NamedTuple):
    """Differences that span the scatter within groups, and with it the total scatter."""

    inner: jax.Array  # [n - R, d], x_ri - x_r1: the row space of S_g
    outer: jax.Array  # [R - 1, d], x_r1 - x_11


def contrasts(x: jax.Array, groups: jax.Array, *, num_groups: int) -> Contrasts:
    """Differences of x `[n, d]` to the first row of each group; their number depends on n and R only."""
    place = jnp.arange(x.shape[0], dtype=jnp.int32)
    first = jax.ops.segment_min(place, groups, num_groups)
    others = jnp.nonzero(place != first[groups], size=x.shape[0] - num_groups)[0]
    return Contrasts(x[others] - x[first[groups[others]]], x[first[1:]] - x[first[0]][None, :])


def is_complete(groups: jax.Array, *, num_groups: int) -> jax.Array:
    """Whether every group has a row and every row a group; inside a transformation `check` cannot tell."""
    inside = (groups >= 0) & (groups < num_groups)
    return jnp.zeros(num_groups, bool).at[groups].set(True).all() & inside.all()


def check(x: Any, groups: Any, num_groups: int) -> tuple[int, int, Any]:
    """n, d and signed groups of x `[n, d]` and groups `[n]`: two groups at least, none empty, one with two rows."""
    sizes = checks.samples(x=(x, "n d"), beside={"groups": (groups, "n")})
    checks.at_least("num_groups", num_groups, 2, "one group has no other to be told from")
    groups = checks.dense_labels("groups", groups, num_groups)
    checks.at_least(
        "number of samples minus num_groups", sizes["n"] - num_groups, 1, "groups of one image alone teach nothing"
    )
    checks.every_label("groups", groups, num_groups)
    return sizes["n"], sizes["d"], groups


def check_sums(sums: GroupSums) -> None:
    """Some group has two images: without differences within groups there is nothing to learn."""
    if checks.is_concrete(sums.count):
        excess = int(sums.count) - int(sums.num_groups)
        checks.at_least("number of images minus number of groups", excess, 1, "groups must show differences")


def fit_draws(fit: Callable[[Any, Any], tuple[Any, FitInfo]], x: ArrayLike, groups: ArrayLike) -> tuple[Any, FitInfo]:
    """`fit(x [n, d], groups [n])` on the host for every draw of x `[..., n, d]` and groups `[..., n]`.

    The results are stacked and have the leading axes of the draws.
    """
    x, groups = np.asarray(x), np.asarray(groups)
    checks.shapes(x=(x, "... n d"), groups=(groups, "... n"))
    lead = np.broadcast_shapes(x.shape[:-2], groups.shape[:-1])
    rows = np.broadcast_to(x, lead + x.shape[-2:])
    ids = np.broadcast_to(groups, lead + groups.shape[-1:])
    fits = [fit(rows[i], ids[i]) for i in np.ndindex(lead)]
    return jax.tree.map(lambda leaf: leaf.reshape(lead + leaf.shape[1:]), stack(fits))
