"""Joint Bayes with groups in the place of people: alone, and after NP-PER."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxface import joint_bayes
from jaxface.core import fitinfo
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.joint_bayes import ScoringBasis
from jaxface.subspace import LinearMap, pca, transform

_MOST_AXES = 240  # principal axes; an iteration takes time in proportion to their third power
_NUM_ITERS = 10


def fit(x: jax.Array, groups: jax.Array, weight: jax.Array, *, num_groups: int) -> tuple[ScoringBasis, FitInfo]:
    """Joint Bayes of x `[n, d]` with groups `[n]` as people, in the principal axes of x.

    There are more axes than differences within groups, so the covariances of the groups alone are singular: a prior of
    the same variance in every direction has the weight `weight`, as the ridge of RCA.
    """
    axes, of_axes = pca.fit(x, num_components=min(len(x) - 1, x.shape[1], _MOST_AXES))
    fitted, info = _fit(each_row(transform, axes, x), groups, weight, num_groups=num_groups)
    return after(axes, fitted), info._replace(status=fitinfo.worst(of_axes.status, info.status))


def fit_after(
    fit_map: Callable[..., tuple[LinearMap, FitInfo]],
    x: jax.Array,
    groups: jax.Array,
    weight: jax.Array,
    *,
    num_groups: int,
) -> tuple[ScoringBasis, FitInfo]:
    """NP-PER by `fit_map` on the first half of the groups, then Joint Bayes on the other half in its coordinates.

    The groups that NP-PER was fitted to are points in its coordinates and tell nothing about noise. Groups are of one
    size.
    """
    size, left = divmod(len(x), num_groups)
    half = num_groups // 2
    if left or half < 2:
        raise ValueError(
            f"groups must be of one size and at least 4 to be halved; got {len(x)} images in {num_groups} groups."
        )
    order = jnp.argsort(groups, stable=True)
    first, second = order[: size * half], order[size * half :]
    fitted, info = fit_map(x[first], groups[first], num_groups=half)
    z = each_row(transform, fitted, x[second])
    basis, of_basis = _fit(z, groups[second] - half, weight, num_groups=num_groups - half)
    # A map without a reliable rank is zero: its status says so, whatever Joint Bayes makes of zeros.
    is_deficient = info.status == Status.RANK_DEFICIENT
    status = jnp.where(is_deficient, info.status, fitinfo.worst(info.status, of_basis.status))
    return after(fitted, basis), of_basis._replace(status=status)


def after(first: LinearMap, basis: ScoringBasis) -> ScoringBasis:
    """The basis for vectors that `first` maps, with orthonormal columns or columns of zeros."""
    return ScoringBasis(
        mean=first.mean + first.basis @ basis.mean, vectors=first.basis @ basis.vectors, values=basis.values
    )


def _fit(x: jax.Array, groups: jax.Array, weight: jax.Array, *, num_groups: int) -> tuple[ScoringBasis, FitInfo]:
    stats = joint_bayes.recenter(joint_bayes.collect(x, groups, num_people=num_groups, shift=x.mean(axis=0)))
    prior = joint_bayes.isotropic(joint_bayes.init(stats))
    prior = dataclasses.replace(prior, mean=stats.shift)
    model, info = joint_bayes.fit(stats, prior, prior=prior, prior_weight=weight, num_iters=_NUM_ITERS)
    status = jnp.where(info.status == Status.MAX_ITERS, Status.OK, info.status)
    return joint_bayes.diagonalize(model), info._replace(status=status)
