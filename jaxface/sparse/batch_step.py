"""The dictionary step of a batch, of large products alone: no sum over pairs of atoms is kept.

With the codes X fixed, the error `|Y - D X|^2` falls along `(Y - D X) X'`. A step divides by a weight of each atom,

    d_j <- d_j + t [(Y - D X) X']_j / w_j        w_j = sum of x_jn^2, faded, of this batch and those before

which minimises `|Y - D X|^2 + sum_j p_j |d_j - d_j,old|^2` if atoms do not overlap in the codes, with p_j the weight of
the batches before. With t = 1 the sum may rise where codes overlap much, so t is guarded: along the step, the sum is a
parabola with its least value at

    t* = sum_j w_j |s_j|^2 / (|S X|^2 + sum_j p_j |s_j|^2)        s_j the step of atom j

and it falls at t = 1 just if t* >= 1/2. Otherwise t = t*.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import blocks
from jaxface.core.program import program
from jaxface.linalg import distances
from jaxface.sparse import omp
from jaxface.sparse.atom_update import Chunk, Users, users_by_atom
from jaxface.sparse.dictionary import SparseCode, weighted_sum

__all__ = []

_TILE = 1024  # rows and columns of the Gram matrix that are computed at a time
_CHUNK = 8  # users per chunk: an atom has few in a batch


@program
def gram(atoms: jax.Array) -> jax.Array:
    """Inner products `[k, k]` of rows `[k, d]`: tiles above the diagonal are computed once, and mirrored."""
    k = atoms.shape[0]
    if k <= _TILE:
        return atoms @ atoms.T
    starts = _starts(k)
    pairs = jnp.asarray(starts[np.stack(np.triu_indices(len(starts)), axis=1)], jnp.int32)

    def tile(whole: jax.Array, pair: jax.Array) -> tuple[jax.Array, None]:
        left, right = (jax.lax.dynamic_slice_in_dim(atoms, pair[side], _TILE) for side in (0, 1))
        products = jax.lax.dot_general(left, right, (((1,), (1,)), ((), ())))
        whole = jax.lax.dynamic_update_slice(whole, products, (pair[0], pair[1]))
        return jax.lax.dynamic_update_slice(whole, products.T, (pair[1], pair[0])), None

    return jax.lax.scan(tile, jnp.zeros((k, k), atoms.dtype), pairs)[0]


@program
def repeats(products: jax.Array, max_coherence: ArrayLike) -> jax.Array:
    """Which atoms `[k]` of length one have a cosine above `max_coherence`, of either sign, with an earlier one.

    From their products `[k, k]`, some rows at a time: a second array of their size is not made.
    """
    k = products.shape[0]
    size = min(k, _TILE)

    def tile(found: jax.Array, start: jax.Array) -> tuple[jax.Array, None]:
        rows = jax.lax.dynamic_slice_in_dim(products, start, size)
        atom = start + jnp.arange(size, dtype=jnp.int32)
        is_earlier = jnp.arange(k, dtype=jnp.int32)[None, :] < atom[:, None]
        largest = jnp.where(is_earlier, jnp.abs(rows), 0).max(axis=1)
        largest = jnp.minimum(largest, 1)  # above 1 by rounding
        return jax.lax.dynamic_update_slice(found, largest > max_coherence, (start,)), None

    return jax.lax.scan(tile, jnp.zeros(k, bool), jnp.asarray(_starts(k), jnp.int32))[0]


@partial(jax.jit, static_argnames=("sparsity", "block_size"))
def code(
    atoms: jax.Array, products: jax.Array, x: jax.Array, *, sparsity: int, block_size: int
) -> tuple[SparseCode, jax.Array]:
    """Codes `[b, s]` of x `[b, d]` by OMP and the residual `[b, d]`, for atoms `[k, d]` and their products `[k, k]`."""
    encode = omp.unit_encoder(atoms, products, sparsity=sparsity)

    def one(signal: jax.Array) -> tuple[SparseCode, jax.Array]:
        found = encode(signal)
        return found, signal - weighted_sum(atoms, found.indices, found.values)

    n = x.shape[0]
    even = blocks.num_blocks(n, blocks.num_blocks(n, block_size))  # few blocks need padding, which copies all signals
    return blocks.map_rows(one, x, block_size=even)


def weigh(codes: SparseCode, *, num_atoms: int) -> jax.Array:
    """`sum_n x_jn^2` of each atom `[k]`."""
    return jax.ops.segment_sum((codes.values**2).reshape(-1), codes.indices.reshape(-1), num_atoms)


@partial(jax.jit, static_argnames="num_atoms")
def correlate(codes: SparseCode, residual: jax.Array, *, num_atoms: int) -> jax.Array:
    """`X E'`: rows `[k, d]`, the sum over the users of an atom of their residuals `[b, d]` times their coefficients."""
    sparsity = codes.values.shape[1]
    entries, starts, ends = users_by_atom(codes, num_atoms=num_atoms, chunk=_CHUNK)
    values = codes.values.reshape(-1)

    def atom(_: None, span: tuple[jax.Array, jax.Array]) -> tuple[None, jax.Array]:
        def visit(total: jax.Array, chunk: Chunk) -> jax.Array:
            terms = jnp.where(chunk.is_user, values[chunk.entries], 0)
            return total + weighted_sum(residual, chunk.signals, terms)

        users = Users(entries, *span, sparsity, _CHUNK)
        return None, users.fold(visit, jnp.zeros(residual.shape[1], residual.dtype))

    return jax.lax.scan(atom, None, (starts, ends))[1]


@partial(jax.jit, static_argnames="block_size")
def guarded(
    step: jax.Array, weight: jax.Array, past: jax.Array, codes: SparseCode, *, block_size: int
) -> tuple[jax.Array, jax.Array]:
    """The length t of a step `[k, d]`, and whether it was cut below 1; weights `[k]` of all and of earlier batches."""

    def squares(total: jax.Array, some: SparseCode, valid: jax.Array) -> jax.Array:
        moved = jax.vmap(weighted_sum, in_axes=(None, 0, 0))(step, some.indices, some.values)
        return total + jnp.where(valid, (moved**2).sum(axis=1), 0).sum()

    sizes = (step**2).sum(axis=1)
    curvature = blocks.fold_rows(squares, past @ sizes, codes, block_size=block_size)
    best = (weight @ sizes) / jnp.where(curvature > 0, curvature, 1)
    is_cut = (curvature > 0) & (best < 0.5)
    return jnp.where(is_cut, best, 1), is_cut


@program
def replace(atoms: jax.Array, x: jax.Array, signals: jax.Array, replaced: jax.Array) -> jax.Array:
    """Atoms `[k, d]`, those that are `replaced` `[k]` being their `signals` `[k]` of x `[b, d]` at length one.

    One after the other: a gather of all of them would take the memory of a second dictionary.
    """
    turns = jnp.argsort(~replaced, stable=True)

    def put(turn: jax.Array, atoms: jax.Array) -> jax.Array:
        atom = turns[turn]
        return atoms.at[atom].set(distances.normalize(x[signals[atom]]))

    return jax.lax.fori_loop(0, replaced.sum(dtype=jnp.int32), put, atoms)


def fade(number: jax.Array, forgetting: ArrayLike, dtype: jnp.dtype) -> jax.Array:
    """What the batches before batch `number` count for when it is added: `(1 - 1 / number)^forgetting`."""
    return (1 - 1 / number.astype(dtype)) ** jnp.asarray(forgetting, dtype)


def _starts(k: int) -> np.ndarray:
    """Where tiles of the Gram matrix begin; the last one may overlap the one before it."""
    return np.minimum(np.arange(blocks.num_blocks(k, _TILE)) * _TILE, max(k - _TILE, 0))
