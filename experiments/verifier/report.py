"""Tables and figures of a verifier and its rivals."""

from collections.abc import Mapping, Sequence

import numpy as np
from ml_collections import ConfigDict

from experiments.common import trials
from experiments.common.inputs import Vectors
from experiments.score.verification import Decisions
from experiments.verifier import candidates, evidence, sides
from experiments.verifier.evidence import Evidence, Pooled
from experiments.verifier.sides import Sides
from jaxface import metrics
from jaxface.metrics import verification
from jaxface.metrics.bootstrap import SubjectDifferences, SubjectIntervals
from jaxface.metrics.intervals import Interval
from jaxface.reports import figures, score_figures
from jaxface.reports.html import Block, Command, Picture, Section
from jaxface.reports.tables import Cell, Estimate, Table, percent, percent_interval, with_interval
from jaxface.runtime.workdir import Workdir

Arrays = Mapping[str, np.ndarray]
Found = Mapping[str, Evidence]


def lead(config: ConfigDict, vectors: Vectors, first: Sides, pooled: Pooled) -> str:
    """The data, and who fits, calibrates and tests."""
    alone = candidates.people_with_one(vectors.ids)
    singles = f", {alone:,} of them with one image, who help to fit and give impostors" if alone else ""
    people = {
        name: len(np.unique(vectors.ids[rows]))
        for name, rows in (("fit", first.split.train), ("calibrate", first.split.held_out), ("test", first.rows))
    }
    return (
        f"{len(vectors.x):,} images of {len(vectors.names):,} people{singles}. {sides.in_words(config, people)} "
        + trials.rule(config.max_images, pooled.largest_share, is_listed=config.trials is not None)
    )


def headline(config: ConfigDict, measured: Sequence[Arrays], found: Found) -> Table:
    """Every kind on all people, and what the choice gives."""
    names = (*config.kinds, evidence.CHOSEN)
    rows = [(name, *estimates(config, found.get(name))) for name in names]
    chosen = np.array([int(arrays["chosen"]) for arrays in measured])
    picked = candidates.names_of(config.kinds, chosen)
    lost = ", ".join(name for name in config.kinds if name not in found)
    caption = f"Everybody tested once; {resampled(config)}. Chosen: {picked}."
    if lost:
        caption += f" Without numbers: {lost}, whose fit fails in some fold, as with few people for so many dimensions."
    return Table(columns(config), rows, caption)


def resampled(config: ConfigDict, drawn: str = "the people") -> str:
    """How intervals came about, for a caption."""
    return f"95 % intervals from {config.num_resamples:,} resamples of {drawn}"


def columns(config: ConfigDict) -> tuple[str, ...]:
    """The head of a table of measures."""
    rates = (f"VR % at FAR {100 * far:g} %" for far in config.far)
    return ("verifier", "EER %", *rates, "Cllr", "min Cllr")


def estimates(config: ConfigDict, found: Evidence | None) -> tuple[Cell, ...]:
    """A cell for each measure; without numbers where a fit failed."""
    if found is None:
        return (Estimate(np.nan),) * (3 + len(config.far))
    return cells(found.intervals)


def cells(over: SubjectIntervals | SubjectDifferences) -> tuple[Estimate, ...]:
    """Estimates with their intervals, or differences with theirs."""
    each_rate = (Interval(*ends) for ends in zip(*map(np.atleast_1d, over.verification_rate), strict=True))
    of_rates = (percent_interval(each, digits=2) for each in (over.eer, *each_rate))
    return (*of_rates, *(with_interval(each, digits=4) for each in (over.cllr, over.min_cllr)))


def sections(
    config: ConfigDict,
    workdir: Workdir,
    first: Sides,
    measured: Sequence[Arrays],
    found: Found,
    compared: Sequence[Section | None],
    identification: Sequence[Section | None],
    decided: Decisions | None,
) -> list[Section]:
    """The body of the report."""
    parts = [
        differences(config, found) if evidence.REFERENCE in found else None,
        *compared,
        _saved(config, workdir, first, measured[0]),
        *identification,
        None if decided is None else _decisions(config, decided),
    ]
    return [part for part in parts if part is not None]


def differences(config: ConfigDict, found: Found, drawn: str = "the people") -> Section:
    """Each kind less the plain cosine, over the same resamples of what is `drawn`."""
    reference = found[evidence.REFERENCE]
    rows: list[tuple[Cell, ...]] = []
    for name, each in found.items():
        if name != evidence.REFERENCE:
            rows.append((name, *cells(each.less(reference))))
    curves = {name: each.curve for name, each in found.items() if name in config.kinds}
    return Section(
        "Against the plain cosine",
        (
            "Each row is a kind of verifier less the plain cosine on the same people; rates in points. An interval "
            "without zero says which is better for people like these.",
            Table(columns(config), rows, f"Differences; {resampled(config, drawn)}"),
            Picture("det-kinds.svg", figures.to_svg(score_figures.det(curves)), "Errors of every kind, all people."),
        ),
    )


def _saved(config: ConfigDict, workdir: Workdir, first: Sides, arrays: Arrays) -> Section:
    """The saved verifier on its own test people, its thresholds, and the command that uses it."""
    kind = config.kinds[int(arrays["chosen"])]
    scores = arrays["scores"][int(arrays["chosen"])]
    is_same = first.trial.is_same
    curve = metrics.roc(scores, is_same)
    rows: list[tuple[Cell, ...]] = []
    for prior in (0.5, 0.1, 0.01):
        threshold = verification.bayes_threshold(prior=prior, cost_miss=1.0, cost_false_accept=1.0)
        rows.append((f"fewest wrong decisions at a prior of {prior:g}", *at(curve, threshold)))
    rows += [(f"FAR {100 * far:g} %", *at(curve, metrics.threshold_at_far(curve, far))) for far in config.far]
    labelled = {kind: (scores, is_same)}
    blocks: list[Block] = [
        f"The verifier of the first fold is saved: {kind}. A score is a log-likelihood ratio in nats. On the test "
        f"people of this fold it has an EER of {100 * metrics.eer(curve):.2f} %, a Cllr of "
        f"{metrics.cllr(scores, is_same):.4f} and a min Cllr of {metrics.min_cllr(curve):.4f} bits, from "
        f"{int(is_same.sum()):,} pairs of one person and {int((~is_same).sum()):,} of two.",
        Table(("rule", "threshold", "FAR %", "VR %"), rows, "Thresholds, and the rates of the test people there"),
        *([_errors(kind, curve)] if metrics.eer(curve) > 0 else []),
        Picture("tippett.svg", figures.to_svg(score_figures.tippett(labelled)), "Ratios of the test people."),
        Picture(
            "ece.svg", figures.to_svg(score_figures.cross_entropy(labelled)), "Cross-entropy of the ratios, by prior."
        ),
        *use(workdir),
    ]
    return Section("The saved verifier", blocks)


def use(workdir: Workdir) -> list[Block]:
    """How the saved verifier decides on pairs."""
    return [
        "The vectors of the test people are in test/test.npz. To decide on pairs of them, name pairs of its `files` in "
        "a CSV with the header a,b. Vectors of your own by the same network or image steps serve as well:",
        Command(
            "python -m experiments.score --config=configs/score.py --workdir=runs/decided "
            f"--config.model={workdir.path}/params/verifier.safetensors --config.images.loader=embeddings "
            f"--config.images.root={workdir.path}/test/test.npz --config.pairs=PAIRS.csv"
        ),
    ]


def _errors(kind: str, curve: metrics.Roc) -> Picture:
    return Picture("det.svg", figures.to_svg(score_figures.det({kind: curve})), "Errors of the test people.")


def at(curve: metrics.Roc, threshold: float) -> tuple[Cell, ...]:
    """A threshold, and FAR and VR there."""
    far, vr = verification.rates_at(curve, threshold)
    return (Estimate(threshold, digits=3), percent(far, digits=3), percent(vr, digits=2))


def _decisions(config: ConfigDict, decided: Decisions) -> Section:
    text = (
        f"{int(decided.is_accepted.sum()):,} of the {len(decided.scores):,} pairs of {config.pairs} are called one "
        f"person, at a prior of {config.prior:g} (threshold {decided.threshold:.2f} nats); decisions.csv has them all."
    )
    if decided.is_same is not None:
        text += f" {100 * float((decided.is_accepted == decided.is_same).mean()):.2f} % of the decisions are right."
    return Section("Decisions", (text + " People of these pairs may have helped to fit the verifier.",))
