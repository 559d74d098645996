"""The codebook stage of K-SVD (Algorithm 2): one atom after the other, each with the coefficients of its users.

The users of atom j are the signals with `x_j != 0`. What all other atoms leave of them, the rows of R `[users, d]`, is
to be approximated by `g d_j'`, of rank one. The residual `E = Y - D X` of all signals is kept and changed with every
atom, so `R = E_users + g d_j'` costs as many rows of E as there are users, whatever the number of atoms.

An update takes `v -> R'R v` and `R'g` and returns the new unit atom d; the coefficients become `g = R d`:

    approximate   R'g / |R'g|, a step of alternating least squares
    exact         the leading right singular vector of R

Neither ever raises `|E|^2`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from jaxface.core import machine
from jaxface.linalg import distances
from jaxface.sparse.dictionary import SparseCode

__all__ = ["Update", "approximate", "count_users", "exact"]

S = TypeVar("S")
Normal = Callable[[jax.Array], jax.Array]  # v [d] -> R'R v [d]
Update = Callable[[Normal, jax.Array], jax.Array]  # (R'R, R'g [d]) -> unit atom [d], zero where R'g is

_CHUNK = 32  # users at a time, for their number is known to the data only
_KRYLOV_DIM = 8
_MAX_RESTARTS = 200


class Codebook(NamedTuple):
    """Atoms, the codes on them, and what these leave of the signals."""

    atoms: jax.Array  # [k, d], rows
    codes: SparseCode  # [n, s]
    residual: jax.Array  # [n, d], E


def update_atoms(book: Codebook, *, update: Update) -> Codebook:
    """One pass over the atoms in their order; an atom without users stays as it is."""
    n, sparsity = book.codes.values.shape
    entries, ends = _users(book.codes, num_atoms=book.atoms.shape[0])

    def step(state: tuple[jax.Array, jax.Array], atom_users: tuple[jax.Array, ...]) -> tuple[Any, jax.Array]:
        values, residual = state
        atom, start, end = atom_users

        def fold(visit: Callable[[S, jax.Array, jax.Array, jax.Array], S], init: S) -> S:
            """Folds `visit(state, entries, signals, is_user)` over the users, a chunk at a time."""

            def chunk(i: jax.Array, state: S) -> S:
                first = start + i * _CHUNK
                chosen = jax.lax.dynamic_slice_in_dim(entries, first, _CHUNK)
                is_user = first + jnp.arange(_CHUNK, dtype=jnp.int32) < end
                return visit(state, chosen, chosen // sparsity, is_user)

            return jax.lax.fori_loop(0, (end - start + _CHUNK - 1) // _CHUNK, chunk, init)

        def normal(v: jax.Array) -> jax.Array:
            def visit(total: jax.Array, chosen: jax.Array, signals: jax.Array, is_user: jax.Array) -> jax.Array:
                rows = residual[signals] + values[chosen][:, None] * atom[None, :]
                return total + jnp.where(is_user, rows @ v, 0) @ rows

            return fold(visit, jnp.zeros_like(atom))

        def correlate(total: jax.Array, chosen: jax.Array, signals: jax.Array, is_user: jax.Array) -> jax.Array:
            g = jnp.where(is_user, values[chosen], 0)
            return total + g @ residual[signals] + (g @ g) * atom

        def replace(state: Any, chosen: jax.Array, signals: jax.Array, is_user: jax.Array) -> Any:
            values, residual = state
            g = jnp.where(is_user, values[chosen], 0)
            changed = jnp.where(is_user, residual[signals] @ new + g * (atom @ new), 0)
            residual = residual.at[signals].add(g[:, None] * atom[None, :] - changed[:, None] * new[None, :])
            return values.at[jnp.where(is_user, chosen, n * sparsity)].set(changed, mode="drop"), residual

        found = update(normal, fold(correlate, jnp.zeros_like(atom)))
        new = jnp.where((found != 0).any(), found, atom)
        return fold(replace, (values, residual)), new

    starts = jnp.concatenate([jnp.zeros(1, jnp.int32), ends[:-1]])
    start = book.codes.values.reshape(-1), book.residual
    (values, residual), atoms = jax.lax.scan(step, start, (book.atoms, starts, ends))
    return Codebook(atoms, book.codes._replace(values=values.reshape(n, sparsity)), residual)


def approximate(normal: Normal, first: jax.Array) -> jax.Array:  # noqa: ARG001 - one signature for all updates
    """`R'g / |R'g|`: the best atom for the coefficients as they are."""
    return distances.normalize(first)


def exact(normal: Normal, first: jax.Array) -> jax.Array:
    """The leading right singular vector of R, by Lanczos steps on R'R from R'g, restarted until it settles."""
    eps = machine.eps(first.dtype)

    def running(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        _, error, step = state
        return (error > 16 * eps) & (step < _MAX_RESTARTS)

    def restart(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        vector, error = _ritz(normal, state[0])
        return vector, error, state[2] + 1

    start = distances.normalize(first), jnp.where((first != 0).any(), jnp.inf, 0).astype(first.dtype), jnp.int32(0)
    return jax.lax.while_loop(running, restart, start)[0]


def count_users(codes: SparseCode, *, num_atoms: int) -> jax.Array:
    """How many signals use each atom, int32 `[k]`."""
    place = jnp.where(codes.values != 0, codes.indices, num_atoms).reshape(-1)
    return jax.ops.segment_sum(jnp.ones_like(place), place, num_atoms)


def _users(codes: SparseCode, *, num_atoms: int) -> tuple[jax.Array, jax.Array]:
    """Places in the flat codes sorted by atom, padded by a chunk, and where the users of each atom end."""
    place = jnp.where(codes.values != 0, codes.indices, num_atoms).reshape(-1)
    entries = jnp.argsort(place, stable=True).astype(jnp.int32)
    ends = jnp.cumsum(count_users(codes, num_atoms=num_atoms), dtype=jnp.int32)
    return jnp.pad(entries, (0, _CHUNK)), ends


def _ritz(normal: Normal, start: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The best vector for R'R in the Krylov space of a unit vector, and `|R'R v - l v| / l`."""

    def grow(basis: jax.Array, step: jax.Array) -> tuple[jax.Array, jax.Array]:
        product = normal(basis[step])
        beyond = product
        for _ in range(2):  # once more against rounding
            beyond = beyond - (basis @ beyond) @ basis
        # In an invariant space only rounding is left, and that is no direction.
        is_new = distances.norm(beyond) > 16 * machine.eps(start.dtype) * distances.norm(product)
        return basis.at[step + 1].set(jnp.where(is_new, distances.normalize(beyond), 0), mode="drop"), product

    basis = jnp.zeros((_KRYLOV_DIM, start.shape[0]), start.dtype).at[0].set(start)
    basis, products = jax.lax.scan(grow, basis, jnp.arange(_KRYLOV_DIM, dtype=jnp.int32))
    projected = basis @ products.T
    weights = jnp.linalg.eigh((projected + projected.T) / 2)[1][:, -1]
    weights = weights * jnp.where(weights[0] < 0, -1, 1)
    vector, product = weights @ basis, weights @ products
    value = vector @ product
    error = jnp.linalg.norm(product - value * vector) / jnp.where(value > 0, value, 1)
    return distances.normalize(vector), error
