"""The page: what weights from every quality gain over the model without weights."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from ml_collections import ConfigDict

from experiments.common.publish import publish
from experiments.common.verdicts import verdict
from experiments.quality import degrade, methods
from jaxface.metrics import calibration as calibration_metrics
from jaxface.metrics import verification
from jaxface.metrics.bootstrap import SubjectDifferences, SubjectIntervals, subject_differences, subject_intervals
from jaxface.metrics.draws import Draws, resample_subjects
from jaxface.metrics.intervals import Interval
from jaxface.reports import figures, sheets
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Estimate, Table, percent_interval, with_interval
from jaxface.runtime.workdir import Workdir


class Measured(NamedTuple):
    """A method on all test people."""

    form: str  # of the features
    name: str
    raw_cllr: float
    intervals: SubjectIntervals  # of calibrated scores
    less: SubjectDifferences | None  # than the model without weights on the same features; None for this model
    roc: verification.Roc


def measure(
    config: ConfigDict, arrays: Mapping[str, np.ndarray], scored: Sequence[Mapping[str, np.ndarray]]
) -> list[Measured]:
    """Every method over the pairs of all folds; intervals resample people, the same ones for every method."""
    together = {name: np.concatenate([fold[name] for fold in scored], axis=-1) for name in _OF_PAIRS}
    trial = together["is_same"], together["first"], together["second"]
    found: list[Measured] = []
    references: dict[str, Draws] = {}
    names = [(form, name) for form in methods.FORMS for name in methods.names(config, arrays)]
    for (form, name), raw, scores in zip(names, together["raw"], together["calibrated"], strict=True):
        rng = np.random.default_rng((config.seed, 6))
        drawn = resample_subjects(scores, *trial, rng=rng, num_resamples=config.num_resamples)
        references.setdefault(form, drawn)  # the first method of a form has no weights
        less = None if name == methods.PLAIN else subject_differences(drawn, references[form])
        raw_cllr = calibration_metrics.cllr(raw, together["is_same"])
        roc = verification.roc(scores, together["is_same"])
        found.append(Measured(form, name, raw_cllr, subject_intervals(drawn), less, roc))
    return found


_IN_WORDS = dict(zip(methods.FORMS, ("as they are", "of one length"), strict=True))
_SHOWN = f"{methods.KNOWN}, free weights"
_OF_PAIRS = ("raw", "calibrated", "is_same", "first", "second")


def results(found: Sequence[Measured]) -> dict[str, Any]:
    """The headline numbers with their intervals."""
    numbers: dict[str, Any] = {}
    for each in found:
        name = f"{each.name}, {each.form}"
        numbers[f"EER, {name}"] = float(each.intervals.eer.estimate)
        numbers[f"raw Cllr, {name}"] = each.raw_cllr
        numbers[f"Cllr, {name}"] = float(each.intervals.cllr.estimate)
        if each.less is not None:
            numbers[f"EER less than without weights, {name}"] = _ends(each.less.eer)
            numbers[f"Cllr less than without weights, {name}"] = _ends(each.less.cllr)
    return numbers


def _ends(interval: Interval) -> list[float]:
    """Low and high; scores in the same order in every resample have a difference of 0 without an interval."""
    return [float(interval.estimate if np.isnan(end) else end) for end in (interval.low, interval.high)]


def page(
    config: ConfigDict,
    workdir: Workdir,
    arrays: Mapping[str, np.ndarray],
    scored: Sequence[Mapping[str, np.ndarray]],
    found: Sequence[Measured],
    credit: str,
) -> None:
    """The comparison, the damaged photos, and what the weights are."""
    rows: list[tuple[Cell, ...]] = []
    gains: list[tuple[Cell, ...]] = []
    for each in found:
        eer, cllr = percent_interval(each.intervals.eer), with_interval(each.intervals.cllr, digits=3)
        rows.append((each.form, each.name, eer, Estimate(each.raw_cllr, digits=3), cllr))
        if each.less is not None:
            words = {"below": "better", "above": "worse", "neither": "no difference shown"}
            gain = percent_interval(each.less.eer), with_interval(each.less.cllr, digits=3)
            gains.append(
                (
                    each.form,
                    each.name,
                    gain[0],
                    verdict(each.less.eer, **words),
                    gain[1],
                    verdict(each.less.cllr, **words),
                )
            )
    head = ("features", "method", "EER %", "Cllr, raw", "Cllr, calibrated")
    caption = f"People never seen, {config.num_folds} folds; 95 % intervals by {config.num_resamples:,} resamples"
    against = ("features", "method", "EER, points", "EER", "Cllr, calibrated", "Cllr")
    publish(
        workdir,
        title="Quality of photos",
        lead=_lead(config, arrays, found),
        headline=Table(head, rows, caption),
        sections=(
            Section("The photos", _photos(config, arrays)),
            Section(
                "What weights gain",
                (
                    "Differences to the model without weights on the same features, pairs and resampled people; "
                    "negative is better. Features of one length have lost some of what a damage does to them. Every "
                    "method is calibrated on the same held-out people.",
                    Table(against, gains, "Difference to the model without weights"),
                    Picture("roc.svg", figures.to_svg(_curves(found)), "All folds."),
                ),
            ),
            Section("The weights", _weights(config, arrays, scored)),
        ),
        credits=(credit,),
    )


def _lead(config: ConfigDict, arrays: Mapping[str, np.ndarray], found: Sequence[Measured]) -> str:
    """What was compared, and whether a measured quality helps."""
    people, photos = len(np.unique(arrays["ids"])), len(arrays["ids"])
    missed = f", {int(arrays['missed'])} more without a face that the detector finds" if "missed" in arrays else ""
    says = []
    for form in methods.FORMS:
        helping = [each.name for each in found if each.form == form and "known" not in each.name and _helps(each)]
        which = f"these lower the EER: {'; '.join(helping)}" if helping else "none lowers the EER"
        says.append(f"Of the measured qualities on features {_IN_WORDS[form]}, {which}.")
    return f"{photos:,} photos of {people:,} people{missed}, each damaged at random or left as it is. {' '.join(says)}"


def _helps(each: Measured) -> bool:
    return each.less is not None and float(each.less.eer.high) < 0


def _photos(config: ConfigDict, arrays: Mapping[str, np.ndarray]) -> tuple[Any, ...]:
    """The strongest damage, and how well measures follow the amount."""
    level = arrays["level"]
    rows: list[tuple[Cell, ...]] = []
    for name, values in list(methods.qualities_of(arrays).items())[1:]:
        of_kinds = [
            _rank_correlation(
                values[(arrays["kind"] == kind) | (level == 0)], -level[(arrays["kind"] == kind) | (level == 0)]
            )
            for kind in range(1, len(degrade.KINDS))
        ]
        rows.append((name, *(Estimate(value, digits=2) for value in of_kinds)))
    caption = "Rank correlation of a measured quality with the known amount, over photos of one kind and undamaged ones"
    return (
        sheets.sheet(
            "photos.png",
            arrays["pictures"],
            title="Damaged photos",
            caption="Undamaged, and each kind at its strongest level.",
            column_labels=degrade.KINDS,
        ),
        Table(("quality", *degrade.KINDS[1:]), rows, caption),
    )


def _rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's, with the mean rank for ties."""
    ranks = []
    for values in (first, second):
        _, place, number = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(number) - (number - 1) / 2)[place])
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _weights(
    config: ConfigDict, arrays: Mapping[str, np.ndarray], scored: Sequence[Mapping[str, np.ndarray]]
) -> tuple[Any, ...]:
    """The weights of kinds and amounts, and along the bins of every quality; geometric means over the folds."""

    def mean(name: str, form: str) -> np.ndarray:
        return np.exp(np.mean([np.log(fold[f"weights, {name}, {form}"]) for fold in scored], axis=0))

    cells = [mean(f"{methods.KNOWN}, free weights", form) for form in methods.FORMS]
    rows = [
        (name, *(Estimate(float(weight), digits=2) for weight in weights))
        for name, *weights in zip(degrade.cell_names(config), *cells, strict=True)
    ]
    lines, shown = [], next(iter(methods.FORMS))
    for name in methods.qualities_of(arrays):
        for way in ("exponent", "free weights"):
            weights = mean(f"{name}, {way}", shown)
            lines.append(Curve(f"{name}, {way}", 1 + np.arange(len(weights)), weights))
    figure = figures.curves(lines, x_label="bin of quality, worst first", y_label="weight", log_y=True, title="Weights")
    return (
        "The weight of a photo is its precision: 2 means half of the noise of a typical photo. A damage that makes all "
        "photos alike also takes away the differences between photos of one person. The model takes this for "
        "precision, so that such photos may get a large weight though they say little.",
        Table(("kind and amount", *methods.FORMS), rows, "Free weights of the known kinds and amounts, by features"),
        Picture(
            "weights.svg",
            figures.to_svg(figure),
            f"Features {shown}, mean over the folds; a typical training photo has the weight 1.",
        ),
    )


def _curves(found: Sequence[Measured]) -> Any:
    shown = [each for each in found if each.name in (methods.PLAIN, _SHOWN, f"{methods.BOTH}, free weights")]
    lines = [Curve(f"{each.name}, {each.form}", each.roc.far, each.roc.vr) for each in shown]
    return figures.roc(lines, title="People never seen")
