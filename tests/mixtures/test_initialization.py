"""Where EM starts: clusters, their covariances, and loadings that are never zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.mixtures import initialization
from tests.mixtures import draws
from tests.mixtures.draws import D, K, M, N, S
from tests.reference import mixtures_reference as reference
from tests.tolerances import assert_close

SETTINGS = {"num_components": K, "latent_dim": D}


@pytest.mark.parametrize("kind", draws.KINDS)
def test_each_cluster_gets_its_closed_form(kind, rng):
    x, y = draws.pairs(rng)
    v = np.concatenate([x, y], axis=1)
    full, ridge = draws.KINDS[kind], 0.01
    model = mixtures.init(jax.random.key(0), x, y, full_noise=full, ridge=ridge, **SETTINGS)
    labels = np.asarray(draws.cluster(jax.random.key(0), jnp.asarray(v), num_components=K, num_iters=10).labels)
    added = ridge * np.concatenate([np.full(N, x.var(axis=0).mean()), np.full(M, y.var(axis=0).mean())])
    overall = np.cov(v.T, bias=True)
    assert model.noise_x.shape == ((K, N, N) if full else (K, N))
    for k, (log_weight, mean, loadings, noise) in enumerate(reference.components(model)):
        rows = v[labels == k]
        assert_close(np.exp(log_weight), len(rows) / S)
        assert_close(mean, rows.mean(axis=0))
        scatter = (rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0))
        cov = (scatter + overall) / (len(rows) + 1) + np.diag(added)
        found = loadings @ loadings.T + noise
        for part in (slice(0, N), slice(N, None)):
            kept = found[part, part] if full else np.diag(found[part, part])
            assert_close(kept, cov[part, part] if full else np.diag(cov[part, part]), factor=10)
        # Two of three canonical pairs: the cross-covariance is the best of rank two after whitening.
        whiten = [np.linalg.inv(np.linalg.cholesky(cov[part, part])) for part in (slice(0, N), slice(N, None))]
        left, values, right = np.linalg.svd(whiten[0] @ cov[:N, N:] @ whiten[1].T)
        cross = np.linalg.inv(whiten[0]) @ (left[:, :D] * values[:D]) @ right[:D] @ np.linalg.inv(whiten[1]).T
        assert_close(loadings[:N] @ loadings[N:].T, cross, factor=10)


def test_units_do_not_decide_the_clusters(rng):
    x, _ = draws.pairs(rng)
    unit = np.array([1e-3, 1, 1e3, 1])
    left, right = (
        draws.cluster(jax.random.key(0), jnp.asarray(view), num_components=K, num_iters=10).labels
        for view in (x, x * unit + 7)
    )
    np.testing.assert_array_equal(left, right)


def test_a_component_for_each_sample_still_has_loadings(rng):
    """A single sample has no covariance of its own, and W = 0 would never change."""
    x, y = draws.pairs(rng, size=K)
    model = mixtures.init(jax.random.key(0), x, y, **SETTINGS)
    assert draws.all_finite(model)
    assert float(jnp.abs(model.loadings_x).max(axis=(1, 2)).min()) > 0.01
    np.testing.assert_allclose(jnp.exp(model.log_weights), 1 / K)


@pytest.mark.parametrize("kind", draws.KINDS)
def test_a_better_start_than_chance(kind):
    truth, drawn, start = draws.apart(kind)
    at_start, at_truth = (float(draws.log_likelihood(m, drawn.x, drawn.y)) / draws.MANY for m in (start, truth))
    assert at_start > at_truth - 2.0


def test_the_key_decides(rng):
    x, y = draws.pairs(rng)
    first, again, other = (mixtures.init(jax.random.key(seed), x, y, **SETTINGS) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.mean_x, again.mean_x)
    assert not np.array_equal(first.mean_x, other.mean_x)


def test_loadings_of_several_views_start_along_the_leading_axes(rng, monkeypatch):
    """Of two views, without the small random numbers: the cross-covariance of the best rank after whitening."""
    monkeypatch.setattr(jax.random, "normal", lambda _, shape, dtype: jnp.zeros(shape, dtype))
    v = np.concatenate([v.T for v in draws.pairs(rng)]).T + rng.normal(size=(S, N + M))
    cov = np.cov(v.T, bias=True)
    found = initialization.shared_axes(jax.random.key(0), v.mean(axis=0), cov, widths=(N, M), latent_dim=D)
    whiten = [np.linalg.inv(np.linalg.cholesky(cov[part, part])) for part in (slice(0, N), slice(N, None))]
    left, values, right = np.linalg.svd(whiten[0] @ cov[:N, N:] @ whiten[1].T)
    values = np.minimum(1, 0.9 / values[0]) * values
    cross = np.linalg.inv(whiten[0]) @ (left[:, :D] * values[:D]) @ right[:D] @ np.linalg.inv(whiten[1]).T
    assert_close(found[0].loadings @ found[1].loadings.T, cross, factor=10)
    for view, part in zip(found, (slice(0, N), slice(N, None)), strict=True):
        assert_close(view.loadings @ view.loadings.T + view.noise, cov[part, part], factor=10)
