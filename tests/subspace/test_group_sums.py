"""RCA from sums over groups that come in parts, and with random features in the place of a kernel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from jaxface.core.fitinfo import Status
from jaxface.features import forms, kitchen_sinks, maps
from jaxface.linalg import gram
from jaxface.subspace import group_sums, kernel_np_per, kernel_rca, np_per, rca
from tests.reference import subspace_reference as reference
from tests.subspace import draws
from tests.tolerances import assert_close

SIZES = (3, 1, 4, 2, 2)  # of five groups, in order
GROUPS = np.repeat(np.arange(5, dtype=np.int32), SIZES)


def images(rng, dtype=np.float64):
    return (rng.normal(size=(12, 5)) + 3).astype(dtype)


def collected(x, *, shift=None):
    start = group_sums.zero(np.full(5, 2.5, x.dtype) if shift is None else shift)
    return group_sums.add(start, x, GROUPS, num_groups=5)


def metric(fitted):
    return np.asarray(fitted.basis) @ np.asarray(fitted.basis).T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_is_the_scatter_within_groups(dtype, rng):
    x = images(rng, dtype)
    sums = collected(x)
    assert sums.within.dtype == dtype
    assert (int(sums.count), int(sums.num_groups)) == (12, 5)
    assert_close(sums.within, reference.scatters(x, GROUPS)[0].astype(dtype), factor=10)
    assert_close(sums.second_moment, ((x - 2.5).T @ (x - 2.5)).astype(dtype), factor=10)
    assert_close(sums.shift + sums.sum / 12, x.mean(axis=0), factor=10)


def test_batches_of_whole_groups_give_the_same(rng):
    """In any order, with rows of no group, and by merging."""
    x = images(rng)
    whole, start = collected(x), group_sums.zero(np.full(5, 2.5))
    padded = np.concatenate([x[8:], np.full((8, 5), 1e3)])
    late = group_sums.add(start, padded, np.array([2, 2, 0, 0] + [-1] * 8, np.int32), num_groups=5)
    early = np.concatenate([x[:8], x[:4]])
    numbers = np.concatenate([GROUPS[:8], np.full(4, -1, np.int32)])
    assert_close(group_sums.add(late, early, numbers, num_groups=5), whole, factor=10)
    assert_close(group_sums.merge(late, group_sums.add(start, early, numbers, num_groups=5)), whole, factor=10)


def test_rca_is_that_of_all_images_at_once(rng):
    x = images(rng)
    direct, of_direct = rca.fit(x, GROUPS, num_groups=5, ridge=0.2)
    fitted, info = rca.from_sums(collected(x), ridge=0.2)
    assert info.status == Status.OK
    assert_close(metric(fitted), metric(direct), factor=100)
    assert_close(metric(fitted), reference.rca(x, GROUPS, 5, ridge=0.2), factor=100)
    assert_close(fitted.mean, x.mean(axis=0), factor=10)
    assert_close(info.jitter, of_direct.jitter, factor=10)


def test_the_directions_of_np_per_are_a_generalised_eigenproblem(rng):
    x = images(rng)
    within, between, _ = (each / 12 for each in reference.scatters(x, GROUPS))
    noise = within + 0.1 * np.trace(within) / 5 * np.eye(5)
    vectors = scipy.linalg.eigh(between, noise)[1][:, ::-1][:, :3]
    fitted, info = np_per.from_sums(collected(x), num_components=3, ridge=0.1)
    assert (info.status, int(info.rank)) == (Status.OK, 3)
    assert_close(metric(fitted), vectors @ vectors.T, factor=1000)
    assert_close(fitted.mean, x.mean(axis=0), factor=10)


def test_a_null_space_comes_first(rng):
    """Fewer images than dimensions: as the ridge vanishes, the leading directions are those of `fit`."""
    x = rng.normal(size=(12, 30)) + 3
    exact, _ = np_per.fit(x, GROUPS, num_groups=5)
    sums = group_sums.add(group_sums.zero(np.full(30, 2.5)), x, GROUPS, num_groups=5)
    fitted, info = np_per.from_sums(sums, num_components=6, ridge=1e-7)
    assert (info.status, int(info.rank)) == (Status.OK, 4)
    assert not np.asarray(fitted.basis)[:, 4:].any()
    assert_close(float(info.jitter) * metric(fitted), metric(exact), factor=1e8)  # to the ridge


def test_a_singular_scatter_is_told(rng):
    x = images(rng)
    x[:, 4] = 1.0
    fitted, info = rca.from_sums(collected(x), ridge=0.0)
    assert info.status == Status.RANK_DEFICIENT
    assert not np.asarray(fitted.basis).any()
    assert rca.from_sums(collected(x), ridge=0.1)[1].status == Status.OK
    assert np_per.from_sums(collected(x), num_components=3, ridge=0.0)[1].status == Status.RANK_DEFICIENT


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_singular_scatter_is_told_whatever_the_rounding(dtype):
    """Differences within groups in four of five dimensions, mixed and in units of their own."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        units = 10.0 ** rng.uniform(-2, 2, 5)
        within = rng.normal(size=(12, 4)) @ rng.normal(size=(4, 5))
        sums = collected(((within + rng.normal(size=(5, 5))[GROUPS]) * units).astype(dtype))
        assert rca.from_sums(sums, ridge=0.0)[1].status == Status.RANK_DEFICIENT
        assert np_per.from_sums(sums, num_components=3, ridge=0.0)[1].status == Status.RANK_DEFICIENT


def test_random_features_approach_the_kernel(rng):
    """Squared distances of kernel NP-PER and of kernel RCA with a ridge, by eight and by 512 frequencies."""
    x, groups = rng.normal(size=(12, 5)), GROUPS
    kernel = gram.gaussian(bandwidth=2.0)
    exact, _ = kernel_np_per.fit(kernel, x, groups, num_groups=5, rkhs_orthonormal=True)
    ridged, _ = kernel_rca.fit_metric(kernel, x, groups, num_groups=5, ridge=0.5)
    of_null_space = draws.squared(draws.mapped(exact, x))
    of_ridge = np.asarray(kernel_rca.squared_distance_matrix(ridged, x, x))
    gaps = []
    for count in (8, 512):
        drawn = kitchen_sinks.init(jax.random.key(0), input_dim=5, num_features=count, bandwidth=jnp.float64(2.0))
        z = np.asarray(maps.feature_matrix(drawn, x, form=forms.cos_sin))
        null, _ = np_per.fit(z, groups, num_groups=5)
        sums = group_sums.add(group_sums.zero(np.zeros(2 * count)), z, groups, num_groups=5)
        # Both ridges are relative to a mean eigenvalue, here of as many as there are features.
        whitened, _ = rca.from_sums(sums, ridge=0.5 * 2 * count / 12)
        found = draws.squared(draws.mapped(null, z)), draws.squared(draws.mapped(whitened, z))
        gaps.append([np.abs(a - b).mean() / b.mean() for a, b in zip(found, (of_null_space, of_ridge), strict=True)])
    assert (np.array(gaps[1]) < 0.15).all()
    assert (np.array(gaps[1]) < np.array(gaps[0]) / 2).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: group_sums.add(group_sums.zero(np.zeros(4)), x, GROUPS, num_groups=5), "shift must have shape"),
        (
            lambda x: group_sums.add(group_sums.zero(np.zeros(5)), x, GROUPS, num_groups=4),
            r"groups must be in \[0, 4\)",
        ),
        (
            lambda x: group_sums.add(group_sums.zero(np.zeros(5)), x, GROUPS, num_groups=0),
            "num_groups must be at least 1",
        ),
        (lambda x: group_sums.merge(collected(x), collected(x, shift=np.zeros(5))), "about the same shift"),
        (lambda x: rca.from_sums(group_sums.zero(np.zeros(5)), ridge=0.1), "groups must show differences"),
        (lambda x: rca.from_sums(collected(x), ridge=-1.0), "ridge must lie in"),
        (lambda x: np_per.from_sums(collected(x), num_components=6, ridge=0.1), "num_components must be at most 5"),
        (lambda x: np_per.from_sums(collected(x), num_components=2, ridge=-1.0), "ridge must lie in"),
    ],
)
def test_messages(call, message, rng):
    with pytest.raises(ValueError, match=message):
        call(images(rng))
