"""Is the reconstruction recognised: curves from the counts of all pairs, and the section of the report on them."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from ml_collections import ConfigDict

from experiments.common import ratios
from experiments.common.ratios import Trials
from experiments.hallucinate.found import Found
from experiments.hallucinate.matching import ORIGINAL, SPAN
from jaxface.metrics import bootstrap, calibration, streaming, verification
from jaxface.metrics.intervals import Interval
from jaxface.metrics.verification import Roc
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Estimate, Table, percent_interval, with_interval

_FAR = 0.01


class Matched(NamedTuple):
    """A verification result."""

    curve: Roc
    rate: Interval
    eer: Interval
    cllr: Interval  # of cosines calibrated on other people of the fold
    min_cllr: float


def matched(config: ConfigDict, found: Found) -> dict[str, Matched]:
    """ROC, VR at 1 % FAR, EER and min Cllr from the counts of all pairs, and Cllr, with intervals over people.

    Intervals and Cllr are of the people whose scores are kept, which are all in a study of moderate size.
    """
    kept, people = num_people(found)
    shrink = math.sqrt(kept / people)
    edges = np.linspace(*SPAN, config.kcfa.num_bins + 1)
    results = {}
    for name, (genuine, impostor) in found.counts.items():
        curve = streaming.roc(edges, genuine, impostor)
        folds = _trials(found, name)
        drawn = _bootstrap(config, folds)
        llr = [each._replace(scores=ratios.across_people(each, seed=config.seed)) for each in folds]
        cllr = Interval(*ratios.over_people(llr, num_resamples=config.kcfa.num_resamples, seed=config.seed)[1])
        of_kept = Interval(*(np.ravel(each)[0] for each in drawn.verification_rate))  # one rate was asked for
        results[name] = Matched(
            curve,
            rate=of_all(of_kept, verification.verification_rate(curve, _FAR), shrink),
            eer=of_all(drawn.eer, verification.eer(curve), shrink),
            cllr=of_all(cllr, float(cllr.estimate), shrink),
            min_cllr=calibration.min_cllr(curve),
        )
    return results


def of_all(kept: Interval, estimate: float, shrink: float) -> Interval:
    """The interval about the estimate of all people, from that of the people who are kept.

    Where they are all people, `shrink` is 1 and the limits stay. Else both distances from the estimate shrink as the
    root of the number of people.
    """
    if shrink == 1:
        return kept._replace(estimate=estimate)
    return Interval(estimate, *(max(estimate + shrink * (limit - kept.estimate), 0.0) for limit in kept[1:]))


def num_people(found: Found) -> tuple[int, int]:
    """How many people the kept images show, and how many people there are; a person is in one fold."""
    folds = [found.ids[found.fold == fold] for fold in range(len(found.kept))]
    kept = sum(np.unique(ids[rows]).size for ids, rows in zip(folds, found.kept, strict=True))
    return kept, sum(np.unique(ids).size for ids in folds)


def _trials(found: Found, name: str) -> list[Trials]:
    """All ordered pairs of the kept images of each fold but those of an image with itself."""
    folds = []
    for fold, matrix in enumerate(found.scores[name]):
        ids = found.ids[found.fold == fold][found.kept[fold]]
        i, j = np.nonzero(~np.eye(len(ids), dtype=bool))
        folds.append(Trials(matrix[i, j], ids[i], ids[j]))
    return folds


def _bootstrap(config: ConfigDict, folds: list[Trials]) -> bootstrap.SubjectIntervals:
    scores, first, second = (np.concatenate(fields) for fields in zip(*folds, strict=True))
    return bootstrap.subject_bootstrap(
        scores, first == second, first, second, rng=np.random.default_rng(config.seed),
        num_resamples=config.kcfa.num_resamples, far=(_FAR,),
    )  # fmt: skip


def largest_share(ids: np.ndarray) -> float:
    """The largest part that one person has in the genuine pairs of a fold, from the people shown `[q]`."""
    sizes = np.unique(ids, return_counts=True)[1]
    genuine = sizes * (sizes - 1)
    return float(genuine.max() / genuine.sum()) if genuine.any() else math.nan


def section(config: ConfigDict, found: Found, results: Mapping[str, Matched], shown: tuple[str, ...]) -> Section:
    """ROC of the methods `shown`, and EER, Cllr and min Cllr of all."""
    lines = [Curve("original faces", results[ORIGINAL].curve.far, results[ORIGINAL].curve.vr)]
    lines += [Curve(found.names.labels[name], results[name].curve.far, results[name].curve.vr) for name in shown]
    figure = figures.roc(lines, title="Reconstructions against originals")
    pairs = int(found.counts[ORIGINAL].sum())
    filters = ", ".join(map(str, sorted(set(found.num_filters))))
    share = max(largest_share(found.ids[found.fold == fold]) for fold in range(len(found.kept)))
    bounds = streaming.eer_bounds(results[ORIGINAL].curve)
    return Section(
        "Is the face recognised?",
        (
            f"KCFA with {filters} filters of people who train compares every original with every reconstruction, "
            f"{pairs:,} ordered pairs; an image and its own reconstruction are left out. Nobody gives more than "
            f"{config.max_images} images; one person makes at most {100 * share:.0f} % of the genuine pairs. Scores "
            "are counted in bins as they are made: the EER of the originals, for one, lies between "
            f"{100 * bounds.low:.3f} and {100 * bounds.high:.3f} %.{_of_whom(config, found)}",
            Picture("roc.svg", figures.to_svg(figure), "Verification of people whom neither side was trained on."),
            "A cosine of KCFA is no log-likelihood ratio and has a Cllr only after calibration: the test people of a "
            f"fold are cut into {ratios.NUM_FOLDS} parts, and slope and offset of a pair are fitted to the pairs of "
            "people in other parts. Cllr is in bits: 1 says nothing. min Cllr is what the best monotone calibration "
            "of the whole would reach.",
            _ratio_table(found, results),
        ),
    )


def _of_whom(config: ConfigDict, found: Found) -> str:
    """Whose scores give the intervals, in words, unless those of all do."""
    kept, people = num_people(found)
    if kept == people:
        return ""
    return (
        f" A fold has more than {config.kcfa.max_kept:,} images: intervals and Cllr come from the scores of "
        f"{kept:,} people drawn at random from the {people:,}; an interval is then narrowed by the root of that "
        "share."
    )


def _ratio_table(found: Found, results: Mapping[str, Matched]) -> Table:
    labels = {ORIGINAL: "original faces", **found.names.labels}
    rows: list[tuple[Cell, ...]] = [
        (
            labels[name],
            percent_interval(each.eer),
            with_interval(each.cllr, digits=3),
            Estimate(each.min_cllr, digits=3),
        )
        for name, each in results.items()
    ]
    return Table(("method", "EER %", "Cllr, calibrated", "min Cllr"), rows, "95 % intervals over people")
