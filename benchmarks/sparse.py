"""Rows D: orthogonal matching pursuit of many signals, and an iteration of K-SVD."""

import functools
import importlib
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.rows import Row, Timed, speedup
from jaxface.sparse import ksvd, omp
from jaxface.sparse.dictionary import Dictionary, SparseCode

_SEED = 20260711
_SIGNALS, _DIM, _ATOMS = 4096, 1440, 2048
_CHECKED = 64  # signals whose supports are found a second time
_PART = 512  # signals that the slow peer codes; its time is linear in them


class Problem(NamedTuple):
    """Signals and a dictionary of atoms of length one."""

    x: np.ndarray  # [n, d]
    atoms: np.ndarray  # [d, k]
    dictionary: Dictionary


class Iteration(NamedTuple):
    """A problem, and codes for a peer whose own would take too long."""

    problem: Problem
    codes: np.ndarray  # [n, k]


def _problem() -> Problem:
    rng = np.random.default_rng(_SEED)
    atoms = rng.normal(size=(_DIM, _ATOMS)).astype(np.float32)
    atoms /= np.linalg.norm(atoms, axis=0)
    x = rng.normal(size=(_SIGNALS, _DIM)).astype(np.float32)
    return Problem(x, atoms, Dictionary(atoms=jnp.asarray(atoms)))


def _coded(problem: Problem, sparsity: int) -> SparseCode:
    return omp.encode_batch(problem.dictionary, problem.x, sparsity=sparsity)


def _dense(codes: SparseCode, num: int) -> np.ndarray:
    rows = np.zeros((num, _ATOMS), np.float32)
    np.put_along_axis(rows, np.asarray(codes.indices[:num]), np.asarray(codes.values[:num]), axis=1)
    return rows


@functools.partial(jax.jit, static_argnames="sparsity")
def _floor(x: jax.Array, atoms: jax.Array, sparsity: int) -> jax.Array:
    gram, correlations = atoms.T @ atoms, x @ atoms
    size = jnp.zeros(len(x), x.dtype)
    for _ in range(sparsity):
        # A row of the Gram matrix changes all correlations of a signal, and their largest entry is looked for.
        size = jnp.abs(correlations).max(axis=1)
        correlations = correlations - 1e-3 * size[:, None] * gram[jnp.arange(len(x)) % len(gram)]
    return size


def _pursuit_floor(problem: Problem, sparsity: int) -> jax.Array:
    return _floor(problem.x, problem.dictionary.atoms, sparsity)


def _spams(problem: Problem, sparsity: int) -> np.ndarray:
    """Without `eps` its binding leaves the least error undefined: now and then every code is empty."""
    spams = importlib.import_module("spams")
    columns, atoms = np.asfortranarray(problem.x.T), np.asfortranarray(problem.atoms)
    return np.asarray(spams.omp(columns, atoms, L=sparsity, eps=0.0, numThreads=-1).todense()).T


def _scikit_learn(problem: Problem, sparsity: int) -> Timed:
    """The Gram matrix and all correlations once, then a part of the signals."""
    pursue = importlib.import_module("sklearn.linear_model").orthogonal_mp_gram
    begin = time.perf_counter()
    gram, correlations = problem.atoms.T @ problem.atoms, problem.atoms.T @ problem.x.T
    once = time.perf_counter()
    codes = pursue(gram, correlations[:, :_PART], n_nonzero_coefs=sparsity).T
    end = time.perf_counter()
    return Timed(codes, (once - begin) + (end - once) * _SIGNALS / _PART)


def _same_codes(_: Problem, ours: SparseCode, theirs: np.ndarray) -> str:
    """float32 decides the order of two nearly equal atoms: such signals are few, and counted."""
    expected = np.asarray(theirs)
    found = _dense(ours, len(expected))
    same = ((found != 0) == (expected != 0)).all(axis=1)
    worst = float(np.abs(found - expected)[same].max() / np.abs(expected).max())
    assert same.mean() > 0.99, f"supports agree for {100 * same.mean():.1f} % of the signals only"
    assert worst < 1e-3, f"values differ by {worst:.1e} of the largest"
    return f"supports of {100 * same.mean():.1f} % of {len(expected)} signals, their values to {worst:.0e}"


def _by_decrease(problem: Problem, i: int, sparsity: int) -> set[int]:
    """The atoms of signal i by SPAMS's rule, in float64: each time the atom that leaves the least error.

    Orthogonal matching pursuit takes the atom most correlated with what is left; order-recursive matching pursuit
    divides the correlations by the lengths of what the chosen atoms leave of each atom.
    """
    atoms, left = problem.atoms.astype(np.float64), problem.x[i].astype(np.float64)
    lengths = np.ones(_ATOMS)
    chosen: list[int] = []
    directions = np.zeros((0, _DIM))
    for _ in range(sparsity):
        decrease = (left @ atoms) ** 2 / np.maximum(lengths, 1e-12)
        decrease[chosen] = -1
        chosen.append(int(decrease.argmax()))
        direction = atoms[:, chosen[-1]]
        for _ in range(2):  # once more, for the rounding of the first time
            direction = direction - (directions @ direction) @ directions
        direction = direction / np.linalg.norm(direction)
        directions = np.vstack([directions, direction])
        left = left - direction * (direction @ left)
        lengths = lengths - (direction @ atoms) ** 2
    return set(chosen)


def _each_by_its_rule(problem: Problem, ours: SparseCode, theirs: np.ndarray) -> str:
    """SPAMS's `omp` is order-recursive: its supports are checked by that rule, its values where both chose alike.

    Rows D2 compare ours with another orthogonal matching pursuit.
    """
    sparsity = ours.indices.shape[1]
    found = _dense(ours, _SIGNALS)
    right = np.mean([set(np.flatnonzero(theirs[i])) == _by_decrease(problem, i, sparsity) for i in range(_CHECKED)])
    assert right > 0.95, f"only {100 * right:.0f} % of the peer's supports follow the order-recursive rule"
    same = ((found != 0) == (theirs != 0)).all(axis=1)
    worst = float(np.abs(found - theirs)[same].max() / np.abs(theirs).max())
    assert worst < 1e-3, f"values differ by {worst:.1e} of the largest"
    errors = [float(((problem.x - codes @ problem.atoms.T) ** 2).sum(axis=1).mean()) for codes in (found, theirs)]
    assert errors[0] < 1.001 * errors[1], f"mean squared errors {errors[0]:.2f} and {errors[1]:.2f}"
    return (
        f"{100 * right:.0f} % of {_CHECKED} of the peer's supports by its order-recursive rule; both rules agree "
        f"on {100 * same.mean():.1f} % of the signals, there values to {worst:.0e}; mean squared errors "
        f"{errors[0]:.2f} and {errors[1]:.2f}"
    )


def _sweep(problem: Problem) -> tuple[Any, Any]:
    return ksvd.trace(problem.x, problem.dictionary, sparsity=10, num_iters=1, max_coherence=1.0, min_users=0)


def _package(data: Iteration) -> Timed:
    """Its update of the atoms, after the codes of scikit-learn that it asks for; it counts positive codes only."""
    learner = importlib.import_module("ksvd").ApproximateKSVD(
        n_components=_ATOMS, max_iter=1, transform_n_nonzero_coefs=10
    )
    coding = _scikit_learn(data.problem, 10).seconds
    begin = time.perf_counter()
    atoms, _ = learner._update_dict(data.problem.x, data.problem.atoms.T.copy(), data.codes.copy())
    return Timed(atoms.T, coding + time.perf_counter() - begin)


def _in_numpy(data: Iteration) -> Timed:
    """The algorithm of that package: scikit-learn's codes, then atom after atom with `X - codes D` of its users."""
    coding = _scikit_learn(data.problem, 10).seconds
    begin = time.perf_counter()
    atoms, codes = data.problem.atoms.T.copy(), data.codes.copy()
    for j in range(_ATOMS):
        users = np.flatnonzero(codes[:, j])
        if users.size == 0:
            continue
        atoms[j] = 0
        g = codes[users, j]
        left = data.problem.x[users] - codes[users] @ atoms
        atom = left.T @ g
        atoms[j] = atom / np.linalg.norm(atom)
        codes[users, j] = left @ atoms[j]
    return Timed(atoms.T, coding + time.perf_counter() - begin)


def _iteration() -> Iteration:
    problem = _problem()
    return Iteration(problem, _dense(_coded(problem, 10), _SIGNALS))


def _same_atoms(_: Iteration, ours: Any, theirs: np.ndarray) -> str:
    worst = float(np.abs(np.asarray(ours[0].atoms) - theirs).max())
    assert worst < 1e-3, f"atoms differ by {worst:.1e}"
    return f"atoms, to {worst:.0e}"


def _own_atoms(_: Iteration, ours: Any, theirs: np.ndarray) -> str:
    """That package leaves out the users with negative codes: its atoms are others than ours."""
    for atoms in (np.asarray(ours[0].atoms), theirs):
        lengths = np.linalg.norm(atoms, axis=0)
        assert atoms.shape == (_DIM, _ATOMS), f"atoms of shape {atoms.shape}"
        assert np.abs(lengths - 1).max() < 1e-4, "an atom has not length one"
    return "atoms of length one on both sides; it leaves out negative codes, D3.numpy compares the same with all codes"


def _pursuit_row(
    name: str, sparsity: int, peer: str, sides: tuple[Any, Any], target: float, packages: tuple[str, ...]
) -> Row:
    """A row of codes; sides: theirs, and the check."""
    theirs, agree = sides

    return Row(
        name=name,
        work=f"OMP, {_SIGNALS:,} signals, {_DIM:,} dims, {_ATOMS:,} atoms, {sparsity} a signal, Gram included",
        peer=peer,
        dtype="float32",
        data=_problem,
        ours=lambda problem: _coded(problem, sparsity),
        theirs=lambda problem: theirs(problem, sparsity),
        agree=agree,
        target=speedup(at_least=target),
        packages=packages,
        floor=lambda problem: _pursuit_floor(problem, sparsity=sparsity),
        floor_work="the Gram matrix, all correlations, and a pass over the correlations for each atom of a code",
        reason="a step reads the Gram rows of all atoms chosen so far, and extends the factor of those atoms",
    )


_SPAMS = "SPAMS, C++: order-recursive matching pursuit"
_PACKAGE = "package ksvd, ApproximateKSVD: its update, with scikit-learn's codes timed as in D2"
_SLOW = f"scikit-learn orthogonal_mp_gram, Gram once; {_PART} signals timed, times {_SIGNALS // _PART}"
_STEP = f"K-SVD, one iteration, {_SIGNALS:,} signals, {_DIM:,} dims, {_ATOMS:,} atoms, 10 a signal"


def _iteration_row(name: str, peer: str, theirs: Any, agree: Any, packages: tuple[str, ...]) -> Row:
    return Row(
        name=name,
        work=_STEP,
        peer=peer,
        dtype="float32",
        data=_iteration,
        ours=lambda data: _sweep(data.problem),
        theirs=theirs,
        agree=agree,
        target=speedup(at_least=10.0),
        packages=packages,
        floor=lambda data: _pursuit_floor(data.problem, 10),
        floor_work="that of the codes, nothing for the update",
        reason="the update goes through the atoms one after the other, each with the rows of its users",
    )


ROWS = (
    _pursuit_row("D1.10", 10, _SPAMS, (_spams, _each_by_its_rule), 2.0, ("spams-bin",)),
    _pursuit_row("D1.20", 20, _SPAMS, (_spams, _each_by_its_rule), 1.5, ("spams-bin",)),
    _pursuit_row("D2.10", 10, _SLOW, (_scikit_learn, _same_codes), 40.0, ("scikit-learn",)),
    _pursuit_row("D2.20", 20, _SLOW, (_scikit_learn, _same_codes), 20.0, ("scikit-learn",)),
    _iteration_row("D3", _PACKAGE, _package, _own_atoms, ("ksvd",)),
    _iteration_row(
        "D3.numpy", "its algorithm in NumPy with scikit-learn's codes, timed as in D2", _in_numpy, _same_atoms,
        ("scikit-learn",),
    ),
)  # fmt: skip
