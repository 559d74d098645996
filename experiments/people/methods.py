"""Clusters of photos: by log-likelihood ratios of sets, by average linkage of cosines, and by k-means."""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from jaxface import joint_bayes, verifier
from jaxface.cluster import agglomerative, gains, kmeans, listed
from jaxface.cluster.ascent import Partition
from jaxface.cluster.partition_priors import Prior
from jaxface.core.fitinfo import raise_if_failed
from jaxface.joint_bayes import ScoringBasis
from jaxface.linalg import distances
from jaxface.verifier import Verifier

NUM_NEIGHBORS = 30  # of a list, where a matrix of gains has no room


def with_noise(model: Verifier, scale: float) -> Verifier:
    """The verifier with the noise of its model times a scale: photos of one person differ more than a Gaussian says."""
    scaled = dataclasses.replace(model.model, noise_cov=scale * model.model.noise_cov)
    return dataclasses.replace(model, model=scaled)


def by_ratios(
    model: Verifier, x: np.ndarray, *, slope: float, prior: Prior, apart: np.ndarray, num_neighbors: int | None
) -> Partition:
    """Clusters of vectors by the ratios of the verifier's model, times a slope.

    With `num_neighbors`, or without it for more vectors than a matrix of gains takes, merges and moves follow lists.
    """
    basis = joint_bayes.diagonalize(model.model)
    z = np.asarray(verifier.encode_vectors(model, x))
    each = gains.items(z)
    if num_neighbors is None and len(z) <= agglomerative.MOST:
        found, info = agglomerative.fit(each, gain=partial(_gain, basis, slope), prior=prior, cannot_link=apart)
    else:
        length = min(len(z) - 1, NUM_NEIGHBORS if num_neighbors is None else num_neighbors)
        lists = listed.nearest(joint_bayes.score_projections, basis, z, num_neighbors=length)
        evidence = partial(_evidence, basis, slope)
        found, info = listed.fit(each, lists, evidence=evidence, prior=prior, cannot_link=apart)
    raise_if_failed(info, "clusters")
    return found


def _gain(basis: ScoringBasis, slope: float, *sets: Any) -> np.ndarray:
    return slope * np.asarray(joint_bayes.set_llr_matrix(basis, *sets))


def _evidence(basis: ScoringBasis, slope: float, *sets: Any) -> np.ndarray:
    return slope * np.asarray(joint_bayes.set_evidence(basis, *sets))


def directions(x: np.ndarray) -> np.ndarray:
    """Vectors of length one."""
    return np.asarray(distances.normalize(jnp.asarray(x)))


def linkage(x: np.ndarray) -> np.ndarray:
    """The tree of average linkage of cosine distances."""
    from scipy.cluster import hierarchy
    from scipy.spatial import distance

    # Half the squared distance of directions is one less their cosine.
    return np.asarray(hierarchy.linkage(distance.pdist(directions(x).astype(float), "sqeuclidean") / 2, "average"))


def cut(tree: np.ndarray, threshold: float) -> np.ndarray:
    """The clusters of a tree below a cosine distance."""
    from scipy.cluster import hierarchy

    return np.asarray(hierarchy.fcluster(tree, threshold, "distance")) - 1


def by_kmeans(config: ConfigDict, x: np.ndarray, *, num_clusters: int) -> np.ndarray:
    """k-means of directions, the best of several starts."""
    units = directions(x)
    fitted, info = kmeans.fit_restarts(
        jax.random.key(config.seed),
        units,
        num_clusters=num_clusters,
        num_restarts=config.num_restarts,
        num_iters=config.num_kmeans_iters,
    )
    raise_if_failed(info, "k-means")
    return np.asarray(kmeans.assign(fitted, units).labels)
