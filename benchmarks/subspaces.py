"""Rows N: NP-PER, its kernel form and RCA against the eigen-analysis one would write in NumPy."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import floors
from benchmarks.rows import Row, speedup
from jaxface.data import groups as data_groups
from jaxface.linalg import gram
from jaxface.subspace import LinearMap, compose, kernel_np_per, np_per, pca, rca

_SEED = 20260711
_EPS = float(np.finfo(np.float64).eps)


class Problem(NamedTuple):
    """Samples in groups."""

    x: np.ndarray  # [n, d]
    groups: np.ndarray  # int32 [n]
    num_groups: int


class Draws(NamedTuple):
    """Many groupings of the same samples."""

    x: np.ndarray  # [n, d]
    rows: np.ndarray  # int64 [m, k]
    groups: np.ndarray  # int32 [m, k]
    num_groups: int


def _samples(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Samples whose spectrum falls as that of faces does, about a mean."""
    spectrum = np.arange(1, n + 1) ** -0.7
    return (rng.normal(size=(n, n)) * spectrum) @ rng.normal(size=(n, d)) + 0.5


def _problem(n: int, d: int, num_groups: int) -> Problem:
    rng = np.random.default_rng(_SEED)
    return Problem(_samples(rng, n, d), rng.permutation(n).astype(np.int32) % num_groups, num_groups)


def _within(x: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
    sums = np.zeros((num_groups, x.shape[1]))
    np.add.at(sums, groups, x)
    return x - (sums / np.bincount(groups, minlength=num_groups)[:, None])[groups]


def _ours(problem: Problem) -> LinearMap:
    return np_per.fit_dual(problem.x, problem.groups, num_groups=problem.num_groups)[0]


def _by_scatters(problem: Problem) -> np.ndarray:
    """As the paper has it: eigenvectors of the d x d total scatter, then of the projected scatter within groups."""
    centered = problem.x - problem.x.mean(axis=0)
    values, vectors = np.linalg.eigh(centered.T @ centered)
    outside = vectors[:, values > len(values) * _EPS * values[-1]]
    within = _within(problem.x, problem.groups, problem.num_groups) @ outside
    spread, axes = np.linalg.eigh(within.T @ within)
    return outside @ axes[:, spread < len(values) * _EPS * spread[-1]]


def _by_thin_svd(problem: Problem) -> np.ndarray:
    """The same without a d x d matrix: SVD of the centred samples, then of the deviations in their coordinates."""
    left, values, right = np.linalg.svd(problem.x - problem.x.mean(axis=0), full_matrices=False)
    rank = int((values > len(values) * _EPS * values[0]).sum())
    within = _within(left[:, :rank] * values[:rank], problem.groups, problem.num_groups)
    _, spread, axes = np.linalg.svd(within, full_matrices=False)
    return right[:rank].T @ axes[spread < len(values) * _EPS * spread[0]].T


def _same_subspace(_: Problem, ours: LinearMap, theirs: np.ndarray) -> str:
    return _angle(np.asarray(ours.basis), theirs)


def _angle(ours: np.ndarray, theirs: np.ndarray) -> str:
    assert ours.shape == theirs.shape, f"{ours.shape[1]} directions against {theirs.shape[1]}"
    angle = float(np.linalg.norm(ours - theirs @ (theirs.T @ ours), 2))
    assert angle < 1e-6, f"the subspaces are {angle:.1e} apart"
    return f"{theirs.shape[1]} directions, sine of the largest angle {angle:.0e}"


_REASONS = {
    "N3.kernel": "a second triangular solve, a QR of the directions, and the means of the kernel for the centred map",
    "N3.rca": "the passes of the power iteration, each with more columns than axes and a QR, and an SVD at the end",
    "N4": "a QR of the differences of every draw before its basis",
}


def _numpy_row(
    name: str, work: str, peer: str, data: Any, sides: tuple[Any, Any, Any], target: float, floor: tuple[Any, str]
) -> Row:
    """A row in float64 against NumPy; sides: ours, theirs, and the check that they agree; floor: and what it does."""
    ours, theirs, agree = sides
    return Row(
        name=name,
        work=work,
        peer=peer,
        dtype="float64",
        data=data,
        ours=ours,
        theirs=theirs,
        agree=agree,
        target=speedup(at_least=target),
        packages=("numpy",),
        x64=True,
        floor=floor[0],
        floor_work=floor[1],
        reason=_REASONS.get(name, ""),
    )


_FLOOR = (
    lambda problem: floors.null_space(problem.x, num_directions=problem.num_groups - 1),
    "the Gram matrix of the samples, its Cholesky factor, and one product for the directions",
)


def _linear_row(name: str, size: tuple[int, int, int], peer: str, theirs: Callable[..., Any], target: float) -> Row:
    n, d, num_groups = size
    work = f"NP-PER, {n:,} samples of {d:,} dimensions in {num_groups} groups"
    return _numpy_row(name, work, peer, lambda: _problem(*size), (_ours, theirs, _same_subspace), target, _FLOOR)


_BANDWIDTH = 60.0


def _kernel_ours(problem: Problem) -> jax.Array:
    kernel = gram.gaussian(bandwidth=_BANDWIDTH)
    return kernel_np_per.fit(kernel, problem.x, problem.groups, num_groups=problem.num_groups)[0].coefficients


def _kernel_by_scatters(problem: Problem) -> np.ndarray:
    """Section 4.5: the kernel vectors, the eigenvectors of their total scatter, those of the projected one within."""
    x = problem.x - problem.x.mean(axis=0)
    lengths = (x * x).sum(axis=1)
    squared = np.maximum(lengths[:, None] + lengths[None, :] - 2 * x @ x.T, 0)
    return _by_scatters(problem._replace(x=np.exp(-squared / (2 * _BANDWIDTH**2))))


def _same_coefficients(_: Problem, ours: jax.Array, theirs: np.ndarray) -> str:
    return _angle(np.asarray(ours), theirs)


_RCA_COMPONENTS = 100


def _rca_ours(problem: Problem) -> np.ndarray:
    """The leading axes by random directions, RCA in them, and one map for both."""
    axes, _ = pca.fit_randomized(jax.random.key(0), jnp.asarray(problem.x), num_components=_RCA_COMPONENTS)
    y = (problem.x - axes.mean[None, :]) @ axes.basis
    inner, _ = rca.fit(y, problem.groups, num_groups=problem.num_groups)
    return np.asarray(compose(axes, inner).basis)


def _rca_by_covariances(problem: Problem) -> np.ndarray:
    """What metric-learn does for fewer components than dimensions: `eig` of `C_t^-1 C_w`, then the inverse root."""
    inner = np.cov(_within(problem.x, problem.groups, problem.num_groups), rowvar=False, bias=True)
    ratio = np.linalg.lstsq(np.cov(problem.x, rowvar=False), inner, rcond=None)[0]
    values, vectors = np.linalg.eig(ratio)
    basis = vectors[:, np.argsort(values.real)[:_RCA_COMPONENTS]].real
    spread, axes = np.linalg.eigh(basis.T @ inner @ basis)
    return basis @ (axes / np.sqrt(spread)) @ axes.T


def _both_white(problem: Problem, ours: np.ndarray, theirs: np.ndarray) -> str:
    """They reduce the dimension differently, so what agrees is what both promise."""
    within = _within(problem.x, problem.groups, problem.num_groups) / np.sqrt(len(problem.x))
    covariances = [(within @ basis).T @ (within @ basis) for basis in (ours, theirs)]
    worst = float(np.max([np.abs(covariance - np.eye(_RCA_COMPONENTS)).max() for covariance in covariances]))
    assert worst < 1e-6, f"a covariance within groups is {worst:.1e} away from the identity"
    return f"both whiten the scatter within groups, to {worst:.0e}"


def _draws() -> Draws:
    """40 people with 6 images of 48 x 48 pixels, 100 random draws of groups of two."""
    rng = np.random.default_rng(_SEED)
    labels = np.repeat(np.arange(40), 6)
    rows, ids = data_groups.kept_rows(data_groups.random_groups(labels, group_size=2, rng=rng, num_draws=100))
    return Draws(_samples(rng, 240, 2304), rows, ids, 120)


@jax.jit
def _fit_draws(x: jax.Array, rows: jax.Array, groups: jax.Array) -> jax.Array:
    """Fits in the coordinates of the span of all images, and the maps from pixels."""
    span, _ = pca.fit(x, num_components=len(x) - 1)
    y = (x - span.mean[None, :]) @ span.basis
    maps, _ = jax.vmap(lambda kept, ids: np_per.fit(y[kept], ids, num_groups=120))(rows, groups)
    return jax.vmap(compose, in_axes=(None, 0))(span, maps).basis


def _draws_ours(draws: Draws) -> jax.Array:
    return _fit_draws(jnp.asarray(draws.x), jnp.asarray(draws.rows), jnp.asarray(draws.groups))


def _draws_loop(draws: Draws) -> np.ndarray:
    """One thin QR of differences a draw."""
    bases = []
    for kept, groups in zip(draws.rows, draws.groups, strict=True):
        x = draws.x[kept]
        first = np.unique(groups, return_index=True)[1]
        others = np.setdiff1d(np.arange(len(x)), first)
        differences = np.concatenate([x[others] - x[first[groups[others]]], x[first[1:]] - x[first[0]]])
        bases.append(np.linalg.qr(differences.T)[0][:, len(others) :])
    return np.stack(bases)


def _same_draws(_: Draws, ours: jax.Array, theirs: np.ndarray) -> str:
    return [_angle(np.asarray(ours[draw]), theirs[draw]) for draw in (0, 50, 99)][-1] + " in the last draw"


_SMALL, _LARGE = (960, 2304, 137), (1500, 5120, 300)

ROWS = (
    _linear_row("N1.eigh", _SMALL, "NumPy, eigenvectors of the d x d scatters", _by_scatters, 15.0),
    _linear_row("N1.svd", _SMALL, "NumPy, two thin SVDs", _by_thin_svd, 8.0),
    _linear_row("N2.eigh", _LARGE, "NumPy, eigenvectors of the d x d scatters", _by_scatters, 50.0),
    _linear_row("N2.svd", _LARGE, "NumPy, two thin SVDs", _by_thin_svd, 7.0),
    _numpy_row(
        "N3.kernel",
        "kernel NP-PER, 1,500 samples of 1,024 dimensions in 300 groups, Gaussian kernel",
        "NumPy, eigenvectors of the two N x N scatters",
        lambda: _problem(1500, 1024, 300),
        (_kernel_ours, _kernel_by_scatters, _same_coefficients),
        6.0,
        (
            lambda problem: floors.kernel_null_space(problem.x, num_directions=problem.num_groups - 1),
            "the kernel matrix, its Cholesky factor, and one triangular solve for the coefficients",
        ),
    ),
    _numpy_row(
        "N3.rca",
        f"RCA to {_RCA_COMPONENTS} components, 2,600 samples of 2,304 dimensions in 260 groups",
        "metric-learn's algorithm in NumPy",
        lambda: _problem(2600, 2304, 260),  # enough for the peer, whose covariance must be invertible
        (_rca_ours, _rca_by_covariances, _both_white),
        15.0,
        (
            lambda problem: floors.leading_axes(problem.x, num_axes=_RCA_COMPONENTS),
            "two products of the samples with 100 columns, and a factorisation of that size",
        ),
    ),
    _numpy_row(
        "N4",
        "NP-PER of 100 draws of groups, 240 images of 2,304 pixels, in one call",
        "NumPy loop over draws, one thin QR each",
        _draws,
        (_draws_ours, _draws_loop, _same_draws),
        5.0,
        (
            lambda draws: floors.drawn_null_spaces(draws.x, num_draws=len(draws.rows), num_directions=119),
            "the Gram matrix of all images once, its Cholesky factor, and the bases of all draws as one product",
        ),
    ),
)
