"""Orthogonal matching pursuit (Algorithm 1) by inner products alone: Batch-OMP.

    min |y - D x|^2  with at most s entries of x other than zero, one atom at a time

A step takes the atom of largest `|d_j' r| / |d_j|`, the lowest index among equals and never one twice, and moves the
residual r to be orthogonal to all atoms taken. With `G = D'D` the residual itself is not needed:

    D'r = D'y - G_I x_I        x_I = M'M D_I'y        |r|^2 = |y|^2 - sum_t c_t^2,   c = M D_I'y

M is the inverse of the Cholesky factor of G_II and grows by a row a step. Atoms may have any length: the pursuit runs
on unit atoms, and the coefficients are rescaled to the atoms as they came.

A pursuit ends early if the residual is at most `tol |y|`, if no atom correlates with it beyond rounding, or if the best
atom depends linearly on the chosen ones. `|r|` comes from differences of squares, so a `tol` below sqrt(eps) has no
effect.

Under differentiation the choice of atoms is constant, and the values have the first derivatives of the least squares on
the chosen atoms.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, machine, search
from jaxface.linalg import distances, scaling
from jaxface.sparse.dictionary import (
    Dictionary,
    KernelDictionary,
    SparseCode,
    check_dictionary,
    check_sparsity,
    unit_atoms,
    weighted_sum,
)

__all__ = ["batch_encoder", "encode_batch"]

BLOCK_SIZE = 512  # signals in flight: their correlations with 2,048 atoms fit the cache
_WIDTH_STEP = 5  # widths of the sums that are compiled are multiples of it
_GROUP = 64  # the largest correlation is found in two stages, groups first
_ROUNDING = 32  # correlations below this many roundings of |y| are none


class Atoms(NamedTuple):
    """The products with k unit atoms that a pursuit needs."""

    left: Callable[[jax.Array, jax.Array, jax.Array, jax.Array], jax.Array]  # (D'y [k], I [s], x [s], t) -> D'r [k]
    inner: Callable[[jax.Array], jax.Array]  # I [s] -> D_I'D_I [s, s]
    inner_with: Callable[[jax.Array, jax.Array], jax.Array]  # (I [s], j) -> D_I'd_j [s]


class _Pursuit(NamedTuple):
    """State after some steps; entries of later steps are zero."""

    support: jax.Array  # int32 [s]
    inverse: jax.Array  # [s, s], M
    coordinates: jax.Array  # [s], c
    energy: jax.Array  # [], |r|^2
    is_running: jax.Array  # bool []


def encode(dictionary: Dictionary, x: ArrayLike, *, sparsity: int, tol: ArrayLike = 0.0) -> SparseCode:
    """The code of one signal x `[d]`. No Gram matrix is made: a step costs a product with the dictionary.

    NaN is refused. Inside a transformation values cannot be checked: there NaN gives indices -1 and values NaN.
    """
    check_dictionary(dictionary, x, "d", sparsity)
    checks.between("tol", tol, 0.0, 1.0)
    return _encode(dictionary, jnp.asarray(x), tol, sparsity=sparsity)


@partial(jax.jit, static_argnames="sparsity")
def _encode(dictionary: Dictionary, x: jax.Array, tol: ArrayLike, *, sparsity: int) -> SparseCode:
    unit, length = unit_atoms(dictionary.atoms)
    atoms = Atoms(
        left=lambda correlations, support, values, _: correlations - weighted_sum(unit.T, support, values) @ unit,
        inner=lambda support: unit[:, support].T @ unit[:, support],
        inner_with=lambda support, atom: unit[:, atom] @ unit[:, support],
    )
    return _coder(atoms, lambda signal: signal @ unit, unit, length, sparsity, tol)(x)


def encode_batch(
    dictionary: Dictionary, x: ArrayLike, *, sparsity: int, tol: ArrayLike = 0.0, block_size: int = BLOCK_SIZE
) -> SparseCode:
    """The codes `[n, s]` of signals x `[n, d]`: the Gram matrix once, then `block_size` signals at a time."""
    check_dictionary(dictionary, x, "n d", sparsity)
    checks.between("tol", tol, 0.0, 1.0)
    checks.at_least("block_size", block_size, 1)
    return _encode_batch(dictionary, jnp.asarray(x), tol, sparsity=sparsity, block_size=block_size)


@partial(jax.jit, static_argnames=("sparsity", "block_size"))
def _encode_batch(
    dictionary: Dictionary, x: jax.Array, tol: ArrayLike, *, sparsity: int, block_size: int
) -> SparseCode:
    return blocks.map_rows(batch_encoder(dictionary, sparsity=sparsity, tol=tol), x, block_size=block_size)


def batch_encoder(dictionary: Dictionary, *, sparsity: int, tol: ArrayLike = 0.0) -> Callable[[jax.Array], SparseCode]:
    """A function of one signal `[d]` that holds the Gram matrix: to be mapped over many inside one program."""
    unit, length = unit_atoms(dictionary.atoms)
    return _coder(_atoms_of(unit.T @ unit), lambda x: x @ unit, unit, length, sparsity, tol)


def unit_encoder(rows: jax.Array, gram: jax.Array, *, sparsity: int) -> Callable[[jax.Array], SparseCode]:
    """`batch_encoder` for atoms of length one as rows `[k, d]`, whose Gram matrix `[k, k]` is known."""

    def correlate(x: jax.Array) -> jax.Array:  # not `x @ rows.T`, of which XLA makes a copy
        return jax.lax.dot_general(x, rows, (((0,), (1,)), ((), ())))

    return _coder(_atoms_of(gram), correlate, jnp.diagonal(gram), jnp.ones(rows.shape[0], rows.dtype), sparsity, 0.0)


def _coder(
    atoms: Atoms,
    correlate: Callable[[jax.Array], jax.Array],
    numbers: jax.Array,
    length: jax.Array,
    sparsity: int,
    tol: ArrayLike,
) -> Callable[[jax.Array], SparseCode]:
    """The code of one signal on unit atoms with `D'x` by `correlate`, rescaled to atoms of the length `[k]`.

    The pursuit runs in a unit of the signal's own. Codes are NaN if any of the `numbers`, of the atoms, is not finite.
    """
    nothing = jnp.where(jnp.isfinite(numbers).all(), 0, jnp.nan).astype(numbers.dtype)

    def code(x: jax.Array) -> SparseCode:
        power = scaling.exponent(x)
        x = scaling.shifted(x, -power)
        found = _pursue(atoms, correlate(x), x @ x + nothing, sparsity=sparsity, tol=tol)
        return _rescaled(found._replace(values=scaling.shifted(found.values, power)), length)

    return code


def encode_gram(
    gram: ArrayLike, correlations: ArrayLike, energy: ArrayLike, *, sparsity: int, tol: ArrayLike = 0.0
) -> SparseCode:
    """The code of a signal y known by inner products only: gram `D'D` `[k, k]`, correlations `D'y` `[k]`, `|y|^2`."""
    sizes = checks.samples(gram=(gram, "k k"), correlations=(correlations, "k"), energy=(energy, ""))
    check_sparsity(sparsity, sizes["k"])
    checks.between("tol", tol, 0.0, 1.0)
    return _encode_gram(jnp.asarray(gram), jnp.asarray(correlations), jnp.asarray(energy), tol, sparsity=sparsity)


@partial(jax.jit, static_argnames="sparsity")
def _encode_gram(
    gram: jax.Array, correlations: jax.Array, energy: jax.Array, tol: ArrayLike, *, sparsity: int
) -> SparseCode:
    energy = jnp.where(jnp.isfinite(gram).all() & jnp.isfinite(correlations).all(), energy, jnp.nan)
    length = distances.safe_sqrt(jnp.diagonal(gram))
    length = jnp.where(length > 0, length, 1)
    atoms = _atoms_of(gram / length[:, None] / length[None, :])
    return _rescaled(_pursue(atoms, correlations / length, energy, sparsity=sparsity, tol=tol), length)


def kernel_encode(dictionary: KernelDictionary, x: ArrayLike, *, sparsity: int, tol: ArrayLike = 0.0) -> SparseCode:
    """(3): the code of `Phi(x)` for one image x `[d]`, from its n kernel values; vmap it for a batch."""
    checks.shapes(train=(dictionary.train, "n d"), coefficients=(dictionary.coefficients, "n k"), x=(x, "d"))
    checks.floating(x=x)
    checks.finite(x=x, train=dictionary.train, coefficients=dictionary.coefficients)
    row = jnp.asarray(x)[None, :]
    correlations = dictionary.kernel(row, dictionary.train)[0] @ dictionary.coefficients
    energy = dictionary.kernel(row, row)[0, 0]
    return encode_gram(dictionary.gram, correlations, energy, sparsity=sparsity, tol=tol)


def _atoms_of(gram: jax.Array) -> Atoms:
    """Unit atoms by their Gram matrix `[k, k]`."""

    def left(correlations: jax.Array, support: jax.Array, values: jax.Array, step: jax.Array) -> jax.Array:
        # Compile one sum per support width (multiples of 5): a single full-width sum would add zeros half of the time.
        most = support.shape[0] - 1
        sums = [partial(_without, width=min(width, most)) for width in range(0, most + _WIDTH_STEP, _WIDTH_STEP)]
        return jax.lax.switch((step + _WIDTH_STEP - 1) // _WIDTH_STEP, sums, correlations, gram, support, values)

    return Atoms(
        left=left,
        inner=lambda support: gram[support[:, None], support[None, :]],
        inner_with=lambda support, atom: gram[atom, support],
    )


def _without(
    correlations: jax.Array, gram: jax.Array, support: jax.Array, values: jax.Array, *, width: int
) -> jax.Array:
    return correlations - weighted_sum(gram, support[:width], values[:width])


def _pursue(atoms: Atoms, correlations: jax.Array, energy: jax.Array, *, sparsity: int, tol: ArrayLike) -> SparseCode:
    """The code on unit atoms, of a signal with `D'y` `[k]` and `|y|^2` `[]`."""
    constant = jax.lax.stop_gradient
    total = constant(energy).astype(correlations.dtype)
    start = _Pursuit(
        support=jnp.zeros(sparsity, jnp.int32),
        inverse=jnp.zeros((sparsity, sparsity), correlations.dtype),
        coordinates=jnp.zeros(sparsity, correlations.dtype),
        energy=total,
        is_running=jnp.asarray(True),
    )
    extend = partial(_extend, atoms, constant(correlations), total, jnp.asarray(tol, correlations.dtype))
    steps = jnp.arange(sparsity, dtype=jnp.int32)
    end, _ = jax.lax.scan(lambda state, step: (constant(extend(state, step)), None), start, steps)
    values = end.coordinates @ end.inverse
    # One step of iterative refinement: it reduces rounding, and its derivatives are those of the least squares.
    error = correlations[end.support] - atoms.inner(end.support) @ values
    is_known = jnp.isfinite(total)
    values = jnp.where(is_known, values + (end.inverse @ error) @ end.inverse, jnp.nan)
    return SparseCode(jnp.where(is_known, end.support, -1), values)


def _extend(
    atoms: Atoms, correlations: jax.Array, energy: jax.Array, tol: jax.Array, state: _Pursuit, step: jax.Array
) -> _Pursuit:
    """One atom more, unless the pursuit has ended."""
    sparsity, k = state.support.shape[0], correlations.shape[0]
    steps = jnp.arange(sparsity, dtype=jnp.int32)
    left = atoms.left(correlations, state.support, state.coordinates @ state.inverse, step)
    # Zero the correlations of chosen atoms, so that rounding cannot select one twice.
    left = left.at[jnp.where(steps < step, state.support, k)].set(0, mode="drop")
    atom = _largest(left)
    along = state.inverse @ atoms.inner_with(state.support, atom)  # coordinates in the span of the atoms taken
    beyond = 1 - along @ along
    rounding = _ROUNDING * machine.eps(correlations.dtype)
    is_running = (
        state.is_running
        & (jnp.abs(left[atom]) > rounding * jnp.sqrt(energy))
        & (beyond > sparsity * rounding)
        & (state.energy > tol**2 * energy)
    )
    scale = jnp.where(is_running, jax.lax.rsqrt(jnp.where(is_running, beyond, 1)), 0)
    coordinate = left[atom] * scale
    row = ((steps == step).astype(scale.dtype) - along @ state.inverse) * scale
    return _Pursuit(
        support=state.support.at[step].set(jnp.where(is_running, atom, 0)),
        inverse=state.inverse.at[step].set(row),
        coordinates=state.coordinates.at[step].set(coordinate),
        energy=jnp.maximum(state.energy - coordinate**2, 0),
        is_running=is_running,
    )


def _largest(correlations: jax.Array) -> jax.Array:
    """The place of the largest `|c_j|` of c `[k]`, the first among equals: its group, then its place there.

    Two stages read all of c once; a plain argmax of k numbers takes three times as long.
    """
    k = correlations.shape[0]
    groups = jnp.pad(correlations, (0, -k % _GROUP)).reshape(-1, _GROUP)
    group = search.first_min(-jnp.abs(groups).max(axis=1))
    return group * _GROUP + search.first_min(-jnp.abs(groups[group]))


def _rescaled(code: SparseCode, length: jax.Array) -> SparseCode:
    """Coefficients for atoms of length `length` from those for unit atoms."""
    return SparseCode(code.indices, code.values / length[code.indices])
