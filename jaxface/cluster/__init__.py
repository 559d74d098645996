"""Grouping and neighbours.

kmeans      k-means++ and random starts, Lloyd's iteration, the best of vmapped restarts
neighbors   exact nearest neighbours in blocks, and classification by them
"""

from jaxface.cluster import kmeans, neighbors

__all__ = ["kmeans", "neighbors"]
