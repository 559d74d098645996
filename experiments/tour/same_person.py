"""Joint Bayes: is it one person, and how sure can one be? Transfer from clean faces to another camera."""

from collections.abc import Mapping

import numpy as np
from ml_collections import ConfigDict

from experiments.common import trials
from experiments.tour.part import Part
from experiments.verify import domains, measures
from experiments.verify.measures import MEASURES
from experiments.verify.report import RANGES
from experiments.verify.transfer import METHODS, TRANSFER
from jaxface.core import checks
from jaxface.data import LabeledImages
from jaxface.metrics import intervals, verification
from jaxface.metrics.intervals import Interval
from jaxface.reports import figures, sheets
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table, intervals_over, percent_interval, with_interval

_METHODS = METHODS[:4]


def run(config: ConfigDict, faces: LabeledImages, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The transfer study at one number of target people; fewer people than the config asks for share the parts."""
    study = _scaled(config, len(faces.names))
    (train,) = study.target_people
    ratio = study.test_people / (train + study.calibration_people)
    measured = measures.measure(study, *domains.clean_and_changed(study, faces, rng), rng)
    return measured | {"test_to_train": np.asarray(ratio), "max_images": np.asarray(study.max_images)}


def _scaled(config: ConfigDict, people: int) -> ConfigDict:
    """The config with its parts in about the same proportion, each of two people at least."""
    (train,) = config.target_people
    parts = (config.source_people, config.calibration_people, config.test_people, train)
    num_people = sum(parts)
    if people >= num_people:
        return config
    checks.at_least("number of people", people, 2 * len(parts), "two each for source, target, calibration and test")
    sizes = [max(2, part * people // num_people) for part in parts]
    while sum(sizes) > people:
        sizes[sizes.index(max(sizes))] -= 1
    study = config.copy_and_resolve_references().unlock()
    study.source_people, study.calibration_people, study.test_people, train = sizes
    study.target_people = (train,)
    return study.lock()


def render(arrays: Mapping[str, np.ndarray], faces: LabeledImages) -> Part:
    """Domains, the table, the ROC and the distribution of scores."""
    mean = arrays["measures"][:, : len(_METHODS), -1].mean(axis=-1)
    ratio, show = float(arrays["test_to_train"]), (percent_interval, *[with_interval] * (len(MEASURES) - 1))
    cells: dict[str, dict[str, Cell]] = {
        method: {measure: show[i](_over_splits(arrays, i, m, ratio)) for i, measure in enumerate(MEASURES)}
        for m, method in enumerate(_METHODS)
    }
    (size,) = (key.rpartition(" ")[2] for key in arrays if key.startswith("calibrated scores"))
    scores, is_same = arrays[f"calibrated scores {size}"], arrays[f"is_same {size}"]
    curves = []
    for m, method in enumerate(_METHODS):
        roc = verification.roc(scores[m], is_same)
        curves.append(Curve(method, roc.far, roc.vr))
    low, high = np.quantile(scores[TRANSFER], [0.002, 0.998])
    edges = np.linspace(float(low), float(high), 40)
    shares = [np.histogram(scores[TRANSFER][is_same == kind], edges, density=True)[0] for kind in (True, False)]
    middle = (edges[1:] + edges[:-1]) / 2
    histogram = figures.curves(
        [Curve("one person", middle, shares[0]), Curve("two people", middle, shares[1])],
        x_label="calibrated log-likelihood ratio, nats", y_label="density", title="Scores of transfer", markers=False,
    )  # fmt: skip
    section = Section(
        "One person or two: Joint Bayes with transfer",
        (
            "An image is a person's mean plus a deviation, both Gaussian. The score of a pair is the logarithm of how "
            "much more probable it is under one person than under two. A model of clean faces is the prior for another "
            f"camera, of which {size} people are known.",
            trials.rule(int(arrays["max_images"]), float(arrays["largest share"].max())),
            sheets.sheet(
                "cameras.png",
                arrays["pictures"],
                row_labels=("source", "target"),
                title="Two cameras",
                caption="Source and target domain.",
            ),
            Table(
                ("method", "EER %", "Cllr, raw, bits", "Cllr, calibrated, bits", "min Cllr, bits"),
                [(method, *row.values()) for method, row in cells.items()],
                f"New people: {intervals_over(arrays['measures'].shape[-1], 'random splits')}; more by "
                "experiments.verify",
            ),
            Picture("same_person_roc.svg", figures.to_svg(figures.roc(curves)), "Unseen people of the target domain."),
            Picture("ratios.svg", figures.to_svg(histogram), "Scores of transfer on all splits, after calibration."),
        ),
    )
    headline = [
        ("Joint Bayes", "transfer: EER % under another camera", cells[METHODS[TRANSFER]]["EER"]),
        ("Joint Bayes", "transfer: Cllr, bits", cells[METHODS[TRANSFER]]["Cllr"]),
    ]
    results = {
        f"{measure}, {method}": float(mean[i, m])
        for i, measure in enumerate(MEASURES)
        for m, method in enumerate(_METHODS)
    }
    return Part(section, headline, results)


def _over_splits(arrays: Mapping[str, np.ndarray], measure: int, method: int, ratio: float) -> Interval:
    values = arrays["measures"][measure, method, -1]
    return intervals.split_interval(values, test_to_train=ratio, within=RANGES[measure])
