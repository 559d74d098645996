"""Dictionaries, sparse codes, and the functions between them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.core.pytree import params
from jaxface.linalg import distances
from jaxface.linalg.gram import Kernel

__all__ = ["Dictionary", "KernelDictionary", "SparseCode", "as_vector", "decode", "shrink", "unit_atoms"]


@params
class Dictionary:
    """Atoms as columns, of any length; a zero atom is never chosen."""

    atoms: jax.Array  # [d, k]


@params
class KernelDictionary:
    """Atoms `Phi(train) a_j` in the feature space of a kernel, (1)."""

    kernel: Kernel  # a pytree of `linalg.gram`
    train: jax.Array  # [n, d]
    coefficients: jax.Array  # [n, k], A
    gram: jax.Array  # [k, k], A'KA


class SparseCode(NamedTuple):
    """The chosen atoms in the order of their choice; after a pursuit that ended early, index 0 with value 0 follows."""

    indices: jax.Array  # int32 [s]; -1 where the signal holds NaN
    values: jax.Array  # [s]; NaN there


def decode(dictionary: Dictionary, code: SparseCode) -> jax.Array:
    """`D x` `[d]` of one code."""
    _check_one(code)
    return weighted_sum(dictionary.atoms.T, code.indices, code.values)


def as_vector(code: SparseCode, *, num_atoms: int) -> jax.Array:
    """The code as a vector x `[k]` with at most s entries."""
    _check_one(code)
    return jnp.zeros(num_atoms, code.values.dtype).at[code.indices].add(code.values)


def shrink(atom: jax.Array, bound: ArrayLike) -> jax.Array:
    """(21): `d s / max|d|` where `max|d| > s`, otherwise d. Its coefficient grows by the inverse factor."""
    largest = jnp.abs(atom).max()
    return atom * jnp.where(largest > bound, bound / jnp.where(largest > 0, largest, 1), 1)


def unit_atoms(atoms: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Columns of length one `[d, k]` and the lengths `[k]` they had; a zero atom stays zero, with length 1."""
    length = distances.norm(atoms.T)
    length = jnp.where(length == 0, 1, length)
    return atoms / length[None, :], length


def weighted_sum(rows: jax.Array, indices: jax.Array, weights: jax.Array) -> jax.Array:
    """`sum_t w_t rows[i_t]` `[d]` of rows `[k, d]`; the indices `[s]` must be in range.

    Written out term by term, the sum reads each row once; a gather would first write a copy of all rows.
    """
    terms = (rows.at[indices[t]].get(mode="promise_in_bounds") * weights[t] for t in range(indices.shape[0]))
    return sum(terms, start=jnp.zeros(rows.shape[1], jnp.result_type(rows, weights)))


def check_dictionary(dictionary: Dictionary, x: ArrayLike, axes: str, sparsity: int) -> None:
    """The checks of every coder; x has the axes `axes`, d among them."""
    sizes = checks.samples(atoms=(dictionary.atoms, "d k"), x=(x, axes))
    check_sparsity(sparsity, sizes["k"])
    checks.at_most("sparsity", sparsity, sizes["d"], "the dimension")


def _check_one(code: SparseCode) -> None:
    """Refuses a batch of codes: use vmap for one."""
    checks.shapes(indices=(code.indices, "s"), values=(code.values, "s"))


def check_sparsity(sparsity: int, num_atoms: int) -> None:
    """A sparsity between 1 and the number of atoms."""
    checks.at_least("sparsity", sparsity, 1)
    checks.at_most("sparsity", sparsity, num_atoms, "the number of atoms")
