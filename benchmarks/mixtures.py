"""Rows M: an iteration of EM for a mixture of probabilistic CCA, and Fisher vectors of many images."""

import functools
import importlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import floors
from benchmarks.rows import Row, at_floor, cost, speedup
from jaxface import mixtures
from jaxface.mixtures import encoding, gmm, multiview, normalization

_SEED = 20260711
_PAIRS, _COMPONENTS = 100_000, 64
_DIM_X, _DIM_Y, _LATENT_DIM = 96, 108, 32
_IMAGES, _DESCRIPTORS, _DIM = 1000, 500, 64

_fisher_vector = functools.partial(encoding.fisher_vector, normalization=normalization.concatenate)


class Problem(NamedTuple):
    """Pairs in clusters, a model to start from, and the peer at the same means with all of the covariance."""

    x: jax.Array  # [s, n]
    y: jax.Array  # [s, m]
    start: mixtures.PCCAMixture
    v: np.ndarray  # [s, n + m], x and y side by side, for the peer
    peer: Any


def _problem(dtype: str, peer_dtype: str) -> Problem:
    rng = np.random.default_rng(_SEED)
    width = _DIM_X + _DIM_Y
    mean = 2 * rng.normal(size=(_COMPONENTS, width))
    loadings = 0.3 * rng.normal(size=(_COMPONENTS, width, _LATENT_DIM))
    v = mean[rng.integers(0, _COMPONENTS, _PAIRS)] + rng.normal(size=(_PAIRS, width))
    weights = np.full(_COMPONENTS, 1 / _COMPONENTS)
    peer = importlib.import_module("sklearn.mixture").GaussianMixture(_COMPONENTS, covariance_type="full")
    own_v, peer.means_, peer.weights_ = (a.astype(peer_dtype) for a in (v, mean, weights))
    peer.precisions_cholesky_ = np.tile(np.eye(width, dtype=peer_dtype), (_COMPONENTS, 1, 1))
    v, mean, loadings, weights = (a.astype(dtype) for a in (v, mean, loadings, weights))
    start = mixtures.PCCAMixture(
        log_weights=jnp.log(weights),
        mean_x=jnp.asarray(mean[:, :_DIM_X]),
        mean_y=jnp.asarray(mean[:, _DIM_X:]),
        loadings_x=jnp.asarray(loadings[:, :_DIM_X]),
        loadings_y=jnp.asarray(loadings[:, _DIM_X:]),
        noise_x=jnp.ones((_COMPONENTS, _DIM_X), dtype),
        noise_y=jnp.ones((_COMPONENTS, _DIM_Y), dtype),
    )
    return Problem(jnp.asarray(v[:, :_DIM_X]), jnp.asarray(v[:, _DIM_X:]), start, own_v, peer)


def _iteration(problem: Problem) -> mixtures.PCCAMixture:
    return mixtures.fit(problem.x, problem.y, problem.start, num_iters=1)[0]


def _their_iteration(problem: Problem) -> Any:
    """An E-step and an M-step, as its `fit` does them."""
    _, log_responsibilities = problem.peer._e_step(problem.v)
    problem.peer._m_step(problem.v, log_responsibilities)
    return problem.peer


def _dense_log_densities(model: mixtures.PCCAMixture, v: np.ndarray) -> np.ndarray:
    """Log densities `[s]` from covariances `[n + m, n + m]`."""
    columns = []
    for k in range(_COMPONENTS):
        part = jax.tree.map(lambda leaf, at=k: np.asarray(leaf[at], np.float64), model)
        mean = np.concatenate([part.mean_x, part.mean_y])
        loadings = np.concatenate([part.loadings_x, part.loadings_y])
        cov = loadings @ loadings.T + np.diag(np.concatenate([part.noise_x, part.noise_y]))
        r = v - mean
        squared = (r * np.linalg.solve(cov, r.T).T).sum(axis=1)
        columns.append(part.log_weights - (squared + np.linalg.slogdet(2 * np.pi * cov)[1]) / 2)
    return np.logaddexp.reduce(columns, axis=0)


def _right_densities(problem: Problem, ours: mixtures.PCCAMixture, theirs: Any) -> str:
    """The two models differ, so ours is compared to dense Gaussians; both hold the same clusters."""
    expected = _dense_log_densities(ours, problem.v[:50].astype(np.float64))
    log_density = jax.jit(jax.vmap(mixtures.log_density, in_axes=(None, 0, 0)))
    found = np.asarray(log_density(ours, problem.x[:50], problem.y[:50]))
    worst = float(np.abs(found / expected - 1).max())
    assert worst < (1e-9 if found.dtype == np.float64 else 1e-4), f"log densities differ by {worst:.1e}"
    weights = float(np.abs(np.exp(np.asarray(ours.log_weights)) - theirs.weights_).max())
    assert weights < 1e-3, f"the weights differ by {weights:.1e}"
    return f"our log densities and dense ones, to {worst:.0e}; weights of both models, to {weights:.0e}"


class Images(NamedTuple):
    """Descriptors of many images and the same Gaussian mixture twice."""

    x: np.ndarray  # [i, s, n]
    model: gmm.GMM
    peer: Any


def _images() -> Images:
    rng = np.random.default_rng(_SEED)
    x = rng.normal(size=(_IMAGES, _DESCRIPTORS, _DIM)).astype(np.float32)
    weights = np.full(_COMPONENTS, 1 / _COMPONENTS, np.float32)
    mean = rng.normal(size=(_COMPONENTS, _DIM)).astype(np.float32)
    variance = rng.uniform(0.5, 1.5, size=(_COMPONENTS, _DIM)).astype(np.float32)
    peer = importlib.import_module("sklearn.mixture").GaussianMixture(_COMPONENTS, covariance_type="diag")
    peer.weights_, peer.means_, peer.covariances_ = weights, mean, variance
    peer.precisions_cholesky_ = 1 / np.sqrt(variance)
    model = gmm.GMM(log_weights=jnp.log(weights), mean=jnp.asarray(mean), variance=jnp.asarray(variance))
    return Images(x, model, peer)


def _weights(model: gmm.GMM) -> jax.Array:
    """Of a descriptor and its squares, for the log densities `[2 n, k]`."""
    return jnp.concatenate([(model.mean / model.variance).T, -0.5 / model.variance.T])


def _their_vectors(images: Images) -> np.ndarray:
    fisher_vector = importlib.import_module("skimage.feature").fisher_vector
    return np.stack([fisher_vector(x, images.peer) for x in images.x])


def _same_vectors(_: Images, ours: jax.Array, theirs: np.ndarray) -> str:
    """Theirs begin with the weights' part, and the deviations' has the other sign."""
    half = _COMPONENTS * _DIM
    expected = np.concatenate([theirs[:, -2 * half : -half], -theirs[:, -half:]], axis=1)
    worst = float(np.abs(np.asarray(ours) - expected).max() / np.abs(expected).max())
    assert worst < 1e-3, f"Fisher vectors differ by {worst:.1e} of their largest entry"
    return f"Fisher vectors, to {worst:.0e} of the largest entry"


def _em_row(name: str, dtype: str, target: float, *, peer_dtype: str) -> Row:
    """The peer computes in the type of its arrays: float64 where a user of NumPy did not ask for another."""
    work = f"M-PCCA, one EM iteration, {_PAIRS:,} pairs, {_DIM_X} + {_DIM_Y} dims, latent {_LATENT_DIM}"
    return Row(
        name=name,
        work=f"{work}, {_COMPONENTS} components",
        peer=f"scikit-learn GaussianMixture with full covariances, {peer_dtype}, as a yardstick",
        dtype=dtype,
        data=lambda: _problem(dtype, peer_dtype),
        ours=_iteration,
        theirs=_their_iteration,
        agree=_right_densities,
        target=speedup(at_least=target),
        packages=("scikit-learn",),
        x64=dtype == "float64",
        floor=lambda problem: floors.mixture_products(problem.start, jnp.asarray(problem.v, dtype), _LATENT_DIM),
        floor_work="products of all pairs with the loadings of every component, there and back",
    )


class Views(NamedTuple):
    """Three views in clusters, which of them are present, and a model to start from."""

    views: tuple[jax.Array, ...]  # [s, n] each
    present: np.ndarray  # bool [s, 3], half of the entries
    start: multiview.MultiviewMixture


def _three_views() -> Views:
    rng = np.random.default_rng(_SEED)
    widths, size, k = (64, 64, 64), 30_000, 16
    mean = 2 * rng.normal(size=(k, sum(widths)))
    v = (mean[rng.integers(0, k, size)] + rng.normal(size=(size, sum(widths)))).astype(np.float32)
    views = tuple(jnp.asarray(part) for part in np.split(v, np.cumsum(widths)[:-1], axis=1))
    # One or two of the three views, each as likely: half of the entries.
    patterns = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]], bool)
    present = patterns[rng.integers(0, len(patterns), size)]
    start = multiview.init(jax.random.key(0), views, num_components=k, latent_dim=16)
    return Views(views, present, start)


def _multiview_iteration(data: Views, present: np.ndarray | None) -> multiview.MultiviewMixture:
    return multiview.fit(data.views, data.start, num_iters=1, present=present)[0]


def _both_models(_: Views, ours: multiview.MultiviewMixture, theirs: multiview.MultiviewMixture) -> str:
    """The same clusters, whatever is missing."""
    worst = float(np.abs(np.exp(np.asarray(ours.log_weights)) - np.exp(np.asarray(theirs.log_weights))).max())
    assert worst < 0.02, f"the weights differ by {worst:.1e}"
    return f"the weights of both models, to {worst:.0e}"


ROWS = (
    _em_row("M1.f32", "float32", 18.0, peer_dtype="float32"),
    _em_row("M1.f32.default", "float32", 18.0, peer_dtype="float64"),
    _em_row("M1.f64", "float64", 6.0, peer_dtype="float64"),
    Row(
        name="M2",
        work=f"Fisher vectors, {_IMAGES:,} images x {_DESCRIPTORS} descriptors, {_DIM} dims, {_COMPONENTS} components",
        peer="scikit-image fisher_vector, image by image",
        dtype="float32",
        data=_images,
        ours=lambda images: encoding.encode_batch(images.model, images.x, encoder=_fisher_vector),
        theirs=_their_vectors,
        agree=_same_vectors,
        target=at_floor(1.5),
        floor=lambda images: floors.fisher_products(images.x, _weights(images.model)),
        floor_work="its own two products: the densities of all descriptors, and their weighted moments",
        packages=("scikit-image", "scikit-learn"),
    ),
    Row(
        name="B3",
        work="M-PCCA, one EM iteration, 30,000 samples, 3 x 64 dims, 16 components, half of the entries missing",
        peer="itself with every view present",
        dtype="float32",
        data=_three_views,
        ours=lambda data: _multiview_iteration(data, data.present),
        theirs=lambda data: _multiview_iteration(data, None),
        agree=_both_models,
        target=cost(at_most=1.5),
        floor=lambda data: floors.mixture_products(data.start, jnp.concatenate(data.views, axis=1)[::2], 16),
        floor_work="products of the entries that are there with the loadings of every component, there and back",
        reason="samples are sorted by their pattern, and each of six patterns is a program of small blocks of its own",
    ),
)
