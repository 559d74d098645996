"""Tables and figures of an evaluation."""

from collections.abc import Mapping

import numpy as np
from ml_collections import ConfigDict

from experiments.evaluate import measures
from experiments.evaluate.measures import RANGE, Measured
from experiments.evaluate.systems import Systems
from jaxface import metrics
from jaxface.metrics import verification
from jaxface.metrics.bootstrap import SubjectDifferences
from jaxface.metrics.intervals import Interval
from jaxface.reports import figures, score_figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Block, Picture, Section
from jaxface.reports.tables import Cell, Estimate, Table, percent, percent_interval, with_interval

Compared = Mapping[str, tuple[SubjectDifferences, SubjectDifferences]]


def lead(config: ConfigDict, known: Systems) -> str:
    """What was evaluated, and what its intervals mean."""
    genuine, total = int(known.is_same.sum()), len(known.is_same)
    text = f"{total:,} trials, {genuine:,} of them of one person. "
    if known.people is None:
        return text + (
            "The files do not say who is in the trials, so there are no intervals: trials that share a person are not "
            "independent. Name columns with --config.columns.person_a and --config.columns.person_b to get them."
        )
    number = len(np.unique(np.concatenate(known.people)))
    share = float(np.bincount(known.people[0][known.is_same]).max() / genuine)
    return text + (
        f"Intervals (95 %) resample the {number:,} people {config.num_resamples:,} times. One person makes at most "
        f"{100 * share:.1f} % of the genuine trials."
    )


def headline(config: ConfigDict, measured: Mapping[str, Measured]) -> Table:
    """Error rates and calibration of every system."""
    far = [f"VR % at FAR {100 * rate:g} %" for rate in config.far]
    columns = ("system", "EER %", *far, "Cllr, calibrated", "min Cllr")
    return Table(columns, [(name, *_row(config, found)) for name, found in measured.items()])


def _row(config: ConfigDict, found: Measured) -> tuple[Cell, ...]:
    numbers, intervals = found.numbers, found.intervals
    if intervals is None or found.cllr is None:
        rates = [percent(numbers[f"VR at FAR {far:g}"], digits=2) for far in config.far]
        return (
            percent(numbers["EER"], digits=2),
            *rates,
            Estimate(numbers["Cllr, calibrated"], digits=4),
            Estimate(numbers["min Cllr"], digits=4),
        )
    return (
        percent_interval(intervals.eer, digits=2),
        *_rates(intervals.verification_rate),
        with_interval(found.cllr.cllr, digits=4),
        with_interval(intervals.min_cllr, digits=4),
    )


def _rates(rates: Interval) -> list[Estimate]:
    ends = (np.atleast_1d(end).tolist() for end in rates)
    return [percent(*each, digits=2) for each in zip(*ends, strict=True)]


def sections(
    config: ConfigDict, known: Systems, measured: Mapping[str, Measured], compared: Compared, reference: str
) -> list[Section]:
    """The body of the report."""
    parts = [_curves(known, measured)]
    if compared:
        parts.append(_differences(config, compared, reference))
    parts += [_calibration(config, known, measured), _decisions(config, measured)]
    identified = _identification(config, known)
    return [*parts, identified] if identified else parts


def _curves(known: Systems, measured: Mapping[str, Measured]) -> Section:
    curves = {name: found.curve for name, found in measured.items()}
    num_impostor = int((~known.is_same).sum())
    shapes = [
        Picture(
            f"scores-{index}.svg",
            figures.to_svg(score_figures.histogram(scores, known.is_same, name=name)),
            f"Scores of {name}.",
        )
        for index, (name, scores) in enumerate(known.scores.items())
    ]
    return Section(
        "Error rates",
        (
            Picture(
                "roc.svg",
                figures.to_svg(score_figures.roc(curves, num_impostor=num_impostor)),
                "The false accept rate begins at one of the impostor trials; below, nothing was measured.",
            ),
            Picture("det.svg", figures.to_svg(score_figures.det(curves)), "Gaussian scores give straight lines."),
            *shapes,
        ),
    )


def _differences(config: ConfigDict, compared: Compared, reference: str) -> Section:
    far = [f"VR at FAR {100 * rate:g} %, points" for rate in config.far]
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            percent_interval(raw.eer, digits=2),
            with_interval(raw.auc, digits=5),
            *_rates(raw.verification_rate),
            with_interval(calibrated.cllr, digits=4),
            with_interval(raw.min_cllr, digits=4),
        )
        for name, (raw, calibrated) in compared.items()
    ]
    return Section(
        f"Compared with {reference}",
        (
            f"Each row is a system less {reference} on the same trials and the same resamples of people. An interval "
            "without zero says which is better for people like these: a negative EER or Cllr, a positive VR or AUC.",
            Table(("system", "EER, points", "AUC", *far, "Cllr, calibrated", "min Cllr"), rows),
        ),
    )


def _calibration(config: ConfigDict, known: Systems, measured: Mapping[str, Measured]) -> Section:
    ratios = {name: (found.llr, known.is_same) for name, found in measured.items()}
    keys = ("Cllr of the scores as they are", "Cllr, calibrated", "min Cllr", *RANGE)
    rows: list[tuple[Cell, ...]] = [
        (name, *(Estimate(found.numbers[key], digits=4) for key in keys)) for name, found in measured.items()
    ]
    who = "people" if known.people is not None else "trials"
    return Section(
        "What a score means",
        (
            "A calibration (slope and offset) turns a score into a log-likelihood ratio. The calibration of a trial is "
            f"fitted without its {who}, in {config.num_folds} folds. Cllr is in bits: 0 is perfect, 1 says nothing. "
            "Scores as they are have a Cllr only if they claim to be ratios in nats. The distance of calibrated ratios "
            "to min Cllr is the loss by imperfect calibration. So many trials support ratios in the given range of "
            "nats; beyond it they rest on the form of the calibration alone.",
            Table(("system", *keys), rows),
            Picture(
                "ece.svg",
                figures.to_svg(score_figures.cross_entropy(ratios)),
                "Empirical cross-entropy of the calibrated ratios; at log odds of 0 it is Cllr.",
            ),
            Picture("tippett.svg", figures.to_svg(score_figures.tippett(ratios)), "Tippett plot of calibrated ratios."),
        ),
    )


def _decisions(config: ConfigDict, measured: Mapping[str, Measured]) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for name, found in measured.items():
        threshold = found.numbers["threshold of the costs"]
        far, vr = verification.rates_at(found.curve, threshold)
        rows.append((name, "costs and prior", threshold, percent(far, digits=3), percent(vr, digits=2)))
        for rate in config.far:
            threshold = found.numbers[f"threshold at FAR {rate:g}"]
            far, vr = verification.rates_at(found.curve, threshold)
            rows.append((name, f"FAR {100 * rate:g} %", threshold, percent(far, digits=3), percent(vr, digits=2)))
    costs: list[tuple[Cell, ...]] = [
        (name, *(Estimate(found.numbers[key], digits=4) for key in ("min DCF", "actual DCF", "AUC")))
        for name, found in measured.items()
    ]
    return Section(
        "Where to put the threshold",
        (
            "A score at or above the threshold is called one person. The first rule minimises the expected cost at a "
            f"prior of {config.prior:g} and costs of {config.cost_miss:g} for a miss and "
            f"{config.cost_false_accept:g} for a false accept. The rates are those of these trials.",
            Table(("system", "rule", "threshold of the score", "FAR %", "VR %"), rows),
            Table(
                ("system", "min DCF", "actual DCF", "AUC"),
                costs,
                "Normalised detection cost at this prior and these costs; a fixed answer has 1. The actual cost is "
                "that of the calibrated ratios at the threshold that the costs demand.",
            ),
        ),
    )


def _identification(config: ConfigDict, known: Systems) -> Section | None:
    """CMC and open-set curves where the trials compare every second file with all people of the first files."""
    closed, opened = [], []
    rows: list[tuple[Cell, ...]] = []
    for name in known.scores:
        found = measures.ranked(known, name)
        if found is None:
            return None
        counts = found.counts
        row: dict[str, Cell] = dict.fromkeys(("rank 1", "rank 10", *(f"FAR {far:g}" for far in config.far)), "–")
        has_mate = counts.higher >= 0
        if has_mate.any():
            shares = metrics.cmc_from_counts(
                counts.higher[has_mate], counts.tied[has_mate], num_people=found.num_people
            )
            closed.append(Curve(name, np.arange(1, len(shares) + 1), shares))
            row |= {f"rank {k}": percent(shares[min(k, len(shares)) - 1], digits=2) for k in (1, 10)}
        if has_mate.any() and not has_mate.all():
            curve = metrics.open_set_from_counts(counts.mates, counts.best, counts.higher, counts.tied)
            opened.append(Curve(name, curve.far, curve.dir))
            for far in config.far:
                row[f"FAR {far:g}"] = percent(metrics.identification_rate(curve, far), digits=2)
        rows.append((name, *row.values()))
    if not closed:
        return None
    header = ("system", "rank 1 %", "rank 10 %", *(f"DIR % at FAR {100 * far:g} %" for far in config.far))
    figure = figures.curves(closed, x_label="rank", y_label="share of probes with their person", log_x=True)
    blocks: list[Block] = [
        "The trials compare every second file with all people of the first files, so they also identify: the people of "
        "the first files are enrolled. DIR is the share of enrolled people who are found at rank 1 and named, at the "
        "threshold that so many strangers pass.",
        Table(header, rows),
        Picture("cmc.svg", figures.to_svg(figure), "Probes of enrolled people (closed set)."),
    ]
    if opened:
        figure = figures.roc(opened, title="")
        caption = "Strangers who are given a name, and people found."
        blocks.append(Picture("open_set.svg", figures.to_svg(figure), caption))
    return Section("Identification", tuple(blocks))
