"""The LDA member: discriminant directions on some principal axes, and where the people stand in them."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo, machine
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.pytree import params, whole
from jaxface.ensembles import lda_checks, lda_directions, posteriors
from jaxface.ensembles.lda_directions import Directions
from jaxface.ensembles.members import check_columns, map_members
from jaxface.linalg import scaling, scatter

__all__ = ["LdaMember", "cosine", "enroll", "fit", "fit_bags", "gaussian", "transform"]


@params
class LdaMember:
    """Coordinates `z = W' y_J` in which the covariance within people is I; a committee has a leading axis m."""

    axes: jax.Array = whole()  # int32 [k], J; -1 marks places that are not used
    basis: jax.Array  # [k, r], W
    centers: jax.Array  # [c, r]


def fit(
    y: ArrayLike,
    labels: ArrayLike,
    axes: ArrayLike,
    *,
    num_classes: int,
    num_components: int | None = None,
    ridge: ArrayLike = 0.0,
    unbiased: bool = True,
    block_size: int | None = None,
) -> tuple[LdaMember, FitInfo]:
    """An LDA on each row of axes `[m, k]` of the principal coordinates y `[n, p]` of the training set itself.

    All min(k, c - 1) directions are kept by default, in no order when k < c. `num_components` keeps the leading ones,
    in order. `ridge` adds `ridge (tr S_w / k) I` to S_w. Coordinates whiten `S_w / (n - c)`, or `S_w / n` when not
    `unbiased`: a temperature of the posteriors. At most `block_size` members are in flight, all by default. A singular
    S_w without a ridge gives RANK_DEFICIENT; the jitter is the ridge that was added to S_w / n. The result has stopped
    gradients.
    """
    sizes = checks.shapes(y=(y, "n p"), labels=(labels, "n"), axes=(axes, "m k"))
    labels, axes = lda_checks.check_samples(y, labels, axes, num_classes=num_classes, ridge=ridge)
    lda_checks.check_principal(y)
    lda_checks.check_rank(axes, sizes["n"], num_classes, ridge=ridge)
    width = lda_checks.check_width(num_components, num_axes=sizes["k"], num_classes=num_classes)
    # If all directions are kept, any square root of S_w^-1 will do and no eigenvectors are needed.
    in_order = num_components is not None or width < sizes["k"]
    samples = jnp.asarray(y), jnp.asarray(labels), jnp.asarray(axes)
    return _fit(
        *samples, ridge, unbiased, num_classes=num_classes, width=width, in_order=in_order, block_size=block_size
    )


def fit_bags(
    y: ArrayLike,
    labels: ArrayLike,
    axes: ArrayLike,
    sample_weights: ArrayLike,
    *,
    num_classes: int,
    num_components: int | None = None,
    ridge: ArrayLike = 0.0,
    unbiased: bool = True,
    block_size: int | None = None,
) -> tuple[LdaMember, FitInfo]:
    """`fit` to bags: member t sees row i of y `[n, p]` `sample_weights[t, i]` times; y may be in any coordinates.

    Weights are relative: a common factor changes nothing. With `unbiased`, coordinates whiten S_w divided by
    `sum_c (W_c - V_c / W_c)`, with the sum W_c of a person's weights and V_c of their squares. That is n - c for
    weights of 0 and 1, and unbiased for all others too: an image that is seen twice is no second image. Directions
    come from the bag and centres from all rows, so that every class has a posterior. The directions are in order; those
    beyond the number of people in the bag less one are zero. Labels, axes, the number of classes and of directions, the
    ridge and the block size are as in `fit`.
    """
    sizes = checks.shapes(
        y=(y, "n p"), labels=(labels, "n"), axes=(axes, "m k"), sample_weights=(sample_weights, "m n")
    )
    labels, axes = lda_checks.check_samples(y, labels, axes, num_classes=num_classes, ridge=ridge)
    lda_checks.check_bags(sample_weights, labels, axes, ridge=ridge, unbiased=unbiased)
    width = lda_checks.check_width(num_components, num_axes=sizes["k"], num_classes=num_classes)
    samples = jnp.asarray(y), jnp.asarray(labels), jnp.asarray(axes), jnp.asarray(sample_weights)
    return _fit_bags(*samples, ridge, unbiased, num_classes=num_classes, width=width, block_size=block_size)


def transform(member: LdaMember, y: jax.Array) -> jax.Array:
    """`z = W' y_J`: `[p]` to `[r]`."""
    checks.shapes(y=(y, "p"))
    checks.floating(y=y)
    check_columns("y", member, y)
    return y[member.axes] @ member.basis


def enroll(members: LdaMember, y: ArrayLike, labels: ArrayLike, *, num_classes: int) -> LdaMember:
    """The committee with centres of other people, from their images y `[n, p]` in the same principal coordinates."""
    checks.shapes(y=(y, "n p"), labels=(labels, "n"))
    labels, _ = lda_checks.check_images(y, labels, members.axes, num_classes=num_classes)
    means = posteriors.class_centers(jnp.asarray(y), jnp.asarray(labels), num_classes=num_classes)
    return _with_centers(members.axes, members.basis, means)


def gaussian(member: LdaMember, y: jax.Array) -> jax.Array:
    """`log softmax_c(-|z - m_c|^2 / 2)` `[n, c]` of rows y `[n, p]`."""
    checks.floating(y=y)
    # |z|^2 is common to all classes, and W m_c costs less than W'y. Centres are taken about their mean: far from the
    # origin their squares would differ by less than their rounding.
    of_centers, of_basis = scaling.exponent(member.centers), scaling.exponent(member.basis)
    centers, basis = scaling.shifted(member.centers, -of_centers), scaling.shifted(member.basis, -of_basis)
    shift = centers.mean(axis=0)
    centers = centers - shift[None, :]
    offsets = (centers**2).sum(axis=1) / 2 + centers @ shift
    return posteriors.linear(
        y[:, member.axes], basis @ centers.T, offsets, power=of_centers + of_basis, offset_power=2 * of_centers
    )


def cosine(member: LdaMember, y: jax.Array) -> jax.Array:
    """`log P_c` `[n, c]` of rows y `[n, p]`, `P_c` proportional to `(1 + cos(z, m_c)) / 2`; has no temperature."""
    checks.floating(y=y)
    # The cosine does not depend on the scale of y or W: both are scaled to squares that stay in range.
    y, basis = (scaling.shifted(part, -scaling.squarable_exponent(part)) for part in (y[:, member.axes], member.basis))
    return posteriors.cosine(y @ basis, member.centers)


@partial(jax.jit, static_argnames=("num_classes", "width", "in_order", "block_size"))
def _fit(
    y: jax.Array,
    labels: jax.Array,
    axes: jax.Array,
    ridge: ArrayLike,
    unbiased: ArrayLike,
    *,
    num_classes: int,
    width: int,
    in_order: bool,
    block_size: int | None,
) -> tuple[LdaMember, FitInfo]:
    """The compiled part of `fit`: `width` directions, the leading ones `in_order` or all of them in any order."""
    y, ridge = jax.lax.stop_gradient((y, ridge))
    power = scaling.exponent(y)
    y = scaling.shifted(y, -power)
    moments = scatter.class_moments(y, labels, num_classes=num_classes)
    shortcut = partial(lda_directions.by_means, width=width) if in_order else lda_directions.by_cholesky
    solution = map_members(partial(shortcut, moments, (y**2).mean(axis=0), ridge=ridge), axes, block_size=block_size)

    def by_rows() -> Directions:
        each = partial(lda_directions.by_rows, y, labels, jnp.ones(y.shape[0], y.dtype))
        each = partial(each, ridge=ridge, num_classes=num_classes, width=width)
        return map_members(each, axes, block_size=block_size)

    has_digits = (solution.margin > 1e5 * machine.eps(y.dtype)).all()  # false for NaN
    solution = jax.lax.cond(has_digits, lambda: solution, by_rows)
    n = jnp.full(axes.shape[:1], y.shape[0], y.dtype)
    members, info = _finish(solution, axes, moments.mean, jnp.where(unbiased, n - num_classes, n) / n)
    return _in_unit(members, info, power, y)


@partial(jax.jit, static_argnames=("num_classes", "width", "block_size"))
def _fit_bags(
    y: jax.Array,
    labels: jax.Array,
    axes: jax.Array,
    weights: jax.Array,
    ridge: ArrayLike,
    unbiased: ArrayLike,
    *,
    num_classes: int,
    width: int,
    block_size: int | None,
) -> tuple[LdaMember, FitInfo]:
    """The compiled part of `fit_bags`: the `width` leading directions of every bag."""
    y, weights, ridge = jax.lax.stop_gradient((y, weights.astype(y.dtype), ridge))
    power = scaling.exponent(y)
    y, weights = scaling.shifted(y, -power), jax.vmap(lambda w: scaling.shifted(w, -scaling.exponent(w)))(weights)

    def each(bag: tuple[jax.Array, jax.Array]) -> Directions:
        return lda_directions.by_rows(y, labels, *bag, ridge=ridge, num_classes=num_classes, width=width)

    solution = map_members(each, (weights, axes), block_size=block_size)
    of_people = jax.vmap(lambda w: jax.ops.segment_sum(w, labels, num_classes))
    counts, squares = of_people(weights), of_people(weights**2)
    n, freedom = counts.sum(axis=1), (counts - squares / jnp.where(counts > 0, counts, 1)).sum(axis=1)
    num_people = (counts > 0).sum(axis=1)
    is_beyond = jnp.arange(width)[None, :] >= num_people[:, None] - 1
    solution = solution._replace(basis=jnp.where(is_beyond[:, None, :], 0, solution.basis))
    means = posteriors.class_centers(y, labels, num_classes=num_classes)
    members, info = _finish(solution, axes, means, jnp.where(unbiased, freedom, n) / n)
    return _in_unit(members, info, power, (y, weights))


def _finish(
    solution: Directions,
    axes: jax.Array,
    means: jax.Array,
    divisor: jax.Array,
) -> tuple[LdaMember, FitInfo]:
    """From directions that whiten S_w / n to members; `divisor` `[m]` is that of S_w over n."""
    basis = solution.basis * jnp.sqrt(divisor)[:, None, None]
    full = solution.rank >= (axes >= 0).sum(axis=1)
    is_lost = ~jnp.isfinite(basis).all(axis=(1, 2))
    status = fitinfo.diagnose((is_lost, Status.NON_FINITE), (~full, Status.RANK_DEFICIENT))
    info = jax.vmap(lambda s, r, j: fitinfo.closed_form(dtype=basis.dtype, status=s, rank=r, jitter=j))
    return _with_centers(axes, basis, means), info(status, solution.rank, solution.jitter)


def _in_unit(
    members: LdaMember, info: FitInfo, power: jax.Array, inputs: jax.Array | tuple[jax.Array, ...]
) -> tuple[LdaMember, FitInfo]:
    """The unit of coordinates that were divided by `2^power` again; NON_FINITE for inputs that are."""
    status = fitinfo.or_non_finite(info.status, inputs)
    basis, jitter = scaling.shifted(members.basis, -power), scaling.shifted(info.jitter, 2 * power)
    members = LdaMember(axes=members.axes, basis=basis, centers=members.centers)
    return members, info._replace(status=status, jitter=jitter)


def _with_centers(axes: jax.Array, basis: jax.Array, means: jax.Array) -> LdaMember:
    centers = jax.vmap(lambda axes, basis: means[:, axes] @ basis)(axes, basis)
    return LdaMember(axes=axes, basis=basis, centers=centers)
