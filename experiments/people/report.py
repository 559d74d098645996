"""The pages: methods beside each other on people never seen, and the groups of a heap with faces to look at."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.common.inputs import Vectors
from experiments.common.publish import publish
from experiments.common.verdicts import verdict
from experiments.people.heap import Heap
from experiments.people.splits import MEASURES, METHODS, Chosen
from jaxface import metrics
from jaxface.data.splits import Split
from jaxface.metrics import intervals
from jaxface.reports import figures, sheets
from jaxface.reports.figures import Curve
from jaxface.reports.html import Block, Command, Picture, Section
from jaxface.reports.tables import Cell, Estimate, Table, csv_text, intervals_over, percent_interval, with_interval
from jaxface.runtime.workdir import Workdir

_RATES = ("B-cubed F", "precision", "recall", "pairwise F")
_FACES = 10  # of a group on a page
_OURS, _PEER = METHODS[0], "average linkage, cosine"


def write_groups(workdir: Workdir, vectors: Vectors, rows: np.ndarray, labels: np.ndarray) -> None:
    """Writes `groups.csv`: file, or number of the row, and group, the largest group first; the person if known."""
    order = _by_size(labels)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(1, len(order) + 1)
    lines: list[tuple[Any, ...]] = []
    for row, group in sorted(zip(rows.tolist(), rank[labels].tolist(), strict=True), key=lambda each: each[::-1]):
        known = (str(vectors.names[vectors.ids[row]]),) if vectors.ids[row] >= 0 else ("",)
        lines.append((vectors.files[row] if vectors.files else row, group, *known))
    workdir.write_text("groups.csv", csv_text([("file" if vectors.files else "row", "group", "person"), *lines]))


def _by_size(labels: np.ndarray) -> np.ndarray:
    """Groups, the largest first."""
    return np.argsort(-np.bincount(labels), kind="stable")


def _ratio(split: Split) -> float:
    return len(split.test) / (len(split.train) + len(split.held_out))


def _table_of(measured: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Each measure as `[methods, splits]`."""
    every = np.stack([arrays["measures"] for arrays in measured], axis=-1)
    return {name: every[:, k] for k, name in enumerate(MEASURES)}


def results(config: ConfigDict, drawn: Sequence[Split], measured: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Any]:
    """Means over the splits, and the difference to average linkage with its interval."""
    found = _table_of(measured)
    numbers: dict[str, Any] = {
        f"{measure}, {method}": float(found[measure][m].mean())
        for measure in MEASURES
        for m, method in enumerate(METHODS)
        if measure != "people in truth"
    }
    numbers["people in truth"] = float(found["people in truth"].mean())
    less = _difference(found, drawn)
    return numbers | {f"B-cubed F, {_OURS} less {_PEER}": [float(end) for end in (less.low, less.high)]}


def _difference(found: Mapping[str, np.ndarray], drawn: Sequence[Split]) -> intervals.Interval:
    ours, peer = (found["B-cubed F"][METHODS.index(name)] for name in (_OURS, _PEER))
    return intervals.paired_interval(ours, peer, test_to_train=_ratio(drawn[0]), within=intervals.RATE)


def comparison(
    config: ConfigDict,
    workdir: Workdir,
    loaded: Vectors,
    vectors: Vectors,
    drawn: Sequence[Split],
    measured: Sequence[Mapping[str, np.ndarray]],
) -> None:
    """The methods on people never seen."""
    found, ratio = _table_of(measured), _ratio(drawn[0])
    rows: list[tuple[Cell, ...]] = []
    for m, method in enumerate(METHODS):
        cells: list[Cell] = [
            percent_interval(
                intervals.split_interval(found[name][m], test_to_train=ratio, within=intervals.RATE), digits=2
            )
            for name in _RATES
        ]
        share = found["people"][m] / found["people in truth"][m]
        cells.append(
            with_interval(intervals.split_interval(share, test_to_train=ratio, within=intervals.POSITIVE), digits=3)
        )
        rows.append((method, *cells, Estimate(float(found["seconds"][m].mean()), digits=1)))
    head = ("method", *(f"{name} %" for name in _RATES), "people found / true", "seconds")
    photos, people = len(drawn[0].test), int(found["people in truth"][0, 0])
    caption = f"{people:,} people never seen, {photos:,} photos; {intervals_over(config.num_splits, 'random splits')}"
    less = _difference(found, drawn)
    words = {"below": "worse", "above": "better", "neither": "no difference shown"}
    publish(
        workdir,
        title="People out of a heap of photos",
        lead=(
            f"{len(vectors.ids):,} photos of {len(vectors.names):,} people with {config.min_images} to "
            f"{config.max_images} photos, of {len(loaded.names):,} people in the data. B-cubed F of {_OURS} less that "
            f"of {_PEER}: {percent_interval(less, digits=2)} points, {verdict(less, **words)}."
        ),
        headline=Table(head, rows, caption),
        sections=(
            Section("How the methods are set", _settings(config, workdir, measured)),
            Section("Sizes of the groups", _sizes(vectors, drawn[0], measured[0]["labels"][0])),
        ),
        credits=(vectors.credit,),
    )


def _settings(config: ConfigDict, workdir: Workdir, measured: Sequence[Mapping[str, np.ndarray]]) -> tuple[Block, ...]:
    chosen = [Chosen(*arrays["chosen"].tolist()) for arrays in measured]
    rows: list[tuple[Cell, ...]] = [
        (k, *(Estimate(value, digits=3) for value in each)) for k, each in enumerate(chosen, 1)
    ]
    head = ("split", "scale of noise", "slope", "offset", "photos a person", "cosine distance")
    return (
        f"A verifier ({config.kind}) is fitted to the training people. All settings are those of held-out people. "
        "The noise of its model is scaled, because photos of one person differ more than a Gaussian says: the scale "
        "has the largest B-cubed F, as the cosine distance of average linkage has. Slope and offset calibrate the "
        "ratios of pairs. Ewens' prior and k-means expect as many people a photo as there are among the held-out "
        "people. No method sees the people of the test or their number.",
        Table(head, rows, "What the held-out people chose"),
        "With the verifier of the first split and photos of other people:",
        Command(
            "python -m experiments.people --config=configs/people.py --config.data.root=FILE.npz "
            f"--config.model={workdir.path}/params/verifier.safetensors --config.noise_scale={chosen[0].noise_scale:g} "
            "--config.num_people=EXPECTED --workdir=FOLDER"
        ),
    )


def _sizes(vectors: Vectors, split: Split, labels: np.ndarray) -> tuple[Block, ...]:
    true = np.sort(np.bincount(vectors.ids[split.test]))[::-1]
    lines = [
        Curve(name, 1 + np.arange(np.count_nonzero(sizes)), sizes[sizes > 0])
        for name, sizes in (("truth", true), (_OURS, np.sort(np.bincount(labels))[::-1]))
    ]
    figure = figures.curves(
        lines, x_label="person, the largest first", y_label="photos", title="First split", log_x=True, log_y=True
    )
    return (Picture("sizes.svg", figures.to_svg(figure), "The groups of the first split are in groups.csv."),)


def groups(config: ConfigDict, workdir: Workdir, found: Heap, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The page of a heap: its groups, with faces where there are photos; returns the numbers."""
    labels, vectors = arrays["labels"], found.vectors
    sizes = np.bincount(labels)
    numbers: dict[str, Any] = {
        "photos": len(labels),
        "people": len(sizes),
        "people with one photo": int((sizes == 1).sum()),
        "photos of the largest group": int(sizes.max()),
        "rise of the log posterior, nats": float(arrays["rise"]),
    }
    if found.is_known:
        of_truth = metrics.bcubed(vectors.ids, labels)
        numbers |= {"people in truth": len(np.unique(vectors.ids)), "B-cubed F": of_truth.f}
        numbers |= {"B-cubed precision": of_truth.precision, "B-cubed recall": of_truth.recall}
    shown = _by_size(labels)[: config.num_shown]
    rows: list[tuple[Cell, ...]] = [
        (k, int(sizes[group]), ", ".join(vectors.files[row] for row in np.flatnonzero(labels == group)[:3]))
        for k, group in enumerate(shown, 1)
        if vectors.files
    ]
    blocks: list[Block] = []
    if found.picture is not None:
        blocks.append(_faces(found, labels, shown))
    if rows:
        blocks.append(Table(("group", "photos", "first files"), rows, "The largest groups; all in groups.csv"))
    prior = f"about {config.num_people} people" if config.num_people is not None else f"{config.threshold:g} nats"
    publish(
        workdir,
        title="People out of a heap of photos",
        lead=(
            f"{len(labels):,} photos became {len(sizes):,} groups of one person each, with a prior of {prior}; "
            f"{len(found.apart):,} pairs of faces of one photo were kept apart."
        ),
        headline=Table(("what", "number"), list(numbers.items())),
        sections=(Section("The largest groups", tuple(blocks) or ("All groups are in groups.csv.",)),),
        credits=(vectors.credit,),
    )
    return numbers


def _faces(found: Heap, labels: np.ndarray, shown: np.ndarray) -> Block:
    """Some faces of each group, a row each; missing places are white."""
    assert found.picture is not None
    faces = [[found.picture(int(row)) for row in np.flatnonzero(labels == group)[:_FACES]] for group in shown]
    sheet = np.ones((len(faces), max(map(len, faces)), *faces[0][0].shape), np.float32)
    for i, group in enumerate(faces):
        sheet[i, : len(group)] = group
    names = [f"group {k}" for k in range(1, len(faces) + 1)]
    return sheets.sheet(
        "groups.png", sheet, title="Largest groups", caption="A row a group.", row_labels=names, cell=0.8
    )
