"""How far the scatter within groups is from the scatter within classes, (12).

    S_w - S_g = sum_i (mu_c(i) - mu_r(i))(mu_c(i) - mu_r(i))'

RCA and NP-PER take S_g for S_w because they do not know the classes. Every group must lie within one class.

If groups are drawn at random from classes of one size, the mean of `tr(S_w - S_g)` is `(R - C) / (n - C) tr S_w`, which
vanishes like 1 / N_r as groups of N_r images grow. That part of the error is a scale: `S_g / (n - R)` is an unbiased
estimate of the covariance that `S_w / (n - C)` estimates. What can turn directions is the rest, `shape`.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.linalg import scaling, scatter

__all__ = ["ScatterError", "missed_factor", "scatter_error"]


class ScatterError(NamedTuple):
    """The error of S_g, relative to S_w; NaN where no class has two different images."""

    missed: jax.Array  # [], tr(S_w - S_g) / tr S_w, from 0 for groups = classes to 1 for groups of one
    shape: jax.Array  # [], |S_g / (n - R) - S_w / (n - C)|_F / |S_w / (n - C)|_F; NaN for groups of one


def missed_factor(
    x: ArrayLike, groups: ArrayLike, labels: ArrayLike, *, num_groups: int, num_classes: int
) -> jax.Array:
    """Rows `mu_c(i) - mu_r(i)` `[n, d]` of (12): a factor F with `F'F = S_w - S_g`; differentiable in x.

    x `[n, d]`, groups `[n]` in [0, R), labels `[n]` in [0, C). A group with images of two classes is refused where the
    values are known.
    """
    x, groups, labels = _checked(x, groups, labels, num_groups, num_classes)
    return _missed(x, groups, labels, num_groups=num_groups, num_classes=num_classes)


def scatter_error(
    x: ArrayLike, groups: ArrayLike, labels: ArrayLike, *, num_groups: int, num_classes: int
) -> ScatterError:
    """The error of S_g as an estimate of S_w, in scale and in shape; arguments as in `missed_factor`.

    R and C are the groups and classes that have images, so `num_groups` may be the same for groups of every size.
    """
    x, groups, labels = _checked(x, groups, labels, num_groups, num_classes)
    return _scatter_error(x, groups, labels, num_groups=num_groups, num_classes=num_classes)


@partial(jax.jit, static_argnames=("num_groups", "num_classes"))
def _missed(x: jax.Array, groups: jax.Array, labels: jax.Array, *, num_groups: int, num_classes: int) -> jax.Array:
    # Deviations from the class means first: the means of groups are then small numbers, which keep their digits.
    away = scatter.within_factor(x, labels, num_classes=num_classes)
    return -scatter.class_moments(away, groups, num_classes=num_groups).mean[groups]


@partial(jax.jit, static_argnames=("num_groups", "num_classes"))
def _scatter_error(
    x: jax.Array, groups: jax.Array, labels: jax.Array, *, num_groups: int, num_classes: int
) -> ScatterError:
    n, d = x.shape
    x = scaling.shifted(x, -scaling.exponent(x))
    if d > n:  # neither ratio depends on the basis
        x = jnp.linalg.qr(scatter.total_factor(x).T, mode="r").T
    missed = _missed(x, groups, labels, num_groups=num_groups, num_classes=num_classes)
    within = scatter.within_factor(x, labels, num_classes=num_classes)
    of_classes = scatter.matrix(within) / _freedom(labels, num_classes, x.dtype)
    freedom = _freedom(groups, num_groups, x.dtype)
    of_groups = scatter.matrix(within + missed) / freedom
    shape = jnp.linalg.norm(of_groups - of_classes) / jnp.linalg.norm(of_classes)
    return ScatterError((missed**2).sum() / (within**2).sum(), jnp.where(freedom > 0, shape, jnp.nan))


def _freedom(labels: jax.Array, num: int, dtype: jnp.dtype) -> jax.Array:
    """The number of rows less that of the labels that occur."""
    return (len(labels) - jnp.zeros(num, bool).at[labels].set(True).sum()).astype(dtype)


def _checked(
    x: ArrayLike, groups: ArrayLike, labels: ArrayLike, num_groups: int, num_classes: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    checks.samples(x=(x, "n d"), beside={"groups": (groups, "n"), "labels": (labels, "n")})
    groups = checks.dense_labels("groups", groups, num_groups)
    labels = checks.dense_labels("labels", labels, num_classes)
    if checks.is_concrete(groups) and checks.is_concrete(labels):
        known, classes = np.asarray(groups), np.asarray(labels)
        first = np.zeros(num_groups, np.int64)
        first[known[::-1]] = classes[::-1]
        mixed = np.flatnonzero(first[known] != classes)
        if mixed.size:
            raise ValueError(
                f"every group must lie within one class; group {known[mixed[0]]} has images of the classes "
                f"{first[known[mixed[0]]]} and {classes[mixed[0]]}. (12) is about groups that show one person."
            )
    return jnp.asarray(x), jnp.asarray(groups), jnp.asarray(labels)
