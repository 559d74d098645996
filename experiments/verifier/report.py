"""Tables and figures of a verifier and its rivals."""

from collections.abc import Mapping, Sequence

import numpy as np
from ml_collections import ConfigDict

from experiments.common import trials
from experiments.common.inputs import Vectors
from experiments.score.verification import Decisions
from experiments.verifier import candidates
from jaxface import metrics
from jaxface.metrics import intervals, verification
from jaxface.reports import figures, score_figures
from jaxface.reports.html import Block, Command, Picture, Section
from jaxface.reports.tables import Cell, Estimate, Table, intervals_over, percent, percent_interval, with_interval
from jaxface.runtime.workdir import Workdir

Arrays = Mapping[str, np.ndarray]
REFERENCE = "cosine"


def lead(config: ConfigDict, vectors: Vectors, measured: Sequence[Arrays]) -> str:
    """The data, and who fits, calibrates and tests."""
    number = len(vectors.names)
    shares = f"{100 * config.share_calibrate:g} % of the people calibrate and {100 * config.share_test:g} % test"
    alone = candidates.people_with_one(vectors.ids)
    return (
        f"{len(vectors.x):,} images of {number:,} people, {alone:,} of them with one image, who help to fit and give "
        f"impostors. In each of {config.num_splits} random splits {shares}; nobody is on two sides. "
        + trials.rule(config.max_images, max(float(arrays["share"]) for arrays in measured))
    )


def headline(config: ConfigDict, measured: Sequence[Arrays], test_to_train: float) -> Table:
    """Every kind on test people, and what the choice gives."""
    values = np.stack([arrays["test"] for arrays in measured])  # [splits, kinds, measures]
    chosen = np.array([int(arrays["chosen"]) for arrays in measured])
    of_choice = values[np.arange(len(values)), chosen]
    rows: list[tuple[Cell, ...]] = [
        (kind, *_estimates(config, values[:, k], test_to_train)) for k, kind in enumerate(config.kinds)
    ]
    rows.append(("the kind chosen in each split", *_estimates(config, of_choice, test_to_train)))
    what = intervals_over(config.num_splits, "random splits")
    return Table(_columns(config), rows, f"{what}. Chosen: {candidates.names_of(config.kinds, chosen)}.")


def _columns(config: ConfigDict) -> tuple[str, ...]:
    rates = (f"VR % at FAR {100 * far:g} %" for far in config.far)
    return ("verifier", "EER %", *rates, "Cllr", "min Cllr")


def _estimates(config: ConfigDict, values: np.ndarray, test_to_train: float) -> list[Estimate]:
    """A cell for each measure, from values `[splits, measures]`."""
    num_rates = 1 + len(config.far)
    cells = []
    for j, column in enumerate(values.T):
        if np.isnan(column).any():
            cells.append(Estimate(np.nan))
            continue
        within = intervals.RATE if j < num_rates else intervals.POSITIVE
        found = metrics.split_interval(column, test_to_train=test_to_train, within=within)
        cells.append(percent_interval(found, digits=2) if j < num_rates else with_interval(found, digits=4))
    return cells


def sections(
    config: ConfigDict, workdir: Workdir, measured: Sequence[Arrays], test_to_train: float, decided: Decisions | None
) -> list[Section]:
    """The body of the report."""
    parts = [_saved(config, workdir, measured[0])]
    if REFERENCE in config.kinds:
        parts.insert(0, _differences(config, measured, test_to_train))
    if decided is not None:
        parts.append(_decisions(config, decided))
    return parts


def _differences(config: ConfigDict, measured: Sequence[Arrays], test_to_train: float) -> Section:
    """Each kind less the plain cosine, over the same splits."""
    values = np.stack([arrays["test"] for arrays in measured])
    reference = values[:, config.kinds.index(REFERENCE)]
    num_rates = 1 + len(config.far)
    rows: list[tuple[Cell, ...]] = []
    for k, kind in enumerate(config.kinds):
        if kind == REFERENCE or np.isnan(values[:, k]).any():
            continue
        cells = []
        for j in range(values.shape[2]):
            within = intervals.RATE if j < num_rates else intervals.POSITIVE
            found = metrics.paired_interval(
                values[:, k, j], reference[:, j], test_to_train=test_to_train, within=within
            )
            cells.append(percent_interval(found, digits=2) if j < num_rates else with_interval(found, digits=4))
        rows.append((kind, *cells))
    return Section(
        "Against the plain cosine",
        (
            "Each row is a kind of verifier less the plain cosine on the same test people; rates in points. An "
            "interval without zero says which is better for people like these.",
            Table(_columns(config), rows, intervals_over(config.num_splits, "random splits")),
        ),
    )


def _saved(config: ConfigDict, workdir: Workdir, arrays: Arrays) -> Section:
    """The saved verifier on its own test people, its thresholds, and the command that uses it."""
    kind = config.kinds[int(arrays["chosen"])]
    scores, is_same = arrays["scores"], arrays["is_same"]
    curve = metrics.roc(scores, is_same)
    rows: list[tuple[Cell, ...]] = []
    for prior in (0.5, 0.1, 0.01):
        threshold = verification.bayes_threshold(prior=prior, cost_miss=1.0, cost_false_accept=1.0)
        rows.append((f"fewest wrong decisions at a prior of {prior:g}", *_at(curve, threshold)))
    rows += [(f"FAR {100 * far:g} %", *_at(curve, metrics.threshold_at_far(curve, far))) for far in config.far]
    labelled = {kind: (scores, is_same)}
    blocks: list[Block] = [
        f"The verifier of the first split is saved: {kind}. A score is a log-likelihood ratio in nats. On the test "
        f"people of this split it has an EER of {100 * metrics.eer(curve):.2f} %, a Cllr of "
        f"{metrics.cllr(scores, is_same):.4f} and a min Cllr of {metrics.min_cllr(curve):.4f} bits, from "
        f"{int(is_same.sum()):,} pairs of one person and {int((~is_same).sum()):,} of two.",
        Table(("rule", "threshold", "FAR %", "VR %"), rows, "Thresholds, and the rates of the test people there"),
        Picture("det.svg", figures.to_svg(score_figures.det({kind: curve})), "Errors of the test people."),
        Picture("tippett.svg", figures.to_svg(score_figures.tippett(labelled)), "Ratios of the test people."),
        Picture(
            "ece.svg", figures.to_svg(score_figures.cross_entropy(labelled)), "Cross-entropy of the ratios, by prior."
        ),
        "The vectors of the test people are in test/test.npz. To decide on pairs of them, name pairs of its `files` in "
        "a CSV with the header a,b. Vectors of your own by the same network or image steps serve as well:",
        Command(
            "python -m experiments.score --config=configs/score.py --workdir=runs/decided "
            f"--config.model={workdir.path}/params/verifier.safetensors --config.images.loader=embeddings "
            f"--config.images.root={workdir.path}/test/test.npz --config.pairs=PAIRS.csv"
        ),
    ]
    return Section("The saved verifier", blocks)


def _at(curve: metrics.Roc, threshold: float) -> tuple[Cell, ...]:
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
