"""Drawing a face from numbers: ellipses for head, hair, eyes, brows, nose and mouth, with soft edges and shading.

    Identity   the parameters of a person: proportions and tones
    Capture    the parameters of an image of that person: pose, lighting, expression
    render     (identity, capture) -> image [h, w] in [0, 1]
    landmarks  (identity, capture) -> 13 points [13, 2], (x, y) in pixels

Face coordinates: u to the right, v down, the origin between nose and eyes, the chin near v = 0.85; a face of scale 1
fills the shorter side of the image. Everything is smooth in the parameters, so images of many people lie near a
low-dimensional surface, as photographs of aligned faces do.
"""

from typing import NamedTuple

import numpy as np

__all__ = ["MEAN_FACE", "Capture", "Identity", "landmarks", "render"]

LANDMARKS = (
    "left brow",
    "right brow",
    "left eye outer",
    "left eye inner",
    "right eye inner",
    "right eye outer",
    "nose tip",
    "left nostril",
    "right nostril",
    "mouth left",
    "mouth right",
    "upper lip",
    "lower lip",
)  # left and right as the viewer sees them


class Identity(NamedTuple):
    """A person: lengths in face coordinates, tones in [0, 1]."""

    face_width: float
    face_height: float
    jaw: float  # how much the head narrows towards the chin
    eye_distance: float
    eye_height: float
    eye_size: float
    brow_gap: float
    brow_thickness: float
    brow_tilt: float
    nose_length: float
    nose_width: float
    mouth_width: float
    mouth_height: float
    lip_thickness: float
    hairline: float
    skin_tone: float
    hair_tone: float
    iris_tone: float


class Capture(NamedTuple):
    """An image of a person; by default frontal, neutral, lit from the front."""

    shift_x: float = 0.0  # in pixels
    shift_y: float = 0.0
    log_scale: float = 0.0
    roll: float = 0.0  # radians, in the image plane
    yaw: float = 0.0  # radians, to the viewer's right
    light_x: float = 0.0  # horizontal slope of the light, positive from the viewer's right
    light_y: float = 0.0  # vertical slope, positive from below
    smile: float = 0.0  # -1 sad to 1 smiling
    mouth_open: float = 0.0  # 0 closed to 1
    squint: float = 0.0  # 0 open eyes to 1 nearly closed


MEAN_FACE = Identity(  # around which people are drawn
    face_width=0.66,
    face_height=0.86,
    jaw=0.22,
    eye_distance=0.28,
    eye_height=-0.10,
    eye_size=0.115,
    brow_gap=0.15,
    brow_thickness=0.035,
    brow_tilt=0.0,
    nose_length=0.34,
    nose_width=0.10,
    mouth_width=0.25,
    mouth_height=0.47,
    lip_thickness=0.05,
    hairline=-0.52,
    skin_tone=0.68,
    hair_tone=0.22,
    iris_tone=0.18,
)
SPREAD = Identity(  # standard deviation of each parameter over people
    face_width=0.045,
    face_height=0.035,
    jaw=0.06,
    eye_distance=0.022,
    eye_height=0.025,
    eye_size=0.014,
    brow_gap=0.02,
    brow_thickness=0.010,
    brow_tilt=0.10,
    nose_length=0.035,
    nose_width=0.018,
    mouth_width=0.035,
    mouth_height=0.03,
    lip_thickness=0.012,
    hairline=0.06,
    skin_tone=0.07,
    hair_tone=0.12,
    iris_tone=0.06,
)

_EDGE = 0.03  # width of a soft edge
_BACKGROUND = 0.42


def render(identity: Identity, capture: Capture, *, size: tuple[int, int]) -> np.ndarray:
    """The image `[h, w]`, float64 in [0, 1]."""
    u, v = _face_coordinates(capture, size)
    image = np.full(size, _BACKGROUND)
    head_width = identity.face_width * (1 - identity.jaw * np.clip(v, 0, None) ** 2)
    image = _paint(image, _ellipse(u, v, 0.0, 1.15, 0.34, 0.5), 0.8 * identity.skin_tone)  # neck
    hair = _ellipse(u, v, 0.0, -0.14, 1.12 * identity.face_width, 0.98 * identity.face_height)
    image = _paint(image, hair, identity.hair_tone)
    face = _ellipse(u, v, 0.0, 0.0, head_width, identity.face_height)
    fringe = _step(identity.hairline + 0.35 * u**2 - v)
    image = _paint(image, face * (1 - fringe), identity.skin_tone)
    image = _eyes(image, u, v, identity, capture)
    image = _nose(image, u, v, identity, capture)
    image = _mouth(image, u, v, identity, capture)
    shade = _shading(u / head_width, v / identity.face_height, capture)
    return np.clip(image * (1 + np.maximum(face, hair) * (shade - 1)), 0.0, 1.0)


def landmarks(identity: Identity, capture: Capture, *, size: tuple[int, int]) -> np.ndarray:
    """The points named in `LANDMARKS` as (x, y) = (column, row) in pixels, float64 `[13, 2]`."""
    eyes = [_eye_center(identity, capture, side) for side in (-1, 1)]
    reach = 1.35 * identity.eye_size
    nose_u, nose_v = _turned(0.0, identity.eye_height + identity.nose_length, 0.55, capture)
    mouth_u, mouth_v = _turned(0.0, identity.mouth_height, 0.35, capture)
    half, lip = identity.mouth_width, identity.lip_thickness * (1 + 1.5 * capture.mouth_open)
    corner_v = mouth_v - 0.07 * capture.smile
    points = [
        *[(u, v - identity.brow_gap) for u, v in eyes],
        *[(u + offset, v) for u, v in eyes for offset in (-reach, reach)],
        (nose_u, nose_v),
        (nose_u - identity.nose_width, nose_v),
        (nose_u + identity.nose_width, nose_v),
        (mouth_u - half, corner_v),
        (mouth_u + half, corner_v),
        (mouth_u, mouth_v - lip),
        (mouth_u, mouth_v + lip),
    ]
    return _pixel_coordinates(np.array(points), capture, size)


def _pixel_coordinates(points: np.ndarray, capture: Capture, size: tuple[int, int]) -> np.ndarray:
    """Face coordinates (u, v) to pixels (x, y): rotate by the roll, scale, move to the middle and by the shift."""
    cos, sin = np.cos(capture.roll), np.sin(capture.roll)
    unit = 0.5 * min(size) * np.exp(capture.log_scale)
    middle = np.array([size[1] / 2 - 0.5 + capture.shift_x, size[0] / 2 - 0.5 + capture.shift_y])
    rotation = np.array([[cos, -sin], [sin, cos]])
    return middle + unit * points @ rotation.T


def _face_coordinates(capture: Capture, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Face coordinates u, v `[h, w]` of every pixel: the inverse of `_pixel_coordinates`."""
    cos, sin = np.cos(capture.roll), np.sin(capture.roll)
    unit = 0.5 * min(size) * np.exp(capture.log_scale)
    x = (np.arange(size[1]) - (size[1] / 2 - 0.5 + capture.shift_x))[None, :] / unit
    y = (np.arange(size[0]) - (size[0] / 2 - 0.5 + capture.shift_y))[:, None] / unit
    return cos * x + sin * y, cos * y - sin * x


def _turned(u: float, v: float, depth: float, capture: Capture) -> tuple[float, float]:
    """Where a point of the given depth in front of the axis of the head appears after the yaw."""
    return u * np.cos(capture.yaw) + depth * np.sin(capture.yaw), v


def _eye_center(identity: Identity, capture: Capture, side: int) -> tuple[float, float]:
    return _turned(side * identity.eye_distance, identity.eye_height, 0.40, capture)


def _eyes(image: np.ndarray, u: np.ndarray, v: np.ndarray, identity: Identity, capture: Capture) -> np.ndarray:
    size, opening = identity.eye_size, 0.55 * (1 - 0.8 * capture.squint)
    sockets, whites, irises, brows = [], [], [], []
    for side in (-1, 1):
        eye_u, eye_v = _eye_center(identity, capture, side)
        sockets.append(_ellipse(u, v, eye_u, eye_v - 0.02, 1.7 * size, 1.2 * size))
        whites.append(_ellipse(u, v, eye_u, eye_v, 1.35 * size, opening * size))
        irises.append(_ellipse(u, v, eye_u, eye_v, 0.55 * size, 0.55 * size))
        arched = v - side * identity.brow_tilt * (u - eye_u) - 1.1 * (u - eye_u) ** 2
        brows.append(_ellipse(u, arched, eye_u, eye_v - identity.brow_gap, 1.7 * size, identity.brow_thickness))
    image = _paint(image, 0.35 * _union(*sockets), 0.7 * identity.skin_tone)
    image = _paint(image, _union(*whites), 0.9)
    image = _paint(image, _union(*whites) * _union(*irises), identity.iris_tone)
    return _paint(image, _union(*brows), 0.8 * identity.hair_tone)


def _nose(image: np.ndarray, u: np.ndarray, v: np.ndarray, identity: Identity, capture: Capture) -> np.ndarray:
    tip_u, tip_v = _turned(0.0, identity.eye_height + identity.nose_length, 0.55, capture)
    bridge = _ellipse(u, v, 0.85 * tip_u, tip_v - 0.5 * identity.nose_length, 0.045, 0.5 * identity.nose_length)
    image = _paint(image, 0.5 * bridge, min(1.0, 1.15 * identity.skin_tone))
    tip = _ellipse(u, v, tip_u, tip_v, identity.nose_width, 0.07)
    image = _paint(image, 0.35 * tip, 0.75 * identity.skin_tone)
    nostrils = [
        _ellipse(u, v, tip_u + 0.55 * side * identity.nose_width, tip_v + 0.04, 0.035, 0.02) for side in (-1, 1)
    ]
    return _paint(image, _union(*nostrils), 0.35 * identity.skin_tone)


def _mouth(image: np.ndarray, u: np.ndarray, v: np.ndarray, identity: Identity, capture: Capture) -> np.ndarray:
    mouth_u, mouth_v = _turned(0.0, identity.mouth_height, 0.35, capture)
    bent = v + 0.07 * capture.smile * ((u - mouth_u) / identity.mouth_width) ** 2  # a smile lifts the corners
    height = identity.lip_thickness * (1 + 1.5 * capture.mouth_open)
    lips = _ellipse(u, bent, mouth_u, mouth_v, identity.mouth_width, height)
    image = _paint(image, lips, 0.62 * identity.skin_tone)
    gap_height = 0.012 + height * 0.6 * capture.mouth_open
    gap = _ellipse(u, bent, mouth_u, mouth_v, 0.85 * identity.mouth_width, gap_height)
    return _paint(image, gap, 0.25 * identity.skin_tone)


def _shading(normal_u: np.ndarray, normal_v: np.ndarray, capture: Capture) -> np.ndarray:
    """Lambert's cosine on an ellipsoid under a distant light, with ambient light: near 1 for frontal light."""
    normal_w = np.sqrt(np.clip(1 - normal_u**2 - normal_v**2, 0.05, None))
    norm = np.sqrt(normal_u**2 + normal_v**2 + normal_w**2)
    light = np.array([capture.light_x, capture.light_y, 1.0])
    light /= np.linalg.norm(light)
    cosine = (normal_u * light[0] + normal_v * light[1] + normal_w * light[2]) / norm
    return 0.35 + 0.75 * np.clip(cosine, 0, None)


def _ellipse(u: np.ndarray, v: np.ndarray, u0: float, v0: float, a: np.ndarray | float, b: float) -> np.ndarray:
    """Soft coverage of an ellipse with half axes a and b: 1 inside, 0 outside.

    The distance to the outline is (1 - r) / |grad r| to first order, with r the elliptic radius; the small terms
    make it min(a, b) at the centre, where both vanish.
    """
    du, dv = u - u0, v - v0
    radius = np.sqrt((du / a) ** 2 + (dv / b) ** 2)
    slope = np.sqrt((du / a**2) ** 2 + (dv / b**2) ** 2)
    return _step((1 - radius) * (radius + 1e-6) / (slope + 1e-6 / np.minimum(a, b)))


def _union(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Coverage by either of two shapes; painting them one after the other would prefer the second."""
    return 1 - (1 - left) * (1 - right)


def _step(distance: np.ndarray) -> np.ndarray:
    """0 to 1 across an edge of width `_EDGE`."""
    return 0.5 + 0.5 * np.tanh(2 * distance / _EDGE)


def _paint(image: np.ndarray, coverage: np.ndarray, tone: float) -> np.ndarray:
    return image + coverage * (tone - image)
