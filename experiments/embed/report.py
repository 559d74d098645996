"""The page of an embedding run."""

from typing import Any

import numpy as np

from experiments.common.publish import publish
from experiments.embed.photos import Photos
from jaxface.reports import sheets
from jaxface.reports.html import Block, Command, Section
from jaxface.reports.tables import Table
from jaxface.runtime.workdir import Workdir

SHOWN = 24  # faces
_MOST_ROWS = 50


def page(
    workdir: Workdir,
    found: Photos,
    arrays: dict[str, np.ndarray],
    *,
    without: list[tuple[str, str]],
    is_labeled: bool,
    results: dict[str, Any],
) -> None:
    """The numbers, some aligned faces, the photos with several faces, those without one, and other files."""
    several = np.flatnonzero((arrays["faces"][arrays["photo"]] > 1) & (arrays["place"] == 1))
    sections = [Section("Faces", (_sheet(arrays["aligned"]),))]
    if several.size:
        sections.append(Section("Photos with several faces", (_several(found, arrays, several),)))
    if without:
        caption = "Photos without a vector; all in left_out.csv"
        sections.append(Section("Photos without a face", (Table(("photo", "reason"), without[:_MOST_ROWS], caption),)))
    if found.left_out:
        caption = "Files that are no photos for this program; all in left_out.csv"
        table = Table(("file", "reason"), found.left_out[:_MOST_ROWS], caption)
        sections.append(Section("Files that were left out", (table,)))
    sections.append(Section("What to do with the vectors", _next(workdir, found, is_labeled)))
    publish(
        workdir,
        title="Photos as embeddings",
        lead="Faces found by YuNet and described by SFace, both run by OpenCV; 128 numbers a face.",
        headline=Table(("what", "number"), list(results.items())),
        sections=sections,
    )


def _sheet(aligned: np.ndarray) -> Block:
    """The first faces in rows of eight."""
    shown = aligned[:SHOWN].astype(np.float32) / 255
    width = min(8, len(shown))
    rows = -(-len(shown) // width)
    sheet = np.ones((rows * width, *shown.shape[1:]), np.float32)
    sheet[: len(shown)] = shown
    pictures = sheet.reshape(rows, width, *shown.shape[1:])
    caption = "The first faces, as the network sees them."
    return sheets.sheet("faces.png", pictures, title="Aligned faces", caption=caption)


def _several(found: Photos, arrays: dict[str, np.ndarray], rows: np.ndarray) -> Table:
    """How many faces a photo has, and the box of the one that was taken."""
    cells = [
        (
            found.files[arrays["photo"][row]],
            int(arrays["faces"][arrays["photo"][row]]),
            *(round(float(side)) for side in arrays["boxes"][row]),
        )
        for row in rows[:_MOST_ROWS]
    ]
    head = ("photo", "faces", "left", "top", "width", "height")
    return Table(head, cells, "The box of the face that was taken, in pixels; all in faces.csv")


def _next(workdir: Workdir, found: Photos, is_labeled: bool) -> tuple[Block, ...]:
    """The commands that take these vectors."""
    file = f"{workdir.path}/embeddings.npz"
    if found.pairs is not None:
        return (
            "The pairs stand in pairs.csv, and in scores.csv with the cosine of their vectors. To see how good the "
            "cosine is:",
            Command(
                "python -m experiments.evaluate --config=configs/evaluate.py --workdir=runs/evaluated "
                f"--config.trials={workdir.path}/scores.csv"
            ),
            "To decide on these pairs by a verifier that you have:",
            Command(_score(f"--config.images.root={file} --config.pairs={workdir.path}/pairs.csv", "images")),
        )
    if is_labeled:
        return (
            "To make a verifier of these people and see how good it is on people it has never seen:",
            Command(
                "python -m experiments.verifier --config=configs/verifier.py:embeddings --workdir=runs/verifier "
                f"--config.data.root={file}"
            ),
        )
    return (
        "The vectors have no labels, because nobody says whom they show, so no verifier can be fitted to them. A "
        "verifier that you have decides on pairs of them; PAIRS.csv has the header a,b and the names in faces.csv:",
        Command(_score(f"--config.images.root={file} --config.pairs=PAIRS.csv", "images")),
        "It also names each of them among people whom you enrol, or calls the face unknown:",
        Command(
            _score(
                f"--config.probes.root={file} --config.gallery.root=PEOPLE.npz", "gallery", "probes", task=":identify"
            )
        ),
    )


def _score(rest: str, *sets: str, task: str = "") -> str:
    """A command of `experiments.score` on embeddings."""
    loaders = " ".join(f"--config.{name}.loader=embeddings" for name in sets)
    return (
        f"python -m experiments.score --config=configs/score.py{task} --workdir=runs/scored "
        f"--config.model=VERIFIER.safetensors {loaders} {rest}"
    )
