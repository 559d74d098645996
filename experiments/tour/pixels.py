"""Pixels to vectors: pictures of the descriptors, and the error of the nearest neighbour on each."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs, recognition
from experiments.tour.part import Part
from jaxface.data import LabeledImages, splits
from jaxface.faces import hog, lbp, local_norm
from jaxface.metrics import intervals
from jaxface.reports import sheets
from jaxface.reports.html import Section
from jaxface.reports.tables import Table, percent_interval

_SHOWN_PEOPLE = 8

_errors = jax.jit(jax.vmap(recognition.cosine_error, in_axes=(None, None, 0, 0)))


def run(config: ConfigDict, faces: LabeledImages, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Nearest-neighbour errors `[pipelines, splits]`, and pictures of the descriptors."""
    parts = splits.k_shot(faces.ids, num_train=config.num_train, num_splits=config.num_splits, rng=rng)
    drawn = splits.of_parts(parts)
    images = jnp.asarray(faces.images, inputs.working_dtype())
    names, errors, widths = [], [], []
    for name, steps in config.pipelines.items():
        x = inputs.encode(images, steps)
        names.append(name)
        widths.append(x.shape[1])
        errors.append(_errors(x, faces.ids, drawn.train, drawn.test))
    return {
        "names": np.array(names),
        "widths": np.array(widths),
        "errors": np.stack(errors),
        "test_to_train": np.array(drawn.test_to_train),
        "pictures": _pictures(images, faces.ids),
    }


def render(arrays: Mapping[str, np.ndarray], faces: LabeledImages) -> Part:
    """The descriptors as pictures and the table of errors."""
    names = [str(name) for name in arrays["names"]]
    ratio = float(arrays["test_to_train"])
    mean = [intervals.split_interval(row, test_to_train=ratio, within=intervals.RATE) for row in arrays["errors"]]
    rows = [
        (names[k], int(arrays["widths"][k]), percent_interval(mean[k]))
        for k in np.argsort(arrays["errors"].mean(axis=1))
    ]
    section = Section(
        "Pixels to vectors",
        (
            "An image becomes a vector by steps that are functions of one image, vmapped over many: the grey values "
            "themselves, grey values made zero mean and unit variance in a 5 x 5 window, histograms of uniform local "
            "binary patterns, oriented gradients, and low frequencies of blocks.",
            sheets.sheet(
                "descriptors.png",
                arrays["pictures"],
                row_labels=("image", "local normalisation", "LBP codes", "HOG"),
                title="One face each of the first people, and three descriptors of it",
                caption="From top to bottom: image, local normalisation, LBP, HOG.",
            ),
            "Without any learning, a probe gets the name of the gallery image with the largest cosine. The interval is "
            "over the random splits, from five on, and widened for the images that splits share.",
            Table(("descriptor", "dimensions", "error %, 95 % interval"), rows, "Nearest neighbour by cosine"),
        ),
    )
    best = int(np.argmin(arrays["errors"].mean(axis=1)))
    headline = [("faces", f"nearest neighbour, {names[best]}: identification error %", percent_interval(mean[best]))]
    results = {f"error, {name}": float(row.mean()) for name, row in zip(names, arrays["errors"], strict=True)}
    return Part(section, headline, results)


def _pictures(images: jax.Array, ids: np.ndarray) -> np.ndarray:
    """A contact sheet `[4, people, h, w]` of images and descriptors, each in [0, 1]."""
    people = np.unique(ids)[:_SHOWN_PEOPLE]
    chosen = images[np.array([np.flatnonzero(ids == person)[0] for person in people])]
    height, width = chosen.shape[1:3]
    normal, codes, cells = _described(chosen)
    drawn = np.stack([_strokes(histograms, height, width) for histograms in np.asarray(cells)])
    return np.stack([np.asarray(chosen), np.asarray(normal), np.asarray(codes), drawn]).astype(np.float32)


@jax.jit
@jax.vmap
def _described(image: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Local normalisation and LBP codes as pictures, and oriented gradients in cells."""
    normal = jnp.clip(local_norm.normalize(image) / 5 + 0.5, 0, 1)
    codes = lbp.codes(image, radius=1) / 255
    margins = [
        ((whole - part) // 2, (whole - part + 1) // 2) for whole, part in zip(image.shape, codes.shape, strict=True)
    ]
    cells = hog.cell_histograms(image, cell=max(4, image.shape[0] // 14), num_bins=9)
    return normal, jnp.pad(codes, margins), cells


def _strokes(cells: np.ndarray, height: int, width: int) -> np.ndarray:
    """Draws histograms `[rows, columns, bins]`: in each cell a stroke along every edge, bright by its weight."""
    rows, columns, bins = cells.shape
    step_y, step_x = height / rows, width / columns
    y, x = np.mgrid[0:height, 0:width]
    row = np.minimum((y / step_y).astype(int), rows - 1)
    column = np.minimum((x / step_x).astype(int), columns - 1)
    dy, dx = y + 0.5 - (row + 0.5) * step_y, x + 0.5 - (column + 0.5) * step_x
    angles = (np.arange(bins) + 0.5) * np.pi / bins
    # An edge runs across its gradient: a pixel belongs to the stroke when its offset has no part along the gradient.
    distance = np.abs(dx[..., None] * np.cos(angles) + dy[..., None] * np.sin(angles))
    ink = np.clip(1.0 - distance, 0, None) * cells[row, column]
    picture = ink.max(axis=-1)
    return picture / max(float(np.quantile(picture, 0.99)), 1e-12) if picture.max() > 0 else picture
