"""The page of an embedding run."""

from typing import Any

import numpy as np

from experiments.common.publish import publish
from jaxface.reports import figures
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Table
from jaxface.runtime.workdir import Workdir

SHOWN = 24  # faces
_MOST_ROWS = 50


def page(workdir: Workdir, arrays: dict[str, np.ndarray], files: np.ndarray, results: dict[str, int]) -> None:
    """The numbers, some aligned faces, and the photos without one."""
    found = arrays["found"]
    shown = arrays["aligned"].astype(np.float32) / 255
    width = min(8, len(shown))
    rows = -(-len(shown) // width)
    sheet = np.ones((rows * width, *shown.shape[1:]), np.float32)
    sheet[: len(shown)] = shown
    picture = figures.image_grid(sheet.reshape(rows, width, *shown.shape[1:]), title="Aligned faces")
    blocks: list[Any] = [Picture("faces.png", figures.to_png(picture), "The first faces, as the network sees them.")]
    if not found.all():
        why = zip(files[~found].tolist(), arrays["damage"][~found].tolist(), strict=True)
        lost = [(file, damage or "no face") for file, damage in why]
        blocks.append(Table(("photo", "what is wrong"), lost[:_MOST_ROWS], "Photos without a vector; all in faces.csv"))
    publish(
        workdir,
        title="Photos as embeddings",
        lead="Faces found by YuNet and described by SFace, both run by OpenCV; 128 numbers a face.",
        headline=Table(("what", "number"), list(results.items())),
        sections=[Section("Faces", tuple(blocks))],
    )
