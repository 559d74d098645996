"""The start of EM: k-means++ on standardised views, then the closed form of CCA in each cluster.

The covariance of a cluster includes that of all data with the weight of one sample, and a ridge. So even a cluster of
one sample has loadings that are not zero: W = 0 is a fixed point of EM.

For more views, or samples that lack some, `clusters_with_gaps` and `shared_axes` take the place of the closed form.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.cluster import kmeans
from jaxface.core import checks
from jaxface.linalg import psd, spectral, triangular
from jaxface.mixtures.pcca import PCCAMixture, check_pairs, from_covariance, of_views
from jaxface.mixtures.views import View, block_diagonal, is_not_constant, typical_variance

__all__ = ["init"]


class Clusters(NamedTuple):
    """The clusters of k-means with their means in the units of the data."""

    log_weights: jax.Array  # [k]
    mean: jax.Array  # [k, n]
    size: jax.Array  # [k]
    labels: jax.Array  # int32 [s]


class ClustersWithGaps(NamedTuple):
    """The clusters of samples that lack views; covariances of two views come from the samples that have both."""

    log_weights: jax.Array  # [k]
    mean: jax.Array  # [k, n], of all views
    cov: jax.Array  # [k, n, n]; the part of one view is positive definite, the whole may not be


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


@partial(jax.jit, static_argnames=("num_components", "num_iters"))
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


def clusters_with_gaps(
    key: jax.Array,
    views: tuple[jax.Array, ...],
    mask: jax.Array | None,
    ridge: jax.Array | float,
    *,
    num_components: int,
    num_iters: int,
) -> ClustersWithGaps:
    """`cluster` with the mean in the place of missing views; moments come from the values that exist.

    `mask` bool `[s, v]` says which do. Each covariance includes that of all samples with the weight of one sample.
    """
    widths = [view.shape[1] for view in views]
    v = jax.lax.stop_gradient(jnp.concatenate(views, axis=1))
    exists = (
        jnp.ones(v.shape, bool)
        if mask is None
        else jnp.repeat(mask, np.array(widths), axis=1, total_repeat_length=v.shape[1])
    )
    known = exists.astype(v.dtype)
    mean = jnp.where(exists, v, 0).sum(axis=0) / jnp.maximum(known.sum(axis=0), 1)
    centered = jnp.where(exists, v - mean[None, :], 0)
    clusters = cluster(key, mean[None, :] + centered, num_components=num_components, num_iters=num_iters)
    belongs = jax.nn.one_hot(clusters.labels, num_components, dtype=v.dtype)
    offset = belongs.T @ centered / jnp.maximum(belongs.T @ known, 1)
    within = jnp.where(exists, centered - offset[clusters.labels], 0)
    overall = centered.T @ centered / jnp.maximum(known.T @ known, 1)
    parts = zip(*(jnp.split(each, np.cumsum(widths)[:-1]) for each in (jnp.diagonal(overall), mean)), strict=True)
    scale = jnp.concatenate([jnp.full(part[0].shape, typical_variance(*part)) for part in parts])

    def cov_of(k: jax.Array) -> jax.Array:
        own, pairs = within * belongs[:, k][:, None], (known * belongs[:, k][:, None]).T @ known
        return (own.T @ within + overall) / (pairs + 1) + ridge * jnp.diag(scale)

    covs = jax.lax.map(cov_of, jnp.arange(num_components))
    return ClustersWithGaps(clusters.log_weights, mean[None, :] + offset, covs)


def shared_axes(
    key: jax.Array, mean: jax.Array, cov: jax.Array, *, widths: tuple[int, ...], latent_dim: int
) -> tuple[View, ...]:
    """One component from its mean `[n]` and covariance `[n, n]`: loadings along the leading axes of the whitened views.

    With two views, and without the small random numbers that are added, this is the closed form of CCA up to the bound
    on correlations, 0.9. A single view is whitened dimension by dimension.
    """
    ends = np.cumsum(widths)[:-1]
    if len(widths) == 1:
        lowers, number = [jnp.diag(jnp.sqrt(jnp.diagonal(cov)))], widths[0]
    else:
        lowers, number = (
            [psd.cholesky(cov[a : a + n, a : a + n]) for a, n in zip((0, *ends), widths, strict=True)],
            len(widths),
        )
    lower = block_diagonal(*lowers)
    values, vectors = spectral.eigh(triangular.whiten(lower, cov))
    gains = jnp.sqrt(jnp.maximum(values[:latent_dim] - 1, 0) * number / max(number - 1, 1))  # descending
    white = vectors[:, :latent_dim] * gains[None, :]
    white += 0.1 / math.sqrt(latent_dim) * jax.random.normal(key, white.shape, white.dtype)

    def of_view(part: jax.Array, lower: jax.Array, mean: jax.Array) -> View:
        largest = spectral.eigh(part.T @ part)[0][0]
        loadings = lower @ part * jnp.sqrt(jnp.minimum(0.9 / largest, 1))
        return View(mean, loadings, psd.symmetrize(lower @ lower.T - loadings @ loadings.T))

    return tuple(of_view(*each) for each in zip(jnp.split(white, ends), lowers, jnp.split(mean, ends), strict=True))


def check_components(key: jax.Array, num_components: int, num_samples: int) -> None:
    """Refuses an untyped key and more components than samples."""
    checks.typed_key(key)
    checks.at_least("num_components", num_components, 1)
    checks.at_most("num_components", num_components, num_samples, "the number of samples")
