"""The page of an embedding run."""

from typing import Any

import numpy as np

from experiments.common.publish import publish
from jaxface.reports import figures
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Table
from jaxface.runtime.workdir import Workdir

_SHOWN = 24


def page(workdir: Workdir, arrays: dict[str, np.ndarray], files: np.ndarray, results: dict[str, int]) -> None:
    """The numbers, some aligned faces, and the photos without one."""
    found = arrays["found"]
    shown = arrays["aligned"][found][:_SHOWN].astype(np.float32) / 255
    width = min(8, len(shown))
    rows = -(-len(shown) // width)
    sheet = np.ones((rows * width, *shown.shape[1:]), np.float32)
    sheet[: len(shown)] = shown
    picture = figures.image_grid(sheet.reshape(rows, width, *shown.shape[1:]), title="Aligned faces")
    blocks: list[Any] = [Picture("faces.png", figures.to_png(picture), "The first faces, as the network sees them.")]
    if not found.all():
        blocks.append(Table(("photo",), [(str(file),) for file in files[~found]], "Photos without a face"))
    publish(
        workdir,
        title="Photos as embeddings",
        lead="Faces found by YuNet and described by SFace, both run by OpenCV; 128 numbers a face.",
        headline=Table(("what", "number"), list(results.items())),
        sections=[Section("Faces", tuple(blocks))],
    )
