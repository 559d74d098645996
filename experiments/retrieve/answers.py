"""Queries with their answers, as pictures."""

from collections.abc import Mapping

import numpy as np
from ml_collections import ConfigDict

from experiments.retrieve.classes import title_of
from jaxface.data import LabeledImages
from jaxface.reports import sheets
from jaxface.reports.html import Block, Section

_PREFERRED = ("kernel_np_per", "kernel_rca", "pixels")  # whose answers are shown, where there are such
_COLUMNS = 8  # answers of a query
_SIDE = 64  # pixels of a picture at most
_FRAME = 3  # pixels
_RIGHT, _WRONG = (0.1, 0.6, 0.2), (0.8, 0.1, 0.1)


def section(config: ConfigDict, photographs: LabeledImages, found: Mapping[str, np.ndarray]) -> Section:
    """Figure 7, and what the methods answer: a row for each query, a sheet for each method."""
    names = [name for name in _PREFERRED if f"answers/{name}" in found] or ["pixels"]
    blocks: list[Block] = [
        "The first photograph of a row is the query, the others are its nearest in the database of the first split. A "
        "green frame marks the class of the query; wrong answers have a red frame and are pale."
    ]
    for name in names:
        rows = found[f"answers/{name}"][:, :_COLUMNS]
        images = [[_picture(photographs, query, None), *(_picture(photographs, row, query) for row in answers)]
                  for query, answers in zip(found["queries"], rows, strict=True)]  # fmt: skip
        labels = [str(photographs.names[photographs.ids[query]]) for query in found["queries"]]
        blocks.append(
            sheets.sheet(
                f"answers_{name}.png",
                images,
                row_labels=labels,
                column_labels=["query", *(str(k + 1) for k in range(rows.shape[1]))],
                title=title_of(name)[0].upper() + title_of(name)[1:],
                caption=f"Answers by {title_of(name)}; {config.per_class} photographs of each class to be found.",
            )
        )
    return Section("Queries and their answers", blocks)


def _picture(photographs: LabeledImages, row: int, query: int | None) -> np.ndarray:
    """A photograph in a frame that tells whether its class is that of the query."""
    image = photographs.images[row]
    every = -(-max(image.shape[:2]) // _SIDE)
    image = image[::every, ::every]
    if query is None:
        return _framed(image, (1.0, 1.0, 1.0))
    is_right = photographs.ids[row] == photographs.ids[query]
    return _framed(image if is_right else 0.5 + image / 2, _RIGHT if is_right else _WRONG)


def _framed(image: np.ndarray, color: tuple[float, float, float]) -> np.ndarray:
    height, width = image.shape[:2]
    framed = np.empty((height + 2 * _FRAME, width + 2 * _FRAME, 3), np.float32)
    framed[:] = color
    framed[_FRAME:-_FRAME, _FRAME:-_FRAME] = image
    return framed
