"""Your own photos as embeddings: find the face, align it, and describe it by a small deep network.

    pip install -e '.[run,embed]'
    python -m experiments.embed --config=configs/embed.py --config.data.root=PHOTOS --workdir=runs/embedded

PHOTOS holds one folder a person, or photos of unknown people in one flat folder, or is the `.bin` of a verification
set. Of several faces in a photo, a large one near the centre is taken (`config.face`). Writes `embeddings.npz`, which
other studies take with `loader=embeddings`, `faces.csv` with the box and score of each face, `left_out.csv` with every
file that gave no vector and why, and a page. Photos are read in chunks, each a stage: an interrupted run goes on with
the next chunk.
"""

from functools import partial
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields
from experiments.common.inputs import Vectors
from experiments.embed import faces, photos, report
from experiments.embed.faces import Networks
from experiments.embed.photos import Photos
from jaxface.core.labels import dense
from jaxface.data import face_bin, folders, overlap
from jaxface.data.face_bin import FaceBin
from jaxface.reports.tables import csv_text
from jaxface.runtime.workdir import Workdir

CHUNK = 200  # photos of a stage


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Embeds every photo that shows a face, and lists the other photos."""
    fields.shares(config, "min_score")
    fields.counts(config, "max_side")
    fields.words(config, "face", faces.CHOICES)
    if config.data.root is None:
        raise ValueError("--config.data.root is missing: name a folder that holds one folder of photos a person.")
    workdir.uses(data=config.data.root)
    networks = faces.load_networks(config.min_score)
    found = photos.find(config.data.root)
    if found.pairs is not None and config.face == "all":
        raise ValueError(f"config.face = 'all' breaks the pairs of {config.data.root}; choose 'whole' or 'weighted'.")
    arrays = embed_photos(config, workdir, networks, found)
    names = row_names(config, found, arrays)
    vectors = {"features": arrays["features"], "files": np.asarray(names)}
    # With `all` nobody says which of the faces of a photo is the person of the folder.
    labels = np.asarray(found.labels)[arrays["photo"]] if found.labels and config.face != "all" else np.empty(0, str)
    workdir.write_arrays("embeddings.npz", vectors | ({"labels": labels} if labels.size else {}))
    without = write_lists(workdir, found, arrays, names)
    results = {
        "photos": len(found.files),
        "with a face": int((arrays["faces"] > 0).sum()),
        "without a face": int((arrays["faces"] == 0).sum()),
        "with several faces": int((arrays["faces"] > 1).sum()),
        "that cannot be read": len(arrays["damaged"]),
        "other files, left out": len(found.left_out),
        "vectors": len(names),
        "people": len(np.unique(labels)),
    }
    if found.pairs is not None:
        results["pairs"] = write_pairs(workdir, found.pairs, arrays)
    report.page(workdir, found, arrays, without=without, is_labeled=bool(labels.size), results=results)
    return results


def vectors_of_photos(config: ConfigDict, workdir: Workdir) -> Vectors:
    """Photos of known people as vectors, in the stages of another study; photos without a face are left out."""
    fields.words(config, "face", faces.ONE)
    found = photos.of_listing(folders.scan(config.data.root, min_people=2))
    arrays = embed_photos(config, workdir, faces.load_networks(config.min_score), found)
    names = row_names(config, found, arrays)
    write_lists(workdir, found, arrays, names)
    _, ids, people = dense([found.labels[k] for k in arrays["photo"]])
    overlap.refuse_shared_rows(overlap.Known(arrays["features"], ids, people), source=config.data.root)
    return Vectors(x=arrays["features"], ids=ids, names=people, files=names)


def embed_photos(config: ConfigDict, workdir: Workdir, networks: Networks, found: Photos) -> dict[str, np.ndarray]:
    """The arrays of `faces.embedded` for all photos, a stage for each chunk of them.

    What stays in memory is the vector and the box of each face, and the pixels of the few faces that the page shows.
    """
    rows = range(len(found.files))
    chunks = [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]
    parts: list[dict[str, np.ndarray]] = []
    num_shown = report.SHOWN

    def work(chunk: range) -> dict[str, np.ndarray]:
        arrays = faces.embedded(networks, found, chunk, config, num_shown=num_shown)
        if len(chunks) == 1:
            _refuse_none(config, arrays)
        return arrays

    for k, chunk in enumerate(chunks):
        parts.append(workdir.stage(f"faces-{k:04d}", partial(work, chunk)))
        num_shown -= len(parts[-1]["aligned"])
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    _refuse_none(config, arrays)
    return arrays


def _refuse_none(config: ConfigDict, arrays: dict[str, np.ndarray]) -> None:
    if not len(arrays["photo"]):
        why = arrays["why"]
        damaged = f" {len(why)} cannot be read; the first: {why[0]}" if len(why) else ""
        raise ValueError(
            f"no photo below {config.data.root} shows a face with a score of {config.min_score} or more.{damaged}"
        )


def row_names(config: ConfigDict, found: Photos, arrays: dict[str, np.ndarray]) -> tuple[str, ...]:
    """The name of each row: its photo, and with `all` which of its faces, `photo.jpg#1` for the first."""
    rows = zip(arrays["photo"].tolist(), arrays["place"].tolist(), strict=True)
    return tuple(f"{found.files[row]}#{place}" if config.face == "all" else found.files[row] for row, place in rows)


def write_lists(
    workdir: Workdir, found: Photos, arrays: dict[str, np.ndarray], names: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Writes `faces.csv` and `left_out.csv`; returns every file without a vector and why."""
    why = dict(zip(arrays["damaged"].tolist(), arrays["why"].tolist(), strict=True))
    lost = [row for row in range(len(found.files)) if arrays["faces"][row] == 0]
    boxes = zip(names, arrays["faces"][arrays["photo"]], arrays["boxes"].round(1), arrays["scores"], strict=True)
    lines: list[tuple[Any, ...]] = [
        (name, int(n), *box, "" if np.isnan(score) else f"{score:.3f}", "") for name, n, box, score in boxes
    ]
    order = [*arrays["photo"].tolist(), *lost]
    lines += [(found.files[row], 0, 0.0, 0.0, 0.0, 0.0, "", why.get(row, "")) for row in lost]
    in_order = [lines[k] for k in np.argsort(order, kind="stable")]
    head = ("file", "faces", "left", "top", "width", "height", "score", "damage")
    workdir.write_text("faces.csv", csv_text([head, *in_order]))
    without = [(found.files[row], why.get(row, "no face")) for row in lost]
    workdir.write_text("left_out.csv", csv_text([("file", "reason"), *without, *found.left_out]))
    return without


def write_pairs(workdir: Workdir, pairs: FaceBin, arrays: dict[str, np.ndarray]) -> int:
    """The pairs of a verification set as `pairs.csv` for other studies, and with their cosines as `scores.csv`.

    A pair without two vectors is not in `pairs.csv`; its score is -inf, as that of a comparison that failed.
    """
    best = arrays["place"] == 1
    place = np.full(len(pairs.starts), -1)
    place[arrays["photo"][best]] = np.flatnonzero(best)
    first, second = place[::2], place[1::2]
    x = arrays["features"] / np.linalg.norm(arrays["features"], axis=1, keepdims=True)
    is_whole = (first >= 0) & (second >= 0)
    cosines = np.where(is_whole, (x[first] * x[second]).sum(axis=1), -np.inf)
    rows = list(zip(*face_bin.trials(pairs), pairs.is_same.astype(int).tolist(), cosines.tolist(), strict=True))
    workdir.write_text("scores.csv", csv_text([("a", "b", "same", "cosine"), *rows]))
    kept = [row[:3] for row, whole in zip(rows, is_whole, strict=True) if whole]
    workdir.write_text("pairs.csv", csv_text([("a", "b", "same"), *kept]))
    return len(kept)
