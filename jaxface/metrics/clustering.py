"""Clustering against classes, from the counts n_ck of samples of class c in cluster k.

    purity            (1/N) sum_k max_c n_ck          a cluster holds one class
    cluster_accuracy  (1/N) sum_c max_k n_ck          a class lies in one cluster

The NP-PER paper defines its measures in words; these forms are nearer to its tables than shares of pairs. Purity
alone rewards many small clusters and accuracy alone one large cluster: report both. Labels are integers or names; a
cluster -1 is a cluster like any other.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import arguments
from jaxface.metrics.arguments import Index

__all__ = ["cluster_accuracy", "purity"]


class Contingency(NamedTuple):
    """The counts n_ck above zero: a dense table of many singletons would not fit into memory."""

    classes: Index  # [e] dense class index
    clusters: Index  # [e] dense cluster index
    counts: Index  # [e]


def contingency(classes: npt.ArrayLike, clusters: npt.ArrayLike) -> Contingency:
    """Counts of samples by class and cluster, from labels `[n]` and `[n]`."""
    sizes = checks.shapes(classes=(classes, "n"), clusters=(clusters, "n"))
    checks.at_least("the number of samples", sizes["n"], 1)
    _, class_index = np.unique(arguments.identities("classes", classes), return_inverse=True)
    names, cluster_index = np.unique(arguments.identities("clusters", clusters), return_inverse=True)
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


def _largest(count: Index, group: Index) -> Index:
    """The largest count of each group."""
    largest = np.zeros(group.max() + 1, count.dtype)
    np.maximum.at(largest, group, count)
    return largest
