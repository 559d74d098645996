"""The counter of operations and bytes, on programs whose counts are plain."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import costs

N = 256
X = jnp.ones((N, N), jnp.float32)


def program(fn):
    """One product of squares on paper: two factors and the result."""
    return costs.Program("a product", fn, (X, X.T + 0), 2.0 * N**3, 3 * N * N)


def test_what_is_needed_counts_one():
    found = costs.counted(program(jnp.matmul))
    np.testing.assert_allclose(found, 1, rtol=0.01)


def test_a_second_product_and_a_second_copy_are_seen():
    found = costs.counted(program(lambda x, y: x @ y + y @ x))
    assert found.flops == pytest.approx(2, rel=0.01)
    assert found.bytes > costs.MOST


def test_work_for_a_cpu_alone_is_left_out_and_comes_back():
    def fn(x, y):
        return jax.lax.platform_dependent(x, y, cpu=lambda x, y: (x @ y) @ y, default=jnp.matmul)

    assert costs.counted(program(fn)).flops == pytest.approx(1, rel=0.01)
    on_a_cpu = jax.jit(fn).lower(X, X).compile().cost_analysis()["flops"]
    assert on_a_cpu == pytest.approx(4 * N**3, rel=0.01)


def test_the_counts_on_paper_are_stated_for_the_rows_of_the_table():
    assert [each.name.split()[0] for each in costs.programs()] == [
        *("F3", "J1", "J4", "K1", "K3", "M1", "M2", "N1", "N3", "R1", "S4")
    ]
