"""Statistics against the samples: another shift, another basis, scatters; empty classes, single samples, float32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.linalg import class_stats
from jaxface.linalg.class_stats import Stats
from tests import class_sums
from tests.tolerances import assert_close

LABELS = np.array([2, 0, 2, 2, 0, 4, 4, 1])  # class 3 is empty, class 1 has one sample


def collected(x, shift, dtype=np.float64):
    return class_sums.collected(x, LABELS, 5, shift, dtype)


@pytest.fixture
def x(rng):
    return rng.normal(size=(8, 4)) @ rng.normal(size=(4, 4)) + 10


def within(x, labels=LABELS):
    """Image by image."""
    return sum(
        np.outer(row - x[labels == c].mean(0), row - x[labels == c].mean(0)) for row, c in zip(x, labels, strict=True)
    )


def test_the_total_is_that_of_the_samples(x, rng):
    for shift in (np.zeros(4), rng.normal(size=4), x.mean(axis=0)):
        found = class_stats.total(collected(x, shift))
        assert_close(found.number, 8.0)
        assert_close(found.mean, x.mean(axis=0))
        assert_close(found.scatter, 8 * np.cov(x.T, bias=True), factor=100)


def test_the_scatter_within_is_that_of_the_samples(x, rng, monkeypatch):
    for shift in (np.zeros(4), rng.normal(size=4), x.mean(axis=0)):
        assert_close(class_stats.within_scatter(collected(x, shift)), within(x), factor=100)
    assert_close(class_stats.within_covariance(collected(x, shift)), within(x) / (8 - 4), factor=100)
    monkeypatch.setattr(class_stats, "_BLOCK_SIZE", 2)  # the last block shares a class with the one before
    jax.clear_caches()
    assert_close(class_stats.within_scatter(collected(x, shift)), within(x), factor=100)
    jax.clear_caches()


def test_the_basis_changes_as_if_the_samples_had_been_mapped(x, rng):
    basis, mean = rng.normal(size=(4, 2)), rng.normal(size=4)
    found = class_stats.change_basis(collected(x, rng.normal(size=4)), basis, mean)
    assert_close(found, collected((x - mean) @ basis, np.zeros(2)), factor=100)


def test_float32_mapped_statistics_stay_float32(x):
    stats = collected(x, x[0], dtype=np.float32)
    found = class_stats.change_basis(stats, np.eye(4), np.zeros(4))
    assert {leaf.dtype for leaf in found[:4]} == {np.dtype(np.float32)}


def test_no_samples():
    nothing = Stats(jnp.zeros(3), jnp.zeros((3, 2)), jnp.zeros((2, 2)), jnp.ones(2))
    found = class_stats.total(nothing)
    np.testing.assert_array_equal(found.mean, np.ones(2))
    for scatter in (found.scatter, class_stats.within_scatter(nothing), class_stats.within_covariance(nothing)):
        np.testing.assert_array_equal(scatter, np.zeros((2, 2)))


def test_errors(x):
    stats = collected(x, np.zeros(4))
    with pytest.raises(ValueError, match=r"basis must have shape \[d, r\] with d = 4; got shape \(3, 2\)"):
        class_stats.change_basis(stats, np.ones((3, 2)), np.zeros(4))
    with pytest.raises(ValueError, match="mean must be a floating point array; got dtype int64"):
        class_stats.change_basis(stats, np.eye(4), np.zeros(4, int))
    with pytest.raises(ValueError, match=r"shift must have shape \[d\]; got shape \(\)"):
        class_stats.recenter(stats, 0.0)
