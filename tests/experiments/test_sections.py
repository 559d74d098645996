"""The parts of the tour that choose."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import tour
from experiments.tour import same_person, subspaces
from jaxface.subspace import lda, transform
from tests.tolerances import assert_close


def test_settings_are_chosen_on_held_out_images_and_judged_on_others():
    held_out = np.array([[0.1, 0.2, 0.3], [0.3, 0.0, 0.1], [0.2, 0.1, 0.1]])
    test = np.array([[0.5, 0.4, 0.3], [0.6, 0.7, 0.2], [0.0, 0.9, 0.8]])
    arrays = {"held_out_ridge": held_out, "test_ridge": test}
    assert_close(subspaces._chosen(arrays, "ridge"), np.array([0.5, 0.7, 0.9]))


PARTS = [(40, (16, 4, 10, 10)), (20, (8, 2, 5, 5)), (10, (4, 2, 2, 2)), (9, (3, 2, 2, 2)), (8, (2, 2, 2, 2))]


@pytest.mark.parametrize(("people", "parts"), PARTS)
def test_fewer_people_share_the_parts_of_the_transfer_study(people, parts):
    study = same_person._scaled(tour.get_config().same_person, people)
    assert (study.source_people, study.calibration_people, study.test_people, *study.target_people) == parts


def test_too_few_people_are_refused_before_anything_is_fitted():
    with pytest.raises(ValueError, match=r"number of people must be at least 8 .*; got 7"):
        same_person._scaled(tour.get_config().same_person, 7)


@pytest.mark.parametrize(("count", "most"), [([10] * 40, 159), ([6] * 40, 119), ([4, 5, 40, 40], 8)])
def test_axes_that_the_smallest_training_set_does_not_span_are_refused(count, most):
    """With 5 images a person to train on, 4 of them choose settings; half of the people have to do as well."""
    config = tour.get_config().subspaces
    for name in ("components", "pca_widths"):
        config.components = config.pca_widths = (5, most)
        subspaces._check(config, np.array(count))
        config[name] = (5, most + 1)
        with pytest.raises(ValueError, match=rf"config.subspaces.{name} must be at most {most} .*; got {most + 1}"):
            subspaces._check(config, np.array(count))


def test_widths_in_one_program_are_fisherfaces_of_each_width(rng):
    """Of many probes, so that one axis more or fewer shows in the errors."""
    ids, place = np.repeat(np.arange(8), 12), np.arange(96) % 12
    x = jnp.asarray((0.8 * rng.normal(size=(8, 30)))[ids] + rng.normal(size=(96, 30)))
    gallery, probes = (np.stack([np.flatnonzero(place % 3 == k) for k in which]) for which in ((0, 1), (1, 2)))
    widths = (8, 11, 15)
    found = subspaces._width_errors(x, jnp.asarray(ids), gallery, probes, widths=widths, num_classes=8)
    for k, (rows, queries) in enumerate(zip(gallery, probes, strict=True)):
        for width, error in zip(widths, found[k], strict=True):
            fitted, _ = lda.fit(x[rows], ids[rows], num_classes=8, num_components=7, pca_components=width)
            z = np.asarray(jax.vmap(transform, in_axes=(None, 0))(fitted, x))
            squared = ((z[queries][:, None] - z[rows][None]) ** 2).sum(axis=-1)
            assert_close(error, (ids[rows][squared.argmin(axis=1)] != ids[queries]).mean())
