"""Tables and figures of a verifier from a stream."""

from collections.abc import Mapping

import numpy as np
from ml_collections import ConfigDict

from experiments.verifier import evidence, report
from experiments.verifier.evidence import Evidence
from jaxface import metrics
from jaxface.metrics import streaming, verification
from jaxface.metrics.verification import Roc
from jaxface.reports import figures, score_figures
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table, percent
from jaxface.runtime.workdir import Workdir

_LEAST_FAR = (1e-3, 1e-4, 1e-5, 1e-6)  # of all pairs, where there are enough of them


def lead(config: ConfigDict, num_vectors: int, people: Mapping[str, int], num_groups: int) -> str:
    """The data, and how many people there are in all, fit, calibrate and test."""
    return (
        f"{num_vectors:,} vectors of {people['all']:,} people, read from the disk: {people['fit']:,} people fit, "
        f"{people['calibrate']:,} calibrate and choose, and {people['test']:,} test, with at most {config.max_images} "
        f"vectors of a person. Nobody is on two sides. Pairs stay within {num_groups} groups of test people, and "
        "intervals resample these groups."
    )


def headline(config: ConfigDict, found: Mapping[str, Evidence], chosen: str) -> Table:
    """Every kind on the people who test."""
    rows = [(name, *report.estimates(config, found.get(name))) for name in config.kinds]
    caption = f"95 % intervals from {config.num_resamples:,} resamples of the groups. Chosen: {chosen}."
    if lost := ", ".join(name for name in config.kinds if name not in found):
        caption += f" Without numbers: {lost}, whose fit fails, as with few people for so many dimensions."
    return Table(report.columns(config), rows, caption)


def sections(
    config: ConfigDict,
    workdir: Workdir,
    found: Mapping[str, Evidence],
    chosen: str,
    counted: Mapping[str, np.ndarray],
    identification: Section | None,
) -> list[Section]:
    """The body of the report."""
    parts = [
        report.differences(config, found, "the groups") if evidence.REFERENCE in found else None,
        _all_pairs(config, chosen, counted),
        _saved(workdir, chosen, found[chosen].curve, config),
        identification,
    ]
    return [part for part in parts if part is not None]


def _all_pairs(config: ConfigDict, chosen: str, counted: Mapping[str, np.ndarray]) -> Section:
    """The chosen kind and the cosine on all pairs, counted and not kept."""
    names = dict.fromkeys((chosen, evidence.REFERENCE))
    curves = {
        name: streaming.roc(counted[f"{name}: edges"], counted[f"{name}: genuine"], counted[f"{name}: impostor"])
        for name in names
        if f"{name}: edges" in counted
    }
    genuine, impostor = (int(counted[f"{chosen}: {kind}"].sum()) for kind in ("genuine", "impostor"))
    rates = [far for far in sorted({*config.far, *_LEAST_FAR}, reverse=True) if far * impostor >= 1]
    rows: list[tuple[Cell, ...]] = [
        (name, percent(metrics.eer(curve), digits=3),
         *(percent(metrics.verification_rate(curve, far), digits=2) for far in rates))
        for name, curve in curves.items()
    ]  # fmt: skip
    columns = ("verifier", "EER %", *(f"VR % at FAR {far:g}" for far in rates))
    return Section(
        "All pairs of the test people",
        (
            f"{genuine:,} pairs of one person and {impostor:,} of two, across groups too. Scores are counted in "
            "bins and not kept; the rates are exact to the bin.",
            Table(columns, rows, "All pairs"),
            Picture("det-all.svg", figures.to_svg(score_figures.det(curves)), "Errors of all pairs."),
        ),
    )


def _saved(workdir: Workdir, chosen: str, curve: Roc, config: ConfigDict) -> Section:
    """The thresholds of the saved verifier, and the command that uses it."""
    rows: list[tuple[Cell, ...]] = []
    for prior in (0.5, 0.1, 0.01):
        threshold = verification.bayes_threshold(prior=prior, cost_miss=1.0, cost_false_accept=1.0)
        rows.append((f"fewest wrong decisions at a prior of {prior:g}", *report.at(curve, threshold)))
    rows += [(f"FAR {100 * far:g} %", *report.at(curve, metrics.threshold_at_far(curve, far))) for far in config.far]
    table = Table(("rule", "threshold", "FAR %", "VR %"), rows, "Thresholds, and the rates within groups there")
    text = f"The chosen verifier is saved: {chosen}. A score is a log-likelihood ratio in nats."
    return Section("The saved verifier", (text, table, *report.use(workdir)))
