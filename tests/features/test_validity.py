"""What the report on an inverse says of clipped, folded and undetermined features."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import FitError, Status, raise_if_failed
from jaxface.features import dekernelize, forms, invert, invert_matrix, kitchen_sinks, maps
from tests.features.draws import a_map
from tests.tolerances import assert_close

FEW_STEPS = functools.partial(dekernelize.conjugate_gradient, num_iters=2)
SHORT_DESCENT = functools.partial(dekernelize.gauss_newton, num_iters=1)


def test_the_very_end_of_the_range_is_inside():
    """The sine does not tell pi / 2 from a number next to it, which the other frequency does."""
    params = kitchen_sinks.KitchenSinks(frequencies=jnp.asarray([[1.0], [0.5]]))
    x = np.array([np.pi / 2 + 1e-9])
    found, validity = invert(params, np.sin([x[0], x[0] / 2]) / np.sqrt(2), form=forms.sin)
    assert found[0] > np.pi / 2 + 1e-11
    assert float(validity.share_out_of_range) == 0


def test_pairs_without_a_direction_are_counted(rng):
    params = a_map("fastfood")
    z = np.array(maps.transform(params, 0.1 * rng.normal(size=6), form=forms.cos_sin))
    z[[3, 23]] = 0
    found, validity = invert(params, z, form=forms.cos_sin)
    assert np.isfinite(found).all()
    assert_close(validity.share_clipped, 1 / 20)


def test_too_few_iterations_are_reported(rng):
    params = a_map("fastfood")
    z = maps.transform(params, rng.normal(size=6), form=forms.sin)
    for method, num in ((FEW_STEPS, 2), (SHORT_DESCENT, 1)):
        _, validity = invert(params, z, form=forms.sin, method=method)
        assert int(validity.status) == Status.MAX_ITERS
        assert int(validity.num_iters) == num
        raise_if_failed(validity)


def test_a_singular_map_is_reported(rng):
    """V = 0: V'V has no Cholesky factor, and nothing of it passes for a solution."""
    params = dataclasses.replace(a_map("fastfood"), scale=jnp.zeros((3, 8)))
    _, validity = invert(params, rng.uniform(-0.1, 0.1, size=20), form=forms.sin)
    assert int(validity.status) == Status.RANK_DEFICIENT
    with pytest.raises(FitError, match="RANK_DEFICIENT"):
        raise_if_failed(validity)


def test_a_matrix_without_an_inverse_says_so(rng):
    """Two equal frequencies of three leave a direction that no feature sees."""
    params = kitchen_sinks.init(jax.random.key(0), input_dim=3, num_features=3, bandwidth=9.0)
    leaves = jax.tree.map(lambda leaf: leaf.at[1].set(leaf[0]) if leaf.shape[:1] == (3,) else leaf, params)
    z = maps.feature_matrix(leaves, rng.normal(size=(2, 3)), form=forms.sin)
    _, validity = invert_matrix(leaves, z, form=forms.sin)
    np.testing.assert_array_equal(validity.status, np.full(2, Status.RANK_DEFICIENT))
    assert np.isposinf(validity.conditioning).all()
