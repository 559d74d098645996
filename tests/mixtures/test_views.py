"""Densities, responsibilities and posteriors against dense Gaussians, with both views and with one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.mixtures import PCCAMixture
from tests.mixtures import draws
from tests.mixtures.draws import D, N
from tests.reference import mixtures_reference as reference
from tests.tolerances import assert_close

BOTH, X, Y = slice(None), slice(0, N), slice(N, None)


def seen(x, y, keep):
    return (None if keep == Y else x, None if keep == X else y)


@jax.jit
def of_each(model, x, y):
    """Everything about the pairs, one by one."""

    def one(x, y):
        return (
            mixtures.log_density(model, x, y),
            mixtures.log_responsibilities(model, x, y),
            mixtures.responsibilities(model, x, y),
            mixtures.latent_posterior(model, x, y),
        )

    return jax.vmap(one)(x, y)


@pytest.mark.parametrize("keep", [BOTH, X, Y], ids=["both", "x", "y"])
@pytest.mark.parametrize("kind", draws.KINDS)
def test_one_sample_equals_the_dense_gaussians(kind, keep, rng):
    model = draws.pcca(rng, full=draws.KINDS[kind])
    x, y = draws.pairs(rng)
    v = np.concatenate([x, y], axis=1)
    density, log_g, g, posterior = of_each(model, *seen(x, y, keep))
    np.testing.assert_allclose(density, reference.log_density(model, v, keep), rtol=1e-9)
    expected = reference.responsibilities(model, v, keep)
    np.testing.assert_allclose(g, expected, atol=1e-10)
    np.testing.assert_allclose(np.exp(log_g), expected, atol=1e-10)
    np.testing.assert_array_equal(posterior.log_responsibilities, log_g)
    mean, cov = reference.posterior(model, v, keep)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-10)
    np.testing.assert_allclose(posterior.cov[0], cov, atol=1e-10)


def test_far_from_zero_float32_keeps_its_digits(rng):
    """Samples are moved to the mean of the mixture before they are squared."""
    model = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), draws.pcca(rng))
    x, y = (np.asarray(view, np.float32) for view in draws.pairs(rng))
    away = PCCAMixture(**(vars(model) | {"mean_x": model.mean_x + 1024, "mean_y": model.mean_y - 1024}))
    x, y = x + np.float32(1024), y - np.float32(1024)
    near = reference.log_density(jax.tree.map(np.float64, away), np.concatenate([x, y], axis=1).astype(float))
    np.testing.assert_allclose(of_each(away, x, y)[0], near, rtol=2e-5)


def test_latent_coordinates_turn_with_the_loadings(rng):
    model = draws.pcca(rng)
    x, y = draws.pairs(rng)
    turned, q = draws.rotated(rng, model)
    density, _, g, posterior = of_each(model, x, y)
    density_2, _, g_2, posterior_2 = of_each(turned, x, y)
    assert_close((density_2, g_2), (density, g), factor=10)
    assert_close(posterior_2.mean, np.einsum("skd,kde->ske", posterior.mean, q), factor=10)


def test_without_loadings_the_views_are_independent(rng):
    model = draws.pcca(rng, k=1)
    model = PCCAMixture(**(vars(model) | {"loadings_x": 0 * model.loadings_x, "loadings_y": 0 * model.loadings_y}))
    x, y = draws.pairs(rng, size=4)
    both, only_x, only_y = (of_each(model, *pair) for pair in ((x, y), (x, None), (None, y)))
    assert_close(both[0], only_x[0] + only_y[0])
    assert_close(both[3].mean, np.zeros((4, 1, D)))
    assert_close(both[3].cov[0, 0], np.eye(D))
