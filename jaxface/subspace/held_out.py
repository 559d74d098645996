"""Choosing a setting without names: groups that were held out of a fit should stay together under it.

The criterion needs groups only, as the fit does. Two held-out groups of one person count as strangers, so the error has
a floor that is the same for every setting: compare settings, and do not read it as an error of recognition.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.labels import dense
from jaxface.linalg import distances, scaling
from jaxface.subspace import maps

__all__ = ["errors"]

Fit = Callable[..., tuple[Any, FitInfo]]  # fit(setting, x, groups, *, num_groups)
Transform = Callable[[Any, jax.Array], jax.Array]  # transform(fitted, x [d]) -> [r]
Score = Callable[[Any, jax.Array, jax.Array], jax.Array]  # score(fitted, gallery [g, r], probes [q, r]) -> [g, q]


class Fold(NamedTuple):
    """Rows of the groups to fit and of those held out, each with dense ids of its own."""

    train_rows: np.ndarray  # int64 [k]
    train_groups: np.ndarray  # int32 [k]
    test_rows: np.ndarray  # int64 [n - k]
    test_groups: np.ndarray  # int32 [n - k]


def group_error(z: jax.Array, groups: jax.Array) -> jax.Array:
    """Of the rows of z `[n, r]` that have mates in their group: the share whose nearest other row is no mate.

    A tie between a mate and a stranger is an error. NaN in z is NaN in the share, which has no unit.
    """
    checks.floating(z=z)
    z = scaling.shifted(z, -scaling.exponent(z))
    share = group_error_of_scores(-distances.squared_distance_matrix(z, z), groups)
    return jnp.where(jnp.isfinite(z).all(), share, jnp.nan)


def group_error_of_scores(scores: jax.Array, groups: jax.Array) -> jax.Array:
    """`group_error` by scores `[n, n]` in the place of distances: larger means more alike; the diagonal is not read.

    NaN in a score is NaN in the share.
    """
    same = groups[:, None] == groups[None, :]
    mates = same & ~jnp.eye(len(groups), dtype=bool)
    best_mate = jnp.where(mates, scores, -jnp.inf).max(axis=0)
    best_stranger = jnp.where(same, -jnp.inf, scores).max(axis=0)
    has_mate = mates.any(axis=0)
    wrong = has_mate & ~(best_mate > best_stranger)
    share = wrong.sum() / jnp.maximum(has_mate.sum(), 1).astype(scores.dtype)
    return jnp.where(jnp.isnan(scores).any(), jnp.nan, share)


def folds(groups: ArrayLike, *, num_folds: int, rng: np.random.Generator) -> list[Fold]:
    """Every group of dense ids `[n]` held out once, in `num_folds` random parts of nearly equal numbers of groups."""
    checks.shapes(groups=(groups, "n"))
    checks.at_least("the number of rows", np.size(groups), 1)
    groups = np.asarray(checks.dense_labels("groups", groups, np.size(groups)))
    num_groups = int(groups.max()) + 1
    checks.every_label("groups", groups, num_groups)
    checks.at_least("num_folds", num_folds, 2)
    checks.at_most("num_folds", num_folds, num_groups // 2, "two groups must be held out together")
    parts = np.array_split(rng.permutation(num_groups), num_folds)
    return [_fold(groups, np.isin(groups, part)) for part in parts]


def errors(
    fit: Fit,
    settings: Any,
    x: ArrayLike,
    groups: ArrayLike,
    *,
    num_folds: int,
    rng: np.random.Generator,
    transform: Transform = maps.transform,
    score: Score | None = None,
) -> np.ndarray:
    """Mean `group_error` of held-out groups for each setting, float64 `[b]`; inf where a fit or its map failed.

    `settings` is a pytree with a leading axis b, such as a Gaussian kernel with b bandwidths: all of them are one
    vmapped call in each fold. Any `fit(setting, x, groups, num_groups=...)` serves. One that returns something other
    than a map of this room needs a `transform(fitted, x)`, and one whose images are not compared by their distance a
    `score(fitted, gallery, probes)` of transformed rows, such as `joint_bayes.score_projections`.
    """
    checks.samples(x=(x, "n d"), beside={"groups": (groups, "n")})
    x = jnp.asarray(x)
    parts = folds(groups, num_folds=num_folds, rng=rng)

    def error(fold: Fold, setting: Any) -> jax.Array:
        num_groups = int(fold.train_groups.max()) + 1
        # Outside of a program, `take` compiles one program and indexing eight.
        train, test = jnp.take(x, fold.train_rows, axis=0), jnp.take(x, fold.test_rows, axis=0)
        fitted, info = fit(setting, train, fold.train_groups, num_groups=num_groups)
        return _error_of_map(fitted, info.status, test, fold.test_groups, transform=transform, score=score)

    of_folds = [jax.vmap(partial(error, fold))(settings) for fold in parts]
    return np.mean(np.asarray(of_folds, np.float64), axis=0)


@partial(jax.jit, static_argnames=("transform", "score"))
def _error_of_map(
    fitted: Any, status: jax.Array, x: jax.Array, groups: jax.Array, *, transform: Transform, score: Score | None
) -> jax.Array:
    """`group_error` of the rows of x `[n, d]`; inf where the fit or its map failed."""
    z = each_row(transform, fitted, x)
    wrong = group_error(z, groups) if score is None else group_error_of_scores(score(fitted, z, z), groups)
    return jnp.where((status < Status.NON_FINITE) & jnp.isfinite(wrong), wrong, jnp.inf)


def _fold(groups: np.ndarray, is_test: np.ndarray) -> Fold:
    train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    return Fold(train, dense(groups[train]).ids, test, dense(groups[test]).ids)
