"""Drawn faces: light, shifts and smiles move what they should."""

import numpy as np
import pytest

from jaxface.data import rendering
from tests.tolerances import assert_close


def test_a_neutral_face_is_symmetric_and_lighting_is_not():
    frontal = rendering.render(rendering.MEAN_FACE, rendering.Capture(), size=(32, 32))
    assert_close(frontal, frontal[:, ::-1])
    right = rendering.render(rendering.MEAN_FACE, rendering.Capture(light_x=0.8), size=(32, 32))
    left = rendering.render(rendering.MEAN_FACE, rendering.Capture(light_x=-0.8), size=(32, 32))
    assert_close(right, left[:, ::-1])
    assert right[:, 16:].mean() > right[:, :16].mean() + 0.05


def test_a_shift_moves_image_and_landmarks_by_whole_pixels():
    moved = rendering.Capture(shift_x=3.0, shift_y=-2.0)
    still = rendering.render(rendering.MEAN_FACE, rendering.Capture(), size=(40, 40))
    image = rendering.render(rendering.MEAN_FACE, moved, size=(40, 40))
    assert_close(image[4:34, 6:36], still[6:36, 3:33])
    points = [
        rendering.landmarks(rendering.MEAN_FACE, capture, size=(40, 40)) for capture in (rendering.Capture(), moved)
    ]
    assert_close(points[1] - points[0], np.tile([3.0, -2.0], (13, 1)))


@pytest.mark.parametrize("roll", [0.0, 0.4])
def test_landmarks_lie_on_what_they_name(roll):
    capture = rendering.Capture(roll=roll, log_scale=-0.1)
    size = (96, 96)
    image = rendering.render(rendering.MEAN_FACE, capture, size=size)
    at = dict(zip(rendering.LANDMARKS, rendering.landmarks(rendering.MEAN_FACE, capture, size=size), strict=True))

    def tone(x, y):
        return image[round(y), round(x)]

    cheek = tone(*(0.5 * at["mouth left"] + 0.5 * at["left eye outer"]))
    assert tone(*at["left brow"]) < 0.6 * cheek
    assert tone(*(0.5 * at["left eye inner"] + 0.5 * at["left eye outer"])) < 0.6 * cheek  # the iris
    assert tone(*(0.5 * at["upper lip"] + 0.5 * at["lower lip"])) < 0.6 * cheek
    assert at["left eye outer"][0] < at["left eye inner"][0] < at["right eye inner"][0]


def test_a_smile_lifts_the_corners_of_the_drawn_mouth_and_of_its_landmarks():
    rows = []
    for smile in (0.0, 1.0):
        capture = rendering.Capture(smile=smile)
        image = rendering.render(rendering.MEAN_FACE, capture, size=(96, 96))
        x, y = rendering.landmarks(rendering.MEAN_FACE, capture, size=(96, 96))[rendering.LANDMARKS.index("mouth left")]
        rows.append((y, 60 + np.argmin(image[60:84, round(x) + 2])))
    lift = np.subtract(*rows)
    assert lift[0] == pytest.approx(0.07 * 48)
    assert 1 <= lift[1] <= 4
