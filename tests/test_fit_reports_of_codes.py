"""What the fits of mixtures, clusters, dictionaries and hallucination report, in the table of `test_fit_reports`."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxface import hallucination, mixtures, sparse
from jaxface.cluster import kmeans
from jaxface.linalg import gram
from jaxface.mixtures import gmm
from jaxface.sparse import kernel_ksvd, ksvd, omp, online
from jaxface.subspace import pca
from tests.sparse import draws
from tests.test_fit_reports import STEPS, Iterative, Ridged
from tests.test_fit_reports import test_the_jitter_is_what_was_added as check_jitter
from tests.test_fit_reports import test_the_objective_is_that_of_the_parameters_a_step_starts_from as check_objective

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
X = draws.faces(RNG)
SIGNALS = X - X.mean(axis=0)
MASK = draws.top_mask()
PAIRS = RNG.normal(size=(60, 3)) @ RNG.normal(size=(3, 7)) + 0.5 * RNG.normal(size=(60, 7))
VIEWS = PAIRS[:, :4], PAIRS[:, 4:]
BATCHES = [SIGNALS[i : i + 10] for i in range(0, 40, 10)]
NETWORK = {"ridge": 0.1, "width": 8, "num_layers": 2, "batch_size": 40, "dropout": 0.0, "optimizer": optax.sgd(1e-3)}

MEANS = kmeans.KMeans(centers=jnp.asarray(SIGNALS[:4]))
GAUSSIANS = gmm.init(KEY, PAIRS, num_components=2)
MIXTURE = mixtures.init(KEY, *VIEWS, num_components=2, latent_dim=2)
GAPS = np.ones((60, 2), bool)
GAPS[::3, 1] = False
ATOMS = ksvd.init(KEY, SIGNALS, num_atoms=10)
KERNEL_ATOMS = kernel_ksvd.init(KEY, gram.linear(), SIGNALS, num_atoms=10)


def coding_error(dictionary, x=SIGNALS):
    codes = omp.encode_batch(dictionary, x, sparsity=3)
    rebuilt = jax.vmap(lambda code: sparse.decode(dictionary, code))(codes)
    return ((x - rebuilt) ** 2).sum()


def kernel_coding_error(found):
    return coding_error(sparse.Dictionary(atoms=SIGNALS.T @ found.coefficients))


def network_loss(model):
    ridge, _ = hallucination.fit_ridge(X, MASK, ridge=NETWORK["ridge"])
    errors, start = (
        ((np.asarray(hallucination.reconstruct_matrix(m, X[:, MASK])) - X) ** 2).mean(axis=1) for m in (model, ridge)
    )
    return np.log(errors + 0.1 * np.median(start)).mean()


def stream_error(state):
    """Of the batch that comes next."""
    batch = BATCHES[int(state.num_batches)]
    return coding_error(state.dictionary, batch) / (batch**2).sum()


ITERATIVE = [
    Iterative(
        "cluster.kmeans.fit",
        lambda steps: kmeans.fit(SIGNALS, MEANS, num_iters=steps),
        lambda found: kmeans.assign(found, SIGNALS).squared.sum(),
        MEANS,
    ),
    Iterative(
        "mixtures.gmm.fit",
        lambda steps: gmm.fit(PAIRS, GAUSSIANS, num_iters=steps),
        lambda model: mixtures.log_likelihood(model, PAIRS),
        GAUSSIANS,
    ),
    Iterative(
        "mixtures.fit",
        lambda steps: mixtures.fit(*VIEWS, MIXTURE, num_iters=steps),
        lambda model: mixtures.log_likelihood(model, *VIEWS),
        MIXTURE,
    ),
    Iterative(
        "mixtures.multiview.fit",
        lambda steps: mixtures.multiview.fit(VIEWS, MIXTURE, num_iters=steps, present=GAPS),
        lambda model: mixtures.log_likelihood(model, *VIEWS, present=GAPS),
        MIXTURE,
    ),
    Iterative(
        "sparse.ksvd.fit",
        lambda steps: ksvd.fit(SIGNALS, ATOMS, sparsity=3, num_iters=steps),
        coding_error,
        ATOMS,
    ),
    Iterative(
        "sparse.kernel_ksvd.fit",
        lambda steps: kernel_ksvd.fit(KERNEL_ATOMS, sparsity=3, num_iters=steps),
        kernel_coding_error,
        KERNEL_ATOMS,
    ),
    Iterative(
        "sparse.online.fit_stream",
        lambda steps: online.fit_stream(online.init(ATOMS), BATCHES[:steps], sparsity=3),
        stream_error,
        online.init(ATOMS),
    ),
    Iterative(
        "hallucination.fit_network",  # one step an epoch
        lambda steps: hallucination.fit_network(KEY, X, MASK, num_epochs=steps, **NETWORK),
        network_loss,
        hallucination.fit_ridge(X, MASK, ridge=NETWORK["ridge"])[0],
    ),
]


@pytest.mark.parametrize("row", ITERATIVE, ids=lambda row: row.name)
def test_the_objective_is_that_of_the_parameters_a_step_starts_from(row):
    check_objective(row)


def mean_variance(x):
    return x.var(axis=0).mean()


def with_a_constant(unit):
    """Pairs whose second view has a dimension that is constant, so that its noise needs a floor."""
    x, y = unit * VIEWS[0], unit * np.concatenate([VIEWS[1], np.full((60, 1), 3.0)], axis=1)
    start = mixtures.init(KEY, x, y, num_components=2, latent_dim=2)
    return mixtures.fit(x, y, start, num_iters=STEPS, floor=1e-4)


def constant_with_gaps(unit):
    """The floor is relative to the samples that have the view."""
    x, y = unit * VIEWS[0], unit * np.concatenate([VIEWS[1], np.full((60, 1), 3.0)], axis=1)
    start = mixtures.init(KEY, x, y, num_components=2, latent_dim=2)
    return mixtures.multiview.fit((x, y), start, num_iters=STEPS, floor=1e-4, present=GAPS)


def gaussians_with_a_constant(unit):
    x = unit * np.concatenate([PAIRS, np.full((60, 1), 3.0)], axis=1)
    return gmm.fit(x, gmm.init(KEY, x, num_components=2), num_iters=STEPS, floor=1e-4)


RIDGED = [
    Ridged(
        "hallucination.fit_ridge",
        lambda unit: hallucination.fit_ridge(unit * X, MASK, ridge=0.1),
        2,
        lambda: 0.1 * (SIGNALS[:, MASK] ** 2).sum() / MASK.sum(),
    ),
    Ridged(
        "hallucination.fit_kernel_ridge",
        lambda unit: hallucination.fit_kernel_ridge(gram.linear(), unit * X, MASK, ridge=0.1),
        2,
        lambda: 0.1 * (SIGNALS[:, MASK] ** 2).sum() / len(X),
    ),
    Ridged(
        "hallucination.fit_fastfood_ridge",  # its features have no unit
        lambda unit: hallucination.fit_fastfood_ridge(
            KEY, unit * X, MASK, num_features=64, bandwidth=2 * unit, ridge=0.1
        ),
        0,
        lambda: 0.1,
    ),
    Ridged(
        "hallucination.fit_pca_prior",  # nothing is discarded, so that the noise needs a floor
        lambda unit: hallucination.fit_pca_prior(unit * X[:5], MASK, num_components=4),
        2,
        lambda: 30 * np.finfo(float).eps * ((X[:5] - X[:5].mean(axis=0)) ** 2).sum() / 5,
    ),
    Ridged(
        "hallucination.fit_network",
        lambda unit: hallucination.fit_network(KEY, unit * X, MASK, num_epochs=1, **NETWORK),
        2,
        lambda: 0.1 * (SIGNALS[:, MASK] ** 2).sum() / MASK.sum(),
    ),
    Ridged(
        "mixtures.closed_form",
        lambda unit: mixtures.closed_form(unit * VIEWS[0], unit * VIEWS[1], latent_dim=2, ridge=0.1),
        2,
        lambda: 0.1 * max(mean_variance(view) for view in VIEWS),
    ),
    Ridged("mixtures.fit", with_a_constant, 2, lambda: 1e-4 * VIEWS[1].var(axis=0).sum() / 4),
    Ridged("mixtures.multiview.fit", constant_with_gaps, 2, lambda: 1e-4 * VIEWS[1][GAPS[:, 1]].var(axis=0).sum() / 4),
    Ridged("mixtures.gmm.fit", gaussians_with_a_constant, 2, lambda: 1e-4 * PAIRS.var(axis=0).sum() / 8),
]


@pytest.mark.parametrize("row", RIDGED, ids=lambda row: row.name)
def test_the_jitter_is_what_was_added(row):
    check_jitter(row)


WITHOUT = {
    "cluster.kmeans.fit": lambda: kmeans.fit(SIGNALS, MEANS, num_iters=STEPS),
    "mixtures.closed_form": lambda: mixtures.closed_form(*VIEWS, latent_dim=2),
    "mixtures.fit": lambda: mixtures.fit(*VIEWS, MIXTURE, num_iters=STEPS),
    "hallucination.fit_pca": lambda: hallucination.fit_pca(X, MASK, num_components=4),
    "hallucination.fit_pca_prior": lambda: hallucination.fit_pca_prior(X, MASK, num_components=4),
    "sparse.ksvd.fit": lambda: ksvd.fit(SIGNALS, ATOMS, sparsity=3, num_iters=STEPS),
    "subspace.pca.fit": lambda: pca.fit(X, num_components=3, whiten=True),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_where_nothing_was_added_the_jitter_is_zero(name):
    assert float(WITHOUT[name]()[1].jitter) == 0
