import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core import pytree
from jaxface.linalg import gram


@pytree.params
class Inner:
    weight: jax.Array


@pytree.params
class Model:
    mean: jax.Array
    inner: Inner
    degree: int = pytree.static()


def model(scale=1.0, degree=2):
    return Model(mean=scale * jnp.ones(3), inner=Inner(weight=scale * jnp.ones((3, 2))), degree=degree)


def test_works_under_every_transformation():
    doubled = jax.jit(lambda m: jax.tree.map(lambda leaf: 2 * leaf, m))(model())
    assert doubled.degree == 2
    assert float(doubled.inner.weight[0, 0]) == 2.0
    gradient = jax.grad(lambda m: (m.mean**m.degree).sum())(model())
    np.testing.assert_array_equal(gradient.mean, 2 * np.ones(3))
    stacked = pytree.stack([model(1.0), model(3.0)])
    sums = jax.vmap(lambda m: m.inner.weight.sum())(stacked)
    np.testing.assert_array_equal(sums, [6.0, 18.0])
    assert float(pytree.member(stacked, 1).mean[0]) == 3.0
    assert pytree.num_members(stacked) == 2


def test_is_frozen_and_does_no_arithmetic_by_accident():
    with pytest.raises(dataclasses.FrozenInstanceError):
        model().mean = 0
    with pytest.raises(TypeError):
        model() + model()
    with pytest.raises(TypeError):
        Model(jnp.ones(3), None, 2)


def test_errors():
    with pytest.raises(ValueError, match="same static fields; member 1 has"):
        pytree.stack([model(degree=2), model(degree=3)])
    with pytest.raises(ValueError, match="at least one tree"):
        pytree.stack([])
    with pytest.raises(ValueError, match="one leading member axis"):
        pytree.num_members(Model(mean=jnp.ones(3), inner=Inner(weight=jnp.ones((2, 2))), degree=1))


def test_classes_with_the_same_fields_are_different_structures():
    """Otherwise `jit` may call the program of the other class: with `register_dataclass` one pair in forty did."""

    @pytree.params
    class Sum:
        a: jax.Array

    @pytree.params
    class Product:
        a: jax.Array

    assert jax.tree.structure(Sum(a=1.0)) == jax.tree.structure(Sum(a=2.0))
    assert jax.tree.structure(Sum(a=1.0)) != jax.tree.structure(Product(a=1.0))
    assert jax.tree.structure(gram.linear()) != jax.tree.structure(gram.cosine())
    with pytest.raises(ValueError, match="must share one structure"):
        pytree.stack([Sum(a=jnp.ones(2)), Product(a=jnp.ones(2))])
    with pytest.raises(ValueError, match="Product"):
        jax.tree.map(jnp.add, Sum(a=1.0), Product(a=2.0))


def test_leaves_are_named_by_their_fields():
    named = {jax.tree_util.keystr(path): leaf.shape for path, leaf in jax.tree_util.tree_leaves_with_path(model())}
    assert named == {".mean": (3,), ".inner.weight": (3, 2)}
