"""Rows D: orthogonal matching pursuit of many signals, and an iteration of K-SVD."""

import importlib
import time
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from benchmarks.rows import Row, Timed, speedup
from jaxface.sparse import ksvd, omp
from jaxface.sparse.dictionary import Dictionary, SparseCode

_SEED = 20260711
_SIGNALS, _DIM, _ATOMS = 4096, 1440, 2048
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


def _spams(problem: Problem, sparsity: int) -> np.ndarray:
    spams = importlib.import_module("spams")
    columns = np.asfortranarray(problem.x.T)
    return np.asarray(spams.omp(columns, np.asfortranarray(problem.atoms), L=sparsity, numThreads=-1).todense()).T


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


def _sweep(problem: Problem) -> tuple[Any, Any]:
    return ksvd.trace(problem.x, problem.dictionary, sparsity=10, num_iters=1, max_coherence=1.0, min_users=0)


def _package(data: Iteration) -> np.ndarray:
    learner = importlib.import_module("ksvd").ApproximateKSVD(
        n_components=_ATOMS, max_iter=1, transform_n_nonzero_coefs=10
    )
    return np.asarray(learner.fit(data.problem.x).components_.T)


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


def _errors(data: Iteration, ours: Any, theirs: np.ndarray) -> str:
    """That package starts from a dictionary of its own: errors are compared."""
    left = float(np.linalg.norm(data.problem.x) ** 2)
    found = float(ours[1].codebook_error[0]) / left
    rebuilt = _dense(_coded(Problem(data.problem.x, theirs, Dictionary(atoms=jnp.asarray(theirs))), 10), _SIGNALS)
    expected = float(np.linalg.norm(data.problem.x - rebuilt @ theirs.T) ** 2) / left
    assert abs(found - expected) < 0.1, f"relative errors {found:.3f} and {expected:.3f}"
    return f"relative errors {found:.3f} and {expected:.3f}"


def _pursuit_row(name: str, sparsity: int, peer: str, theirs: Any, target: float, packages: tuple[str, ...]) -> Row:
    return Row(
        name=name,
        work=f"OMP, {_SIGNALS:,} signals, {_DIM:,} dims, {_ATOMS:,} atoms, {sparsity} a signal, Gram included",
        peer=peer,
        dtype="float32",
        data=_problem,
        ours=lambda problem: _coded(problem, sparsity),
        theirs=lambda problem: theirs(problem, sparsity),
        agree=_same_codes,
        target=speedup(at_least=target),
        packages=packages,
    )


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
    )


ROWS = (
    _pursuit_row("D1.10", 10, "SPAMS, C++", _spams, 2.0, ("spams",)),
    _pursuit_row("D1.20", 20, "SPAMS, C++", _spams, 1.5, ("spams",)),
    _pursuit_row("D2.10", 10, _SLOW, _scikit_learn, 40.0, ("scikit-learn",)),
    _pursuit_row("D2.20", 20, _SLOW, _scikit_learn, 20.0, ("scikit-learn",)),
    _iteration_row("D3", "package ksvd, ApproximateKSVD", _package, _errors, ("ksvd",)),
    _iteration_row(
        "D3.numpy", "its algorithm in NumPy with scikit-learn's codes, timed as in D2", _in_numpy, _same_atoms,
        ("scikit-learn",),
    ),
)  # fmt: skip
