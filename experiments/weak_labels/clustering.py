"""k-means after a projection: are the images of one person together, and alone?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.weak_labels.draws import Draws
from jaxface.cluster import kmeans
from jaxface.core import prng
from jaxface.metrics import cluster_accuracy, purity

STARTS = {"k-means++": kmeans.init_plus_plus, "random": kmeans.init_random}


def purity_and_accuracy(
    key: jax.Array,
    z: jax.Array,
    ids: np.ndarray,
    draws: Draws,
    *,
    start: str,
    num_draws: int,
    num_restarts: int,
    num_iters: int,
) -> np.ndarray:
    """Purity and accuracy `[2, num_draws, num_restarts]` of the grouped images, as many clusters as people.

    Every restart counts, for the measure is the result of one run of k-means, not the best of many.
    """
    people = len(np.unique(ids[draws.rows[0]]))
    rows = draws.rows[:num_draws]
    keys = prng.member_keys(prng.stream(key, start), len(rows))
    numbers = {"num_clusters": people, "num_restarts": num_restarts, "num_iters": num_iters}
    labels = np.asarray(_labels(keys, z, rows, init=STARTS[start], **numbers))
    return np.array(
        [
            [[measure(ids[known], run) for run in runs] for known, runs in zip(rows, labels, strict=True)]
            for measure in (purity, cluster_accuracy)
        ]
    )


@partial(jax.jit, static_argnames=("init", "num_clusters", "num_restarts", "num_iters"))
def _labels(
    keys: jax.Array,
    z: jax.Array,
    rows: jax.Array,
    *,
    init: kmeans.Init,
    num_clusters: int,
    num_restarts: int,
    num_iters: int,
) -> jax.Array:
    """Clusters `[draws, restarts, k]`, draw by draw."""

    def of_draw(task: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        key, coordinates, chosen = task
        x = coordinates[chosen]

        def one(restart: jax.Array) -> jax.Array:
            fitted, _ = kmeans.fit(x, init(restart, x, num_clusters=num_clusters), num_iters=num_iters)
            return kmeans.assign(fitted, x).labels

        return jax.vmap(one)(prng.member_keys(key, num_restarts))

    return jax.lax.map(of_draw, (keys, z[: len(rows)], jnp.asarray(rows)))
