"""Linear algebra for symmetric problems, null spaces and kernels; everything follows the dtype of its input.

    psd         symmetrise, relative ridge, Cholesky solves, log-determinants
    triangular  solves with lower triangular factors
    small_cholesky  inverse factors of many small matrices at once
    spectral    eigh and thin SVD with fixed order and signs; simultaneous diagonalisation of a pair
    krylov      operators known by their products: conjugate gradients, Lanczos, block power
    nullspace   null spaces from thin factors, numerical rank, projectors with a right derivative
    class_stats  sums over labelled samples that add, and the scatters that follow from them
    scatter     within, between and total scatter: as thin factors and as matrices
    discriminant  whitening of one scatter and the directions that order another
    products    large products in the layout in which a CPU computes them fastest
    gram        kernels as pytrees, Gram matrices
    distances   norms, distances and cosines that are gradient-safe at zero
    hadamard    the Walsh-Hadamard transform
    scaling     powers of two that keep squares inside the range of a type

Eigenvectors and singular vectors are never differentiated: their derivative is finite and wrong when the spectrum is
degenerate. `spectral` stops gradients; a differentiable subspace goes through `nullspace.project_out`.
"""

from jaxface.linalg import (
    class_stats,
    discriminant,
    distances,
    gram,
    hadamard,
    krylov,
    nullspace,
    products,
    psd,
    scaling,
    scatter,
    small_cholesky,
    spectral,
    triangular,
)

__all__ = [
    "class_stats",
    "discriminant",
    "distances",
    "gram",
    "hadamard",
    "krylov",
    "nullspace",
    "products",
    "psd",
    "scaling",
    "scatter",
    "small_cholesky",
    "spectral",
    "triangular",
]
