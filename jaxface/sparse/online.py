"""K-SVD's problem on a stream: a dictionary from mini-batches, with memory that does not depend on their number.

Of all signals seen, the error of a dictionary depends on two sums only (their codes held fixed),

    |Y - D X|^2 = |Y|^2 - 2 tr D'B + tr D'D A        A = sum x x' [k, k]      B = sum y x' [d, k]

so a step codes a batch, adds it to the sums, and goes once over the atoms: `d_j += (b_j - D a_j) / A_jj`, then unit
length, with the sums scaled accordingly. Old codes belong to an old dictionary, so before batch t is added the sums are
multiplied by `(1 - 1/t)^forgetting`: at 1 the weight of a batch grows like its number.

The state holds everything: saved and restored after any batch, a stream continues with the same numbers.
"""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.sparse import ksvd, omp
from jaxface.sparse.atom_update import Codebook
from jaxface.sparse.dictionary import Dictionary, SparseCode, as_vector, check_dictionary, unit_atoms

__all__ = ["State", "fit_stream", "init"]


class State(NamedTuple):
    """The dictionary and the sums: all that a stream remembers."""

    dictionary: Dictionary
    code_moment: jax.Array  # [k, k], A
    cross_moment: jax.Array  # [d, k], B
    num_users: jax.Array  # [k], signals that use each atom, forgotten like the sums
    num_batches: jax.Array  # int32 []


class Step(NamedTuple):
    """Report of a batch."""

    relative_error: jax.Array  # [], |Y - D X|^2 / |Y|^2 of the batch, before the update
    num_replaced: jax.Array  # int32 []


def init(dictionary: Dictionary) -> State:
    """The start of a stream from a dictionary, such as that of `ksvd.init` or `ksvd.fit` on a first batch."""
    d, k = dictionary.atoms.shape
    dtype = dictionary.atoms.dtype
    return State(
        dictionary=Dictionary(atoms=unit_atoms(dictionary.atoms)[0]),
        code_moment=jnp.zeros((k, k), dtype),
        cross_moment=jnp.zeros((d, k), dtype),
        num_users=jnp.zeros(k, dtype),
        num_batches=jnp.zeros((), jnp.int32),
    )


def fit_stream(
    state: State,
    batches: Iterable[ArrayLike],
    *,
    sparsity: int,
    forgetting: ArrayLike = 1.0,
    max_coherence: ArrayLike = ksvd.MAX_COHERENCE,
    min_share: ArrayLike = 0.01,
    block_size: int = omp.BLOCK_SIZE,
) -> tuple[State, FitInfo]:
    """Learns from batches `[b, d]`, from the state of a new stream or of an interrupted one; on the host.

    The objective is the relative error of each batch before the update with it. Batches of a few hundred signals are
    best, a few for each atom. Batches of one size are one compiled program; the last one may be filled with rows of
    zeros, which change nothing. The sums have the unit of the squared signals; if they leave the range of their type,
    the status is NON_FINITE.
    """
    steps = []
    for batch in batches:
        state, step = update(
            state,
            batch,
            sparsity=sparsity,
            forgetting=forgetting,
            max_coherence=max_coherence,
            min_share=min_share,
            block_size=block_size,
        )
        steps.append(step)
    if not steps:
        raise ValueError("batches must hold at least one batch; got none. An iterator can be used once only.")
    report: Step = jax.tree.map(lambda *leaves: jnp.stack(leaves), *steps)
    return state, fitinfo.iterative(
        status=fitinfo.or_non_finite(Status.OK, report.relative_error),
        num_iters=len(steps),
        objective=report.relative_error,
        num_replaced=report.num_replaced.sum(dtype=jnp.int32),
    )


def update(
    state: State,
    x: ArrayLike,
    *,
    sparsity: int,
    forgetting: ArrayLike = 1.0,
    max_coherence: ArrayLike = ksvd.MAX_COHERENCE,
    min_share: ArrayLike = 0.01,
    block_size: int = omp.BLOCK_SIZE,
) -> tuple[State, Step]:
    """One batch x `[b, d]`; a batch whose error is not finite does not change the state.

    Atoms with fewer users than `min_share` of the mean, or a cosine above `max_coherence` with an earlier atom, are
    replaced by the signals of the batch with the largest errors, and their sums are set to zero.
    """
    check_dictionary(state.dictionary, x, "b d", sparsity)
    checks.at_least("signals of a batch", np.shape(x)[0], 1)
    checks.between("forgetting", forgetting, 0.0, float("inf"), closed_high=False)
    checks.between("max_coherence", max_coherence, 0.0, 1.0, closed_low=False)
    checks.between("min_share", min_share, 0.0, 1.0)
    checks.at_least("block_size", block_size, 1)
    x = jnp.asarray(x, state.dictionary.atoms.dtype)
    return _update(state, x, forgetting, max_coherence, min_share, sparsity=sparsity, block_size=block_size)


@partial(jax.jit, static_argnames=("sparsity", "block_size"))
def _update(
    state: State,
    x: jax.Array,
    forgetting: ArrayLike,
    max_coherence: ArrayLike,
    min_share: ArrayLike,
    *,
    sparsity: int,
    block_size: int,
) -> tuple[State, Step]:
    before = state
    book = ksvd.code_signals(state.dictionary, x, sparsity=sparsity, block_size=block_size)
    state = _descend(_collect(state, x, book.codes, forgetting))
    too_few = state.num_users < min_share * state.num_users.mean()
    atoms = state.dictionary.atoms.T
    unfit = too_few | ksvd.is_too_coherent(atoms, max_coherence)
    atoms, replaced = ksvd.replace_atoms(Codebook(atoms, book.codes, book.residual), x, unfit)
    report = Step(
        relative_error=_relative_error(book.residual, x),
        num_replaced=replaced.sum(dtype=jnp.int32),
    )
    after = _forget(state._replace(dictionary=Dictionary(atoms=atoms.T)), replaced)
    is_known = jnp.isfinite(report.relative_error)
    return jax.tree.map(lambda new, old: jnp.where(is_known, new, old), after, before), report


def _collect(state: State, x: jax.Array, codes: SparseCode, forgetting: ArrayLike) -> State:
    """The sums after fading them and adding a batch."""
    k = state.num_users.shape[0]
    number = state.num_batches + 1
    fade = (1 - 1 / number.astype(x.dtype)) ** jnp.asarray(forgetting, x.dtype)
    rows = jax.vmap(partial(as_vector, num_atoms=k))(codes)  # [b, k]
    return state._replace(
        code_moment=fade * state.code_moment + rows.T @ rows,
        cross_moment=fade * state.cross_moment + x.T @ rows,
        num_users=fade * state.num_users + (rows != 0).sum(axis=0).astype(x.dtype),
        num_batches=number,
    )


def _relative_error(residual: jax.Array, x: jax.Array) -> jax.Array:
    """`|E|^2 / |Y|^2`; NaN if the sums of squares, of which the state consists, leave the range of the type."""
    energy, largest = (x**2).sum(), jnp.abs(x).max()
    limits = jnp.finfo(x.dtype)
    lost = (largest > 0) & ((largest**2 < limits.tiny / limits.eps**2) | (energy > limits.max * limits.eps))
    relative = (residual**2).sum() / jnp.where(energy > 0, energy, 1)
    return jnp.where(lost, jnp.nan, relative)


def _descend(state: State) -> State:
    """One pass of block coordinate descent on `-2 tr D'B + tr D'D A`, then unit atoms."""
    moment, cross = state.code_moment, state.cross_moment.T

    def move(j: jax.Array, atoms: jax.Array) -> jax.Array:
        energy = moment[j, j]
        step = (cross[j] - moment[j] @ atoms) / jnp.where(energy > 0, energy, 1)
        return atoms.at[j].add(jnp.where(energy > 0, step, 0))

    moved = jax.lax.fori_loop(0, moment.shape[0], move, state.dictionary.atoms.T)
    atoms, length = unit_atoms(moved.T)
    return state._replace(
        dictionary=Dictionary(atoms=atoms),
        code_moment=moment * length[:, None] * length[None, :],
        cross_moment=state.cross_moment * length[None, :],
    )


def _forget(state: State, replaced: jax.Array) -> State:
    """The sums, zero for the atoms `[k]` that were replaced."""
    kept = ~replaced
    return state._replace(
        code_moment=jnp.where(kept[:, None] & kept[None, :], state.code_moment, 0),
        cross_moment=jnp.where(kept[None, :], state.cross_moment, 0),
        num_users=jnp.where(kept, state.num_users, 0),
    )
