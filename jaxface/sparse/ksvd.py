"""K-SVD (Algorithm 2): `min |Y - D X|^2` over dictionaries D and codes X with at most s entries a signal.

A sweep codes all signals by OMP, then updates atom after atom with its coefficients (`atom_update`). Atoms without
users, and atoms that nearly repeat an earlier one, are then replaced by the signals with the largest errors, each
signal once.

The codebook stage never raises the error. Coding may: OMP is greedy, and the codes of the last sweep are forgotten.
Only the dictionary is carried from sweep to sweep, so a fit in segments equals one long fit, and any dictionary is a
warm start.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, fitinfo, loops, machine
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.linalg import distances, scaling
from jaxface.sparse import omp
from jaxface.sparse.atom_update import AtomUpdate, Codebook, approximate, count_users, update_atoms
from jaxface.sparse.dictionary import Dictionary, SparseCode, check_dictionary, decode, unit_atoms, weighted_sum

__all__ = ["fit", "init", "trace"]

MAX_COHERENCE = 0.99


_ERRORS = ("coding_error", "codebook_error", "replacement_cost")


class Sweep(NamedTuple):
    """Report of a sweep; errors are `|Y - D X|^2`."""

    coding_error: jax.Array  # [], after OMP
    codebook_error: jax.Array  # [], after the update of the atoms: never larger
    replacement_cost: jax.Array  # [], rise of the error by the replaced atoms; 0 for unused ones
    num_replaced: jax.Array  # int32 []


def init(key: jax.Array, x: ArrayLike, *, num_atoms: int) -> Dictionary:
    """Different signals of x `[n, d]` as atoms of length one; zero signals are taken last, and stay zero."""
    checks.typed_key(key)
    sizes = checks.samples(x=(x, "n d"))
    checks.at_least("num_atoms", num_atoms, 1)
    checks.at_most("num_atoms", num_atoms, sizes["n"], "the number of signals")
    return _init(key, jnp.asarray(x), num_atoms=num_atoms)


@partial(jax.jit, static_argnames="num_atoms")
def _init(key: jax.Array, x: jax.Array, *, num_atoms: int) -> Dictionary:
    # The indices of the largest of independent random numbers are a draw without replacement.
    order = jax.random.uniform(key, x.shape[:1], x.dtype) + (x != 0).any(axis=1)
    _, chosen = jax.lax.top_k(order, num_atoms)
    return Dictionary(atoms=unit_atoms(x[chosen].T)[0])


def fit(
    x: ArrayLike,
    init: Dictionary,
    *,
    sparsity: int,
    num_iters: int,
    tol: float = 0.0,
    atom_update: AtomUpdate = approximate,
    max_coherence: ArrayLike = MAX_COHERENCE,
    min_users: ArrayLike = 1,
    block_size: int = omp.BLOCK_SIZE,
) -> tuple[Dictionary, FitInfo]:
    """A dictionary for x `[n, d]` from `init`; the objective is the error of the codes with which each sweep starts.

    x, init: signals `[n, d]` and the dictionary `[d, k]` of the first sweep
    sparsity: entries of a code, at most
    num_iters, tol: sweeps, at most; the fit ends when the error changes by less than `tol`, relatively
    atom_update: the codebook stage, `approximate` or `exact` of `sparse.atom_update`
    max_coherence: an atom with a cosine above it with an earlier atom is replaced; at 1 none is
    min_users: an atom with fewer signals is replaced
    block_size: signals that are coded at a time

    Replaced atoms are counted in the report. Gradients are stopped.
    """
    _check(x, init, sparsity, max_coherence, min_users, block_size)
    options = {"sparsity": sparsity, "atom_update": atom_update, "block_size": block_size}
    x = jax.lax.stop_gradient(jnp.asarray(x))
    return _fit(x, init, max_coherence, min_users, num_iters=num_iters, tol=tol, **options)


@partial(jax.jit, static_argnames=("sparsity", "num_iters", "tol", "atom_update", "block_size"))
def _fit(
    x: jax.Array,
    init: Dictionary,
    max_coherence: ArrayLike,
    min_users: ArrayLike,
    *,
    sparsity: int,
    num_iters: int,
    tol: float,
    atom_update: AtomUpdate,
    block_size: int,
) -> tuple[Dictionary, FitInfo]:
    def step(state: tuple[Dictionary, jax.Array]) -> tuple[tuple[Dictionary, jax.Array], jax.Array]:
        dictionary, replaced = state
        dictionary, report = _sweep(dictionary, x, max_coherence, min_users, sparsity, atom_update, block_size)
        return (dictionary, replaced + report.num_replaced), report.coding_error

    power = scaling.exponent(x)
    x = scaling.shifted(x, -power)
    start = _constant(init, x), jnp.zeros((), jnp.int32)
    (dictionary, replaced), trace = loops.iterate(step, start, num_iters=num_iters, tol=tol)
    objective = scaling.shifted(trace.objective, 2 * power)
    lost = jnp.isinf(objective).any() | ~fitinfo.all_finite(dictionary)
    status = fitinfo.diagnose((lost, Status.NON_FINITE), otherwise=trace.status)
    return dictionary, fitinfo.iterative(
        status=status, num_iters=trace.num_iters, objective=objective, num_replaced=replaced
    )


def trace(
    x: ArrayLike,
    init: Dictionary,
    *,
    sparsity: int,
    num_iters: int,
    atom_update: AtomUpdate = approximate,
    max_coherence: ArrayLike = MAX_COHERENCE,
    min_users: ArrayLike = 1,
    block_size: int = omp.BLOCK_SIZE,
) -> tuple[Dictionary, Sweep]:
    """`fit` with the report of every sweep, `[t]`: what coding, updating and replacing did to the error."""
    _check(x, init, sparsity, max_coherence, min_users, block_size)
    checks.at_least("num_iters", num_iters, 1)
    options = {"sparsity": sparsity, "atom_update": atom_update, "block_size": block_size}
    x = jax.lax.stop_gradient(jnp.asarray(x))
    return _trace(x, init, max_coherence, min_users, num_iters=num_iters, **options)


@partial(jax.jit, static_argnames=("sparsity", "num_iters", "atom_update", "block_size"))
def _trace(
    x: jax.Array,
    init: Dictionary,
    max_coherence: ArrayLike,
    min_users: ArrayLike,
    *,
    sparsity: int,
    num_iters: int,
    atom_update: AtomUpdate,
    block_size: int,
) -> tuple[Dictionary, Sweep]:
    power = scaling.exponent(x)
    x = scaling.shifted(x, -power)

    def step(dictionary: Dictionary, _: None) -> tuple[Dictionary, Sweep]:
        return _sweep(dictionary, x, max_coherence, min_users, sparsity, atom_update, block_size)

    dictionary, report = jax.lax.scan(step, _constant(init, x), length=num_iters)
    errors = {name: scaling.shifted(value, 2 * power) for name, value in report._asdict().items() if name in _ERRORS}
    return dictionary, report._replace(**errors)


def _sweep(
    dictionary: Dictionary,
    x: jax.Array,
    max_coherence: ArrayLike,
    min_users: ArrayLike,
    sparsity: int,
    atom_update: AtomUpdate,
    block_size: int,
) -> tuple[Dictionary, Sweep]:
    """Coding, codebook, replacement."""
    coded = code_signals(dictionary, x, sparsity=sparsity, block_size=block_size)
    book = update_atoms(coded, atom_update=atom_update)
    too_few = count_users(book.codes, num_atoms=book.atoms.shape[0]) < min_users
    atoms, replaced = replace_atoms(book, x, too_few | is_too_coherent(book.atoms, max_coherence))
    report = Sweep(
        coding_error=(coded.residual**2).sum(),
        codebook_error=(book.residual**2).sum(),
        replacement_cost=_cost(book, replaced),
        num_replaced=replaced.sum(dtype=jnp.int32),
    )
    return Dictionary(atoms=atoms.T), report


@partial(jax.jit, static_argnames=("sparsity", "block_size"))
def code_signals(dictionary: Dictionary, x: jax.Array, *, sparsity: int, block_size: int) -> Codebook:
    """The coding stage: codes `[n, s]` of x `[n, d]` by OMP, and the residual."""
    encoder = omp.batch_encoder(dictionary, sparsity=sparsity)

    def code_one(signal: jax.Array) -> tuple[SparseCode, jax.Array]:
        code = encoder(signal)
        return code, signal - decode(dictionary, code)

    codes, residual = blocks.map_rows(code_one, x, block_size=block_size)
    return Codebook(dictionary.atoms.T, codes, residual)


def is_too_coherent(atoms: jax.Array, max_coherence: ArrayLike) -> jax.Array:
    """Which atoms `[k, d]` (rows) have a cosine above `max_coherence`, of either sign, with an earlier one."""
    cosines = jnp.minimum(jnp.abs(distances.cosine_matrix(atoms, atoms)), 1)  # above 1 by rounding
    return (jnp.tril(cosines, -1) > max_coherence).any(axis=1)


def replace_atoms(book: Codebook, x: jax.Array, is_unfit: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Atoms `[k, d]` after the replacement of the unfit ones, and which atoms `[k]` were replaced."""
    signals, replaced = substitutes(distances.norm(book.residual), distances.norm(x), is_unfit)
    return jnp.where(replaced[:, None], distances.normalize(x[signals]), book.atoms), replaced


def substitutes(errors: jax.Array, lengths: jax.Array, is_unfit: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The signal int32 `[k]` for each unfit atom, and which atoms `[k]` have one.

    The r-th unfit atom becomes the signal with the r-th largest of the errors `[n]`, as long as that is more than
    rounding of the signal's length `[n]`.
    """
    worst, signals = jax.lax.top_k(errors, min(errors.shape[0], is_unfit.shape[0]))
    turn = jnp.cumsum(is_unfit) - 1
    taken = jnp.clip(turn, 0, worst.shape[0] - 1)
    rounding = 32 * machine.eps(errors.dtype)
    replaced = is_unfit & (turn < worst.shape[0]) & (worst[taken] > rounding * lengths[signals[taken]])
    return signals[taken], replaced


def _cost(book: Codebook, replaced: jax.Array) -> jax.Array:
    """`|E + F|^2 - |E|^2` with F the part of the signals that the replaced atoms carried."""
    values = jnp.where(replaced[book.codes.indices], book.codes.values, 0)
    carried = jax.vmap(weighted_sum, in_axes=(None, 0, 0))(book.atoms, book.codes.indices, values)
    return ((2 * book.residual + carried) * carried).sum()


def _constant(init: Dictionary, x: jax.Array) -> Dictionary:
    return Dictionary(atoms=jax.lax.stop_gradient(jnp.asarray(init.atoms, x.dtype)))


def _check(
    x: ArrayLike, init: Dictionary, sparsity: int, max_coherence: ArrayLike, min_users: ArrayLike, block_size: int
) -> None:
    check_dictionary(init, x, "n d", sparsity)
    checks.at_least("number of signals", np.shape(x)[0], 1)
    checks.between("max_coherence", max_coherence, 0.0, 1.0, closed_low=False)
    checks.between("min_users", min_users, 0, float("inf"), closed_high=False)
    checks.at_least("block_size", block_size, 1)
