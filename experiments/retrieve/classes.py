"""Retrieval against the number of classes: is it harder among more, and who gains from longer lists?"""

from collections.abc import Mapping

import numpy as np
from ml_collections import ConfigDict

from experiments.weak_labels.methods import METHODS
from jaxface.metrics import intervals
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Block, Picture, Section
from jaxface.reports.tables import Cell, Table, with_interval

ByNumber = Mapping[int, Mapping[str, np.ndarray]]  # by the number of classes, then by the method
_PAIR = ("kernel_np_per", "kernel_rca")  # whom the paper compares


def section(config: ConfigDict, found: Mapping[str, ByNumber]) -> Section:
    """Figure 8: one list a number of classes, and the two claims about it."""
    blocks: list[Block] = [
        "Each split draws its classes at random, a smaller number from those of a larger one; a class has as many "
        "photographs in the database whatever their number. By chance K / classes of the top K are right."
    ]
    for scaling, by_number in found.items():
        blocks += [_table(config, scaling, by_number), _by_number(config, scaling, by_number)]
        if set(_PAIR) <= set(config.methods):
            blocks += [_lists(config, scaling, by_number), _advantage(config, scaling, by_number)]
            blocks.append(_advantages(config, scaling, by_number))
    return Section("How many classes there are", blocks)


def _table(config: ConfigDict, scaling: str, by_number: ByNumber) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in ("pixels", *config.methods):
        cells = [
            intervals.split_interval(found[name][:, -1], test_to_train=1.0, within=(0.0, config.k))
            for found in by_number.values()
        ]
        rows.append((title_of(name), *(with_interval(cell) for cell in cells)))
    columns = ("method", *(f"{number} classes" for number in by_number))
    return Table(columns, rows, f"Right photographs among the nearest {config.k}: {scaling}")


def _by_number(config: ConfigDict, scaling: str, by_number: ByNumber) -> Picture:
    numbers = list(by_number)
    lines = [
        Curve(title_of(name), numbers, [found[name][:, -1].mean() for found in by_number.values()])
        for name in ("pixels", *config.methods)
    ]
    label = f"right photographs in the top {config.k}"
    figure = figures.curves(lines, x_label="classes", y_label=label, title=f"More classes: {scaling}")
    return Picture(f"classes_{slug(scaling)}.svg", figures.to_svg(figure), "Mean over splits.")


def _lists(config: ConfigDict, scaling: str, by_number: ByNumber) -> Picture:
    lines = [
        Curve(f"{METHODS[name].title}, {number}", np.arange(1, config.k + 1), found[name].mean(axis=0))
        for number, found in by_number.items()
        for name in _PAIR
    ]
    figure = figures.curves(
        lines, x_label="K", y_label="right photographs in the top K", title=f"Classes: {scaling}", markers=False
    )
    return Picture(
        f"lists_{slug(scaling)}.svg", figures.to_svg(figure), "Mean over splits, for each number of classes."
    )


def _advantage(config: ConfigDict, scaling: str, by_number: ByNumber) -> Picture:
    lines = []
    for number, found in by_number.items():
        gain = found[_PAIR[0]] - found[_PAIR[1]]
        lines.append(Curve(f"{number} classes", np.arange(1, config.k + 1), gain.mean(axis=0)))
    figure = figures.curves(
        lines, x_label="K", y_label="more right photographs in the top K", title=f"Gain: {scaling}", reference=0.0
    )
    caption = "Kernel NP-PER minus kernel RCA, mean over splits."
    return Picture(f"gain_{slug(scaling)}.svg", figures.to_svg(figure), caption)


def _advantages(config: ConfigDict, scaling: str, by_number: ByNumber) -> Table:
    """The gain at the first place, in a third of the list, and in all of it."""
    places = sorted({1, max(1, config.k // 3), config.k})
    rows: list[tuple[Cell, ...]] = []
    for number, found in by_number.items():
        cells = []
        for k in places:
            a, b = (found[name][:, k - 1] for name in _PAIR)
            cells.append(intervals.paired_interval(a, b, test_to_train=1.0, within=(0.0, float(k))))
        rows.append((int(number), *(with_interval(cell) for cell in cells)))
    columns = ("classes", *(f"top {k}" for k in places))
    return Table(columns, rows, f"Kernel NP-PER minus kernel RCA, right photographs, 95 % intervals: {scaling}")


def title_of(name: str) -> str:
    """What the report calls a method."""
    return "features as they are" if name == "pixels" else METHODS[name].title


def slug(scaling: str) -> str:
    """A scaling in the name of a file."""
    return scaling.replace(" ", "_")
