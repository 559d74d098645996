"""Clustering against classes, from the counts n_ck of samples of class c in cluster k.

    purity            (1/N) sum_k max_c n_ck          a cluster holds one class
    cluster_accuracy  (1/N) sum_c max_k n_ck          a class lies in one cluster
    bcubed            precision (1/N) sum n_ck^2 / n_k, recall (1/N) sum n_ck^2 / n_c: the mean over samples of the
                      share of its class in its cluster, and of its cluster in its class
    pairwise          the same of pairs: sum n_ck (n_ck - 1) of those in one cluster, and of those of one class

The NP-PER paper defines its measures in words; purity and accuracy are nearer to its tables than shares of pairs.
Precision and purity alone reward many small clusters, recall and accuracy alone one large cluster: report both, or F,
the harmonic mean of precision and recall. A class of m samples counts m times in B-cubed and m (m - 1) / 2 times in
pairs. Labels are integers or names; a cluster -1 is a cluster like any other.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jaxface.core import checks
from jaxface.metrics import arguments
from jaxface.metrics.arguments import Index

__all__ = ["PrecisionRecall", "bcubed", "cluster_accuracy", "pairwise", "purity"]


class PrecisionRecall(NamedTuple):
    """How far a cluster holds one class, and a class lies in one cluster."""

    precision: float
    recall: float

    @property
    def f(self) -> float:
        """The harmonic mean; 0 if both are 0."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total > 0 else 0.0


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


def bcubed(classes: npt.ArrayLike, clusters: npt.ArrayLike) -> PrecisionRecall:
    """B-cubed precision and recall: means over samples, each sample a member of its own cluster and class."""
    table = contingency(classes, clusters)
    squares = table.counts.astype(np.float64) ** 2
    of_cluster, of_class = (_sums(table.counts, group)[group] for group in (table.clusters, table.classes))
    number = table.counts.sum()
    return PrecisionRecall(float((squares / of_cluster).sum() / number), float((squares / of_class).sum() / number))


def pairwise(classes: npt.ArrayLike, clusters: npt.ArrayLike) -> PrecisionRecall:
    """Of the pairs of samples in one cluster, the share of one class; of the pairs of one class, that in one cluster.

    Precision is 1 where no pair is in one cluster, and recall where no pair is of one class: nothing is wrong then.
    """
    table = contingency(classes, clusters)
    right = _num_pairs(table.counts)
    claimed, true = (_num_pairs(_sums(table.counts, group)) for group in (table.clusters, table.classes))
    return PrecisionRecall(right / claimed if claimed else 1.0, right / true if true else 1.0)


def _num_pairs(counts: Index) -> int:
    return int((counts * (counts - 1) // 2).sum())


def _sums(count: Index, group: Index) -> Index:
    """The sum of the counts of each group."""
    total = np.zeros(group.max() + 1, count.dtype)
    np.add.at(total, group, count)
    return total


def _largest(count: Index, group: Index) -> Index:
    """The largest count of each group."""
    largest = np.zeros(group.max() + 1, count.dtype)
    np.maximum.at(largest, group, count)
    return largest
