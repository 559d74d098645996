"""(12): what groups miss of the scatter within classes."""

from functools import partial

import jax
import numpy as np
import pytest

from jaxface.data import groups
from jaxface.subspace import group_scatter
from tests.reference import subspace_reference as reference
from tests.tolerances import assert_close

GROUPS = np.array([3, 0, 1, 1, 4, 0, 2, 1, 2, 3, 1, 0], np.int32)
CLASS_OF_GROUP = np.array([0, 1, 1, 2, 0], np.int32)
LABELS = CLASS_OF_GROUP[GROUPS]
SIZES = {"num_groups": 5, "num_classes": 3}


@pytest.mark.parametrize("dim", [4, 14])  # fewer dimensions than images, and more
def test_is_the_difference_of_the_scatters(dim, rng):
    x = rng.normal(size=(12, dim)) + 5
    of_groups, of_classes = reference.scatters(x, GROUPS)[0], reference.scatters(x, LABELS)[0]
    factor = np.asarray(group_scatter.missed_factor(x, GROUPS, LABELS, **SIZES))
    assert_close(factor.T @ factor, of_classes - of_groups, factor=10)
    found = group_scatter.scatter_error(x, GROUPS, LABELS, **SIZES)
    assert_close(found.missed, np.trace(of_classes - of_groups) / np.trace(of_classes), factor=10)
    apart = np.linalg.norm(of_groups / (12 - 5) - of_classes / (12 - 3))
    assert_close(found.shape, apart / np.linalg.norm(of_classes / (12 - 3)), factor=10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_does_not_depend_on_place_and_unit(dtype, rng):
    x = rng.normal(size=(12, 4)).astype(dtype)
    plain = group_scatter.scatter_error(x, GROUPS, LABELS, **SIZES)
    moved = group_scatter.scatter_error(dtype(1e30) * (x + 8), GROUPS, LABELS, **SIZES)
    assert plain.missed.dtype == dtype
    assert_close(moved.missed, plain.missed, factor=1000)
    assert_close(moved.shape, plain.shape, factor=1000)


def test_groups_that_are_classes_miss_nothing(rng):
    x = rng.normal(size=(12, 4))
    found = group_scatter.scatter_error(x, LABELS, LABELS, num_groups=3, num_classes=3)
    assert_close(found.missed, 0.0)
    assert_close(found.shape, 0.0)


def test_empty_groups_and_classes_do_not_count(rng):
    x = rng.normal(size=(12, 4))
    plain = group_scatter.scatter_error(x, GROUPS, LABELS, **SIZES)
    more = group_scatter.scatter_error(x, 2 * GROUPS, 2 * LABELS, num_groups=12, num_classes=7)
    assert_close(more.missed, plain.missed)
    assert_close(more.shape, plain.shape)


def test_groups_of_one_image_miss_everything(rng):
    x = rng.normal(size=(12, 4))
    found = group_scatter.scatter_error(x, np.arange(12), LABELS, num_groups=12, num_classes=3)
    assert_close(found.missed, 1.0)
    assert np.isnan(found.shape)


def test_classes_without_differences_have_no_relative_error():
    found = group_scatter.scatter_error(np.ones((12, 4)), GROUPS, LABELS, **SIZES)
    assert np.isnan(found.missed)


def test_the_mean_over_random_groups_is_known(rng):
    """(R - C) / (n - C), here 3 of 9."""
    x = rng.normal(size=(12, 4))
    labels = np.repeat(np.arange(3, dtype=np.int32), 4)
    drawn = groups.random_groups(labels, group_size=2, rng=rng, num_draws=400)
    error = partial(group_scatter.scatter_error, labels=labels, num_groups=6, num_classes=3)
    missed = np.asarray(jax.vmap(error, in_axes=(None, 0))(x, drawn).missed)
    assert abs(missed.mean() - 3 / 9) < 4 * missed.std() / 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"labels": np.roll(LABELS, 1)},
            "every group must lie within one class; group 1 has images of the classes 0 and 1",
        ),
        ({"groups": GROUPS[:5]}, "groups"),
        ({"num_groups": 4}, r"groups must be in \[0, 4\); got values from 0 to 4"),
        ({"labels": LABELS - 1}, r"labels must be in \[0, 3\); got values from -1 to 1"),
        ({"x": np.full((12, 4), np.nan)}, "x must be finite"),
        ({"x": np.zeros((12, 4), int)}, "x must be a floating point array"),
    ],
)
def test_messages(change, message):
    arguments = {"x": np.ones((12, 4)), "groups": GROUPS, "labels": LABELS, **SIZES, **change}
    with pytest.raises(ValueError, match=message):
        group_scatter.missed_factor(**arguments)
