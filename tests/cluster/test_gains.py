"""Gains in blocks against the formula for each pair."""

import numpy as np
import pytest

from jaxface.cluster import gains, partition_priors
from tests.tolerances import assert_close

VALUES = np.array([2.0, 0.5, 0.0])
PRIOR = partition_priors.ewens(0.7)


def g(total, weight):
    """The evidence of sets with sums `[..., r]` and weights `[...]`."""
    scale = 1 + np.asarray(weight)[..., None] * VALUES
    return (VALUES * total**2 / scale - np.log(scale)).sum(axis=-1) / 2


def gain(sum_a, weight_a, sum_b, weight_b):
    joint = g(sum_a[:, None] + sum_b[None, :], weight_a[:, None] + weight_b[None, :])
    return joint - g(sum_a, weight_a)[:, None] - g(sum_b, weight_b)[None, :]


def some(rng, n, sizes=(1, 2, 5)):
    size = rng.choice(sizes, n)
    return gains.items(rng.normal(size=(n, 3)) * np.sqrt(size)[:, None], size)


def plain(rows, columns):
    prior = PRIOR.of_sizes(rows.size[:, None], columns.size[None, :])
    return gain(rows.sum, rows.weight, columns.sum, columns.weight) + prior


@pytest.mark.parametrize("blocks", [(1024, 128, 16), (4, 2), (3,), (1,)])
def test_blocks_change_nothing(blocks, rng, monkeypatch):
    monkeypatch.setattr(gains, "_BLOCKS", blocks)
    monkeypatch.setattr(gains, "_SMALL_BLOCKS", blocks[-1:])
    rows, columns = some(rng, 7), some(rng, 11)
    shapes = set()

    def checked(sum_a, weight_a, sum_b, weight_b):
        shapes.add((len(sum_a), len(sum_b)))
        assert len(set(weight_b)) == 1
        return gain(sum_a, weight_a, sum_b, weight_b)

    assert_close(gains.table(checked, PRIOR, rows, columns), plain(rows, columns))
    assert shapes <= {(a, b) for a in blocks for b in blocks}
    expected = plain(columns, columns)
    np.fill_diagonal(expected, -np.inf)
    found = gains.symmetric(checked, PRIOR, columns)
    assert_close(found, expected)
    np.testing.assert_array_equal(found, found.T)
    beside = gains.take(columns, slice(7))
    assert_close(gains.along(checked, PRIOR, rows, beside), np.diagonal(plain(rows, beside)))


def test_the_type_of_the_sums_and_tables_without_columns(rng):
    each = some(rng, 5)
    narrow = gains.items(each.sum.astype(np.float32), each.weight, each.size)
    assert gains.symmetric(gain, PRIOR, narrow).dtype == np.float32
    assert gains.table(gain, PRIOR, each, gains.take(each, [])).shape == (5, 0)
    assert gains.along(gain, PRIOR, gains.take(each, []), gains.take(each, [])).shape == (0,)


def test_items_and_their_groups(rng):
    alone = gains.items(rng.normal(size=(4, 3)))
    np.testing.assert_array_equal(alone.weight, np.ones(4))
    assert alone.size.dtype == np.int64
    groups = gains.grouped(alone, np.array([1, 0, 1, 1]))
    assert_close(groups.sum, np.stack([alone.sum[1], alone.sum[[0, 2, 3]].sum(axis=0)]))
    np.testing.assert_array_equal(groups.size, [1, 3])
    weighted = gains.items(alone.sum, [0.5, 1.47, 0.0, 2], [1, 5, 1, 2])
    np.testing.assert_array_equal(weighted.size, [1, 5, 1, 2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((2, 3), int),), "sum must be a floating point array"),
        ((np.ones((2, 3), np.float16),), "too narrow"),
        ((np.full((2, 3), np.nan),), "sum must be finite"),
        ((np.ones(3),), r"sum must have shape \[n, r\]"),
        ((np.ones((2, 3)), [1.0]), r"weight must have shape \[n\] with n = 2"),
        ((np.ones((2, 3)), [1.0, -1.0], [1, 1]), "weight must lie in"),
        ((np.ones((2, 3)), [1.0, 1.5]), "size must be whole numbers from 1 on"),
        ((np.ones((2, 3)), [1.0, 1.5], [0, 2]), "size must be whole numbers from 1 on"),
    ],
)
def test_items_that_are_none(arguments, message):
    with pytest.raises(ValueError, match=message):
        gains.items(*arguments)


def test_a_gain_that_is_none(rng):
    each = some(rng, 3)
    with pytest.raises(ValueError, match="gain must give numbers below infinity; got NaN"):
        gains.symmetric(lambda *sets: np.nan * gain(*sets), PRIOR, each)
    with pytest.raises(ValueError, match="gain must give one number for each pair"):
        gains.symmetric(lambda *sets: gain(*sets)[:1], PRIOR, each)
