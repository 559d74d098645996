"""RCA against the dense metric: both ways out of a singular scatter, and where the ridge leads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.core.fitinfo import Status
from jaxface.linalg import gram
from jaxface.subspace import held_out, kernel_rca, lda, np_per, rca
from tests.reference import subspace_reference as reference
from tests.subspace import draws
from tests.tolerances import assert_close


@pytest.mark.parametrize(
    ("d", "settings"),
    [
        (40, {"pca_components": 7}),
        (40, {"pca_components": 3}),
        (40, {"ridge": 0.1}),
        (40, {"ridge": 0.01, "pca_components": 9}),
        (5, {}),
    ],
)
def test_equals_the_dense_metric(d, settings, rng):
    x, groups = draws.grouped(rng, d=d)
    width = settings.get("pca_components", min(11, d))
    found, info = rca.fit(x, groups, num_groups=5, **settings)
    expected = reference.rca(x, groups, width, settings.get("ridge", 0.0))
    assert found.basis.shape == (d, width)
    assert_close(found.basis @ found.basis.T, expected, factor=100)
    assert int(info.status) == Status.OK
    assert int(info.rank) == min(width, 7)
    y = x @ np.linalg.svd(x - x.mean(axis=0), full_matrices=False)[2][:width].T
    within = sum(((y[groups == g] - y[groups == g].mean(axis=0)) ** 2).sum() for g in range(5)) / len(x)
    assert_close(info.jitter, settings.get("ridge", 0.0) * within / width)


def test_whitens_within_groups(rng):
    x, groups = draws.grouped(rng)
    basis = np.asarray(rca.fit(x, groups, num_groups=5, pca_components=6)[0].basis)
    within, _, _ = reference.scatters(x, groups)
    assert_close(basis.T @ within @ basis / len(x), np.eye(6), factor=10)


@pytest.mark.parametrize("ridge", [1e-3, 1e-6, 1e-9])
def test_a_vanishing_ridge_leads_to_np_per(ridge, rng):
    """`e d^2` between any two vectors of the span, e in the units of Sigma; what remains is of the order of e."""
    x, groups = draws.grouped(rng)
    found, _ = rca.fit(x, groups, num_groups=5, ridge=ridge)
    null, _ = np_per.fit(x, groups, num_groups=5)
    epsilon = ridge * np.trace(reference.scatters(x, groups)[0]) / len(x) / 11
    scaled = epsilon * draws.squared(draws.mapped(found, x))
    limit = draws.squared(draws.mapped(null, x))
    gap = abs(scaled - limit).max() / limit.max()
    assert gap < 10 * ridge
    assert gap > 0.01 * ridge


def test_the_pca_that_comes_first_is_what_loses(rng):
    """The one direction that tells groups apart varies least: a ridge keeps it, PCA drops it."""
    groups = np.repeat(np.arange(10, dtype=np.int32), 4)

    def images():
        return np.column_stack([0.01 * groups, rng.normal(size=(40, 11))])

    x, probes = images(), images()
    reduced, _ = rca.fit(x, groups, num_groups=10, pca_components=11)
    ridged, _ = rca.fit(x, groups, num_groups=10, ridge=1e-10)
    assert float(held_out.group_error(draws.mapped(reduced, probes), groups)) > 0.7
    assert float(held_out.group_error(draws.mapped(ridged, probes), groups)) == 0


def test_singular_scatter_is_a_status(rng):
    x, groups = draws.grouped(rng)
    x[np.flatnonzero(groups == 0)[1]] = x[np.flatnonzero(groups == 0)[0]]
    found, info = rca.fit(x, groups, num_groups=5, pca_components=7)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert int(info.rank) == 6
    assert np.isfinite(found.basis).all()
    assert int(rca.fit(x, groups, num_groups=5, ridge=0.1)[1].status) == Status.OK


def test_many_ridges_are_one_call(rng):
    x, groups = draws.grouped(rng)
    ridges = jnp.array([0.0, 0.1, 1.0])
    maps, infos = jax.vmap(lambda ridge: rca.fit(x, groups, num_groups=5, ridge=ridge))(ridges)
    assert [Status(int(s)) for s in infos.status] == [Status.RANK_DEFICIENT, Status.OK, Status.OK]
    assert_close(maps.basis[1], rca.fit(x, groups, num_groups=5, ridge=0.1)[0].basis)


def test_invariant_to_shift_and_rotation_and_blind_to_scale(rng):
    x, groups = draws.grouped(rng)
    rotation = np.linalg.qr(rng.normal(size=(40, 40)))[0]

    def distances(a):
        return draws.squared(draws.mapped(rca.fit(a, groups, num_groups=5, ridge=0.1)[0], a))

    assert_close(distances(3 * x @ rotation + 7), distances(x), factor=100)


def test_gradient_is_zero_not_wrong(rng):
    x, groups = draws.grouped(rng)
    gradient = jax.grad(lambda a: rca.fit(a, groups, num_groups=5, ridge=0.1)[0].basis.sum())(x)
    assert_close(gradient, np.zeros_like(x))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pca_components": 12}, r"pca_components must be at most 11 \(12 centred samples of 40 dimensions\); got 12"),
        ({"pca_components": 8}, r"at most 7 \(the most that S_g can have as rank; or give a ridge\); got 8"),
        ({}, r"pca_components must be at most 7 .*; got 11"),
        ({"pca_components": 0}, "pca_components must be at least 1; got 0"),
        ({"ridge": -0.1}, r"ridge must lie in \[0, inf\); got -0.1"),
    ],
)
def test_messages(settings, message, rng):
    x, groups = draws.grouped(rng)
    with pytest.raises(ValueError, match=message):
        rca.fit(x, groups, num_groups=5, **settings)


def test_every_group_of_one_image(rng):
    with pytest.raises(ValueError, match="groups of one image alone teach nothing"):
        rca.fit(rng.normal(size=(5, 40)), np.arange(5), num_groups=5, ridge=0.1)


def test_the_first_columns_are_rca_after_a_smaller_pca(rng):
    x, groups = draws.grouped(rng)
    whole = rca.fit(x, groups, num_groups=5, pca_components=7)[0].basis
    for width in (1, 3, 6):
        smaller = rca.fit(x, groups, num_groups=5, pca_components=width)[0].basis
        assert_close(whole[:, :width], smaller, factor=100)


def test_rounding_of_images_that_are_the_same_is_not_a_direction(rng):
    """Copies within every group, or within two of twenty: their differences are rounding and not images."""
    x, groups = rng.normal(size=(4, 30)).repeat(3, axis=0), np.repeat(np.arange(4, dtype=np.int32), 3)
    for settings in ({"pca_components": 3}, {"ridge": 0.1}):
        fitted, info = rca.fit(x, groups, num_groups=4, **settings)
        assert (int(info.rank), int(info.status)) == (0, Status.RANK_DEFICIENT)
        assert (np.asarray(fitted.basis) == 0).all()
    groups = np.repeat(np.arange(20, dtype=np.int32), 3)
    x = rng.normal(size=(20, 80))[groups] + 1e-3 * rng.normal(size=(60, 80))
    x[:6] = x[[0, 0, 0, 3, 3, 3]]
    for dtype in (np.float64, np.float32):
        fitted, info = rca.fit(x.astype(dtype), groups, num_groups=20, pca_components=40)
        assert (int(info.rank), int(info.status)) == (36, Status.RANK_DEFICIENT)
        assert np.abs(fitted.basis).max() < 1e6


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_nan_has_a_status_inside_a_program(ridge, rng):
    x, groups = rng.normal(size=(12, 30)), np.repeat(np.arange(4, dtype=np.int32), 3)
    x[3, 4] = np.nan
    kernel = gram.gaussian(bandwidth=3.0)
    fits = (
        lambda x: rca.fit(x, groups, num_groups=4, pca_components=6, ridge=ridge),
        lambda x: kernel_rca.fit(kernel, x, groups, num_groups=4, pca_components=6, ridge=ridge),
        lambda x: lda.fit(x, groups, num_classes=4, num_components=3, ridge=ridge),
    )
    for fit in fits:
        _, info = jax.jit(fit)(x)
        assert int(info.status) in (Status.NON_FINITE, Status.RANK_DEFICIENT)
    bytes_of_images = rng.integers(0, 256, (12, 400)).astype(np.float32)
    kernel = gram.polynomial(degree=6)  # of bytes: beyond float32
    _, info = kernel_rca.fit(kernel, bytes_of_images, groups, num_groups=4, pca_components=6, ridge=0.1)
    assert int(info.status) in (Status.NON_FINITE, Status.RANK_DEFICIENT)


def test_the_type_of_the_ridge_does_not_matter(rng):
    x, groups = rng.normal(size=(12, 30)).astype(np.float32), np.repeat(np.arange(4, dtype=np.int32), 3)
    fitted, info = rca.fit(x, groups, num_groups=4, ridge=np.float64(0.1))
    assert fitted.basis.dtype == info.jitter.dtype == np.float32
