"""Clusters and nearest neighbours.

kmeans      k-means++ and random starts, Lloyd's iteration, the best of vmapped restarts
neighbors   exact nearest neighbours in blocks of probes, and classification by the nearest one
"""

from jaxface.cluster import kmeans, neighbors

__all__ = ["kmeans", "neighbors"]
