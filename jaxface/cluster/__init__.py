"""Clusters and nearest neighbours.

kmeans            k-means++ and random starts, Lloyd's iteration, the best of vmapped restarts
neighbors         exact nearest neighbours in blocks of probes, and classification by the nearest one
agglomerative     clusters of unknown number by the log posterior of partitions: merges, then moves of single items
partition_priors  its priors: a threshold, Ewens, Pitman-Yor, odds of pairs
gains             its items, and gains of merges in blocks
"""

from jaxface.cluster import agglomerative, gains, kmeans, neighbors, partition_priors

__all__ = ["agglomerative", "gains", "kmeans", "neighbors", "partition_priors"]
