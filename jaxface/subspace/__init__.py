"""Linear subspaces for faces: fit on rows `[n, d]`, get a map, transform one vector at a time.

linear_map  LinearMap(mean, basis): `z = W'(x - mean)`, and back by reconstruct
pca         Eigenfaces: the leading eigenvectors of the total scatter
lda         Fisherfaces: max |W'S_b W| / |W'S_w W| after PCA to N - C
"""

from jaxface.subspace import lda, pca
from jaxface.subspace.linear_map import LinearMap, transform

__all__ = ["LinearMap", "lda", "pca", "transform"]
