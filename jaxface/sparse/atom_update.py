"""The codebook stage of K-SVD (Algorithm 2): one atom after the other, each with the coefficients of its users.

The users of atom j are the signals with `x_j != 0`. The rows of R `[users, d]` are the users less their parts on all
other atoms; `g d_j'`, of rank one, shall approximate R. The residual `E = Y - D X` of all signals is kept and changed
with every atom, so `R = E_users + g d_j'` takes one row of E for each user, whatever the number of atoms.

An atom update takes `v -> R'R v` and `R'g` and returns the new unit atom d; the coefficients become `g = R d`:

    approximate   R'g / |R'g|, a step of alternating least squares
    exact         the leading right singular vector of R

Neither ever raises `|E|^2`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from jaxface.linalg import distances, krylov
from jaxface.sparse.dictionary import SparseCode

__all__ = ["AtomUpdate", "approximate", "count_users", "exact"]

S = TypeVar("S")
Normal = Callable[[jax.Array], jax.Array]  # v [d] -> R'R v [d]
AtomUpdate = Callable[[Normal, jax.Array], jax.Array]  # (R'R, R'g [d]) -> unit atom [d], zero where R'g is

CHUNK = 32  # users per chunk; their number is data-dependent, shapes are not
_MAX_RESTARTS = 200


class Codebook(NamedTuple):
    """Atoms, the codes on them, and the residual of the signals."""

    atoms: jax.Array  # [k, d], rows
    codes: SparseCode  # [n, s]
    residual: jax.Array  # [n, d], E


class Users(NamedTuple):
    """The users of an atom: `entries[start:end]` are their places in the flat codes `[n s]`."""

    entries: jax.Array  # int32 [n s + chunk], sorted by atom, then the padding
    start: jax.Array  # int32 []
    end: jax.Array  # int32 []
    sparsity: int
    chunk: int = CHUNK

    def fold(self, visit: Callable[[S, "Chunk"], S], init: S) -> S:
        """Folds `visit` over the users, a chunk at a time."""

        def body(i: jax.Array, state: S) -> S:
            first = self.start + i * self.chunk
            entries = jax.lax.dynamic_slice_in_dim(self.entries, first, self.chunk)
            is_user = first + jnp.arange(self.chunk, dtype=jnp.int32) < self.end
            return visit(state, Chunk(entries, entries // self.sparsity, is_user))

        return jax.lax.fori_loop(0, (self.end - self.start + self.chunk - 1) // self.chunk, body, init)


class Chunk(NamedTuple):
    """Some users of an atom; the last chunk is filled with entries that are none."""

    entries: jax.Array  # int32 [chunk], places in the flat codes
    signals: jax.Array  # int32 [chunk]
    is_user: jax.Array  # bool [chunk]


@partial(jax.jit, static_argnames="atom_update")
def update_atoms(book: Codebook, *, atom_update: AtomUpdate) -> Codebook:
    """One pass over the atoms in their order; an atom without users stays as it is."""
    n, sparsity = book.codes.values.shape
    entries, starts, ends = users_by_atom(book.codes, num_atoms=book.atoms.shape[0])

    def step(state: tuple[jax.Array, jax.Array], row: tuple[jax.Array, ...]) -> tuple[Any, jax.Array]:
        atom, start, end = row
        return _update_atom(Users(entries, start, end, sparsity), atom, *state, atom_update)

    state = book.codes.values.reshape(-1), book.residual
    (values, residual), atoms = jax.lax.scan(step, state, (book.atoms, starts, ends))
    return Codebook(atoms, book.codes._replace(values=values.reshape(n, sparsity)), residual)


def _update_atom(
    users: Users, atom: jax.Array, values: jax.Array, residual: jax.Array, atom_update: AtomUpdate
) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
    """The flat values of the codes `[n s]` and the residual `[n, d]` after one atom, and the new atom `[d]`."""

    def normal(v: jax.Array) -> jax.Array:
        def visit(total: jax.Array, chunk: Chunk) -> jax.Array:
            rows = residual[chunk.signals] + values[chunk.entries][:, None] * atom[None, :]
            return total + jnp.where(chunk.is_user, rows @ v, 0) @ rows

        return users.fold(visit, jnp.zeros_like(atom))

    def correlate(total: jax.Array, chunk: Chunk) -> jax.Array:
        g = jnp.where(chunk.is_user, values[chunk.entries], 0)
        return total + g @ residual[chunk.signals] + (g @ g) * atom

    direction = atom_update(normal, users.fold(correlate, jnp.zeros_like(atom)))
    new = jnp.where((direction != 0).any(), direction, atom)
    return users.fold(partial(_replace, atom, new), (values, residual)), new


def _replace(
    atom: jax.Array, new: jax.Array, state: tuple[jax.Array, jax.Array], chunk: Chunk
) -> tuple[jax.Array, jax.Array]:
    """Values and residual with the new atom in the place of the old one, for a chunk of users."""
    values, residual = state
    g = jnp.where(chunk.is_user, values[chunk.entries], 0)
    changed = jnp.where(chunk.is_user, residual[chunk.signals] @ new + g * (atom @ new), 0)
    residual = residual.at[chunk.signals].add(g[:, None] * atom[None, :] - changed[:, None] * new[None, :])
    places = jnp.where(chunk.is_user, chunk.entries, values.shape[0])
    return values.at[places].set(changed, mode="drop"), residual


def approximate(normal: Normal, first: jax.Array) -> jax.Array:  # noqa: ARG001 - one signature for all updates
    """`R'g / |R'g|`: the best atom for the coefficients as they are."""
    return distances.normalize(first)


def exact(normal: Normal, first: jax.Array) -> jax.Array:
    """The leading right singular vector of R, by Lanczos steps on R'R from R'g, restarted until it settles."""
    return krylov.leading_eigenvector(normal, first, num_restarts=_MAX_RESTARTS)


def count_users(codes: SparseCode, *, num_atoms: int) -> jax.Array:
    """How many signals use each atom, int32 `[k]`."""
    place = jnp.where(codes.values != 0, codes.indices, num_atoms).reshape(-1)
    return jax.ops.segment_sum(jnp.ones_like(place), place, num_atoms)


def users_by_atom(codes: SparseCode, *, num_atoms: int, chunk: int = CHUNK) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Places in the flat codes sorted by atom, padded by a chunk, and where the users of each atom start and end."""
    place = jnp.where(codes.values != 0, codes.indices, num_atoms).reshape(-1)
    entries = jnp.argsort(place, stable=True).astype(jnp.int32)
    ends = jnp.cumsum(count_users(codes, num_atoms=num_atoms), dtype=jnp.int32)
    return jnp.pad(entries, (0, chunk)), jnp.concatenate([jnp.zeros(1, jnp.int32), ends[:-1]]), ends
