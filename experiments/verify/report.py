"""Tables and figures of a transfer study."""

from collections.abc import Iterable, Mapping

import numpy as np
from ml_collections import ConfigDict

from experiments.verify.measures import MEASURES
from experiments.verify.saved import Saved
from experiments.verify.transfer import METHODS, TRANSFER
from jaxface.metrics import calibration, intervals, verification
from jaxface.metrics.intervals import Interval
from jaxface.reports import figures, sheets
from jaxface.reports.figures import Curve
from jaxface.reports.html import Command, Picture, Section, Sheet
from jaxface.reports.tables import Cell, Estimate, Table, intervals_over, percent_interval, with_interval
from jaxface.runtime.workdir import Workdir

_FULL = range(5)  # the methods with the full E-step; the approximate one has a section of its own
_RIVALS = range(3)
_ADAPTED = range(7, len(METHODS))  # without labels
_E_STEPS = (1, 5, TRANSFER, 6)  # target only and transfer, full and approximate
_FILES = ("eer", "cllr_raw", "cllr", "min_cllr")
RANGES = tuple(intervals.RATE if measure == "EER" else intervals.POSITIVE for measure in MEASURES)

Arrays = Mapping[str, np.ndarray]


def headline(config: ConfigDict, arrays: Arrays) -> Table:
    """Every method at the largest number of target people."""
    return _table(config, arrays, len(config.target_people) - 1)


def sections(config: ConfigDict, arrays: Arrays) -> tuple[Section, ...]:
    """The body of the report."""
    return (
        _against_people(config, arrays),
        _differences(config, arrays),
        _approximate(config, arrays),
        _unlabelled(config, arrays),
        _calibration(config, arrays),
    )


def saved_model(workdir: Workdir, saved: Saved, *, what: str = "transfer model") -> Section:
    """The error rates of the saved model, and the command that repeats them."""
    command = (
        f"python -m experiments.score --config=configs/score.py --workdir={workdir.path}-scored "
        f"--config.model={workdir.path}/params/verifier.safetensors "
        f"{saved.options} --config.pairs={workdir.path}/test/pairs.csv"
    )
    return Section(
        "The saved model",
        (
            f"The {what} of the first split is saved with its image steps, PCA and calibration. On its test "
            f"people, in the folder test, it has an EER of {100 * saved.rates['EER']:.2f} % and a Cllr of "
            f"{saved.rates['Cllr']:.4f} bits. This command scores them again from the saved file alone; with your own "
            "images and pairs it scores these:",
            Command(command),
        ),
    )


def _interval(
    config: ConfigDict, measure: int, values: np.ndarray, other: np.ndarray | None = None, *, new_people: bool
) -> Interval:
    """Mean over splits of `values` or of their difference to `other`, for new people or for more splits of these."""
    within = RANGES[measure]
    train = max(config.target_people) + config.calibration_people
    ratio = config.test_people / train if new_people else 0.0
    if other is None:
        return intervals.split_interval(values, test_to_train=ratio, within=within)
    return intervals.paired_interval(values, other, test_to_train=ratio, within=within)


def estimate(config: ConfigDict, measure: int, values: np.ndarray, other: np.ndarray | None = None) -> Estimate:
    """The mean of a measure `[splits]`, or of its difference to `other`, with the interval for new people."""
    return _estimate(measure, _interval(config, measure, values, other, new_people=True))


def _estimate(measure: int, interval: Interval) -> Estimate:
    """Rates in per cent, bits as they are."""
    return percent_interval(interval) if MEASURES[measure] == "EER" else with_interval(interval)


def _rows(config: ConfigDict, arrays: Arrays, methods: Iterable[int], size: int) -> list[tuple[Cell, ...]]:
    """A row for each method with every measure."""
    measures = arrays["measures"]
    return [(METHODS[m], *(estimate(config, i, measures[i, m, size]) for i in range(len(MEASURES)))) for m in methods]


def _table(config: ConfigDict, arrays: Arrays, size: int) -> Table:
    rows = _rows(config, arrays, _FULL, size)
    people = config.target_people[size]
    return Table(
        ("method", "EER %", "Cllr, raw", "Cllr, calibrated", "min Cllr"),
        rows,
        f"{people} target people; {intervals_over(config.num_splits, 'random splits')}",
    )


def _curves(config: ConfigDict, arrays: Arrays, methods: range | tuple[int, ...], prefix: str = "") -> list[Picture]:
    """Each measure against the number of target people, with a band for transfer."""
    sizes, pictures = list(config.target_people), []
    for i, (measure, file) in enumerate(zip(MEASURES, _FILES, strict=True)):
        scale = 100 if measure == "EER" else 1
        lines = []
        for m in methods:
            estimates = [_interval(config, i, values, new_people=True) for values in arrays["measures"][i, m]]
            mean, low, high = (scale * np.array(column, float) for column in zip(*estimates, strict=True))
            lines.append(Curve(METHODS[m], sizes, mean, *((low, high) if m == TRANSFER else ())))
        y_label = f"{measure} %" if measure == "EER" else f"{measure}, bits"
        is_raw = measure == "raw Cllr"
        figure = figures.curves(lines, x_label="target people", y_label=y_label, title=measure, log_y=is_raw)
        caption = "Band: 95 % interval of transfer over splits, from five splits on."
        pictures.append(Picture(f"{prefix}{file}.svg", figures.to_svg(figure), caption))
    return pictures


def _against_people(config: ConfigDict, arrays: Arrays) -> Section:
    domains: list[Sheet] = []
    if "pictures" in arrays:
        labels, title, caption = ("source", "target"), "The two domains", "Some people of each side."
        domains.append(sheets.sheet("domains.png", arrays["pictures"], row_labels=labels, title=title, caption=caption))
    return Section(
        "Against the number of target people",
        (
            "The source model is fitted to images of some people; the target is other people, seen differently. "
            "Transfer takes the source covariances as a prior whose weight w held-out people choose.",
            *domains,
            "EER depends only on the order of the scores. Cllr also measures whether they are right as log-likelihood "
            "ratios: raw, as the model gives them, and after an affine calibration on held-out people. Below 1 bit the "
            "scores are informative. min Cllr is what the best monotone calibration of the test scores would reach.",
            *_curves(config, arrays, _FULL),
            *(_table(config, arrays, k) for k in range(len(config.target_people) - 1)),
        ),
    )


def _difference_table(config: ConfigDict, arrays: Arrays, *, new_people: bool) -> Table:
    """Transfer minus every rival on the same splits."""
    measures = arrays["measures"]
    rows: list[tuple[Cell, ...]] = []
    for k, people in enumerate(config.target_people):
        for m in _RIVALS:
            paired = [
                _interval(config, i, measures[i, TRANSFER, k], measures[i, m, k], new_people=new_people)
                for i in range(len(MEASURES))
            ]
            rows.append((int(people), METHODS[m], *(_estimate(i, value) for i, value in enumerate(paired))))
    what = "other people" if new_people else "other splits of these people"
    return Table(
        ("target people", "transfer against", "EER, points", "Cllr, raw", "Cllr, calibrated", "min Cllr"),
        rows,
        f"Transfer (w by log-likelihood) minus the other method, 95 % intervals for {what}; negative is better",
    )


def _differences(config: ConfigDict, arrays: Arrays) -> Section:
    weights = arrays["weights"]
    chosen: list[tuple[Cell, ...]] = [
        (
            int(people),
            *(
                Estimate(float(each), digits=2)
                for each in (weights[0, k].mean(), weights[1, k].mean(), weights[1, k].std())
            ),
        )
        for k, people in enumerate(config.target_people)
    ]
    return Section(
        "Is the difference real?",
        (
            "An interval that excludes zero shows that transfer helps, or hurts. The intervals of the first table are "
            "for more random splits of these people. Those of the second are widened for the people that splits share, "
            "as a claim about new people requires (Nadeau and Bengio); they stay wide however many splits are drawn.",
            _difference_table(config, arrays, new_people=False),
            _difference_table(config, arrays, new_people=True),
            Table(
                ("target people", "mean w by log-likelihood", "mean w by Cllr", "its SD over splits"),
                chosen,
                "The prior weight of the source, w = lambda / (1 + lambda), that held-out people choose",
            ),
        ),
    )


def _approximate(config: ConfigDict, arrays: Arrays) -> Section:
    last = len(config.target_people) - 1
    return Section(
        "The approximate E-step",
        (
            "The paper's E-step keeps posterior means and drops their covariances. The same fits with either E-step:",
            *_curves(config, arrays, _E_STEPS, prefix="approximate_"),
            Table(
                ("method", "EER %", "Cllr, raw", "Cllr, calibrated", "min Cllr"),
                _rows(config, arrays, _E_STEPS, last),
                f"{config.target_people[last]} target people; {intervals_over(config.num_splits, 'random splits')}",
            ),
        ),
    )


def _unlabelled(config: ConfigDict, arrays: Arrays) -> Section:
    """Adaptation without labels, between the source model and the transfer that has them."""
    measures, shown = arrays["measures"], (0, *_ADAPTED, TRANSFER)
    rows: list[tuple[Cell, ...]] = []
    for k, people in enumerate(config.target_people):
        for m in shown[1:]:
            less = [
                _interval(config, i, measures[i, m, k], measures[i, 0, k], new_people=False)
                for i in range(len(MEASURES))
            ]
            rows.append((int(people), METHODS[m], *(_estimate(i, value) for i, value in enumerate(less))))
    return Section(
        "Without labels",
        (
            "The images of the target people, as many as train, whose people nobody looks at: their mean and total "
            "covariance, shrunk towards the source's. How new variance is to be split between people and noise is not "
            "in such images, so no method is safe. The source alone has the target's mean as well.",
            *_curves(config, arrays, shown, prefix="unlabelled_"),
            Table(
                ("target people", "method", "EER, points", "Cllr, raw", "Cllr, calibrated", "min Cllr"),
                rows,
                "Each method minus the source alone, 95 % intervals for other splits of these people; negative is "
                "better",
            ),
        ),
    )


def _calibration(config: ConfigDict, arrays: Arrays) -> Section:
    """ROC and reliability of the scores of all splits together, at the largest number of people."""
    size = max(config.target_people)
    scores, is_same = arrays[f"calibrated scores {size}"], arrays[f"is_same {size}"]
    curves, reliable = [], [Curve("perfect", [0, 1], [0, 1])]
    for m in _FULL:
        roc = verification.roc(scores[m], is_same)
        curves.append(Curve(METHODS[m], roc.far, roc.vr))
        if m in (0, TRANSFER):
            bins = calibration.reliability(scores[m], is_same, num_bins=10)
            is_filled = bins.counts > 0
            reliable.append(Curve(METHODS[m], bins.predicted[is_filled], bins.observed[is_filled]))
    reliability = figures.curves(
        reliable, x_label="predicted probability of one person", y_label="observed share", title="Reliability"
    )
    return Section(
        "What the scores mean",
        (
            "The calibrated scores of all splits together. Reliability is the share of pairs of one person among the "
            "pairs with a given predicted probability.",
            Picture(
                "roc.svg", figures.to_svg(figures.roc(curves, title="Verification")), "ROC of unseen target people."
            ),
            Picture("reliability.svg", figures.to_svg(reliability), "Ten bins of the predicted probability."),
        ),
    )
