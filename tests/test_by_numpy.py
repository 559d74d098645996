"""What NumPy does for JAX in tests is what XLA does."""

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
import pytest

from jaxface.linalg import distances, scaling
from tests import by_numpy
from tests.tolerances import assert_close

COMPILED = "/jax/core/compile/backend_compile_duration"


def shapes_and_types(x, n):
    return [
        jnp.pad(x, ((1, 2), (0, 1)), constant_values=7),
        jax.lax.pad(x, jnp.zeros((), x.dtype), ((-1, 1, 1), (0, -1, 2))),
        (jnp.stack([x, 2 * x], 1), jnp.unstack(x, axis=1), jnp.tile(x, (2, 1, 3))),
        (jnp.flip(x, 0), jax.lax.reshape(x, (2, 10), (1, 0))),
        jnp.split(x, [1, 3], axis=0),
        jax.lax.bitcast_convert_type(x, jnp.dtype(f"i{x.dtype.itemsize}")),
        jnp.array([jnp.nan, jnp.inf, -jnp.inf, 2.9, -2.9, 1e30]).astype(jnp.int32) + n[0] * 0,
        (n // 3, n % 3, jax.lax.div(n, jnp.int32(3)), jax.lax.rem(n, jnp.int32(3)), jax.lax.div(n, 0 * n)),
        (n << 2, n >> 1, jax.lax.shift_right_logical(n, jnp.full_like(n, 3)), ~n, n**3),
    ]


def along_axes(x, n):
    hole = x.at[1, 1].set(jnp.nan)
    return [
        (jnp.cumsum(x, 0), jnp.cumprod(n), jax.lax.cummax(x, 1, reverse=True), jax.lax.cumsum(n, reverse=True)),
        (jnp.argmax(hole, 0), jnp.argmin(x, 1), hole.max(0), hole.min(), x[:, :0].sum(1), n.sum(), (n > 0).any()),
        (jnp.sort(hole, 1), jnp.lexsort((n, n % 2)), jnp.argsort(x, 0), jax.lax.top_k(x, 2)),
        (jnp.max(x[:0], axis=0, initial=-3), jnp.median(x), jnp.linalg.norm(x)),
        (jnp.clip(x, -0.5, 0.5), jnp.sign(hole), jnp.round(2.5 * jnp.sign(x)), jnp.exp2(x), jax.nn.sigmoid(x)),
        (jax.scipy.special.erf(x), jax.scipy.special.gammaln(x**2), jnp.float_power(x**2, 0.3), jax.lax.rsqrt(x**2)),
    ]


def at_indices(x, n):
    beyond = jnp.array([0, 9, -1, 2, -9])
    return [
        (x[beyond], x[:, beyond % 4][n % 5], x.at[beyond].get(mode="fill"), n.at[beyond].get(mode="fill")),
        (x.at[beyond].set(1.0), x.at[beyond].add(x[0]), x.at[beyond, 0].mul(2.0), x.at[:, beyond].max(0.1)),
        (x.at[beyond].add(1.0, mode="clip"), x.at[beyond].get(mode="clip"), n.at[jnp.zeros(3, int)].add(1)),
        (jnp.take_along_axis(x, jnp.argsort(x, 1), 1), jax.ops.segment_sum(x, n[:5] % 3 - 1, num_segments=3)),
        (jax.vmap(lambda row, at: row[at])(x, n[:5]), jax.vmap(lambda row, at: row.at[at].add(2.0))(x, n[:5])),
        jax.vmap(lambda at: jax.lax.dynamic_slice(x, (at, jnp.int32(1)), (2, 2)))(n),
        (
            jax.lax.dynamic_slice(x, (n[0], jnp.int32(-7)), (2, 3)),
            jax.lax.dynamic_update_slice(x, x[:2], (n[-1], n[2])),
        ),
        jax.grad(lambda x: (x[beyond] * x.at[n % 5].get()[:5].sum()).sum())(x),
    ]


def matrices(x, n):
    square = x[:4].T @ x[:4] + jnp.eye(4, dtype=x.dtype)
    lower = jnp.tril(square)
    several = jnp.stack([lower, 2 * lower])

    def solve(a, b, **settings):
        return jax.lax.linalg.triangular_solve(a, b, **settings)

    return [
        (jnp.linalg.cholesky(square), jnp.linalg.cholesky(-square), jnp.linalg.cholesky(several.mT @ several)),
        jnp.linalg.cholesky(square.at[2, 2].set(jnp.nan)),
        solve(lower, x[:4], left_side=True, lower=True),
        solve(lower, x, left_side=False, lower=True, transpose_a=True),
        solve(square, x, left_side=False, lower=False),
        solve(square, x.T, left_side=True, lower=True, unit_diagonal=True),
        solve(several, jnp.stack([x, x]), left_side=False, lower=True),
        solve(several, jnp.stack([x[:4], x[1:]]), left_side=True, lower=True, transpose_a=True),
        (solve(lower, x[:4, :0], left_side=True, lower=True), solve(lower.at[1, 1].set(0), x[:4], left_side=True)),
        solve(lower.at[3, 3].set(0), x, left_side=False, lower=True),
        jax.lax.optimization_barrier((x, n)),
    ]


def loops(x, n):
    def halve(v):
        return jax.lax.while_loop(lambda v: v > 1.0, lambda v: v / 2, v)

    def step(carry, row):
        return carry + row, carry * row

    def until_small(key):
        return jax.lax.while_loop(lambda k: jax.random.uniform(k) > 0.3, lambda k: jax.random.fold_in(k, 1), key)

    return [
        jax.random.key_data(jax.vmap(until_small)(jax.vmap(jax.random.key)(n))),
        jax.vmap(halve)(1 + 9 * x[:, 0] ** 2),
        jax.vmap(jax.vmap(halve))(1 + 9 * x**2),
        jax.lax.scan(step, x[0], x),
        jax.lax.scan(step, x[0], x, reverse=True),
        jax.lax.scan(step, x[0], x[:0]),
        jax.lax.fori_loop(0, n[1], lambda i, v: v + i, n[0]),
        jax.lax.switch(n[2], [jnp.sin, jnp.cos, jnp.tan], x),
        jax.vmap(lambda at, row: jax.lax.switch(at, [jnp.sin, jnp.cos, jnp.tan], row))(n[:5], x),
        jax.jvp(lambda x: jnp.linalg.solve(x[:4].T @ x[:4] + jnp.eye(4), x[4]), (x,), (x,)),
        jax.linearize(jnp.linalg.inv, x[:4])[1](x[1:]),
        jax.random.normal(jax.random.fold_in(jax.random.key(3), n[0]), (2, 3)),
        jnp.einsum("ij,kj->ikj", x, x[:2]),
    ]


def draws(x, n):
    key = jax.random.key(7)
    keys = jax.random.split(jax.random.fold_in(key, n[1]), (2, 3))
    bits = [jax.vmap(lambda k, t=t: jax.random.bits(k, (3,), t))(keys[0]) for t in (jnp.uint8, jnp.uint32, jnp.uint64)]
    return [
        (bits, jax.random.key_data(keys), jax.random.key_data(jax.vmap(jax.random.fold_in, (None, 0))(key, n))),
        (jax.random.permutation(key, 40), jax.random.permutation(key, x), jax.random.randint(key, (9,), -5, 5)),
        (jax.random.uniform(key, x.shape, x.dtype), jax.random.normal(key, x.shape, x.dtype), jax.random.gumbel(key)),
        (jax.random.choice(key, 20, (5,), replace=False), jax.random.rademacher(key, (6,)), jax.random.bernoulli(key)),
        jax.lax.erf_inv(x / 9),
    ]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fn", [shapes_and_types, along_axes, at_indices, matrices, loops, draws])
def test_a_traced_function_has_the_results_of_its_program(fn, dtype, rng):
    x, n = rng.normal(size=(5, 4)).astype(dtype), np.array([3, 5, 1, 0, -4, 7], np.int32)
    expected = jax.jit(fn)(x, n)
    found = by_numpy.evaluate(fn, x, n)
    assert_close(found, expected, factor=10)
    assert [a.dtype for a in jax.tree.leaves(found)] == [b.dtype for b in jax.tree.leaves(expected)]


def test_operations_outside_of_a_program_keep_their_types(rng):
    x, n = jnp.asarray(rng.normal(size=(5, 4)), jnp.float32), jnp.arange(6, dtype=jnp.int32)

    def several():
        return [
            jax.lax.scan(lambda total, row: (total + row, total @ row), x[0], x),
            jax.lax.fori_loop(0, 3, lambda i, v: (v[0] + i, v[1] * 2), (1, x)),
            (jnp.where(x[0] > 0, 1, 2), jnp.sum(jnp.asarray(3.0)), jnp.where(n > 2, 1.5, n), jnp.tile(2.0, 3)),
            jax.lax.scan(lambda total, row: (total, jnp.linalg.cholesky(total + row[0] ** 2)), jnp.eye(3), x),
            (x + 1, x * n[1], n + 1, n / 2, n.sum(), jnp.cumsum(n), x.mean(), jnp.where(x > 0, x, 0)),
            (jnp.argmax(x, 1), n > 2, (n > 2).sum(), x.astype(jnp.int8), x @ x.T, x[n[:2]], jnp.median(x)),
            jax.tree.leaves(draws(x, n)),
            (jnp.linalg.norm(x, axis=1), jnp.asarray(2.0) * x, jnp.exp(2.0), jnp.stack([x, x]), x**2, 2**n),
        ]

    with by_numpy.simple_operations():
        found = several()
    expected = several()
    assert_close(found, expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (a.dtype, a.weak_type, a.sharding) == (b.dtype, b.weak_type, b.sharding)


def test_small_functions_of_linalg_make_no_program(rng):
    x, made = jnp.asarray(rng.normal(size=(7, 3))), []

    def several():
        return distances.normalize(x), distances.squared_distance_matrix(x, x), scaling.shifted(x, scaling.exponent(x))

    expected = several()

    def listen(event, _, **__):
        made.append(event)

    jax.clear_caches()
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        with by_numpy.simple_operations(folders=(by_numpy.JAX, by_numpy.LINALG)):
            assert_close(several(), expected)
        assert COMPILED not in made
        several()
        assert COMPILED in made
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
