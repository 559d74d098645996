"""Using a fitted verifier: pairs, enrolled people and unknown probes, from images or embeddings.

    python -m experiments.score --config=configs/score.py --workdir=runs/score \
        --config.model=runs/verify/params/verifier.safetensors --config.images.root=FOLDER --config.pairs=PAIRS.csv
    python -m experiments.score --config=configs/score.py:identify --workdir=runs/who \
        --config.model=MODEL --config.gallery.root=PEOPLE --config.probes.root=PHOTOS

Writes `scores.csv` with the log-likelihood ratio, the probability at the stated prior, and the decision at the Bayes
threshold of that prior, and a page to look at. Where the truth is known it reports the error rates: the pairs file has
a column `same`, or a probe's folder the name of an enrolled person.

The prior of a pair is that of one person, before looking. The prior of a probe is that of somebody enrolled, the same
for each of them: with N people a probe is named where the ratio exceeds the threshold of a pair by log N.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs
from experiments.score import report
from jaxface import verifier
from jaxface.core import checks
from jaxface.data import overlap, pairs
from jaxface.losses import calibration
from jaxface.metrics import calibration as calibration_metrics
from jaxface.metrics import verification
from jaxface.reports import figures
from jaxface.reports.html import Picture
from jaxface.reports.tables import Cell, Table
from jaxface.runtime import params_io
from jaxface.runtime.workdir import Workdir
from jaxface.verifier import Verifier

_SHOWN = 6


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Verifies the pairs of a file, or identifies probes among enrolled people."""
    fields.words(config, "task", ("verify", "identify"))
    checks.between("config.prior", config.prior, 0.0, 1.0, closed_low=False, closed_high=False)
    if config.model is None:
        raise ValueError("--config.model is missing: name a verifier, e.g. runs/verify/params/verifier.safetensors.")
    workdir.uses(
        model=config.model,
        images=inputs.path_of(config.images),
        pairs=config.pairs,
        gallery=inputs.path_of(config.gallery),
        probes=inputs.path_of(config.probes),
    )
    model = params_io.load(config.model, Verifier)
    return (_verify if config.task == "verify" else _identify)(config, workdir, model)


def _verify(config: ConfigDict, workdir: Workdir, model: Verifier) -> dict[str, Any]:
    if config.pairs is None:
        raise ValueError(
            "--config.pairs is missing: name a CSV with the header a,b,same (or a,b) and file names below the root."
        )
    faces = inputs.load_vectors(config.images, model.steps)
    is_same: np.ndarray | None = None
    if pairs.has_truth(config.pairs):
        first, second, is_same = pairs.load(config.pairs, faces.files)
    else:
        first, second = pairs.load_unlabelled(config.pairs, faces.files)
    scores = np.asarray(verifier.score_pairs(model, verifier.encode_vectors(model, faces.x), first, second))
    threshold = verification.bayes_threshold(prior=config.prior, cost_miss=1.0, cost_false_accept=1.0)
    probability = np.asarray(calibration.probability(jnp.asarray(scores), prior=config.prior))
    accepted = scores >= threshold
    rows = zip(
        (faces.files[i] for i in first), (faces.files[i] for i in second), scores, probability, accepted,
        [""] * len(scores) if is_same is None else is_same, strict=True,
    )  # fmt: skip
    report.write_csv(workdir, ("a", "b", "llr", "probability", "same_person", "truth"), rows)
    results: dict[str, Any] = {"pairs": len(scores), "called one person": int(accepted.sum())}
    results |= {"EER": None, "Cllr": None, "accuracy at the threshold": None, "threshold": threshold}
    results["largest share of a person in the same pairs"] = None
    if is_same is not None:
        if is_same.any():
            share = pairs.largest_share(faces.ids, pairs.Pairs(first, second, is_same))
            results["largest share of a person in the same pairs"] = share
        results["accuracy at the threshold"] = float((accepted == is_same).mean())
        if is_same.any() and not is_same.all():
            results["EER"] = verification.eer(verification.roc(scores, is_same))
            results["Cllr"] = calibration_metrics.cllr(scores, is_same)
    sure = np.argsort(-np.abs(scores))
    if is_same is None:
        shown = {"surest": sure[:_SHOWN]}
    else:
        right = accepted == is_same
        shown = {"surest right": sure[right[sure]][:_SHOWN], "surest wrong": sure[~right[sure]][:_SHOWN]}
    blocks: list[Any] = []
    for title, chosen in shown.items():
        if len(chosen) and faces.images is not None:
            sheet = faces.images[np.stack([first[chosen], second[chosen]])]
            labels = [f"{scores[k]:+.1f}" for k in chosen]
            picture = figures.image_grid(sheet, column_labels=labels, title=f"The {title} decisions, by ratio in nats")
            blocks.append(Picture(f"{title.replace(' ', '_')}.png", figures.to_png(picture), "Each column is a pair."))
    report.page(config, workdir, "Verification of pairs", results, blocks, faces.credit)
    return results


def _identify(config: ConfigDict, workdir: Workdir, model: Verifier) -> dict[str, Any]:
    gallery, probes = (inputs.load_vectors(section, model.steps) for section in (config.gallery, config.probes))
    enrolled = verifier.enroll(verifier.encode_vectors(model, gallery.x), gallery.ids, num_people=len(gallery.names))
    found = verifier.identify(model, enrolled, verifier.encode_vectors(model, probes.x), prior=config.prior)
    best, named = found.person, found.is_named
    names = [str(gallery.names[k]) if is_named else "unknown" for k, is_named in zip(best, named, strict=True)]
    truth = [str(probes.names[k]) for k in probes.ids]
    files = probes.files or tuple(f"row {k}" for k in range(len(truth)))
    report.write_csv(
        workdir,
        ("probe", "nearest_person", "llr", "probability", "decision", "folder"),
        zip(files, (gallery.names[k] for k in best), found.llr, found.probability, names, truth, strict=True),
    )
    is_enrolled = overlap.identical_rows(gallery.x, probes.x)
    known = np.isin(truth, [str(name) for name in gallery.names]) & ~is_enrolled
    stranger = ~np.isin(truth, [str(name) for name in gallery.names]) & ~is_enrolled
    right = np.array([str(gallery.names[k]) for k in best]) == np.array(truth)
    results = {
        "probes": len(truth),
        "people enrolled": len(gallery.names),
        "probes that are enrolled images, in none of the rates": int(is_enrolled.sum()),
        "probes whose folder names an enrolled person": int(known.sum()),
        "identification rate of these": float(right[known].mean()) if known.any() else None,
        "called unknown": int((~named).sum()),
        "enrolled people called unknown": int((~named & known).sum()),
        "enrolled people given another name": int((named & known & ~right).sum()),
        "strangers given a name": int((named & stranger).sum()),
        "threshold": found.threshold,
    }
    rows: list[tuple[Cell, ...]] = [
        (files[k], str(gallery.names[best[k]]), float(found.llr[k]), float(found.probability[k]), names[k])
        for k in range(min(40, len(names)))
    ]
    table = Table(
        ("probe", "nearest person", "LLR", "probability", "decision"), rows, "The first probes; all in scores.csv"
    )
    report.page(config, workdir, "Identification of probes", results, [table], probes.credit)
    return results
