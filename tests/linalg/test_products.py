import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.linalg import products
from tests.tolerances import assert_close


@pytest.mark.parametrize("n", [3, 512, 1023])
def test_inner_products_in_stripes_are_those_of_all_pairs(n, rng):
    x = rng.normal(size=(n, 7))
    found = np.asarray(products.inner_products(x))
    assert_close(found, x @ x.T, factor=10)
    assert (found == found.T).all()
    direction = rng.normal(size=(n, n))
    slope = jax.grad(lambda rows: (direction * products.inner_products(rows)).sum())(x)
    assert_close(slope, (direction + direction.T) @ x, factor=100)


def test_a_turned_factor_stays_turned_inside_a_program(rng):
    """The compiled product contracts the last axis of its left factor, as it would not by itself."""
    a, b = jnp.asarray(rng.normal(size=(64, 8))), jnp.asarray(rng.normal(size=(64, 5)))

    def contracted(product):
        text = jax.jit(product).lower(a, b).compile().as_text()
        return "lhs_contracting_dims={0}" in text

    assert contracted(lambda a, b: a.T @ b)
    assert not contracted(lambda a, b: products.transposed_copy(a) @ b)
    assert_close(jax.jit(lambda a, b: products.transposed_copy(a) @ b)(a, b), a.T @ b)
