"""Moments of statistics, which EM starts from: the scatter within people and its excess between them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxface.joint_bayes.counts import checked_counts
from jaxface.linalg import class_stats
from jaxface.linalg.class_stats import Stats

__all__ = []


class SplitVariance(NamedTuple):
    """What a start of EM is made of."""

    mean: jax.Array  # [d]
    identity: jax.Array  # [d, d], unbiased, so with negative eigenvalues
    noise: jax.Array  # [d, d]
    of_people: jax.Array  # [d, d], scatter over the sum of weights
    of_images: jax.Array  # [d, d], over the number of images
    effective: jax.Array  # [], images of a person, as the scatter between people counts them


def moments_of(stats: Stats) -> SplitVariance:
    """The scatter within people and its excess between them. Gradients are stopped."""
    stats = checked_counts(jax.lax.stop_gradient(stats))
    count = stats.count
    images, within = class_stats.total(stats), class_stats.within_scatter(stats)
    n, k = (count > 0).sum().astype(count.dtype), class_stats.images_of(stats).sum()
    freedom, weight = k - n, _divisor(images.number)  # the sum of weights is k without weights
    effective = _divisor((weight - (count**2).sum() / weight) / jnp.maximum(n - 1, 1))
    noise = within / jnp.maximum(freedom, 1)
    between = (images.scatter - within) / jnp.maximum(n - 1, 1)
    of_people, of_images = images.scatter / weight, images.scatter / jnp.maximum(k, 1)
    has_pairs = freedom > 0
    noise = jnp.where(has_pairs, noise, of_images / 2)
    identity = jnp.where(has_pairs, (between - noise) / effective, of_people / 2)
    return SplitVariance(images.mean, identity, noise, of_people, of_images, effective)


def _divisor(number: jax.Array) -> jax.Array:
    return jnp.where(number == 0, 1, number)
