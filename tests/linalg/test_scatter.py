import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.linalg import scatter
from tests.tolerances import assert_close


def test_factors_give_the_scatters_of_the_definition(rng):
    labels = np.array([2, 0, 2, 2, 0, 4, 4, 1], np.int32)  # class 3 is empty, class 1 has one sample
    x = rng.normal(size=(8, 3)) + 100
    within, between = np.zeros((3, 3)), np.zeros((3, 3))
    for c in np.unique(labels):
        members = x[labels == c]
        for row in members:
            within += np.outer(row - members.mean(0), row - members.mean(0))
        between += len(members) * np.outer(members.mean(0) - x.mean(0), members.mean(0) - x.mean(0))
    found_within = scatter.matrix(scatter.within_factor(x, labels, num_classes=5))
    found_between = scatter.matrix(scatter.between_factor(x, labels, num_classes=5))
    assert_close(found_within, within, factor=100)
    assert_close(found_between, between, factor=100)
    assert_close(found_within + found_between, scatter.matrix(scatter.total_factor(x)), factor=100)


@pytest.mark.parametrize("offset", [0, 100, 1e4])
def test_float32_far_from_the_origin_has_no_rank_too_many(offset, rng):
    x = jnp.asarray(rng.normal(size=(40, 100)) + offset, jnp.float32)
    labels = np.arange(40, dtype=np.int32) % 4
    factors = [(scatter.total_factor(x), 39), (scatter.within_factor(x, labels, num_classes=4), 36)]
    for factor, rank in [*factors, (scatter.between_factor(x, labels, num_classes=4), 3)]:
        assert np.linalg.matrix_rank(np.asarray(factor)) == rank


def test_bytes_do_not_wrap_around(rng):
    x, labels = rng.integers(0, 256, (300, 2)).astype(np.uint8), np.zeros(300, np.int32)
    moments = scatter.class_moments(jnp.asarray(x), labels, num_classes=1)
    assert_close(moments.counts, np.array([300.0]))
    assert_close(moments.mean, x.mean(axis=0, keepdims=True).astype(np.float32))
