"""Groups of more photos than a matrix of gains has room for: the time of the lists and of the groups, and the memory.

python -m benchmarks.heaps                                          50,000 photos of 128 dimensions, lists of 30
python -m benchmarks.heaps --images 5000 --dim 512 --matrix         with the matrix of gains beside the lists
"""

import argparse
import functools
import resource
import time
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import threadpoolctl

from jaxface import joint_bayes, metrics
from jaxface.cluster import agglomerative, gains, listed, partition_priors
from jaxface.cluster.ascent import Partition

_SEED = 0


def made(num_images: int, dim: int) -> tuple[joint_bayes.ScoringBasis, np.ndarray, np.ndarray]:
    """A basis, projected photos `[n, d]`, and who they show: people with four photos on average, many with one."""
    rng = np.random.default_rng(_SEED)
    ids = np.repeat(np.arange(num_images), rng.geometric(0.25, size=num_images))[:num_images]
    values = np.linspace(6, 0.3, dim)
    z = (rng.normal(size=(ids.max() + 1, dim)) * np.sqrt(values))[ids] + rng.normal(size=(num_images, dim))
    order = rng.permutation(num_images)
    fields = np.zeros(dim), np.eye(dim), values
    basis = joint_bayes.ScoringBasis(
        **{name: jnp.asarray(x, jnp.float32) for name, x in zip(("mean", "vectors", "values"), fields, strict=True)}
    )
    return basis, z[order].astype(np.float32), ids[order]


def run(num_images: int, dim: int, num_neighbors: int, *, with_matrix: bool) -> list[Partition]:
    """The partitions by lists and, if asked for, by the matrix; prints what they took."""
    basis, z, ids = made(num_images, dim)
    number = int(ids.max()) + 1
    prior = partition_priors.ewens(partition_priors.concentration(number, num_images=num_images))
    each, found = gains.items(z), []
    lists = _timed(
        "lists", lambda: listed.nearest(joint_bayes.score_projections, basis, z, num_neighbors=num_neighbors)
    )
    evidence = functools.partial(joint_bayes.set_evidence, basis)
    found.append(_timed("groups by lists", lambda: listed.fit(each, lists, evidence=evidence, prior=prior)[0]))
    if with_matrix:
        gain = functools.partial(joint_bayes.set_llr_matrix, basis)
        found.append(_timed("groups by the matrix", lambda: agglomerative.fit(each, gain=gain, prior=prior)[0]))
    for partition in found:
        score = metrics.bcubed(ids, partition.labels)
        print(f"{partition.num_clusters:,} groups of {number:,} people, B-cubed F {score.f:.4f}")
    return found


def _timed(name: str, work: Callable[[], Any]) -> Any:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    seconds, of_cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(f"{name}: {of_cpu:.1f} CPU-s, {seconds:.1f} s, peak {peak:,.0f} MB", flush=True)
    return result


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--neighbors", type=int, default=30)
    parser.add_argument("--matrix", action="store_true")
    given = parser.parse_args()
    with threadpoolctl.threadpool_limits(1):
        run(given.images, given.dim, given.neighbors, with_matrix=given.matrix)


if __name__ == "__main__":
    main()
