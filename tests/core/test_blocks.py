import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxface.core import blocks
from tests.tolerances import assert_close


def summary(row):
    return {"norm": (row * row).sum(), "twice": 2 * row}


@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 12), block_size=st.integers(1, 14))
def test_results_do_not_depend_on_the_block_size(n, block_size):
    x = jnp.asarray(np.random.default_rng(n).normal(size=(n, 3)))
    assert_close(blocks.map_rows(summary, x, block_size=block_size), jax.vmap(summary)(x))

    def add(total, rows, valid):
        return total + jnp.where(valid[:, None], rows + 1, 0).sum(0)

    folded = blocks.fold_rows(add, jnp.zeros(3), x, block_size=block_size)
    assert_close(folded, (x + 1).sum(0))


def test_host_batches_cover_every_row_once():
    x = np.arange(14.0).reshape(7, 2)
    batches = list(blocks.padded_batches(x, block_size=3))
    assert [rows.shape for rows, _ in batches] == [(3, 2)] * 3
    np.testing.assert_array_equal(np.concatenate([rows[valid] for rows, valid in batches]), x)
    np.testing.assert_array_equal(batches[-1][0][1:], 0)


def test_errors():
    with pytest.raises(ValueError, match="block_size must be at least 1; got 0"):
        blocks.split(jnp.zeros((2, 2)), 0)


def test_batches_of_no_rows_are_refused():
    for size in (0, -1):
        with pytest.raises(ValueError, match=f"block_size must be at least 1; got {size}"):
            list(blocks.padded_batches(np.zeros((3, 2)), block_size=size))
