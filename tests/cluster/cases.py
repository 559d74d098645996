"""The transformation table of `jaxface.cluster`."""

import jax
import numpy as np

from jaxface.cluster import agglomerative, ascent, gains, kmeans, listed, neighbors, partition_priors
from jaxface.cluster.kmeans import KMeans
from tests.transformations import Case


def key(rng):
    return jax.random.key(int(rng.integers(1000)))


def rows(rng, n=20):
    return rng.normal(size=(n, 3))


def centers(rng):
    return KMeans(centers=rng.normal(size=(4, 3)))


CASES = [
    Case(kmeans.init_plus_plus, lambda r: (key(r), rows(r)), {"num_clusters": 4}),
    Case(kmeans.init_random, lambda r: (key(r), rows(r)), {"num_clusters": 4}),
    Case(kmeans.assign, lambda r: (centers(r), rows(r))),
    Case(kmeans.update, lambda r: (centers(r), rows(r))),
    Case(kmeans.fit, lambda r: (rows(r), centers(r)), {"num_iters": 4}),
    Case(kmeans.fit, lambda r: (rows(r), centers(r)), {"num_iters": 20, "tol": 1e-6}, variant="tol"),
    Case(
        kmeans.fit_restarts,
        lambda r: (key(r), rows(r)),
        {"num_clusters": 3, "num_restarts": 4, "num_iters": 5},
    ),
    Case(neighbors.nearest, lambda r: (rows(r), rows(r, 5)), {"num_neighbors": 3}, grad=(0, 1)),
    Case(
        neighbors.nearest,
        lambda r: (rows(r), rows(r, 5)),
        {"num_neighbors": 1, "block_size": 2},
        variant="blocks",
    ),
    Case(neighbors.classify, lambda r: (rows(r), np.arange(20, dtype=np.int32) % 4, rows(r, 5))),
]

EXEMPT: list = [
    # On the host: the number of clusters changes from round to round.
    agglomerative.fit,
    agglomerative.rise,
    ascent.ascend,
    ascent.by_first_items,
    ascent.checked_pairs,
    ascent.merges,
    ascent.of_numbers,
    ascent.rise_of_merges,
    ascent.sweep,
    listed.fit,
    listed.nearest,
    # NumPy in, NumPy or functions of NumPy arrays out.
    gains.along,
    gains.cut,
    gains.grouped,
    gains.items,
    gains.mirror,
    gains.padded,
    gains.symmetric,
    gains.table,
    gains.take,
    partition_priors.concentration,
    partition_priors.ewens,
    partition_priors.pairwise_odds,
    partition_priors.pitman_yor,
    partition_priors.product,
    partition_priors.threshold,
]
