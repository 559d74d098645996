"""Accuracy of the float32 polynomials over their whole range, derivatives, and what they do far outside it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.features import trig

ERROR = 3e-7


def worst(found, expected):
    return np.abs(np.asarray(found, float) - expected).max()


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("limit", [1e-6, 4.0, 100.0, 1e4])
def test_sine_and_cosine(name, limit):
    u = np.linspace(-limit, limit, 200_001).astype(np.float32)
    assert worst(jax.jit(getattr(trig, name))(u), getattr(np, name)(u.astype(float))) < ERROR


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_at_multiples_of_a_quarter_turn(name):
    u = (np.arange(-4000, 4000) * np.pi / 2).astype(np.float32)
    assert worst(getattr(trig, name)(jnp.asarray(u)), getattr(np, name)(u.astype(float))) < ERROR


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_far_away_it_stays_within_one(name):
    u = jnp.asarray([1e6, -3e8, 7e15, 2e30], jnp.float32)
    assert np.abs(getattr(trig, name)(u)).max() <= 1


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_of_what_is_not_finite_it_is_nan(name):
    assert np.isnan(getattr(trig, name)(jnp.asarray([np.inf, -np.inf, np.nan], jnp.float32))).all()


def test_arcsine_is_clipped():
    s = np.concatenate([np.linspace(-1, 1, 200_001), [1 - 2**-24, -0.5, 0.5]]).astype(np.float32)
    assert worst(jax.jit(trig.clipped_arcsin)(s), np.arcsin(s.astype(float))) < ERROR
    for dtype in (jnp.float32, jnp.float64):
        outside = trig.clipped_arcsin(jnp.asarray([-3.0, 1.5], dtype))
        np.testing.assert_allclose(outside, [-np.pi / 2, np.pi / 2], rtol=1e-6)


def test_arctan2_in_every_direction():
    turn = np.linspace(-np.pi, np.pi, 100_001)
    for length in (1e-20, 1.0, 1e15):
        y, x = (length * np.sin(turn)).astype(np.float32), (length * np.cos(turn)).astype(np.float32)
        assert worst(jax.jit(trig.arctan2)(y, x), np.arctan2(y.astype(float), x.astype(float))) < ERROR
    axes = np.asarray([[0, 1], [1, 0], [0, -1], [-1, 0], [1, 1], [-1, -1]], np.float32)
    assert worst(trig.arctan2(*axes.T), np.arctan2(*axes.T.astype(float))) < ERROR


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_the_origin_has_angle_zero_and_no_gradient(dtype):
    origin = jnp.zeros((), dtype)
    assert float(trig.arctan2(origin, origin)) == 0
    assert [float(g) for g in jax.grad(trig.arctan2, argnums=(0, 1))(origin, origin)] == [0, 0]


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_derivatives_are_the_true_ones(dtype):
    u = jnp.asarray(np.linspace(-7, 7, 101), dtype)
    s = jnp.asarray(np.linspace(-0.99, 0.99, 101), dtype)
    for fn, x, first, second in (
        (trig.sin, u, np.cos(u), -np.sin(u)),
        (trig.cos, u, -np.sin(u), -np.cos(u)),
        (trig.clipped_arcsin, s, 1 / np.sqrt(1 - s**2), s / (1 - s**2) ** 1.5),
    ):
        np.testing.assert_allclose(jax.vmap(jax.grad(fn))(x), first, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(jax.vmap(jax.grad(jax.grad(fn)))(x), second, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_at_and_beyond_the_ends_the_arcsine_has_no_gradient(dtype):
    ends = jnp.asarray([-2.0, -1.0, 1.0, 1.1], dtype)
    np.testing.assert_array_equal(jax.vmap(jax.grad(trig.clipped_arcsin))(ends), 0)


def test_other_dtypes_take_the_functions_of_the_library(rng):
    u, v = jnp.asarray(rng.normal(size=20)), jnp.asarray(rng.normal(size=20))
    np.testing.assert_array_equal(trig.sin(u), jnp.sin(u))
    np.testing.assert_array_equal(trig.cos(u), jnp.cos(u))
    np.testing.assert_array_equal(trig.arctan2(u, v), jnp.arctan2(u, v))


@pytest.mark.parametrize("name", ["sin", "cos", "clipped_arcsin", "arctan2"])
def test_accelerators_get_the_functions_of_xla(name):
    args = [jax.ShapeDtypeStruct((8,), jnp.float32)] * (2 if name == "arctan2" else 1)
    traced = jax.jit(getattr(trig, name)).trace(*args)
    products = {of: traced.lower(lowering_platforms=(of,)).as_text().count("multiply") for of in ("cpu", "cuda", "tpu")}
    assert products["cpu"] >= 4
    assert max(products["cuda"], products["tpu"]) <= 1  # a polynomial has one for each coefficient
