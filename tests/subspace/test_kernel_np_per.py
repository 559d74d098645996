"""Kernel NP-PER: both scales of the coefficients against dense definitions, also in explicit features."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.core.pytree import member
from jaxface.linalg import gram
from jaxface.subspace import KernelMap, kernel_np_per, np_per
from tests.reference import subspace_reference as reference
from tests.subspace import draws
from tests.tolerances import assert_close, largest_angle

FITS = [kernel_np_per.fit, kernel_np_per.fit_dependent]


def product_of_cosines(x, y):
    return jnp.cos(x[:, None, :] - y[None, :, :]).prod(axis=-1)


KERNELS = {
    "gaussian": gram.gaussian(bandwidth=6.0),
    "polynomial": gram.polynomial(degree=3, offset=2.0),
    "linear": gram.linear(),
    "cosine": gram.cosine(),
    "a function": product_of_cosines,
    "plain function": product_of_cosines,
}


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("name", KERNELS)
def test_the_literal_form_is_the_dense_linear_method_on_kernel_vectors(name, fit, rng):
    x, groups = draws.grouped(rng)
    k = np.asarray(KERNELS[name](x, x))
    expected = reference.np_per(k, groups)
    found, info = fit(KERNELS[name], x, groups, num_groups=5)
    assert expected.shape[1] == int(info.rank) == 4
    assert int(info.status) == Status.OK
    assert largest_angle(found.coefficients, expected) < 1e-8
    probes = rng.normal(size=(3, 40))
    there = np.asarray(KERNELS[name](np.concatenate([x, probes]), x)) @ expected
    z = draws.mapped(found, np.concatenate([x, probes]))
    assert_close(draws.squared(z), draws.squared(there), factor=1000)
    assert abs(z[:12].mean(axis=0)).max() < 1e-12 * abs(z).max()


@pytest.mark.parametrize("fit", FITS)
def test_the_linear_kernel_gives_the_linear_method_in_one_form_only(fit, rng):
    x, groups = draws.grouped(rng)
    everything = np.concatenate([x, rng.normal(size=(3, 40))])
    linear = draws.squared(draws.mapped(np_per.fit(x, groups, num_groups=5)[0], everything))
    orthonormal, _ = fit(gram.linear(), x, groups, num_groups=5, rkhs_orthonormal=True)
    assert_close(draws.squared(draws.mapped(orthonormal, everything)), linear, factor=100)
    literal, _ = fit(gram.linear(), x, groups, num_groups=5)
    other = draws.squared(draws.mapped(literal, everything))
    assert abs(other / other.max() - linear / linear.max()).max() > 0.05


@pytest.mark.parametrize("fit", FITS)
def test_orthonormal_in_feature_space_is_the_linear_method_on_features(fit, rng):
    """The polynomial of degree two, whose 28 features can be written down."""
    x, groups = draws.grouped(rng, d=6)
    probes = rng.normal(size=(4, 6))
    everything = np.concatenate([x, probes])
    features = reference.quadratic_features(everything, offset=1.5)
    basis = reference.np_per(features[:12], groups)
    found, info = fit(gram.polynomial(degree=2, offset=1.5), x, groups, num_groups=5, rkhs_orthonormal=True)
    assert int(info.rank) == basis.shape[1] == 4
    assert_close(draws.squared(draws.mapped(found, everything)), draws.squared(features @ basis), factor=1000)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("rkhs_orthonormal", [False, True])
def test_groups_fall_on_points_that_differ(fit, rkhs_orthonormal, rng):
    x, groups = draws.grouped(rng)
    found, _ = fit(KERNELS["gaussian"], x, groups, num_groups=5, rkhs_orthonormal=rkhs_orthonormal)
    distance = np.sqrt(draws.squared(draws.mapped(found, x)))
    same = groups[:, None] == groups[None, :]
    assert distance[same].max() < 1e-10 * distance.max()
    assert distance[~same].min() > 0.01 * distance.max()


def with_duplicate(rng, same_group):
    x, groups = rng.normal(size=(12, 8)), np.repeat(np.arange(4, dtype=np.int32), 3)
    x[1 if same_group else 3] = x[0]
    return x, groups


@pytest.mark.parametrize("rkhs_orthonormal", [False, True])
@pytest.mark.parametrize(("same_group", "rank"), [(True, 3), (False, 2)])
def test_duplicates(same_group, rank, rkhs_orthonormal, rng):
    x, groups = with_duplicate(rng, same_group)
    kernel, settings = gram.gaussian(bandwidth=3.0), {"num_groups": 4, "rkhs_orthonormal": rkhs_orthonormal}
    failed, info = kernel_np_per.fit(kernel, x, groups, **settings)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert int(info.rank) == -1
    assert_close(failed.coefficients, np.zeros((12, 3)))
    found, info = kernel_np_per.fit_dependent(kernel, x, groups, **settings)
    assert int(info.status) == Status.OK
    assert int(info.rank) == rank
    k = np.asarray(kernel(x, x))
    assert_close(found.coefficients[:, rank:], np.zeros((12, 3 - rank)))
    if rkhs_orthonormal:
        gram_of_outputs = np.asarray(found.coefficients.T @ k @ found.coefficients)
        assert_close(gram_of_outputs, np.diag(np.arange(3) < rank).astype(float), factor=100)
        assert_close(found.coefficients.sum(axis=0), np.zeros(3), factor=1000)
    else:
        assert largest_angle(found.coefficients, reference.np_per(k, groups)) < 1e-8
    spread = np.sqrt(draws.squared(draws.mapped(found, x)))[groups[:, None] == groups[None, :]]
    assert spread.max() < 1e-7


def test_draws_in_one_call_equal_the_loop(rng):
    x, kernel = rng.normal(size=(12, 40)).astype(np.float32), gram.gaussian(bandwidth=8.0)
    groups = np.stack([rng.permutation(np.repeat(np.arange(4, dtype=np.int32), 3)) for _ in range(3)])
    maps, infos = kernel_np_per.fit_dependent(kernel, x, groups, num_groups=4)
    assert infos.rank.tolist() == [3] * 3
    z = jax.vmap(draws.transform, in_axes=(0, None))(maps, x[0])
    assert z.dtype == jnp.float32
    for draw in range(3):
        alone, info = kernel_np_per.fit_dependent(kernel, x, groups[draw], num_groups=4)
        assert_close((member(maps, draw), member(infos, draw)), (alone, info))
        assert_close(z[draw], draws.transform(alone, x[0]), factor=10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bandwidth", [30.0, 300.0])
def test_duplicates_at_wide_bandwidths(bandwidth, dtype, rng):
    """Features are known to the root of what eigenvalues are: a duplicate must not count as a difference."""
    for second, rank in [(1, 3), (2, 3), (3, 2), (11, 2)]:
        x, groups = rng.normal(size=(12, 40)).astype(dtype), np.repeat(np.arange(4, dtype=np.int32), 3)
        x[second] = x[0]
        kernel = gram.gaussian(bandwidth=bandwidth)
        _, info = kernel_np_per.fit_dependent(kernel, x, groups, num_groups=4, rkhs_orthonormal=True)
        assert int(info.rank) == rank


@pytest.mark.parametrize("rkhs_orthonormal", [False, True])
def test_float32(rkhs_orthonormal, rng):
    x, groups = rng.normal(size=(60, 100)), rng.permutation(60).astype(np.int32) % 20
    kernel, settings = gram.gaussian(bandwidth=15.0), {"num_groups": 20, "rkhs_orthonormal": rkhs_orthonormal}
    exact, _ = kernel_np_per.fit(kernel, x, groups, **settings)
    for fit in FITS:
        found, info = fit(kernel, x.astype(np.float32), groups, **settings)
        assert int(info.rank) == 19
        assert found.coefficients.dtype == jnp.float32
        metric = np.asarray(exact.coefficients @ exact.coefficients.T)
        assert_close(np.asarray(found.coefficients) @ np.asarray(found.coefficients).T, metric, factor=10)


def test_a_bandwidth_that_is_too_wide_is_a_status(rng):
    x, groups = draws.grouped(rng)
    kernels = gram.gaussian(bandwidth=jnp.array([6.0, 1e12]))
    maps, infos = jax.vmap(lambda kernel: kernel_np_per.fit(kernel, x, groups, num_groups=5))(kernels)
    assert [Status(int(s)) for s in infos.status] == [Status.OK, Status.RANK_DEFICIENT]
    assert_close(
        member(maps, 0).coefficients, kernel_np_per.fit(KERNELS["gaussian"], x, groups, num_groups=5)[0].coefficients
    )
    assert isinstance(maps, KernelMap)


@pytest.mark.parametrize("rkhs_orthonormal", [False, True])
def test_a_loss_has_the_right_derivative_in_bandwidth_and_images(rkhs_orthonormal, rng):
    x, groups = draws.grouped(rng, d=6)
    probes, direction = rng.normal(size=(3, 6)), rng.normal(size=x.shape)

    def loss(t):
        kernel = gram.Gaussian(bandwidth=4.0 + t)
        settings = {"num_groups": 5, "rkhs_orthonormal": rkhs_orthonormal}
        found, _ = kernel_np_per.fit(kernel, x + t * direction, groups, **settings)
        z = kernel(probes, found.train) @ found.coefficients + found.offset[None, :]
        return jnp.log1p((z**2).sum(axis=1)).sum()

    numerical = (loss(1e-5) - loss(-1e-5)) / 2e-5
    assert abs(jax.grad(loss)(0.0) - numerical) < 1e-6 * abs(numerical)


def test_invariances_of_a_gaussian(rng):
    x, groups = draws.grouped(rng)
    rotation = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    plain, _ = kernel_np_per.fit(gram.gaussian(bandwidth=6.0), x, groups, num_groups=5)
    moved, _ = kernel_np_per.fit(gram.gaussian(bandwidth=12.0), 2 * x @ rotation + 3, groups, num_groups=5)
    assert largest_angle(plain.coefficients, moved.coefficients) < 1e-10


def test_messages(rng):
    x, groups = draws.grouped(rng)
    for fit in FITS:
        with pytest.raises(ValueError, match="groups of one image alone teach nothing"):
            fit(gram.linear(), x[:3], np.arange(3), num_groups=3)
        with pytest.raises(ValueError, match="x must be finite; 480 of 480"):
            fit(gram.linear(), np.full_like(x, np.nan), groups, num_groups=5)
        with pytest.raises(ValueError, match=r"kernel must be one of jaxface\.linalg\.gram, .* got 'gausian'"):
            fit("gausian", x, groups, num_groups=5)
    with pytest.raises(ValueError, match=r"bandwidth must lie in \(0, inf\); got 0.0"):
        gram.gaussian(bandwidth=0.0)
