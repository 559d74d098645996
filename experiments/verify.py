"""Joint Bayesian verification with transfer, from labelled faces to a calibrated report and a saved model.

python -m experiments.verify --config=configs/verify.py --workdir=runs/verify
"""

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments import inputs
from experiments.publish import publish
from experiments.verification import photos, transfer, verifier
from experiments.verification.transfer import MEASURES, METHODS
from jaxface.data import pairs
from jaxface.metrics import calibration, intervals, verification
from jaxface.metrics.intervals import Interval
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Command, Picture, Section
from jaxface.reports.tables import Cell, Estimate, Table
from jaxface.runtime import launch, log, params_io
from jaxface.runtime.workdir import Workdir

_TRANSFER = METHODS.index("transfer, w by log-likelihood")


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Measures every method over the splits, writes the report, and saves the model of the first split."""

    def measured() -> dict[str, np.ndarray]:
        with contextlib.closing(log.JsonlWriter(workdir.path / "metrics.jsonl", resume_step=0)) as writer:
            return transfer.run(config, writer)

    arrays = workdir.stage("transfer", measured)
    saved = _save_model(config, workdir)
    credit = inputs.load_faces(config.data).credit
    publish(
        workdir,
        title="Joint Bayesian verification with transfer",
        lead=f"Mean over {config.num_splits} random splits of the people; intervals are Student's t over the splits, "
        "widened for the people that splits share.",
        headline=_table(config, arrays, len(config.target_people) - 1),
        sections=(
            _against_people(config, arrays),
            _differences(config, arrays),
            _calibration(config, arrays),
            _saved_model(workdir, saved),
        ),
        credits=(credit,),
    )
    last = len(config.target_people) - 1
    means = {
        f"{measure}, {method}": float(arrays["measures"][i, m, last].mean())
        for i, measure in enumerate(MEASURES)
        for m, method in enumerate(METHODS)
    }
    return means | {f"saved model: {name}": value for name, value in saved.items()}


def _save_model(config: ConfigDict, workdir: Workdir) -> dict[str, float]:
    """Saves the first split's transfer model, its unseen test photos and their pairs, and says how well it does."""
    model, target, rows = transfer.final_verifier(config)
    workdir.write_bytes("params/verifier.safetensors", params_io.to_bytes(model, notes={"study": "transfer"}))
    files = [f"person-{target.ids[row]:04d}/{k:05d}.png" for k, row in enumerate(rows)]
    for file, row in zip(files, rows, strict=True):
        workdir.write_bytes(f"test/{file}", photos.to_png(target.images[row]))
    trial = pairs.all_pairs(target.ids[rows])
    lines = [f"{files[i]},{files[j]},{int(same)}" for i, j, same in zip(*trial, strict=True)]
    workdir.write_text("test/pairs.csv", "\n".join(["a,b,same", *lines]) + "\n")
    z = verifier.encode(model, target.images[rows])
    scores = np.asarray(verifier.score_matrix(model, z, z))[trial.first, trial.second]
    return {
        "EER": verification.eer(verification.roc(scores, trial.is_same)),
        "Cllr": calibration.cllr(scores, trial.is_same),
    }


def _saved_model(workdir: Workdir, saved: Mapping[str, float]) -> Section:
    command = (
        f"python -m experiments.score --config=configs/score.py --workdir={workdir.path}-scored "
        f"--config.model={workdir.path}/params/verifier.safetensors "
        f"--config.images.root={workdir.path}/test --config.pairs={workdir.path}/test/pairs.csv"
    )
    return Section(
        "The saved model",
        (
            "The transfer model of the first split is saved with its image steps, PCA and calibration. On the photos "
            f"of its test people, in the folder test, it has an EER of {100 * saved['EER']:.2f} % and a Cllr of "
            f"{saved['Cllr']:.4f} bits. To score them again from the saved file alone, or photos of your own:",
            Command(command),
        ),
    )


def _interval(config: ConfigDict, values: np.ndarray, other: np.ndarray | None = None) -> Interval:
    """Mean over splits of `values`, or of their difference to `other`."""
    train = max(config.target_people) + config.calibration_people
    ratio = config.test_people / train
    return intervals.paired_interval(values, np.zeros_like(values) if other is None else other, test_to_train=ratio)


def _estimate(measure: int, interval: Interval) -> Estimate:
    """Rates in per cent, bits as they are."""
    in_percent = MEASURES[measure] == "EER"
    values = (float(interval.estimate), float(interval.low), float(interval.high))
    return Estimate(*values, digits=1 if in_percent else 2, scale=100.0 if in_percent else 1.0)


def _table(config: ConfigDict, arrays: Mapping[str, np.ndarray], size: int) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            method,
            *(_estimate(i, _interval(config, arrays["measures"][i, m, size])) for i in range(len(MEASURES))),
        )
        for m, method in enumerate(METHODS)
    ]
    people = config.target_people[size]
    return Table(
        ("method", "EER %", "Cllr, raw", "Cllr, calibrated"),
        rows,
        f"{people} target people; 95 % intervals over splits",
    )


def _against_people(config: ConfigDict, arrays: Mapping[str, np.ndarray]) -> Section:
    sizes = list(config.target_people)
    pictures = []
    for i, (measure, file) in enumerate(zip(MEASURES, ("eer", "cllr_raw", "cllr"), strict=True)):
        scale = 100 if measure == "EER" else 1
        lines = []
        for m, method in enumerate(METHODS):
            found = [_interval(config, arrays["measures"][i, m, k]) for k in range(len(sizes))]
            mean, low, high = (scale * np.array(column, float) for column in zip(*found, strict=True))
            lines.append(Curve(method, sizes, mean, low, high) if m == _TRANSFER else Curve(method, sizes, mean))
        figure = figures.curves(
            lines, x_label="target people", y_label=f"{measure} %" if measure == "EER" else f"{measure}, bits",
            title=measure, log_y=measure == "raw Cllr",
        )  # fmt: skip
        pictures.append(Picture(f"{file}.svg", figures.to_svg(figure), "Band: 95 % interval of transfer over splits."))
    sheet = figures.image_grid(arrays["pictures"], row_labels=("source", "target"), title="The two domains")
    return Section(
        "Against the number of target people",
        (
            "The source model is fitted to clean images of some people; the target is other people, seen differently. "
            "Transfer takes the source covariances as a prior whose weight w held-out people choose.",
            Picture("domains.png", figures.to_png(sheet), "The same faces on both sides, for comparison."),
            "EER only asks for the order of the scores. Cllr asks what they claim: raw, as the model gives them, and "
            "after an affine calibration on held-out people. Below 1 bit a score says something.",
            *pictures,
            *(_table(config, arrays, k) for k in range(len(sizes) - 1)),
        ),
    )


def _differences(config: ConfigDict, arrays: Mapping[str, np.ndarray]) -> Section:
    """Transfer minus every other method on the same splits."""
    rows: list[tuple[Cell, ...]] = []
    for k, people in enumerate(config.target_people):
        for m in range(3):
            row: list[Cell] = [int(people), METHODS[m]]
            for i in range(len(MEASURES)):
                interval = _interval(config, arrays["measures"][i, _TRANSFER, k], arrays["measures"][i, m, k])
                row.append(_estimate(i, interval))
            rows.append(tuple(row))
    table = Table(
        ("target people", "transfer against", "EER, points", "Cllr, raw", "Cllr, calibrated"),
        rows,
        "Transfer (w by log-likelihood) minus the other method, paired over splits; negative is better",
    )
    weights = arrays["weights"]
    chosen = [
        (int(people), f"{weights[0, k].mean():.2f}", f"{weights[1, k].mean():.2f}", f"{weights[1, k].std():.2f}")
        for k, people in enumerate(config.target_people)
    ]
    return Section(
        "Is the difference real?",
        (
            "An interval that excludes zero says that transfer helps on such data, or hurts.",
            table,
            Table(
                ("target people", "mean w by log-likelihood", "mean w by Cllr", "its SD over splits"),
                chosen,
                "The weight of the source, w = lambda / (1 + lambda), as held-out people choose it",
            ),
        ),
    )


def _calibration(config: ConfigDict, arrays: Mapping[str, np.ndarray]) -> Section:
    """ROC and reliability of the scores of all splits together, at the largest number of people."""
    size = max(config.target_people)
    scores, is_same = arrays[f"calibrated scores {size}"], arrays[f"is_same {size}"]
    curves, reliable = [], [Curve("perfect", [0, 1], [0, 1])]
    for m, method in enumerate(METHODS):
        roc = verification.roc(scores[m], is_same)
        curves.append(Curve(method, roc.far, roc.vr))
        if m in (0, _TRANSFER):
            found = calibration.reliability(scores[m], is_same, num_bins=10)
            seen = found.counts > 0
            reliable.append(Curve(method, found.predicted[seen], found.observed[seen]))
    reliability = figures.curves(
        reliable, x_label="predicted probability of one person", y_label="observed share", title="Reliability"
    )
    return Section(
        "What the scores mean",
        (
            "The calibrated scores of all splits together: how often a pair with a given probability really shows one "
            "person.",
            Picture(
                "roc.svg", figures.to_svg(figures.roc(curves, title="Verification")), "ROC of unseen target people."
            ),
            Picture("reliability.svg", figures.to_svg(reliability), "Ten bins of the predicted probability."),
        ),
    )


if __name__ == "__main__":
    launch.main(run)
