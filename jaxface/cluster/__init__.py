"""Clusters and nearest neighbours.

kmeans            k-means++ and random starts, Lloyd's iteration, the best of vmapped restarts
neighbors         exact nearest neighbours in blocks of probes, and classification by the nearest one
agglomerative     clusters of unknown number by the log posterior of partitions: merges, then moves of single items
listed            the same along lists of neighbours, for more items than a matrix of gains has room for
ascent            alternating merges and moves, shared by agglomerative and listed
partition_priors  priors on partitions: a threshold, Ewens, Pitman-Yor, odds of pairs
gains             items to cluster, and gains of merges in blocks
"""

from jaxface.cluster import agglomerative, gains, kmeans, listed, neighbors, partition_priors

__all__ = ["agglomerative", "gains", "kmeans", "listed", "neighbors", "partition_priors"]
