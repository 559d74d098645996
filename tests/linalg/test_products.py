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


@pytest.mark.parametrize("product", [products.inner_products, lambda a: products.transposed_copy(a) @ a])
def test_accelerators_get_plain_products(product):
    traced = jax.jit(product).trace(jax.ShapeDtypeStruct((512, 4), jnp.float32))
    text = {name: traced.lower(lowering_platforms=(name,)).as_text() for name in ("cpu", "cuda", "tpu")}
    marks = ("optimization_barrier", "stablehlo.concatenate")
    assert any(mark in text["cpu"] for mark in marks)
    for name in ("cuda", "tpu"):
        assert not any(mark in text[name] for mark in marks)
        assert text[name].count("dot_general") == 1
