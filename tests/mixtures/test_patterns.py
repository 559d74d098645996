"""Samples in groups of those with the same views."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxface.mixtures import patterns
from tests.mixtures import gaps
from tests.mixtures.gaps import S


def test_every_sample_is_in_the_group_of_its_views(rng):
    model, (views, mask) = gaps.model(rng), gaps.samples(rng)
    weights = rng.uniform(1, 2, size=S)
    found = patterns.to_blocks(model, gaps.spoiled(views, mask), weights, 4, present=mask)
    assert found.patterns == ((0, 1, 2), (0, 1), (1, 2), (2,))
    for pattern, group in zip(found.patterns, found.groups, strict=True):
        rows = np.flatnonzero((mask == np.isin(np.arange(3), pattern)).all(axis=1))
        own = np.concatenate([views[v][rows] for v in pattern], axis=1)
        counted = np.asarray(group.sample_weights) > 0
        order = np.argsort(np.asarray(group.sample_weights)[counted])
        np.testing.assert_array_equal(np.asarray(group.sample_weights)[counted][order], np.sort(weights[rows]))
        np.testing.assert_array_equal(np.asarray(group.values)[counted][order], own[np.argsort(weights[rows])])


def test_the_patterns_of_a_mask(rng):
    mask = np.array([[True, False], [True, True], [False, False], [True, True]])
    assert patterns.patterns_of(mask, np.array([1, 1, 0, 1])) == ((0, 1), (0,))
    assert patterns.patterns_of(mask[:2].reshape(1, 2, 2)) == ((0, 1), (0,))
    with pytest.raises(ValueError, match="every sample must have a view; 1 have none, the first is sample 2"):
        patterns.patterns_of(mask)


def seen_together(*rows, weights=None):
    mask = np.array(rows, bool)
    model = gaps.model(np.random.default_rng(0), widths=(1,) * mask.shape[1])
    views = tuple(np.ones((len(mask), 1)) for _ in range(mask.shape[1]))
    return bool(patterns.are_connected(patterns.to_blocks(model, views, weights, present=mask), mask.shape[1]))


def test_the_graph_of_views_seen_together():
    path = np.eye(5, 6, dtype=bool) | np.eye(5, 6, k=1, dtype=bool)
    assert seen_together(*path)
    assert not seen_together(*np.delete(path, 2, axis=0), np.eye(6)[0])
    assert not seen_together(*path, weights=np.array([1.0, 1, 0, 1, 1]))
    assert seen_together([1, 1], [1, 0])
    assert not seen_together([0, 1], [1, 0])
    assert seen_together([1], [1])


def test_a_view_that_nobody_has():
    mask = np.array([[True, False], [True, True]])
    patterns.every_view_occurs(mask)
    patterns.every_view_occurs(None)
    with pytest.raises(ValueError, match="y is missing in every sample"):
        patterns.every_view_occurs(mask, np.array([1.0, 0.0]))


def test_a_mask_on_the_device_is_a_mask(rng):
    model, (views, mask) = gaps.model(rng), gaps.samples(rng)
    found = patterns.to_blocks(model, gaps.spoiled(views, mask), None, present=jnp.asarray(mask))
    assert sum(float(group.sample_weights.sum()) for group in found.groups) == S
