"""The start of EM: k-means++ on standardised views, then the closed form of CCA in each cluster.

The covariance of a cluster includes that of all data with the weight of one sample, and a ridge. So even a cluster of
one sample has loadings that are not zero: W = 0 is a fixed point of EM.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.cluster import kmeans
from jaxface.core import checks
from jaxface.mixtures.pcca import PCCAMixture, check_pairs, from_covariance, of_views
from jaxface.mixtures.views import View, is_not_constant, typical_variance

__all__ = ["init"]


class Clusters(NamedTuple):
    """The clusters of k-means with their means in the units of the data."""

    log_weights: jax.Array  # [k]
    mean: jax.Array  # [k, n]
    size: jax.Array  # [k]
    labels: jax.Array  # int32 [s]


def init(
    key: jax.Array,
    x: ArrayLike,
    y: ArrayLike,
    *,
    num_components: int,
    latent_dim: int,
    full_noise: bool = False,
    ridge: float = 1e-3,
    num_iters: int = 10,
) -> PCCAMixture:
    """A mixture for pairs x `[s, n]`, y `[s, m]`: the closed form of CCA in each of the clusters of [x, y].

    `ridge` is added to the covariances, relative to the mean variance of a view over all samples. `num_iters` counts
    the steps of k-means. Diagonal noise is the diagonal of the closed form. Gradients are stopped.
    """
    sizes = check_pairs(x, y, latent_dim=latent_dim)
    check_components(key, num_components, sizes["s"])
    checks.positive("ridge", ridge)
    return _init(
        key,
        jnp.asarray(x),
        jnp.asarray(y),
        ridge,
        num_components=num_components,
        latent_dim=latent_dim,
        full_noise=full_noise,
        num_iters=num_iters,
    )


@partial(jax.jit, static_argnames=("num_components", "latent_dim", "full_noise", "num_iters"))
def _init(
    key: jax.Array,
    x: jax.Array,
    y: jax.Array,
    ridge: jax.Array | float,
    *,
    num_components: int,
    latent_dim: int,
    full_noise: bool,
    num_iters: int,
) -> PCCAMixture:
    v, n = jax.lax.stop_gradient(jnp.concatenate([x, y], axis=1)), x.shape[1]
    clusters = cluster(key, v, num_components=num_components, num_iters=num_iters)
    centered, within = v - v.mean(axis=0)[None, :], v - clusters.mean[clusters.labels]
    overall = centered.T @ centered / v.shape[0]
    variances, mean = jnp.diagonal(overall), v.mean(axis=0)
    scale = jnp.concatenate(
        [
            jnp.full(part[0].shape, typical_variance(*part))
            for part in ((variances[:n], mean[:n]), (variances[n:], mean[n:]))
        ]
    )

    def of_component(k: jax.Array) -> tuple[View, ...]:
        members = jnp.where((clusters.labels == k)[:, None], within, 0)
        cov = (members.T @ within + overall) / (clusters.size[k] + 1) + ridge * jnp.diag(scale)
        views = from_covariance(clusters.mean[k], cov, dim_x=n, latent_dim=latent_dim, ridge=0.0).views
        return views if full_noise else tuple(view._replace(noise=jnp.diagonal(view.noise)) for view in views)

    return of_views(clusters.log_weights, jax.lax.map(of_component, jnp.arange(num_components)))


def cluster(key: jax.Array, v: jax.Array, *, num_components: int, num_iters: int) -> Clusters:
    """k-means from k-means++ on v `[s, n]` with every dimension at unit variance; constant dimensions are ignored."""
    mean, deviation = v.mean(axis=0), v.std(axis=0)
    scale = jnp.where(is_not_constant(deviation**2, mean), deviation, 1)
    standard = (v - mean[None, :]) / scale[None, :]
    start = kmeans.init_plus_plus(key, standard, num_clusters=num_components)
    clusters, _ = kmeans.fit(standard, start, num_iters=num_iters)
    labels = kmeans.assign(clusters, standard).labels
    size = jax.ops.segment_sum(jnp.ones(v.shape[0], v.dtype), labels, num_components)
    total = jax.ops.segment_sum(v - mean[None, :], labels, num_components)
    center = clusters.centers * scale[None, :]  # stands in for the mean of an empty cluster
    means = mean[None, :] + jnp.where(size[:, None] > 0, total / jnp.maximum(size, 1)[:, None], center)
    counted = jnp.maximum(size, 1)
    return Clusters(jnp.log(counted / counted.sum()), means, size, labels)


def check_components(key: jax.Array, num_components: int, num_samples: int) -> None:
    """Refuses an untyped key and more components than samples."""
    checks.typed_key(key)
    checks.at_least("num_components", num_components, 1)
    checks.at_most("num_components", num_components, num_samples, "the number of samples")
