"""Normalisation: values, lengths, and derivatives at zero."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxface.mixtures import normalization
from tests.reference import mixtures_reference as reference
from tests.tolerances import assert_close


def blocks(rng):
    left, right = rng.normal(size=(3, 4)), rng.normal(size=(3, 2))
    left[1] = 0  # a component that no descriptor chose
    right[0, 0] = 0
    return jnp.asarray(left), jnp.asarray(right)


def test_standard_is_the_loop(rng):
    drawn = blocks(rng)
    assert_close(normalization.standard(drawn), reference.normalized(drawn))


def test_signed_root():
    x = jnp.asarray([-4.0, -0.25, 0.0, 9.0])
    assert_close(normalization.signed_sqrt(x), np.array([-2.0, -0.5, 0.0, 3.0]))


def test_rows_and_the_whole_have_unit_length(rng):
    left, right = blocks(rng)
    lengths = np.linalg.norm(normalization.per_component(left), axis=1)
    np.testing.assert_allclose(lengths, [1, 0, 1])
    for function in (normalization.standard, normalization.power):
        vector = function((left, right))
        assert vector.shape == (18,)
        np.testing.assert_allclose(np.linalg.norm(vector), 1)


def test_a_factor_for_a_row_cancels(rng):
    """What makes 1 / N, 1 / sum g and the plain sum the same."""
    left, right = blocks(rng)
    scale = jnp.asarray([[2.0], [3.0], [5.0]])
    assert_close(normalization.standard((scale * left, right)), normalization.standard((left, right)))
    assert not np.allclose(normalization.power((scale * left, right)), normalization.power((left, right)))


def test_nothing_stays_nothing_with_finite_derivatives():
    zero = (jnp.zeros((2, 3)), jnp.zeros((2, 1)))
    for function in (normalization.standard, normalization.power, normalization.concatenate):
        value, jacobian = jax.jit(lambda blocks, f=function: (f(blocks), jax.jacobian(f)(blocks)))(zero)
        assert not np.any(value)
        assert all(np.isfinite(leaf).all() for leaf in jacobian)
