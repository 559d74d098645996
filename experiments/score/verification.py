"""Pairs of a file: one person or two?"""

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs
from experiments.common.inputs import Vectors
from experiments.score import false_accepts, report
from jaxface import verifier
from jaxface.data import overlap, pairs
from jaxface.losses import calibration
from jaxface.metrics import calibration as calibration_metrics
from jaxface.metrics import normalization, verification
from jaxface.runtime.workdir import Workdir
from jaxface.verifier import Verifier


class Decisions(NamedTuple):
    """Which pairs show one person."""

    first: np.ndarray  # int [p], rows
    second: np.ndarray  # int [p]
    is_same: np.ndarray | None  # bool [p], the truth if the file says it
    scores: np.ndarray  # [p], log-likelihood ratios in nats
    is_accepted: np.ndarray  # bool [p]
    threshold: float


def run(config: ConfigDict, workdir: Workdir, model: Verifier) -> dict[str, Any]:
    """Scores and decisions of the pairs; error rates if the truth is known."""
    if config.pairs is None:
        raise ValueError(
            "--config.pairs is missing: name a CSV with the header a,b,same (or a,b) and file names below the root."
        )
    faces = inputs.load_vectors(config.images, model.steps)
    z = verifier.encode_vectors(model, faces.x)
    stated = None
    if config.far is not None:
        known = np.flatnonzero(faces.ids >= 0)
        named = dataclasses.replace(faces, x=faces.x[known], ids=faces.ids[known])
        stated = false_accepts.of_pairs(config, model, false_accepts.load(config, model, {"images": named}))
    least = None if stated is None else stated.threshold
    decided = decide(workdir, "scores.csv", model, z, faces.files, config.pairs, prior=config.prior, threshold=least)
    first, second, is_same, scores, is_accepted, threshold = decided
    results: dict[str, Any] = {
        "pairs": len(scores),
        "called one person": int(is_accepted.sum()),
        "EER": None,
        "Cllr": None,
        "accuracy at the threshold": None,
        "threshold": threshold,
        "largest share of a person in the same pairs": None,
    }
    if is_same is not None:
        results |= _rates(scores, is_accepted, is_same)
        if is_same.any() and faces.names:
            share = pairs.largest_share(faces.ids, pairs.Pairs(first, second, is_same))
            results["largest share of a person in the same pairs"] = share
    if config.cohort.root is not None:
        results |= _normalized(config, workdir, model, faces, z, decided)
    right = None if is_same is None else is_accepted == is_same
    pictures = [] if faces.images is None else report.surest(faces.images, first, second, scores, right)
    report.page(config, workdir, "Verification of pairs", results, pictures, faces.credit, stated=stated)
    return results


def decide(
    workdir: Workdir,
    name: str,
    model: Verifier,
    coordinates: jax.Array,
    files: tuple[str, ...],
    file_of_pairs: str,
    *,
    prior: float,
    threshold: float | None = None,
) -> Decisions:
    """The decisions on the pairs of a file, also as the CSV `name` in the run's folder.

    coordinates: `[n, r]` of the images that `files` `[n]` name.
    prior: probability of one person before looking; it sets the threshold unless there is one.
    """
    first, second, is_same = _pairs(file_of_pairs, files)
    scores = np.asarray(verifier.score_pairs(model, coordinates, first, second))
    if threshold is None:
        threshold = verification.bayes_threshold(prior=prior, cost_miss=1.0, cost_false_accept=1.0)
    probability = np.asarray(calibration.probability(scores, prior=prior))
    is_accepted = scores >= threshold
    names = ([files[row] for row in rows] for rows in (first, second))
    truth = [""] * len(scores) if is_same is None else is_same
    head = ("a", "b", "llr", "probability", "same_person", "truth")
    report.write_csv(workdir, head, zip(*names, scores, probability, is_accepted, truth, strict=True), name=name)
    return Decisions(first, second, is_same, scores, is_accepted, threshold)


def _pairs(file: str, files: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Rows of both images of each pair, and which pairs show one person if the file says so."""
    if pairs.has_truth(file):
        first, second, is_same = pairs.load(file, files)
        return first, second, is_same
    first, second = pairs.load_unlabeled(file, files)
    return first, second, None


def _normalized(
    config: ConfigDict, workdir: Workdir, model: Verifier, faces: Vectors, z: jax.Array, decided: Decisions
) -> dict[str, float | None]:
    """The s-norm of the scores by a cohort of strangers, in `s_norm.csv`; its EER beside that of the ratios."""
    cohort = inputs.load_vectors(config.cohort, model.steps)
    known = np.flatnonzero(faces.ids >= 0)
    if len(known) and cohort.names:
        sides = {"cohort": cohort, "images": dataclasses.replace(faces, x=faces.x[known], ids=faces.ids[known])}
        overlap.refuse_shared_people(**{side: overlap.Known(v.x, v.ids, v.names) for side, v in sides.items()})
    used, place = np.unique(np.concatenate([decided.first, decided.second]), return_inverse=True)
    scores = verifier.score_matrix(model, z[used], verifier.encode_vectors(model, cohort.x))
    moments = normalization.cohort_moments(scores, num_best=config.cohort_best)
    first, second = (moments.of(side) for side in place.reshape(2, -1))
    normed = normalization.s_norm(decided.scores, first, second)
    names = ([faces.files[row] for row in rows] for rows in (decided.first, decided.second))
    report.write_csv(
        workdir, ("a", "b", "llr", "s_norm"), zip(*names, decided.scores, normed, strict=True), name="s_norm.csv"
    )
    same = decided.is_same
    if same is None or same.all() or not same.any():
        return {"EER, s-norm": None}
    return {"EER, s-norm": verification.eer(verification.roc(normed, same))}


def _rates(scores: np.ndarray, is_accepted: np.ndarray, is_same: np.ndarray) -> dict[str, float]:
    """The accuracy; EER and Cllr if there are pairs of both kinds."""
    rates = {"accuracy at the threshold": float((is_accepted == is_same).mean())}
    if not is_same.all():
        rates["FAR at the threshold"] = float(is_accepted[~is_same].mean())
    if is_same.any():
        rates["VR at the threshold"] = float(is_accepted[is_same].mean())
    if is_same.any() and not is_same.all():
        rates["EER"] = verification.eer(verification.roc(scores, is_same))
        rates["Cllr"] = calibration_metrics.cllr(scores, is_same)
    return rates
