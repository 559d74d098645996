"""Log-likelihood ratios of an x and a y against dense Gaussians; NaN and gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface import mixtures
from jaxface.mixtures import PCCAMixture
from tests.mixtures import draws
from tests.mixtures.draws import N
from tests.reference import mixtures_reference as reference
from tests.tolerances import assert_close

X, Y = slice(0, N), slice(N, None)


@pytest.mark.parametrize("kind", draws.KINDS)
def test_every_x_with_every_y_is_the_dense_ratio(kind, rng):
    model = draws.pcca(rng, full=draws.KINDS[kind])
    x, y = draws.pairs(rng, size=7)
    found = mixtures.llr_matrix(model, x, y[:5])
    alone_x, alone_y = (reference.log_density(model, np.concatenate([x, y], axis=1), keep) for keep in (X, Y))
    for i in range(7):
        for j in range(5):
            both = reference.log_density(model, np.concatenate([x[i], y[j]])[None])[0]
            np.testing.assert_allclose(found[i, j], both - alone_x[i] - alone_y[j], atol=1e-9)
    assert_close(jax.jit(mixtures.llr)(model, x[3], y[2]), found[3, 2], factor=10)


def test_a_matrix_of_ratios_has_gradients_beside_a_component_of_no_weight(rng):
    model = draws.pcca(rng)
    model = PCCAMixture(**(vars(model) | {"log_weights": jnp.log(jnp.asarray([0.0, 0.4, 0.6]))}))
    x, y = (jnp.asarray(view[:3]) for view in draws.pairs(rng))
    found = jax.grad(lambda a: mixtures.llr_matrix(model, a, y).sum())(x)
    pairs = jax.vmap(jax.vmap(mixtures.llr, in_axes=(None, None, 0)), in_axes=(None, 0, None))
    assert_close(mixtures.llr_matrix(model, x, y), pairs(model, x, y), factor=100)
    assert_close(found, jax.grad(lambda a: pairs(model, a, y).sum())(x), factor=1e3)


def test_a_vector_with_nan_has_no_ratio_with_any_other():
    rng = np.random.default_rng(4)
    model, (x, y) = draws.pcca(rng), draws.pairs(rng)
    expected = mixtures.llr_matrix(model, x[:4], y[:3])
    x = x.copy()
    x[2, 1] = np.nan
    found = np.asarray(mixtures.llr_matrix(model, x[:4], y[:3]))
    assert np.isnan(found[2]).all()
    assert_close(found[[0, 1, 3]], np.asarray(expected)[[0, 1, 3]])
    assert np.isnan(mixtures.responsibilities(model, x[2], y[2])).all()
