"""Statistics of labelled samples that add, and the scatters that follow from them without the samples.

About one shift c, `m_i` is the number of samples of class i, `s_i` the sum of their `x - c`, and `M` the sum of all
`(x - c)(x - c)'`. With `t = sum s_i`, `N = sum m_i` and `e = o - c`:

    total             mean = c + t / N,  S_t = M - t t' / N
    recenter          s_i - m_i e,  M - t e' - e t' + N e e'                about o
    change_basis      (s_i - m_i e)'P,  P'M_o P                             of y = P'(x - o)
    within_scatter    S_w = M - sum s_i s_i' / m_i                          S_b = S_t - S_w
    within_covariance  S_w / (N - classes)

Samples may have weights q, which are precisions: sample j has the covariance T / q_j. Then `m_i` is the sum of a
class's weights, `s_i` and M are weighted sums, and everything above holds but for the degrees of freedom:
`within_covariance` is `S_w / (K - classes)`, where K is the number of samples with a weight above zero (`num_images`).

A second moment has the square of the condition number of its samples: directions with less than about d eps of the
largest variance are rounding. The rounding also grows with the square of the distance from c to the mean.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks
from jaxface.linalg import scatter

__all__ = ["Stats", "change_basis", "images_of", "recenter", "total", "within_covariance", "within_scatter"]

_BLOCK_SIZE = 4096  # classes at a time: no second copy of all sums


class Stats(NamedTuple):
    """Sums over images about `shift`; disjoint sets of images with the same shift add, also within one person.

    Without weights the last two fields are None: every image has the weight 1.
    """

    count: jax.Array  # type: ignore[assignment]  # [c], images of each person in the dtype of x, or the sum of weights
    sum: jax.Array  # [c, d], (weighted) sum of x - shift over a person's images
    second_moment: jax.Array  # [d, d], (weighted) sum of (x - shift)(x - shift)' over all images
    shift: jax.Array  # [d]
    num_images: jax.Array | None = None  # [c], images of each person with a weight above zero
    log_weight: jax.Array | None = None  # [], sum of log weights, of the weights above zero


class Total(NamedTuple):
    """First and second moments of all samples, whatever their class."""

    number: jax.Array  # [], N, or the sum of weights
    mean: jax.Array  # [d]
    scatter: jax.Array  # [d, d], S_t, about the mean


def total(stats: Stats) -> Total:
    """N, the mean, and the scatter about it."""
    number, sum_of_all = stats.count.sum(), stats.sum.sum(axis=0)
    move = sum_of_all / _divisor(number)
    return Total(number, stats.shift + move, _moved(stats, number, sum_of_all, move))


def images_of(stats: Stats) -> jax.Array:
    """How many images with a weight above zero each person has `[c]`."""
    return stats.count if stats.num_images is None else stats.num_images


def _divisor(number: jax.Array) -> jax.Array:
    """1 in the place of zero. Not the larger of `number` and 1: a sum of weights may lie between."""
    return jnp.where(number == 0, 1, number)


def recenter(stats: Stats, shift: ArrayLike | None = None) -> Stats:
    """The same statistics about another shift, exactly; by default about the mean of the images."""
    if shift is not None:
        checks.shapes(shift=(shift, "d"), stats_shift=(stats.shift, "d"))
        checks.floating(shift=shift)
        shift = jnp.asarray(shift, stats.shift.dtype)
    return _recentered(stats, shift)


@jax.jit
def _recentered(stats: Stats, shift: jax.Array | None) -> Stats:
    """A program, so that the result is the only copy of the sums."""
    number, sum_of_all = stats.count.sum(), stats.sum.sum(axis=0)
    if shift is None:
        shift = stats.shift + sum_of_all / _divisor(number)
    move = shift - stats.shift
    return stats._replace(
        sum=stats.sum - stats.count[:, None] * move[None, :],
        second_moment=_moved(stats, number, sum_of_all, move),
        shift=shift,
    )


def _moved(stats: Stats, number: jax.Array, sum_of_all: jax.Array, move: jax.Array) -> jax.Array:
    """The second moment about `shift + move`."""
    cross = jnp.outer(sum_of_all, move)
    return stats.second_moment - cross - cross.T + number * jnp.outer(move, move)


def change_basis(stats: Stats, basis: ArrayLike, mean: ArrayLike) -> Stats:
    """The statistics of `y = P'(x - mean)` with the basis P `[d, r]`, about 0: those of the mapped images.

    Principal axes are such a basis, and so is every linear map of `jaxface.subspace`. Length normalisation is no
    linear map: it needs the images.
    """
    checks.shapes(sum=(stats.sum, "c d"), basis=(basis, "d r"), mean=(mean, "d"))
    checks.floating(basis=basis, mean=mean)
    return _in_basis(stats, jnp.asarray(basis, stats.sum.dtype), jnp.asarray(mean, stats.sum.dtype))


@jax.jit
def _in_basis(stats: Stats, basis: jax.Array, mean: jax.Array) -> Stats:
    move = mean - stats.shift
    second_moment = _moved(stats, stats.count.sum(), stats.sum.sum(axis=0), move)
    mapped = basis.T @ second_moment @ basis
    return stats._replace(
        sum=stats.sum @ basis - stats.count[:, None] * (move @ basis)[None, :],
        second_moment=(mapped + mapped.T) / 2,
        shift=jnp.zeros(basis.shape[1], basis.dtype),
    )


@jax.jit
def within_scatter(stats: Stats) -> jax.Array:
    """`S_w = sum xx' - sum_i s_i s_i' / m_i` `[d, d]`, about the mean and a block of classes at a time.

    The difference cancels: in a direction in which classes differ much more than samples of a class, its relative
    error is eps S_t / S_w.
    """
    number, sum_of_all = stats.count.sum(), stats.sum.sum(axis=0)
    move = sum_of_all / _divisor(number)

    def subtract(moment: jax.Array, classes: tuple[jax.Array, jax.Array], valid: jax.Array) -> jax.Array:
        sums, count = classes
        centered = (sums - count[:, None] * move[None, :]) / jnp.sqrt(_divisor(count))[:, None]
        return moment - scatter.matrix(jnp.where(valid[:, None], centered, 0))

    about_mean = _moved(stats, number, sum_of_all, move)
    return blocks.fold_rows(subtract, about_mean, (stats.sum, stats.count), block_size=_BLOCK_SIZE)


def within_covariance(stats: Stats) -> jax.Array:
    """`S_w / (N - classes)` `[d, d]`, the unbiased covariance of samples of one class; empty classes do not count.

    Of weighted samples it is the covariance of a sample of weight 1.
    """
    freedom = images_of(stats).sum() - (stats.count > 0).sum()
    return within_scatter(stats) / jnp.maximum(freedom, 1)
