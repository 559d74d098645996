"""Tables and figures of a retrieval study."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.common.publish import publish
from experiments.retrieve import answers, classes
from experiments.retrieve.classes import slug, title_of
from experiments.weak_labels.methods import METHODS
from jaxface.data import LabeledImages
from jaxface.metrics import intervals
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table, with_interval
from jaxface.runtime.workdir import Workdir

Arrays = Mapping[str, Mapping[str, np.ndarray]]  # by the scaling of the features, then by the method
ByNumber = Mapping[int, Mapping[str, np.ndarray]]  # by the number of classes, then by the method

_FEATURES = (
    "Colours are a histogram of L*u*v* in 16 x 16 x 16 boxes, texture the first four DCT coefficients of 16 x 16 "
    "blocks. The two have very different scales: if they are concatenated unscaled, one of them decides alone."
)


def page(config: ConfigDict, workdir: Workdir, photographs: LabeledImages, found: Mapping[str, ByNumber]) -> None:
    """Right photographs of every method, kernel NP-PER against kernel RCA, the curves, and queries with answers."""
    arrays = {scaling: by_number[max(by_number)] for scaling, by_number in found.items()}
    number = max(max(by_number) for by_number in found.values())
    blocks: list[Any] = [_FEATURES, *_top_pictures(config, arrays), *_width_pictures(config, arrays)]
    if {"kernel_np_per", "kernel_rca"} <= set(config.methods):
        blocks.append(_difference(config, arrays))
    sections = [Section("Right photographs in the top K", tuple(blocks))]
    if len(next(iter(found.values()))) > 1:
        sections.append(classes.section(config, found))
    sections.append(answers.section(config, photographs, next(iter(arrays.values()))))
    publish(
        workdir,
        title="Retrieval after learning from groups",
        lead=f"{number} classes, {config.per_class} photographs of each in the database in groups of "
        f"{config.group_size}, as many queries; {config.num_splits} random splits, intervals widened for the "
        "photographs that splits share.",
        headline=_headline(config, arrays),
        sections=sections,
        credits=(photographs.credit,),
    )


def _headline(config: ConfigDict, arrays: Arrays) -> Table:
    """Right photographs of every method under every scaling."""
    rows: list[tuple[Cell, ...]] = []
    for name in ("pixels", *config.methods):
        cells = [
            intervals.split_interval(numbers[name][:, -1], test_to_train=1.0, within=(0.0, config.k))
            for numbers in arrays.values()
        ]
        rows.append((title_of(name), *(with_interval(cell) for cell in cells)))
    return Table(("method", *arrays), rows, f"Right photographs among the nearest {config.k}")


def _difference(config: ConfigDict, arrays: Arrays) -> Table:
    """Kernel NP-PER minus kernel RCA on the same splits."""
    rows: list[tuple[Cell, ...]] = []
    for scaling, numbers in arrays.items():
        a, b = (numbers[name][:, -1] for name in ("kernel_np_per", "kernel_rca"))
        plain, wide = (
            intervals.paired_interval(a, b, test_to_train=ratio, within=(0.0, config.k)) for ratio in (0.0, 1.0)
        )
        won = f"{int((a > b).sum())} of {len(a)}"
        rows.append((scaling, *(with_interval(each) for each in (plain, wide)), won))
    return Table(
        ("features", "these photographs", "other photographs", "splits won"),
        rows,
        f"Kernel NP-PER minus kernel RCA, right photographs in the top {config.k}, 95 % intervals",
    )


def _top_pictures(config: ConfigDict, arrays: Arrays) -> list[Picture]:
    """Right photographs against K."""
    pictures = []
    for scaling, numbers in arrays.items():
        lines = [
            Curve(title_of(name), np.arange(1, config.k + 1), numbers[name].mean(axis=0))
            for name in ("pixels", *config.methods)
        ]
        figure = figures.curves(
            lines, x_label="K", y_label="right photographs in the top K", title=scaling.capitalize()
        )
        pictures.append(Picture(f"top_{slug(scaling)}.svg", figures.to_svg(figure), "Mean over splits."))
    return pictures


def _width_pictures(config: ConfigDict, arrays: Arrays) -> list[Picture]:
    """Kernel RCA against its width, with level lines of methods without a width."""
    pictures = []
    for scaling, numbers in arrays.items():
        if "by width" not in numbers:
            continue
        parts = np.array(config.curve_widths)
        lines = [Curve(METHODS["kernel_rca"].title, parts, numbers["by width"].mean(axis=0))]
        for name in ("pixels", *(each for each in config.methods if each.startswith("kernel_np_per"))):
            lines.append(Curve(title_of(name), parts, np.full(len(parts), numbers[name][:, -1].mean())))
        figure = figures.curves(
            lines,
            x_label="axes kept, as a part of rank S_g",
            y_label=f"right photographs in the top {config.k}",
            title=f"Kernel RCA against its width: {scaling}",
            log_x=True,
        )
        note = "Mean over splits. The others do not depend on a width."
        pictures.append(Picture(f"width_{slug(scaling)}.svg", figures.to_svg(figure), note))
    return pictures
