"""Identification by normalised scores, beside the evidence that decides."""

from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.common import identification_norms, inputs
from experiments.common.inputs import Vectors
from experiments.score import report
from jaxface import metrics, verifier
from jaxface.data import overlap
from jaxface.runtime.workdir import Workdir
from jaxface.verifier import Gallery, Verifier


def compare(
    config: ConfigDict,
    workdir: Workdir,
    model: Verifier,
    sides: dict[str, Vectors],
    gallery: Gallery,
    *,
    is_known: np.ndarray,
    is_stranger: np.ndarray,
) -> dict[str, float]:
    """The best person of each probe by every rule, in `norms.csv`; with a FAR also the rates of each.

    sides                  the sets of the run by name: `probes`, `gallery` and, with a FAR, `strangers`
    is_known, is_stranger  `[q]`, which probes show somebody enrolled and which surely do not
    """
    cohort = inputs.load_vectors(config.cohort, model.steps)
    for name, each in sides.items():
        if cohort.names and each.names and (each.ids >= 0).all():
            both = {"cohort": cohort, name: each}
            overlap.refuse_shared_people(**{side: overlap.Known(v.x, v.ids, v.names) for side, v in both.items()})
    points = {name: np.asarray(verifier.encode_vectors(model, each.x)) for name, each in sides.items()}
    nearby = np.asarray(verifier.encode_vectors(model, cohort.x))
    settings = {"cohort": nearby, "num_best": config.cohort_best}
    found = identification_norms.best(model, gallery, points["probes"], **settings)
    names, probes = [str(name) for name in sides["gallery"].names], sides["probes"]
    files = probes.files or tuple(f"row {k}" for k in range(len(probes.x)))
    columns = [column for each in found.values() for column in ([names[k] for k in each.person], each.score)]
    head = ("probe", *(name for rule in found for name in (f"{rule}: person", f"{rule}: score")))
    report.write_csv(workdir, head, zip(files, *columns, strict=True), name="norms.csv")
    if config.far is None:
        return {}
    strangers = identification_norms.best(model, gallery, points["strangers"], **settings)
    results: dict[str, Any] = {}
    for rule, of_probes in found.items():
        least = metrics.stranger_threshold(strangers[rule].score, sides["strangers"].ids, far=config.far).threshold
        is_named = of_probes.score >= least
        for name, some, share in (
            ("strangers given a name", is_stranger, is_named),
            ("enrolled people called unknown", is_known, ~is_named),
        ):
            if some.any():
                results[f"rate of {name}, {rule}"] = float(share[some].mean())
    return results
