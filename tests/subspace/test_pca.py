import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.decomposition import PCA

from jaxface.core.fitinfo import Status
from jaxface.subspace import pca
from jaxface.subspace.linear_map import transform
from tests.class_sums import collected
from tests.tolerances import assert_close, projector


@pytest.mark.parametrize("shape", [(30, 8), (10, 40)])
def test_subspace_equals_the_dense_eigenvectors(shape, rng):
    x = rng.normal(size=shape) * np.linspace(3, 1, shape[1]) + 7
    fitted, info = pca.fit(x, num_components=4)
    values, vectors = np.linalg.eigh(np.cov(x.T, bias=True))
    assert_close(projector(fitted.basis), projector(vectors[:, -4:]), factor=10)
    found = pca.principal_axes(x, num_components=4)
    assert_close(found.variances, values[::-1][:4])
    assert int(info.status) == Status.OK
    assert int(info.rank) == min(shape[0] - 1, shape[1])


def test_whitened_outputs_have_unit_variance(rng):
    x = rng.normal(size=(30, 8)) * np.linspace(3, 1, 8)
    fitted, _ = pca.fit(x, num_components=5, whiten=True)
    z = jax.vmap(transform, in_axes=(None, 0))(fitted, x)
    assert_close(np.cov(z.T, bias=True), np.eye(5))
    reference = PCA(5, whiten=True).fit_transform(x) * np.sqrt(30 / 29)
    assert_close(np.abs(z), np.abs(reference), factor=10)


def test_duplicates_leave_zero_columns_and_a_status(rng):
    x = np.repeat(rng.normal(size=(4, 9)), 3, axis=0)  # rank 3 after centring
    fitted, info = pca.fit(x, num_components=5)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert int(info.rank) == 3
    assert_close(fitted.basis[:, 3:], np.zeros((9, 2)))
    assert np.isfinite(pca.fit(x, num_components=5, whiten=True)[0].basis).all()


@pytest.mark.parametrize("shape", [(60, 300), (300, 60)])
def test_randomized_axes_equal_the_exact_ones(shape, rng):
    spectrum = 0.8 ** np.arange(min(shape))
    x = (rng.normal(size=(shape[0], len(spectrum))) * spectrum) @ rng.normal(size=(len(spectrum), shape[1])) + 5
    exact, _ = pca.fit(x, num_components=6, whiten=True)
    found, info = pca.fit_randomized(jax.random.key(0), x, num_components=6, whiten=True, num_passes=6)
    assert int(info.status) == Status.OK
    assert_close(found.mean, exact.mean)
    assert_close(found.basis, exact.basis, factor=1e4)


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**-66, 2.0**66, 2.0**100])
@pytest.mark.parametrize("randomized", [False, True])
def test_whitening_has_no_unit(scale, randomized, rng):
    x = (rng.normal(size=(20, 4)) @ rng.normal(size=(4, 9)) + 3).astype(np.float32)
    fit = functools.partial(pca.fit_randomized, jax.random.key(0)) if randomized else pca.fit
    expected, _ = fit(x, num_components=3, whiten=True)
    found, info = fit(np.float32(scale) * x, num_components=3, whiten=True)
    assert int(info.status) == Status.OK
    assert_close(transform(found, np.float32(scale) * x[0]), transform(expected, x[0]))


def test_nan_under_jit_is_a_status(rng):
    x = jnp.asarray(rng.normal(size=(8, 5))).at[2, 1].set(jnp.nan)
    assert int(jax.jit(lambda x: pca.fit(x, num_components=2)[1].status)(x)) == Status.NON_FINITE


def test_randomized_finds_a_low_rank(rng):
    x = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 50))
    found, info = pca.fit_randomized(jax.random.key(0), x, num_components=5)
    assert int(info.status) == Status.RANK_DEFICIENT
    assert int(info.rank) == 3
    assert_close(projector(found.basis), projector(pca.fit(x, num_components=3)[0].basis), factor=100)


def test_refit_does_not_recompile(rng):
    x = rng.normal(size=(2, 12, 5))
    pca.fit(x[0], num_components=2)
    before = pca._fit._cache_size()
    pca.fit(x[1], num_components=2)
    assert pca._fit._cache_size() == before


def test_gradient_is_zero_not_wrong(rng):
    x = jnp.asarray(rng.normal(size=(6, 4)))
    assert_close(jax.grad(lambda a: pca.fit(a, num_components=2)[0].basis.sum())(x), np.zeros((6, 4)))


@pytest.mark.parametrize(
    ("x", "num_components", "message"),
    [
        (
            np.zeros((5, 3)),
            4,
            r"num_components must be at most 3 \(5 centred samples of 3 dimensions\); got 4",
        ),
        (np.zeros((1, 3)), 1, "number of samples must be at least 2; got 1"),
        (np.zeros(3), 1, r"x must have shape \[n, d\]; got shape \(3,\)"),
        (np.zeros((5, 3), int), 1, r"x must be a floating point array; got dtype int64"),
        (
            np.full((5, 3), np.nan),
            1,
            r"x must be finite; 15 of 15 values are NaN or infinite, the first at index \(0, 0\)",
        ),
    ],
)
def test_errors(x, num_components, message):
    with pytest.raises(ValueError, match=message):
        pca.fit(x, num_components=num_components)


def test_moments_give_the_axes_of_the_images(rng):
    """Of many images, with people without images, a whitening, and any shift."""
    x, ids = rng.normal(size=(60, 8)) @ rng.normal(size=(8, 8)) + 7, rng.integers(0, 5, size=60)
    for shift in (np.zeros(8), x[:3].mean(axis=0)):
        for whiten in (False, True):
            expected, _ = pca.fit(x, num_components=5, whiten=whiten)
            found, info = pca.from_moments(collected(x, ids, 9, shift), num_components=5, whiten=whiten)
            assert_close((found.mean, found.basis), (expected.mean, expected.basis), factor=1000)
            assert (int(info.status), int(info.rank)) == (Status.OK, 8)


def test_float32_moments_far_from_zero_keep_their_digits(rng):
    """An offset of a hundred standard deviations, variances over a factor of 100; the shift is near the mean."""
    rotation = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    x = (rng.normal(size=(3000, 8)) * np.logspace(0, -1, 8) @ rotation + 100).astype(np.float32)
    ids = np.arange(3000) % 9
    values = np.linalg.eigvalsh(np.cov(x.T.astype(float), bias=True))[::-1]
    stats = collected(x, ids, 9, x[:50].mean(axis=0), np.float32)
    axes = pca.axes_of_moments(stats, 8)[0]
    np.testing.assert_allclose(axes.variances, values, rtol=1e-5)
    found, info = pca.from_moments(stats, num_components=8, whiten=True)
    assert int(info.status) == Status.OK
    z = (x.astype(float) - np.asarray(found.mean, float)) @ np.asarray(found.basis, float)
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(8), atol=1e-4)


def test_variances_that_float32_cannot_know_are_a_status(rng):
    """A direction of a thousandth of the standard deviation of others; and images far from the shift."""
    x, ids = rng.normal(size=(200, 4)) * [1, 1, 1, 1e-4], np.zeros(200, int)
    found, info = pca.from_moments(collected(x, ids, 1, np.zeros(4), np.float32), num_components=4)
    assert (int(info.status), int(info.rank)) == (Status.RANK_DEFICIENT, 3)
    assert (np.asarray(found.basis[:, 3]) == 0).all()
    assert int(pca.from_moments(collected(x, ids, 1, np.zeros(4)), num_components=4)[1].rank) == 4  # in float64
    far = collected(np.float32(x + 1e4), ids, 1, np.zeros(4), np.float32)
    assert int(pca.from_moments(far, num_components=2)[1].status) == Status.RANK_DEFICIENT


def test_few_images_have_a_low_rank_and_none_has_none(rng):
    x = rng.normal(size=(4, 6))
    info = pca.from_moments(collected(x, np.zeros(4, int), 1, x[0]), num_components=5)[1]
    assert (int(info.status), int(info.rank)) == (Status.RANK_DEFICIENT, 3)
    info = pca.from_moments(collected(x[:0], np.zeros(0, int), 1, x[0]), num_components=5)[1]
    assert (int(info.status), int(info.rank)) == (Status.RANK_DEFICIENT, 0)


def test_nan_in_moments_is_a_status(rng):
    stats = collected(rng.normal(size=(9, 4)), np.zeros(9, int), 1, np.zeros(4))
    for field in ("sum", "second_moment", "shift"):
        damaged = stats._replace(**{field: getattr(stats, field) * np.nan})
        assert int(pca.from_moments(damaged, num_components=2)[1].status) == Status.NON_FINITE


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**40])
def test_whitening_by_moments_has_no_unit(scale, rng):
    x, ids = (rng.normal(size=(20, 4)) + 3).astype(np.float32), np.zeros(20, int)
    expected, _ = pca.from_moments(collected(x, ids, 1, x[0], np.float32), num_components=4, whiten=True)
    x = np.float32(scale) * x
    found, info = pca.from_moments(collected(x, ids, 1, x[0], np.float32), num_components=4, whiten=True)
    assert int(info.status) == Status.OK
    assert_close(np.float32(scale) * found.basis, expected.basis, factor=10)


def test_errors_of_moments(rng):
    stats = collected(rng.normal(size=(9, 4)), np.zeros(9, int), 1, np.zeros(4))
    with pytest.raises(ValueError, match=r"num_components must be at most 4 \(images of 4 dimensions\); got 5"):
        pca.from_moments(stats, num_components=5)
    with pytest.raises(ValueError, match=r"second_moment must have shape \[d, d\] with d = 4; got shape \(3, 3\)"):
        pca.from_moments(stats._replace(second_moment=np.eye(3)), num_components=1)
