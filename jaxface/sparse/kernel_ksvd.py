"""Kernel K-SVD (2), (3): K-SVD in the feature space of a kernel, with all n x n kernel values in memory.

Atoms are `Phi(X) a_j`. With `K = Z Z'` the rows of Z `[n, n]` have the inner products of the images in feature space.
K-SVD needs inner products of signals only, so kernel K-SVD is K-SVD on the rows of Z, with `D = Z'A`. This is the
baseline for the methods on feature maps: it needs a matrix of n x n (`gram_bytes`), and its atoms have no image.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.linalg import gram, nullspace, spectral
from jaxface.linalg.gram import Kernel
from jaxface.sparse import ksvd, omp
from jaxface.sparse.atom_update import AtomUpdate, approximate
from jaxface.sparse.dictionary import Dictionary, KernelDictionary, check_sparsity

__all__ = ["fit", "gram_bytes", "init"]


def gram_bytes(num_samples: int, *, dtype: jnp.dtype | type) -> int:
    """The bytes of one n x n matrix; a fit holds three: K, its eigenvectors, Z. A million images in float32: 4 TB."""
    checks.at_least("num_samples", num_samples, 1)
    return num_samples**2 * jnp.dtype(dtype).itemsize


def init(key: jax.Array, kernel: Kernel, x: ArrayLike, *, num_atoms: int) -> KernelDictionary:
    """Different images of x `[n, d]` as atoms, of length one in feature space."""
    checks.typed_key(key)
    sizes = checks.samples(x=(x, "n d"))
    checks.at_least("num_atoms", num_atoms, 1)
    checks.at_most("num_atoms", num_atoms, sizes["n"], "the number of images")
    kernel, x = gram.as_kernel(kernel), jnp.asarray(x)
    chosen = jax.random.choice(key, sizes["n"], (num_atoms,), replace=False)
    inner = kernel(x[chosen], x[chosen])
    energy = jnp.diagonal(inner)
    scale = jnp.where(energy > 0, energy, 1) ** -0.5
    coefficients = jnp.zeros((sizes["n"], num_atoms), inner.dtype).at[chosen, jnp.arange(num_atoms)].set(scale)
    return KernelDictionary(
        kernel=kernel, train=x, coefficients=coefficients, gram=inner * scale[:, None] * scale[None, :]
    )


def fit(
    init: KernelDictionary,
    *,
    sparsity: int,
    num_iters: int,
    tol: float = 0.0,
    atom_update: AtomUpdate = approximate,
    max_coherence: ArrayLike = ksvd.MAX_COHERENCE,
    min_users: ArrayLike = 1,
    block_size: int = omp.BLOCK_SIZE,
) -> tuple[KernelDictionary, FitInfo]:
    """`ksvd.fit` of `Phi(train)` from `init`, with the same settings and report; errors are in feature space.

    The reported rank is the rank of K. A kernel with negative eigenvalues beyond rounding gives NOT_PSD, a kernel with
    NaN or infinite values NON_FINITE, and a kernel that vanishes for non-zero images (the linear kernel of very small
    numbers) RANK_DEFICIENT. Gradients are stopped.
    """
    checks.shapes(train=(init.train, "n d"), coefficients=(init.coefficients, "n k"), gram=(init.gram, "k k"))
    checks.floating(train=init.train, coefficients=init.coefficients, gram=init.gram)
    checks.finite(train=init.train, coefficients=init.coefficients)
    check_sparsity(sparsity, init.gram.shape[0])
    replacement: dict[str, Any] = {"max_coherence": max_coherence, "min_users": min_users}
    init = jax.lax.stop_gradient(init)
    rows, back, rank, status = _root(init.kernel, init.train)
    start = Dictionary(atoms=rows.T @ init.coefficients)
    sizes: dict[str, Any] = {"sparsity": sparsity, "num_iters": num_iters, "tol": tol, "block_size": block_size}
    dictionary, info = ksvd.fit(rows, start, atom_update=atom_update, **sizes, **replacement)
    atoms = dictionary.atoms
    fitted = KernelDictionary(kernel=init.kernel, train=init.train, coefficients=back @ atoms, gram=atoms.T @ atoms)
    lost = (info.status == Status.NON_FINITE) | (status == Status.NON_FINITE)
    status = fitinfo.diagnose((lost, Status.NON_FINITE), otherwise=fitinfo.worst(info.status, status))
    return fitted, info._replace(status=status, rank=rank)


@jax.jit
def _root(kernel: Kernel, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Z `[n, n]` with `Z Z' = K`, B with `Z'B = I` on the range, the rank of K and a status."""
    k = kernel(x, x)
    is_finite = jnp.isfinite(k).all() & jnp.isfinite(x).all()
    values, vectors = spectral.eigh(jnp.where(is_finite, k, 0))
    rounding = nullspace.default_rtol(k)
    rank = nullspace.numerical_rank(values, rtol=rounding)
    root = jnp.sqrt(jnp.where(jnp.arange(values.shape[0]) < rank, values, 0))
    is_psd = values.min() >= -rounding * values.max()
    is_lost = (rank == 0) & (x != 0).any()
    status = fitinfo.diagnose(
        (~is_finite, Status.NON_FINITE), (is_lost, Status.RANK_DEFICIENT), (~is_psd, Status.NOT_PSD)
    )
    rows = vectors * root[None, :]
    return rows, vectors * jnp.where(root > 0, 1 / jnp.where(root > 0, root, 1), 0)[None, :], rank, status
