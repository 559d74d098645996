"""Classification by dictionaries (Nguyen, Patel, Nasrabadi, Chellappa): every class has a dictionary of its own, and a
signal belongs to the class whose dictionary leaves the least of it.

    residuals = jax.vmap(lambda d: residual(d, y, sparsity=5))(dictionaries)    # members with a leading class axis
    people = residuals.argmin()
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.sparse import omp
from jaxface.sparse.dictionary import Dictionary, KernelDictionary, decode

__all__ = ["kernel_residual", "residual"]


def residual(dictionary: Dictionary, x: ArrayLike, *, sparsity: int) -> jax.Array:
    """`|y - D x|^2` of one signal `[d]` with its code by OMP."""
    code = omp.encode(dictionary, x, sparsity=sparsity)
    return ((jnp.asarray(x) - decode(dictionary, code)) ** 2).sum()


def kernel_residual(dictionary: KernelDictionary, x: ArrayLike, *, sparsity: int) -> jax.Array:
    """`|Phi(y) - Phi(train) A x|^2 = k(y, y) - 2 x'A'k_y + x'A'KA x` of one signal `[d]`, 0 or above."""
    code = omp.kernel_encode(dictionary, x, sparsity=sparsity)
    row = jnp.asarray(x)[None, :]
    weights = dictionary.coefficients[:, code.indices] @ code.values
    along = dictionary.kernel(row, dictionary.train)[0] @ weights
    among = code.values @ dictionary.gram[code.indices[:, None], code.indices[None, :]] @ code.values
    return jnp.maximum(dictionary.kernel(row, row)[0, 0] - 2 * along + among, 0)
