import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import hallucination
from jaxface.core.fitinfo import Status
from jaxface.hallucination import linear
from jaxface.linalg import gram
from tests.hallucination.fits import KEY, MASK, NETWORK, faces
from tests.sparse import draws
from tests.tolerances import assert_close


def test_nothing_to_learn_from_and_no_penalty_is_no_singular_matrix(rng):
    b = rng.normal(size=(3, 2))
    assert_close(linear.penalized_solve(jnp.zeros((3, 3)), b, jnp.asarray(0.0)), (b, np.float64(1)))


def test_pca_is_least_squares_on_the_visible_rows(rng):
    x, y = draws.faces(rng), draws.faces(rng, n=1)[0]
    model, _ = linear.fit_pca(x, MASK, num_components=4)
    mean = x.mean(axis=0)
    axes = np.linalg.svd(x - mean)[2][:4].T
    z = np.linalg.lstsq(axes[MASK], y[MASK] - mean[MASK], rcond=None)[0]
    assert_close(hallucination.reconstruct(model, y[MASK]), mean + axes @ z, factor=100)


def test_pca_with_a_prior_is_the_posterior_mean(rng):
    x, y = draws.faces(rng), draws.faces(rng, n=1)[0]
    model, info = linear.fit_pca_prior(x, MASK, num_components=4)
    mean = x.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(x.T, bias=True))
    noise = values[:-4].mean()
    cov = (vectors[:, -4:] * values[-4:]) @ vectors[:, -4:].T + noise * np.eye(30)
    # N(0, W L W' + s I) of the seen; the image is W z without noise.
    seen = cov[np.ix_(MASK, MASK)]
    z_cov = (vectors[:, -4:] * values[-4:]) @ vectors[:, -4:].T
    expected = mean + z_cov[:, MASK] @ np.linalg.solve(seen, y[MASK] - mean[MASK])
    assert_close(hallucination.reconstruct(model, y[MASK]), expected, factor=100)
    assert float(info.jitter) == 0


def test_pca_with_a_prior_and_nothing_discarded_says_its_floor(rng):
    x = draws.faces(rng)
    model, info = linear.fit_pca_prior(x, MASK, num_components=30)
    assert float(info.jitter) > 0
    assert np.isfinite(model.matrix).all()


@pytest.mark.parametrize("num", [40, 9])
def test_ridge_is_penalised_least_squares(num, rng):
    """Also with fewer faces than visible pixels."""
    x, y = draws.faces(rng, n=num), draws.faces(rng, n=1)[0]
    weights = rng.uniform(0.5, 2, size=num)
    model, _ = linear.fit_ridge(x, MASK, ridge=0.1, sample_weights=weights)
    mean = x.mean(axis=0)
    root = np.sqrt(weights / weights.mean())[:, None]
    seen, target = root * (x - mean)[:, MASK], root * (x - mean)
    penalty = 0.1 * (seen**2).sum() / 15
    rows = np.concatenate([seen, np.sqrt(penalty) * np.eye(15)])
    matrix = np.linalg.lstsq(rows, np.concatenate([target, np.zeros((15, 30))]), rcond=None)[0]
    assert_close(model.matrix, matrix, factor=100)
    assert_close(hallucination.reconstruct(model, y[MASK]), mean + (y[MASK] - mean[MASK]) @ matrix, factor=100)


def test_nan_under_jit_is_non_finite(rng):
    x = jnp.asarray(draws.centered_faces(rng)).at[3, 7].set(jnp.nan)
    for fit in (
        lambda x: hallucination.fit_pca(x, MASK, num_components=3),
        lambda x: hallucination.fit_pca_prior(x, MASK, num_components=3),
        lambda x: hallucination.fit_ridge(x, MASK, ridge=1e-2),
    ):
        assert int(jax.jit(lambda x, fit=fit: fit(x)[1].status)(x)) == Status.NON_FINITE


def test_the_jitter_is_what_was_added(rng):
    """In units of the matrix: the solution is that of the matrix with the jitter on its diagonal, and no other."""
    x = 10 * faces(rng).astype(np.float64)
    y = x - x.mean(axis=0)
    seen = y[:, MASK]
    model, info = hallucination.fit_ridge(x, MASK, ridge=1e-2)
    penalized = seen.T @ seen + float(info.jitter) * np.eye(seen.shape[1])
    assert_close(model.matrix, np.linalg.solve(penalized, seen.T @ y), factor=100)
    _, begun = hallucination.fit_network(KEY, x, MASK, num_epochs=1, **NETWORK)
    assert_close(begun.jitter, info.jitter)
    model, info = hallucination.fit_kernel_ridge(gram.linear(), x, MASK, ridge=1e-2)
    k = seen @ seen.T
    assert_close(model.coefficients, np.linalg.solve(k + float(info.jitter) * np.eye(len(k)), y), factor=1e4)
    _, info = hallucination.fit_pca_prior(
        x[:5], MASK, num_components=4
    )  # nothing is discarded, so that a floor is needed
    energy = ((x[:5] - x[:5].mean(axis=0)) ** 2).sum() / 5
    assert float(info.jitter) == pytest.approx(30 * np.finfo(float).eps * energy)
