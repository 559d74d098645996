"""The products against dense matrices, what a draw looks like, and the matrix forms."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxface.features import MAPS, forms, maps
from tests.features import draws
from tests.features.draws import FAST, KINDS, a_map
from tests.tolerances import assert_close

LEARNED = {
    "kitchen_sinks": ("frequencies",),
    "orthogonal": ("frequencies",),
    "fastfood": ("signs", "gaussian", "scale"),
    "sorf": ("signs", "scale"),
}
LARGE = ("kitchen_sinks", *FAST)  # one of each class: orthogonal maps are kitchen sinks once they are drawn
FULL_SIZE = {"input_dim": 1000, "num_features": 9500, "bandwidth": 32.0, "dtype": "float32"}


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_the_dense_matrix(kind, rng):
    params = a_map(kind)
    v = draws.dense(params)
    x, u = rng.normal(size=6), rng.normal(size=20)
    assert_close(maps.project(params, x), v @ x)
    assert_close(maps.transpose(params, u), v.T @ u)
    assert_close(maps.gram_operator(params)(x), v.T @ v @ x, factor=10)
    assert_close(maps.gram_matrix(params), v.T @ v, factor=10)
    assert_close(maps.project(params, x) @ u, x @ maps.transpose(params, u), factor=10)


@pytest.mark.parametrize("kind", LARGE)
def test_adjoint_to_rounding_in_float32_at_full_size(kind, rng):
    params = a_map(kind, **FULL_SIZE)
    x, u = rng.normal(size=1000).astype(np.float32), rng.normal(size=9500).astype(np.float32)
    projected, back = maps.project(params, x), maps.transpose(params, u)
    scale = np.linalg.norm(projected) * np.linalg.norm(u)
    assert abs(float(projected @ u) - float(x @ back)) < 1e-6 * scale


@pytest.mark.parametrize("kind", KINDS)
def test_a_square_map_has_an_exact_inverse(kind, rng):
    params = a_map(kind, input_dim=8, num_features=8)
    x = rng.normal(size=8)
    assert_close(maps.inverse(params, maps.project(params, x)), x, factor=1e3)


@pytest.mark.parametrize("kind", FAST)
def test_the_padding_is_left_out_of_the_inverse(kind, rng):
    params = a_map(kind, input_dim=6, num_features=8)
    x = rng.normal(size=6)
    assert_close(maps.inverse(params, maps.project(params, x)), x, factor=1e3)


@pytest.mark.parametrize("kind", KINDS)
def test_more_features_keep_the_first_ones(kind):
    few, many = a_map(kind, num_features=5), a_map(kind)
    assert_close(draws.dense(many)[:5], draws.dense(few))


@pytest.mark.parametrize("kind", KINDS)
def test_the_bandwidth_only_scales(kind):
    assert_close(draws.dense(a_map(kind, bandwidth=3.0)) * 2, draws.dense(a_map(kind, bandwidth=1.5)))


@pytest.mark.parametrize("kind", ["kitchen_sinks", "orthogonal", "fastfood"])
def test_row_lengths_follow_chi(kind):
    """A missing S leaves every estimate unbiased: only the lengths show it."""
    lengths = np.linalg.norm(draws.dense(a_map(kind, input_dim=16, num_features=2000, bandwidth=2.0)), axis=1)
    assert scipy.stats.kstest(2.0 * lengths, scipy.stats.chi(16).cdf).pvalue > 1e-3


@pytest.mark.parametrize("kind", FAST)
def test_four_numbers_a_row(kind):
    params = a_map(kind, **FULL_SIZE)
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(params)) <= 16 * 10 * 1024


@pytest.mark.parametrize("kind", KINDS)
def test_rows_in_blocks_are_the_vectors_one_by_one(kind, rng):
    params, x = a_map(kind), rng.normal(size=(7, 6))
    expected = np.stack([maps.transform(params, row, form=forms.cos_sin) for row in x])
    for block_size in (1, 3, 7, 64):
        assert_close(maps.feature_matrix(params, x, form=forms.cos_sin, block_size=block_size), expected)
    assert maps.feature_matrix(params, x[:0], form=forms.cos_sin).shape == (0, 40)


def test_one_program_serves_every_batch_of_one_block_size(rng):
    from jaxface.core import blocks

    params, traces = a_map("fastfood"), []

    def form(u):
        traces.append(1)
        return forms.sin(u)

    expected = {}
    for n in (3, 8, 21):
        x = rng.normal(size=(n, 6))
        parts = [
            np.asarray(maps.feature_matrix(params, rows, form=form, block_size=8))[valid]
            for rows, valid in blocks.padded_batches(x, block_size=8)
        ]
        expected[n] = maps.feature_matrix(params, x, form=forms.sin)
        assert_close(np.concatenate(parts), expected[n])
    assert len(traces) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_draws_are_vmapped(kind, rng):
    keys, x = jax.random.split(jax.random.key(3), 3), rng.normal(size=6)

    def features(key, x):
        params = MAPS[kind](key, input_dim=6, num_features=20, bandwidth=2.0)
        return maps.transform(params, x, form=forms.sin)

    mapped = jax.vmap(features, in_axes=(0, None))(keys, x)
    assert_close(mapped, jnp.stack([features(key, x) for key in keys]))
    assert np.abs(mapped[0] - mapped[1]).max() > 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_dtype_follows_the_bandwidth_or_the_argument(kind):
    settings = {"input_dim": 6, "num_features": 20}
    key = jax.random.key(0)
    assert maps.dtype_of(MAPS[kind](key, bandwidth=1.0, **settings)) == jnp.float64
    assert maps.dtype_of(MAPS[kind](key, bandwidth=np.float32(1), **settings)) == jnp.float32
    assert maps.dtype_of(MAPS[kind](key, bandwidth=2, dtype=jnp.float32, **settings)) == jnp.float32


@pytest.mark.parametrize("kind", LARGE)
def test_float32_features_are_near_those_of_float64(kind, rng):
    """The same numbers in both types, at a size where it matters; features times sqrt f."""
    single = a_map(kind, **FULL_SIZE)
    double = jax.tree.map(lambda leaf: leaf if leaf.dtype == jnp.int32 else leaf.astype(float), single)
    x = rng.normal(size=(4, 1000)).astype(np.float32)
    for form in (forms.cos_sin, forms.sin):
        wide, narrow = (maps.feature_matrix(p, x.astype(t), form=form) for p, t in ((double, float), (single, "f4")))
        assert narrow.dtype == jnp.float32
        assert np.abs(wide - narrow).max() * 9500**0.5 < 3e-6


@pytest.mark.parametrize("form", [jnp.sin, functools.partial(jnp.add, 1.0), jax.jit(jnp.cos)])
def test_any_function_is_a_form(form, rng):
    params, x = draws.a_map("fastfood"), rng.normal(size=(3, 6))
    each = [maps.transform(params, row, form=form) for row in x]
    assert_close(maps.feature_matrix(params, x, form=form), np.stack(each))


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_with_nan_has_no_features_and_the_others_keep_theirs(kind, rng):
    params, x = a_map(kind), rng.normal(size=(3, 6))
    expected = maps.feature_matrix(params, x, form=forms.sin)
    x[1, 4] = np.nan
    found = maps.feature_matrix(params, x, form=forms.sin)
    assert np.isnan(found[1]).all()
    assert np.isnan(maps.transform(params, x[1], form=forms.cos_sin)).all()
    assert_close(found[np.array([0, 2])], expected[np.array([0, 2])])


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_equal_finite_differences(kind, rng):
    params, x = a_map(kind), rng.normal(size=6)
    weights = rng.normal(size=40)
    learned = {name: getattr(params, name) for name in LEARNED[kind]}

    def loss(learned, x):
        return weights @ maps.transform(dataclasses.replace(params, **learned), x, form=forms.cos_sin)

    @jax.jit
    def both_modes(point, direction):
        value, slope = jax.jvp(loss, point, direction)
        return value, slope, jax.grad(loss, argnums=(0, 1))(*point)

    direction = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), (learned, x))
    moved = (jax.tree.map(lambda a, b, s=s: a + s * b, (learned, x), direction) for s in (1e-6, -1e-6))
    ahead, behind = (both_modes(point, direction)[0] for point in moved)
    _, slope, gradient = both_modes((learned, x), direction)
    inner = sum(np.vdot(a, b) for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True))
    assert_close(inner, (ahead - behind) / 2e-6, factor=1e4)
    assert_close(slope, inner, factor=10)


@pytest.mark.parametrize("kind", FAST)
def test_the_gradient_in_x_is_the_transpose(kind, rng):
    params, u = a_map(kind), rng.normal(size=20)
    gradient = jax.grad(lambda x: maps.project(params, x) @ u)(rng.normal(size=6))
    assert_close(gradient, maps.transpose(params, u))
    back = jax.grad(lambda u: maps.transpose(params, u) @ np.arange(6.0))(u)
    assert_close(back, maps.project(params, np.arange(6.0)))
