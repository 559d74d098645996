"""The parts of the tour that choose."""

import numpy as np
import pytest

from configs import tour
from experiments.sections import same_person, subspaces
from tests.tolerances import assert_close


def test_settings_are_chosen_on_held_out_images_and_judged_on_others():
    held_out = np.array([[0.1, 0.2, 0.3], [0.3, 0.0, 0.1], [0.2, 0.1, 0.1]])
    test = np.array([[0.5, 0.4, 0.3], [0.6, 0.7, 0.2], [0.0, 0.9, 0.8]])
    arrays = {"held_out_ridge": held_out, "test_ridge": test}
    assert_close(subspaces._chosen(arrays, "ridge"), np.array([0.5, 0.7, 0.9]))


@pytest.mark.parametrize(("people", "parts"), [(40, (16, 4, 10, 10)), (20, (8, 2, 5, 5)), (10, (4, 2, 2, 2))])
def test_fewer_people_share_the_parts_of_the_transfer_study(people, parts):
    study = same_person._scaled(tour.get_config().same_person, people)
    assert (study.source_people, study.calibration_people, study.test_people, *study.target_people) == parts
