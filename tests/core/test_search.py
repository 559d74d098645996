import jax
import jax.numpy as jnp

from jaxface.core import search


def test_first_min_takes_the_first_of_ties_and_survives_nan():
    values = jnp.array([[3.0, 1.0, 1.0], [2.0, 2.0, 2.0], [jnp.nan, 1.0, 2.0]])
    index = search.first_min(values)
    assert index.dtype == jnp.int32
    assert index[:2].tolist() == [1, 0]
    assert 0 <= int(index[2]) < 3
    for changed in (jax.jit, jax.vmap):
        assert changed(search.first_min)(values).tolist() == index.tolist()
