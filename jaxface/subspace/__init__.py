"""Subspaces for faces, linear and with kernels: fit on rows `[n, d]`, get a map, transform one vector at a time.

Training without names is after Kumar and Rowley, Classification of Weakly-Labeled Data with Partial Equivalence
Relations. From its section 4.1 on the print has lost the bar that tells the scatter between groups from the scatter
within: the constraint of (8), and (9) and (10), read with S_b.

    maps           transform and leading, of either kind of map
    linear_map     LinearMap(mean, basis): `z = W'(x - mean)`; back by reconstruct; two in a row by compose
    pca            Eigenfaces: the leading eigenvectors of the total scatter
    lda            Fisherfaces (1): max |W'S_b W| / |W'S_w W| after PCA to N - C
    rca            whitening within groups, section 3: after PCA, or with a ridge
    np_per         null space within groups (6), (11): fit, fit_dual, fit_dependent; project_onto is differentiable
    kernel_map     KernelMap(kernel, train, coefficients, offset): `z = A'k(train, x) + offset`
    kernel_rca     RCA on kernel vectors; Tsang's regularised form: fit_ridge, fit_metric
    kernel_np_per  (7), (8) with `A'A = I` or `A'KA = I`
    kcfa           a kernel correlation filter for each class; images compared by the cosine of their responses
    grouping       checks of groups, and the differences within and between them
    group_sums     sums over groups that come in parts, for rca.from_sums and np_per.from_sums
    group_scatter  (12): what the scatter within groups misses of that within classes
    held_out       choosing a bandwidth, ridge or width by groups that were held out
"""

from jaxface.subspace import group_scatter, group_sums, held_out, kcfa, kernel_np_per, kernel_rca, lda, np_per, pca, rca
from jaxface.subspace.kernel_map import KernelMap
from jaxface.subspace.linear_map import LinearMap, compose, reconstruct
from jaxface.subspace.maps import leading, transform

__all__ = [
    "KernelMap",
    "LinearMap",
    "compose",
    "group_scatter",
    "group_sums",
    "held_out",
    "kcfa",
    "kernel_np_per",
    "kernel_rca",
    "lda",
    "leading",
    "np_per",
    "pca",
    "rca",
    "reconstruct",
    "transform",
]
