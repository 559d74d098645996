"""The LDA member: discriminant directions on some principal axes, and where the people stand in them."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.pytree import params, whole
from jaxface.ensembles import directions, lda_checks, posteriors
from jaxface.ensembles.directions import Directions
from jaxface.ensembles.members import check_columns, map_members
from jaxface.linalg import scaling, scatter

__all__ = ["LdaMember", "cosine", "enroll", "fit", "fit_bags", "gaussian"]


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
    kept: ArrayLike | None = None,
    ridge: ArrayLike = 0.0,
    unbiased: bool = True,
    block_size: int | None = None,
) -> tuple[LdaMember, FitInfo]:
    """An LDA on each row of axes `[m, k]` of the principal coordinates y `[n, p]` of the training set itself.

    All min(k, c - 1) directions are kept by default, in no order when k < c. `num_components` keeps the leading ones,
    in order; `kept`, which may be traced, zeroes those behind it and leaves the shape. `ridge` adds
    `ridge (tr S_w / k) I` to S_w. Coordinates whiten `S_w / (n - c)`, or `S_w / n` when not `unbiased`: a temperature
    of the posteriors. A singular S_w without a ridge gives RANK_DEFICIENT; the jitter is what a ridge added to S_w / n.
    The result has stopped gradients.
    """
    sizes = checks.shapes(y=(y, "n p"), labels=(labels, "n"), axes=(axes, "m k"))
    labels, axes = lda_checks.samples(y, labels, axes, num_classes=num_classes, ridge=ridge)
    lda_checks.principal(y)
    lda_checks.freedom(axes, sizes["n"], num_classes, ridge=ridge)
    width = lda_checks.width(num_components, num_axes=sizes["k"], num_classes=num_classes)
    # With all directions any square root of S_w^-1 whitens.
    in_order = num_components is not None or kept is not None or width < sizes["k"]
    return _fit(
        jnp.asarray(y), jnp.asarray(labels), jnp.asarray(axes), ridge, kept, unbiased,
        num_classes=num_classes, width=width, in_order=in_order, block_size=block_size,
    )  # fmt: skip


def fit_bags(
    y: ArrayLike,
    labels: ArrayLike,
    axes: ArrayLike,
    weights: ArrayLike,
    *,
    num_classes: int,
    num_components: int | None = None,
    kept: ArrayLike | None = None,
    ridge: ArrayLike = 0.0,
    unbiased: bool = True,
    block_size: int | None = None,
) -> tuple[LdaMember, FitInfo]:
    """`fit` to bags: member t sees each row of y `[n, p]` `weights[t]` times, weights `[m, n]`; any coordinates serve.

    Weights are relative: a common factor changes nothing. With `unbiased`, coordinates whiten S_w divided by
    `sum_c (W_c - V_c / W_c)`, with the sum W_c of a person's weights and V_c of their squares. That is n - c for
    weights of 0 and 1, and unbiased for all others too: an image that is seen twice is no second image. The directions
    come from the bag and the centres from all rows, so that every class has a posterior. They are in order, and zero
    behind the number of people in the bag less one.
    """
    sizes = checks.shapes(y=(y, "n p"), labels=(labels, "n"), axes=(axes, "m k"), weights=(weights, "m n"))
    labels, axes = lda_checks.samples(y, labels, axes, num_classes=num_classes, ridge=ridge)
    lda_checks.bags(weights, labels, axes, ridge=ridge, unbiased=unbiased)
    width = lda_checks.width(num_components, num_axes=sizes["k"], num_classes=num_classes)
    return _fit_bags(
        jnp.asarray(y), jnp.asarray(labels), jnp.asarray(axes), jnp.asarray(weights), ridge, kept, unbiased,
        num_classes=num_classes, width=width, block_size=block_size,
    )  # fmt: skip


def transform(member: LdaMember, y: jax.Array) -> jax.Array:
    """`z = W' y_J`: `[p]` to `[r]`."""
    checks.shapes(y=(y, "p"))
    checks.floating(y=y)
    check_columns("y", member, y)
    return y[member.axes] @ member.basis


def enroll(members: LdaMember, y: ArrayLike, labels: ArrayLike, *, num_classes: int) -> LdaMember:
    """The committee with the centres of other people, from images y `[n, p]` in the same principal coordinates."""
    checks.shapes(y=(y, "n p"), labels=(labels, "n"))
    labels, _ = lda_checks.images(y, labels, members.axes, num_classes=num_classes)
    means = posteriors.class_centers(jnp.asarray(y), jnp.asarray(labels), num_classes=num_classes)
    return _with_centers(members.axes, members.basis, means)


def gaussian(member: LdaMember, y: jax.Array) -> jax.Array:
    """`log softmax_c(-|z - m_c|^2 / 2)` `[n, c]` of rows y `[n, p]`."""
    checks.floating(y=y)
    # |z|^2 is common to all classes, and W m_c costs less than W'y. About the mean of the centres: far from the origin
    # the squares of centres differ by less than their rounding.
    of_centers, of_basis = scaling.exponent(member.centers), scaling.exponent(member.basis)
    centers, basis = scaling.shifted(member.centers, -of_centers), scaling.shifted(member.basis, -of_basis)
    shift = centers.mean(axis=0)
    centers = centers - shift[None, :]
    offsets = (centers**2).sum(axis=1) / 2 + centers @ shift
    return posteriors.linear(
        y[:, member.axes], basis @ centers.T, offsets, power=of_centers + of_basis, offset_power=2 * of_centers
    )


def cosine(member: LdaMember, y: jax.Array) -> jax.Array:
    """`log P_c` `[n, c]` of rows y `[n, p]`, `P_c` proportional to `(1 + cos(z, m_c)) / 2`: without temperature."""
    checks.floating(y=y)
    # A cosine has no unit: that of the product is left out.
    y, basis = (scaling.shifted(part, -scaling.squarable_exponent(part)) for part in (y[:, member.axes], member.basis))
    return posteriors.cosine(y @ basis, member.centers)


@partial(jax.jit, static_argnames=("num_classes", "width", "in_order", "block_size"))
def _fit(
    y: jax.Array,
    labels: jax.Array,
    axes: jax.Array,
    ridge: ArrayLike,
    kept: ArrayLike | None,
    unbiased: ArrayLike,
    *,
    num_classes: int,
    width: int,
    in_order: bool,
    block_size: int | None,
) -> tuple[LdaMember, FitInfo]:
    y, ridge = jax.lax.stop_gradient((y, ridge))
    power = scaling.exponent(y)
    y = scaling.shifted(y, -power)
    moments = scatter.class_moments(y, labels, num_classes=num_classes)
    short = partial(directions.by_means, width=width) if in_order else directions.by_cholesky
    found = map_members(partial(short, moments, (y**2).mean(axis=0), ridge=ridge), axes, block_size=block_size)

    def by_rows() -> Directions:
        each = partial(directions.by_rows, y, labels, jnp.ones(y.shape[0], y.dtype))
        each = partial(each, ridge=ridge, num_classes=num_classes, width=width)
        return map_members(each, axes, block_size=block_size)

    has_digits = (found.margin > 1e5 * float(jnp.finfo(y.dtype).eps)).all()  # false for NaN
    found = jax.lax.cond(has_digits, lambda: found, by_rows)
    n = jnp.full(axes.shape[:1], y.shape[0], y.dtype)
    members, info = _finish(found, axes, moments.mean, jnp.where(unbiased, n - num_classes, n) / n, kept)
    return _in_unit(members, info, power, y)


@partial(jax.jit, static_argnames=("num_classes", "width", "block_size"))
def _fit_bags(
    y: jax.Array,
    labels: jax.Array,
    axes: jax.Array,
    weights: jax.Array,
    ridge: ArrayLike,
    kept: ArrayLike | None,
    unbiased: ArrayLike,
    *,
    num_classes: int,
    width: int,
    block_size: int | None,
) -> tuple[LdaMember, FitInfo]:
    y, weights, ridge = jax.lax.stop_gradient((y, weights.astype(y.dtype), ridge))
    power = scaling.exponent(y)
    y, weights = scaling.shifted(y, -power), jax.vmap(lambda w: scaling.shifted(w, -scaling.exponent(w)))(weights)

    def each(bag: tuple[jax.Array, jax.Array]) -> Directions:
        return directions.by_rows(y, labels, *bag, ridge=ridge, num_classes=num_classes, width=width)

    found = map_members(each, (weights, axes), block_size=block_size)
    of_people = jax.vmap(lambda w: jax.ops.segment_sum(w, labels, num_classes))
    counts, squares = of_people(weights), of_people(weights**2)
    n, freedom = counts.sum(axis=1), (counts - squares / jnp.where(counts > 0, counts, 1)).sum(axis=1)
    kept = jnp.minimum((counts > 0).sum(axis=1) - 1, num_classes if kept is None else kept)
    means = posteriors.class_centers(y, labels, num_classes=num_classes)
    members, info = _finish(found, axes, means, jnp.where(unbiased, freedom, n) / n, kept)
    return _in_unit(members, info, power, (y, weights))


def _finish(
    found: Directions,
    axes: jax.Array,
    means: jax.Array,
    divisor: jax.Array,
    kept: ArrayLike | None,
) -> tuple[LdaMember, FitInfo]:
    """From directions that whiten S_w / n to members; `divisor` `[m]` is that of S_w over n."""
    basis = found.basis * jnp.sqrt(divisor)[:, None, None]
    if kept is not None:
        behind = jnp.arange(basis.shape[2])[None, :] >= jnp.reshape(kept, (-1, 1))
        basis = jnp.where(behind[:, None, :], 0, basis)
    full = found.rank >= (axes >= 0).sum(axis=1)
    is_lost = ~jnp.isfinite(basis).all(axis=(1, 2))
    status = fitinfo.diagnose((is_lost, Status.NON_FINITE), (~full, Status.RANK_DEFICIENT))
    info = jax.vmap(lambda s, r, j: fitinfo.closed_form(dtype=basis.dtype, status=s, rank=r, jitter=j))
    return _with_centers(axes, basis, means), info(status, found.rank, found.jitter)


def _in_unit(
    members: LdaMember, info: FitInfo, power: jax.Array, inputs: jax.Array | tuple[jax.Array, ...]
) -> tuple[LdaMember, FitInfo]:
    """Members and report in the unit of the coordinates, which were `2^-power` of it; NON_FINITE for such inputs."""
    status = fitinfo.or_non_finite(info.status, inputs)
    basis, jitter = scaling.shifted(members.basis, -power), scaling.shifted(info.jitter, 2 * power)
    members = LdaMember(axes=members.axes, basis=basis, centers=members.centers)
    return members, info._replace(status=status, jitter=jitter)


def _with_centers(axes: jax.Array, basis: jax.Array, means: jax.Array) -> LdaMember:
    centers = jax.vmap(lambda axes, basis: means[:, axes] @ basis)(axes, basis)
    return LdaMember(axes=axes, basis=basis, centers=centers)
