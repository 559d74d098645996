"""Clustering against classes, from the counts n_ck of samples of class c in cluster k.

    purity            (1/N) sum_k max_c n_ck          a cluster holds one class
    cluster_accuracy  (1/N) sum_c max_k n_ck          a class lies in one cluster
    pair_purity       same-class share of the pairs that share a cluster
    pair_accuracy     same-cluster share of the pairs that share a class
    adjusted_rand     agreement of the pairs, 0 for chance and 1 for equality

The NP-PER paper defines its measures in words; the majority forms are nearer to its tables. Purity alone
rewards many small clusters and accuracy alone one large cluster: report both. Labels are anything that sorts;
a cluster -1 is a cluster like another.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import inputs
from jaxface.metrics.inputs import Index

__all__ = ["adjusted_rand", "cluster_accuracy", "pair_purity", "purity"]


class Contingency(NamedTuple):
    """The non-zero counts n_ck, one entry each: many singletons would not fit a dense table."""

    classes: Index  # [e] dense class index
    clusters: Index  # [e] dense cluster index
    counts: Index  # [e]


def contingency(classes: npt.ArrayLike, clusters: npt.ArrayLike) -> Contingency:
    """Counts of samples by class and cluster, from labels `[n]` and `[n]`."""
    sizes = checks.shapes(classes=(classes, "n"), clusters=(clusters, "n"))
    checks.at_least("the number of samples", sizes["n"], 1)
    _, class_index = np.unique(inputs.identities("classes", classes), return_inverse=True)
    names, cluster_index = np.unique(inputs.identities("clusters", clusters), return_inverse=True)
    cells, count = np.unique(class_index * names.size + cluster_index, return_counts=True)
    return Contingency(cells // names.size, cells % names.size, count)


def purity(classes: npt.ArrayLike, clusters: npt.ArrayLike) -> float:
    """Share of samples that belong to the largest class of their cluster."""
    table = contingency(classes, clusters)
    return float(_largest(table.counts, table.clusters).sum() / table.counts.sum())


def cluster_accuracy(classes: npt.ArrayLike, clusters: npt.ArrayLike) -> float:
    """Share of samples that lie in the largest cluster of their class."""
    table = contingency(classes, clusters)
    return float(_largest(table.counts, table.classes).sum() / table.counts.sum())


def pair_purity(classes: npt.ArrayLike, clusters: npt.ArrayLike) -> float:
    """Share of same-cluster pairs that are of one class; 1 when no two samples share a cluster."""
    agree, _, in_cluster, _ = _pair_counts(contingency(classes, clusters))
    return agree / in_cluster if in_cluster else 1.0


def pair_accuracy(classes: npt.ArrayLike, clusters: npt.ArrayLike) -> float:
    """Share of same-class pairs that lie in one cluster; 1 when no two samples share a class."""
    agree, in_class, _, _ = _pair_counts(contingency(classes, clusters))
    return agree / in_class if in_class else 1.0


def adjusted_rand(classes: npt.ArrayLike, clusters: npt.ArrayLike) -> float:
    """Adjusted Rand index, (A - E) / ((C + K) / 2 - E) with E = C K / all pairs expected by chance.

    A, C, K count the pairs that share both, the class, the cluster. 1 when both partitions are one block or
    all singletons.
    """
    agree, in_class, in_cluster, every = _pair_counts(contingency(classes, clusters))
    expected = in_class * in_cluster / every if every else 0.0
    largest = (in_class + in_cluster) / 2.0
    return (agree - expected) / (largest - expected) if largest != expected else 1.0


def _largest(count: Index, group: Index) -> Index:
    """The largest count of each group."""
    largest = np.zeros(group.max() + 1, count.dtype)
    np.maximum.at(largest, group, count)
    return largest


def _pair_counts(table: Contingency) -> tuple[int, int, int, int]:
    """Pairs that share class and cluster, class, cluster; and all pairs. Python integers do not overflow."""

    def pairs(count: npt.NDArray) -> int:
        return sum(n * (n - 1) // 2 for n in count.tolist())

    per_class = np.bincount(table.classes, weights=table.counts).astype(np.int64)
    per_cluster = np.bincount(table.clusters, weights=table.counts).astype(np.int64)
    return pairs(table.counts), pairs(per_class), pairs(per_cluster), pairs(table.counts.sum(keepdims=True))
