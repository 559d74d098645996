"""Row R: a committee of LDA members on random subspaces against a loop over scikit-learn's LDA."""

import importlib
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks import floors
from benchmarks.rows import Row, speedup
from jaxface.ensembles import lda_member, log_posteriors, sampling

_MEMBERS, _SAMPLES, _CLASSES, _AXES = 100, 2000, 200, 599
_SEED = 20260711


class Problem(NamedTuple):
    """Principal coordinates of a training set and of as many probes, and the axes of every member."""

    y: np.ndarray  # [n, p]
    labels: np.ndarray  # int32 [n]
    probes: np.ndarray  # [n, p]
    axes: np.ndarray  # int32 [m, 100]


def _problem() -> Problem:
    rng = np.random.default_rng(_SEED)
    labels = np.repeat(np.arange(_CLASSES, dtype=np.int32), _SAMPLES // _CLASSES)
    scale = np.geomspace(3.0, 0.03, 2 * _AXES)
    # People near each other, so that posteriors are neither 0 nor 1 and a comparison of them says something.
    centers = 0.35 * rng.normal(size=(_CLASSES, len(scale)))
    train, probes = (((rng.normal(size=(_SAMPLES, len(scale))) + centers[labels]) * scale) for _ in range(2))
    mean = train.mean(axis=0)
    _, values, axes = np.linalg.svd(train - mean, full_matrices=False)
    y, probes = (((x - mean) @ axes[:_AXES].T).astype(np.float32) for x in (train, probes))
    drawn = sampling.feature_subspaces(
        jax.random.key(0), values[:_AXES] ** 2, num_members=_MEMBERS, num_fixed=50, num_random=50
    )
    return Problem(y, labels, probes, np.asarray(drawn))


def _ours(problem: Problem) -> jax.Array:
    """Fit of all members and their posteriors."""
    # S_w / n is what scikit-learn's solvers take.
    members, _ = lda_member.fit(problem.y, problem.labels, problem.axes, num_classes=_CLASSES, unbiased=False)
    return log_posteriors(members, problem.probes, posterior=lda_member.gaussian)


def _loop(problem: Problem, solver: str) -> np.ndarray:
    lda = importlib.import_module("sklearn.discriminant_analysis").LinearDiscriminantAnalysis
    found = []
    for axes in problem.axes:
        model = lda(solver=solver, priors=np.full(_CLASSES, 1 / _CLASSES))
        model.fit(problem.y[:, axes], problem.labels)
        found.append(model.predict_log_proba(problem.probes[:, axes]))
    return np.stack(found)


def _same_posteriors(_: Problem, ours: Any, theirs: np.ndarray) -> str:
    worst = float(np.abs(np.exp(np.asarray(ours)) - np.exp(theirs)).max())
    assert worst < 2e-3, f"posteriors differ by {worst:.1e}"
    return f"all {theirs.size:,} posteriors, to {worst:.0e}"


def _row(solver: str, target: float) -> Row:
    return Row(
        name=f"R1.{solver}",
        work=f"{_MEMBERS} LDA members, {_SAMPLES:,} samples, PCA {_AXES}, 50 + 50 dims, {_CLASSES} classes: "
        f"fit and posteriors of {_SAMPLES:,}",
        peer=f"loop over scikit-learn's LDA, solver {solver}",
        dtype="float32",
        data=_problem,
        ours=_ours,
        theirs=lambda problem: _loop(problem, solver),
        agree=_same_posteriors,
        target=speedup(at_least=target),
        packages=("scikit-learn",),
        floor=lambda problem: floors.committee(problem.y, problem.probes, problem.axes, num_classes=_CLASSES),
        floor_work="the scatter once; of each member its Cholesky factor, one product and the log posteriors, written",
    )


ROWS = (_row("svd", 30.0), _row("lsqr", 50.0))
