import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.linalg import distances, gram, psd, scaling, spectral
from tests.tolerances import assert_close

EXTREMES = (2.0**-100, 2.0**-66, 2.0**66, 2.0**100)


def rows(rng, n=6, d=5):
    return rng.normal(size=(n, d)).astype(np.float32)


@pytest.mark.parametrize("size", [3e38, 1.7e38, 1e30, 7e4, 1.0, 1e-30, 2e-38])
def test_shifts_there_and_back_change_no_digit(size):
    x = jnp.asarray([size, size / 1.5], jnp.float32)
    power = scaling.exponent(x)
    inside = jax.jit(scaling.shifted)(x, -power)
    np.testing.assert_array_equal(jax.jit(scaling.shifted)(inside, power), x)
    assert 2.0**-16 <= float(inside[0]) <= 2.0**16
    assert float(inside[0] / inside[1]) == float(x[0] / x[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shifts_and_exponents_are_those_of_numpy_from_end_to_end_of_the_range(dtype, rng):
    info = np.finfo(dtype)
    sizes = rng.integers(info.minexp + 1, info.maxexp + 1, 500)
    x = np.ldexp(rng.uniform(0.5, 1, 500).astype(dtype), sizes)
    power = rng.integers(2 * info.minexp, 2 * info.maxexp, 500).astype(np.int32)
    with np.errstate(over="ignore", under="ignore"):
        expected = np.ldexp(x, power)
    is_normal = (expected == 0) | (expected >= info.tiny)  # XLA may flush what lies between
    np.testing.assert_array_equal(jax.jit(scaling.shifted)(x, power)[is_normal], expected[is_normal])
    found = jax.jit(lambda rows: scaling.row_exponents(rows, reach=0))(x[:, None])
    np.testing.assert_array_equal(found[:, 0], np.frexp(x)[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_beyond_the_range_give_zero_and_infinity(dtype):
    info = np.finfo(dtype)
    x = np.array([info.tiny, -1, info.max], dtype)
    for beyond in (1, 3, 200, 100_000):
        assert (np.asarray(scaling.shifted(x, np.int32(2 * info.minexp - beyond))) == 0).all()
        np.testing.assert_array_equal(scaling.shifted(x, np.int32(2 * info.maxexp + beyond)), np.sign(x) * np.inf)


def test_the_exponent_knows_neither_zeros_nor_what_is_not_finite():
    assert int(scaling.exponent(jnp.zeros(3), jnp.zeros((0, 2)))) == 0
    assert int(scaling.exponent(jnp.asarray([jnp.nan, jnp.inf, 1e30]))) == 100
    found = scaling.row_exponents(jnp.asarray([[jnp.nan, 1e30], [1e30, 0], [0, 0], [1, 2]]))
    assert found[:, 0].tolist() == [0, 100, 0, 0]


@pytest.mark.parametrize("scale", EXTREMES)
def test_lengths_and_cosines_have_no_unit(scale, rng):
    x, y = rows(rng), rows(rng)
    with np.errstate(over="ignore"):
        assert_close(distances.norm(scale * x) / np.float32(scale), np.linalg.norm(x, axis=1).astype(np.float32))
    assert_close(distances.cosine_matrix(scale * x, scale * y), distances.cosine_matrix(x, y))
    assert_close(distances.normalize(scale * x), distances.normalize(x))
    kernel = gram.gaussian(bandwidth=np.float32(2 * scale))
    assert_close(kernel(scale * x, scale * y), gram.gaussian(bandwidth=np.float32(2))(x, y))
    gradient = jax.grad(lambda v: distances.norm(v))(jnp.asarray(scale * x[0]))
    assert_close(gradient, distances.normalize(x[0]))


def test_squared_distances_beyond_the_range_are_infinite_and_a_large_row_disturbs_no_other(rng):
    x, y = rows(rng), rows(rng)
    assert np.isposinf(distances.squared_distance_matrix(np.float32(2.0**100) * x, np.float32(2.0**100) * y)).all()
    mixed = x.copy()
    mixed[2] *= 2.0**80
    found = np.asarray(distances.squared_distance_matrix(mixed, y))
    assert np.isposinf(found[2]).all()
    others = [0, 1, 3, 4, 5]
    assert_close(found[others], distances.squared_distance_matrix(x, y)[np.asarray(others)])


def test_nan_stays_in_its_row_and_column(rng):
    x, y = rows(rng), rows(rng, 4)
    x[1, 2] = y[3, 0] = np.nan
    lost = np.zeros((6, 4), bool)
    lost[1], lost[:, 3] = True, True
    kernels = [distances.squared_distance_matrix, distances.cosine_matrix, gram.gaussian(bandwidth=2.0), gram.linear()]
    for kernel in kernels:
        np.testing.assert_array_equal(np.isnan(kernel(x, y)), lost)
    assert np.isnan(distances.normalize(x)[1]).all()


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
@pytest.mark.parametrize("function", [spectral.eigh, spectral.thin_svd, psd.cholesky, distances.norm, gram.cosine()])
def test_narrow_types_are_refused_in_words(function, dtype):
    x = jnp.eye(3, dtype=dtype)
    arguments = (x, x) if isinstance(function, gram.Cosine) else (x,)
    with pytest.raises(ValueError, match=r"got dtype b?float16"):
        jax.jit(lambda *a: function(*a))(*arguments)
