"""Gaussian mixtures: starts, steps and recovery."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.core.fitinfo import Status
from jaxface.mixtures import gmm
from tests.mixtures import draws
from tests.mixtures.draws import K, N, S
from tests.reference import mixtures_reference as reference
from tests.tolerances import assert_close


def test_gaussian_mixture_step_is_the_loop(rng):
    start, x = draws.gaussians(rng), rng.normal(size=(S, N))
    found, info = gmm.fit(x, start, num_iters=1)
    weight, mean, variance = reference.gmm_step(start, x)
    assert_close((jnp.exp(found.log_weights), found.mean, found.variance), (weight, mean, variance), factor=10)
    g = reference.gmm_responsibilities(start, x)
    assert_close(jax.jit(jax.vmap(mixtures.responsibilities, in_axes=(None, 0)))(start, x), g, factor=10)
    assert int(info.status) == Status.OK


def test_gaussian_mixture_ascends_and_recovers():
    rng = np.random.default_rng(1)
    mean = np.array([[0.0, 0, 0, 0], [6, 0, 0, 0], [0, 6, 6, 0]])
    deviation = np.array([[1.0, 0.5, 1, 1], [1, 1, 2, 1], [0.5, 1, 1, 1]])
    labels = np.repeat(np.arange(3), [1000, 2000, 1000])
    x = mean[labels] + deviation[labels] * rng.normal(size=(4000, 4))
    model, info = draws.on_host(gmm.fit(x, gmm.init(jax.random.key(0), x, num_components=3), num_iters=50))
    assert np.diff(info.objective).min() > -1e-9 * np.abs(info.objective).max()
    order = [int(np.argmin(((model.mean - row) ** 2).sum(axis=1))) for row in mean]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(model.mean[order], mean, atol=0.2)
    np.testing.assert_allclose(np.sqrt(model.variance[order]), deviation, atol=0.1)
    np.testing.assert_allclose(np.exp(model.log_weights[order]), [0.25, 0.5, 0.25], atol=0.02)


def test_the_start_of_float32_data_far_from_the_origin(rng):
    labels = np.arange(200_000) % 2
    x = (rng.normal(size=(200_000, 2)) + 8 * labels[:, None] + 1e4).astype(np.float32)
    start = gmm.init(jax.random.key(0), x, num_components=2)
    np.testing.assert_allclose(np.sort(start.mean, axis=0) - 1e4, [[0, 0], [8, 8]], atol=0.05)
    np.testing.assert_allclose(start.variance, 1, atol=0.1)


def test_gaussian_clusters(rng):
    x, _ = draws.pairs(rng)
    model = gmm.init(jax.random.key(0), x, num_components=K, ridge=0.01)
    labels = np.asarray(draws.cluster(jax.random.key(0), jnp.asarray(x), num_components=K, num_iters=10).labels)
    for k in range(K):
        rows = x[labels == k]
        within = ((rows - rows.mean(axis=0)) ** 2).sum(axis=0)
        expected = (within + x.var(axis=0)) / (len(rows) + 1) + 0.01 * x.var(axis=0).mean()
        assert_close((model.mean[k], model.variance[k]), (rows.mean(axis=0), expected), factor=10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 20])
def test_gaussians_of_constant_data(dtype, size):
    x = np.full((size, 3), 2.0, dtype)
    model, info = gmm.fit(x, gmm.init(jax.random.key(0), x, num_components=1), num_iters=3)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert draws.all_finite(model)
