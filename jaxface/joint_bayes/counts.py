"""Numbers of images and weights of images: what may stand in statistics.

A weight is a precision and no number of repetitions: the M-step divides the noise by the number of images and not by
the sum of weights. Fractions in the place of counts are therefore refused unless the statistics know both.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from jaxface.core import checks
from jaxface.linalg.class_stats import Stats

__all__ = []


def numbers_of_images(name: str, count: jax.Array) -> jax.Array:
    """The counts themselves; fractions and negative numbers are refused, and become NaN under a transformation.

    Weights instead of counts would scale T_eps: the M-step divides by the number of images.
    """
    if not checks.is_concrete(count):
        return jnp.where((count >= 0) & (count == jnp.floor(count)), count, jnp.nan)
    values = np.asarray(count, np.float64)
    wrong = values[~((values >= 0) & (values == np.floor(values)))]
    if wrong.size:
        raise ValueError(
            f"{name} must hold numbers of images, which are whole and at least 0; got {wrong.size} that are not, the "
            f"first {wrong[0]:g}. Weights of images are no counts: give them to collect as weights, which also counts "
            "the images."
        )
    return count


def checked_weights(name: str, weights: ArrayLike, dtype: DTypeLike) -> jax.Array:
    """Weights as an array, after a check that they are finite and at least zero; NaN inside a transformation if not."""
    checks.between(name, weights, 0.0, jnp.inf, closed_high=False)
    weights = jnp.asarray(weights, dtype)
    return weights if checks.is_concrete(weights) else jnp.where(weights >= 0, weights, jnp.nan)


def checked_counts(stats: Stats) -> Stats:
    """The statistics, whose counts are whole numbers of images, or sums of weights if the images have weights."""
    if stats.num_images is None:
        return stats._replace(count=numbers_of_images("the count of stats", stats.count))
    return stats._replace(
        count=checked_weights("the count of stats", stats.count, stats.sum.dtype),
        num_images=numbers_of_images("the num_images of stats", stats.num_images),
    )


def with_weights(stats: Stats) -> Stats:
    """Statistics with the fields of weights; if they had none, every image has the weight 1."""
    if stats.num_images is not None:
        return stats
    count = numbers_of_images("the count of stats", stats.count)
    return stats._replace(num_images=count, log_weight=jnp.zeros((), stats.sum.dtype))


def log_weight_of(stats: Stats) -> jax.Array:
    """L, the sum of log weights `[]`: zero without weights."""
    return jnp.zeros((), stats.sum.dtype) if stats.log_weight is None else stats.log_weight
