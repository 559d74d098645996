"""Rows K: Fastfood against dense random features, and the way back against dense least squares."""

import importlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from benchmarks.rows import Quantity, Row, speedup
from jaxface.features import fastfood, forms, invert_matrix, kitchen_sinks, maps

_ROWS = 4096
_SEED = 20260711


class Expansion(NamedTuple):
    """Vectors, our map, and the peer's draw of its own."""

    x: np.ndarray  # [n, d]
    params: fastfood.Fastfood
    form: forms.RandomPhase
    peer: Any


class Round(NamedTuple):
    """Vectors, their features, and the map: ours and as a matrix."""

    x: np.ndarray  # [n, d]
    features: np.ndarray  # [n, f]
    params: fastfood.Fastfood
    dense: np.ndarray  # [f, d]


def _vectors(d: int) -> np.ndarray:
    """Rows of length about 1: with bandwidth 1 the projections are those of a kernel at work."""
    return (np.random.default_rng(_SEED).normal(size=(_ROWS, d)) / d**0.5).astype(np.float32)


def _map(d: int, num_features: int, bandwidth: float = 1.0) -> fastfood.Fastfood:
    key = jax.random.key(_SEED)
    return fastfood.init(key, input_dim=d, num_features=num_features, bandwidth=bandwidth, dtype=jnp.float32)


def _against_sampler() -> Expansion:
    x = _vectors(1024)
    form = forms.random_phase(jax.random.key(1), num_features=10240, dtype=jnp.float32)
    sampler = (
        importlib.import_module("sklearn.kernel_approximation")
        .RBFSampler(gamma=0.5, n_components=10240, random_state=0)
        .fit(x)
    )
    return Expansion(x, _map(1024, 10240), form, sampler)


def _against_gemm() -> Expansion:
    form = forms.random_phase(jax.random.key(1), num_features=32768, dtype=jnp.float32)
    dense = kitchen_sinks.init(jax.random.key(0), input_dim=4096, num_features=32768, bandwidth=1.0, dtype=jnp.float32)
    return Expansion(_vectors(4096), _map(4096, 32768), form, dense.frequencies.T)


def _features(problem: Expansion) -> jax.Array:
    return maps.feature_matrix(problem.params, problem.x, form=problem.form)


_COSINES = "the cosines of as many numbers as there are features, made on the way and written"


_TRANSFORMS = "two Hadamard transforms, three diagonals and a permutation for each block of features"


@jax.jit
def _cosines_of(x: jax.Array, form: forms.RandomPhase) -> jax.Array:
    return form(jnp.tile(x, (1, form.phases.shape[0] // x.shape[1])))


def _cosines(problem: Expansion) -> jax.Array:
    return _cosines_of(problem.x, problem.form)


@jax.jit
def _inverse_products(features: jax.Array, dense: jax.Array) -> jax.Array:
    """With V' applied as the sum of its blocks: a fast transform may cost nothing more."""
    angles = forms.inverse(forms.sin).angles(features).angles
    lower = jnp.linalg.cholesky(dense.T @ dense)
    return angles.reshape(len(features), -1, dense.shape[1]).sum(axis=1) @ (lower @ lower.T)


@jax.jit
def _dense_features(x: jax.Array, frequencies: jax.Array, phases: jax.Array) -> jax.Array:
    return (2 / phases.shape[0]) ** 0.5 * jnp.cos(x @ frequencies + phases[None, :])


def _right_features(problem: Expansion, ours: jax.Array, theirs: Any) -> str:
    """Ours against V in float64; theirs is another draw, so both against the kernel."""
    few = 8
    f = problem.params.num_features
    v = np.asarray(maps.dense_matrix(problem.params), np.float64)
    angles = problem.x[:few].astype(np.float64) @ v.T + np.asarray(problem.form.phases)
    found = np.asarray(ours[:few], np.float64)
    # A feature is sqrt(2 / f) cos u.
    worst = float(np.abs(found - np.sqrt(2 / f) * np.cos(angles)).max())
    assert worst < 1e-6, f"features are off by {worst:.1e}"
    rows = problem.x[:few].astype(np.float64)
    kernel = np.exp(-((rows[:, None] - rows[None, :]) ** 2).sum(axis=2) / 2)
    errors = [np.abs(z @ z.T - kernel).max() for z in (found, np.asarray(theirs[:few], np.float64))]
    assert max(errors) < 10 / f**0.5, f"kernels are off by {errors}"
    return f"features to {worst:.0e}; kernel estimates to {errors[0]:.0e} and {errors[1]:.0e}"


def _parameters_ratio(problem: Expansion) -> float:
    """Bytes of our map over the bytes of the dense one, in thousandths."""
    ours = sum(leaf.nbytes for leaf in jax.tree.leaves(problem.params))
    return 1000 * ours / problem.peer.nbytes


def _images() -> Round:
    """Features of the sine with every entry in range."""
    x = _vectors(1024)
    params = _map(1024, 10240, bandwidth=4.0)
    features = np.asarray(maps.feature_matrix(params, x, form=forms.sin))
    return Round(x, features, params, np.asarray(maps.dense_matrix(params)))


def _inverse(problem: Round) -> jax.Array:
    return invert_matrix(problem.params, problem.features, form=forms.sin)[0]


def _angles(problem: Round) -> np.ndarray:
    return np.arcsin(np.clip(np.float32(len(problem.dense) ** 0.5) * problem.features, -1, 1)).T


def _scipy(problem: Round) -> np.ndarray:
    return scipy.linalg.lstsq(problem.dense, _angles(problem))[0].T


def _numpy(problem: Round) -> np.ndarray:
    return np.linalg.lstsq(problem.dense, _angles(problem), rcond=None)[0].T


def _jax(problem: Round) -> jax.Array:
    return jnp.linalg.lstsq(problem.dense, _angles(problem))[0].T


def _orthogonal(problem: Round) -> np.ndarray:
    return scipy.linalg.lstsq(problem.dense, _angles(problem), lapack_driver="gelsy")[0].T


def _normal_equations(problem: Round) -> np.ndarray:
    v = problem.dense
    return scipy.linalg.cho_solve(scipy.linalg.cho_factor(v.T @ v), v.T @ _angles(problem)).T


def _same_images(problem: Round, ours: jax.Array, theirs: np.ndarray) -> str:
    size = np.linalg.norm(problem.x, axis=1)
    errors = [float((np.linalg.norm(found - problem.x, axis=1) / size).max()) for found in (ours, theirs)]
    assert errors[0] < 2e-6, f"the inverse is off by {errors[0]:.1e}"
    assert errors[1] < 1e-4, f"the peer's inverse is off by {errors[1]:.1e}"
    return f"vectors to {errors[0]:.0e}, the peer's to {errors[1]:.0e}"


def _inverse_row(name: str, peer: str, theirs: Any, target: float | None) -> Row:
    return Row(
        name=name,
        work="de-kernelise 4,096 vectors, d = 1,024, 10,240 features, with their validity",
        peer=peer,
        dtype="float32",
        data=_images,
        ours=_inverse,
        theirs=theirs,
        agree=_same_images,
        target=speedup(at_least=target),
        floor=lambda problem: _inverse_products(problem.features, problem.dense),
        floor_work="the arcsines, V'V and its Cholesky factor, and the products with all vectors",
        reason="the report on every vector: its features once more, their residual, and the condition of V'V",
        packages=("scipy",),
    )


ROWS = (
    Row(
        name="K1",
        work="Fastfood, 4,096 vectors, d = 1,024 to 10,240 random-phase features",
        peer="scikit-learn RBFSampler, a dense product",
        dtype="float32",
        data=_against_sampler,
        ours=_features,
        theirs=lambda problem: problem.peer.transform(problem.x),
        agree=_right_features,
        target=speedup(at_least=2.0),
        floor=_cosines,
        floor_work=_COSINES,
        reason=_TRANSFORMS,
        packages=("scikit-learn",),
    ),
    Row(
        name="K2",
        work="Fastfood, 4,096 vectors, d = 4,096 to 32,768 random-phase features",
        peer="a dense product in JAX, and its cosine",
        dtype="float32",
        data=_against_gemm,
        ours=_features,
        theirs=lambda problem: _dense_features(problem.x, problem.peer, problem.form.phases),
        agree=_right_features,
        target=speedup(at_least=3.0),
        floor=_cosines,
        floor_work=_COSINES,
        reason=_TRANSFORMS,
        quantities=(Quantity("parameters beside the dense ones", "per mille", _parameters_ratio, 1.0),),
    ),
    _inverse_row("K3", "SciPy lstsq as it is called, with V dense", _scipy, 20.0),
    _inverse_row("K3.numpy", "NumPy lstsq, which computes in float64, with V dense", _numpy, 20.0),
    _inverse_row("K3.jax", "JAX lstsq with V dense", _jax, None),
    _inverse_row("K3.gelsy", "SciPy lstsq by complete orthogonal factorisation, with V dense", _orthogonal, None),
    _inverse_row("K3.normal", "SciPy: normal equations with V dense, by Cholesky", _normal_equations, None),
)
