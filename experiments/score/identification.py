"""Probes among enrolled people: who is it, or nobody?"""

import dataclasses
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs
from experiments.common.inputs import Vectors
from experiments.score import false_accepts, norms, report
from jaxface import verifier
from jaxface.data import overlap
from jaxface.reports.tables import Cell, Table
from jaxface.runtime.workdir import Workdir
from jaxface.verifier import Identification, Verifier

_NUM_SHOWN = 40


def run(config: ConfigDict, workdir: Workdir, model: Verifier) -> dict[str, Any]:
    """The most probable person of each probe, and error rates for probes in folders with known names."""
    gallery, probes = (inputs.load_vectors(section, model.steps) for section in (config.gallery, config.probes))
    enrolled = verifier.enroll(verifier.encode_vectors(model, gallery.x), gallery.ids, num_people=len(gallery.names))
    stated = None
    if config.far is not None:
        strangers = false_accepts.load(config, model, {"gallery": gallery, "probes": _named(probes)})
        stated = false_accepts.of_gallery(config, model, enrolled, strangers)
    answer = verifier.identify(
        model,
        enrolled,
        verifier.encode_vectors(model, probes.x),
        prior=config.prior,
        threshold=None if stated is None else stated.threshold,
        num_best=min(config.num_best, len(gallery.names)),
    )
    nearest = np.array([str(gallery.names[k]) for k in answer.person])
    decision = np.where(answer.is_named, nearest, "unknown")
    folder = np.array([str(probes.names[k]) if k >= 0 else "" for k in probes.ids])
    files = probes.files or tuple(f"row {k}" for k in range(len(folder)))
    rows = list(zip(files, nearest, answer.evidence, answer.probability, decision, folder, strict=True))
    report.write_csv(workdir, ("probe", "nearest_person", "evidence", "probability", "decision", "folder"), rows)
    if config.num_best > 1:
        listed = _candidates(answer, files, gallery)
        report.write_csv(workdir, ("probe", "place", "person", "evidence"), listed, name="candidates.csv")

    is_enrolled_image = overlap.identical_rows(gallery.x, probes.x)
    has_known_name = np.isin(folder, [str(name) for name in gallery.names])
    known, stranger = has_known_name & ~is_enrolled_image, ~has_known_name & ~is_enrolled_image & (folder != "")
    is_right, named = nearest == folder, answer.is_named
    results = {
        "probes": len(folder),
        "people enrolled": len(gallery.names),
        "probes that are enrolled images, in none of the rates": int(is_enrolled_image.sum()),
        "probes whose folder names an enrolled person": int(known.sum()),
        "identification rate of these": float(is_right[known].mean()) if known.any() else None,
        "called unknown": int((~named).sum()),
        "enrolled people called unknown": int((~named & known).sum()),
        "enrolled people given another name": int((named & known & ~is_right).sum()),
        "strangers given a name": int((named & stranger).sum()),
        "threshold": answer.threshold,
    }
    if stated is not None:
        results["stated rate of strangers given a name"] = float(stated.far.estimate)
    if stranger.any():
        results["rate of strangers given a name"] = float(named[stranger].mean())
    if known.any():
        results["rate of enrolled people called unknown"] = float((~named)[known].mean())
    if config.cohort.root is not None:
        sides = {"gallery": gallery, "probes": probes} | ({} if stated is None else {"strangers": strangers})
        results |= norms.compare(config, workdir, model, sides, enrolled, is_known=known, is_stranger=stranger)
    shown: list[tuple[Cell, ...]] = [
        (file, str(person), float(evidence), float(probability), str(name))
        for file, person, evidence, probability, name, _ in rows[:_NUM_SHOWN]
    ]
    header = ("probe", "nearest person", "evidence", "probability", "decision")
    table = Table(header, shown, "The first probes; all in scores.csv")
    report.page(config, workdir, "Identification of probes", results, [table], probes.credit, stated=stated)
    return results


def _candidates(answer: Identification, files: tuple[str, ...], gallery: Vectors) -> list[tuple[Cell, ...]]:
    """The people with the most evidence for each probe, one after the other."""
    found = answer.candidates
    return [
        (file, place, str(gallery.names[row]), float(evidence))
        for file, rows, scores in zip(files, found.rows, found.scores, strict=True)
        for place, (row, evidence) in enumerate(zip(rows, scores, strict=True), 1)
    ]


def _named(probes: Vectors) -> Vectors:
    """The probes whose folder says whom they show."""
    rows = np.flatnonzero(probes.ids >= 0)
    return dataclasses.replace(probes, x=probes.x[rows], ids=probes.ids[rows])
