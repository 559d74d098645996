"""Tables and figures of a retrieval study."""

from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.common.publish import publish
from experiments.weak_labels.methods import METHODS
from jaxface.data import LabelledImages
from jaxface.metrics import intervals
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table, with_interval
from jaxface.runtime.workdir import Workdir


def _title(name: str) -> str:
    return "features as they are" if name == "pixels" else METHODS[name].title


def page(
    config: ConfigDict, workdir: Workdir, photographs: LabelledImages, arrays: dict[str, dict[str, np.ndarray]]
) -> None:
    """Right photographs of every method, kernel NP-PER against kernel RCA, and the curves."""
    names = ("pixels", *config.methods)
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        cells = [
            intervals.split_interval(found[name][:, -1], test_to_train=1.0, within=(0.0, config.k))
            for found in arrays.values()
        ]
        rows.append((_title(name), *(with_interval(cell) for cell in cells)))
    difference: list[tuple[Cell, ...]] = []
    if {"kernel_np_per", "kernel_rca"} <= set(config.methods):
        for scaling, found in arrays.items():
            a, b = (found[name][:, -1] for name in ("kernel_np_per", "kernel_rca"))
            plain, wide = (
                intervals.paired_interval(a, b, test_to_train=ratio, within=(0.0, config.k)) for ratio in (0.0, 1.0)
            )
            won = f"{int((a > b).sum())} of {len(a)}"
            difference.append((scaling, *(with_interval(each) for each in (plain, wide)), won))
    pictures = []
    for scaling, found in arrays.items():
        lines = [Curve(_title(name), np.arange(1, config.k + 1), found[name].mean(axis=0)) for name in names]
        figure = figures.curves(
            lines, x_label="K", y_label="right photographs in the top K", title=scaling.capitalize()
        )
        pictures.append(Picture(f"top_{scaling.replace(' ', '_')}.svg", figures.to_svg(figure), "Mean over splits."))
    pictures += _width_pictures(config, arrays)
    head = ("method", *arrays)
    blocks: list[Any] = [
        "Colours are a histogram of L*u*v* in 16 x 16 x 16 boxes, texture the first four DCT coefficients of 16 x 16 "
        "blocks. The two have very different scales: concatenated as they are, one of them decides alone.",
        *pictures,
    ]
    if difference:
        blocks.append(
            Table(
                ("features", "these photographs", "other photographs", "splits won"),
                difference,
                f"Kernel NP-PER minus kernel RCA, right photographs in the top {config.k}, 95 % intervals",
            )
        )
    publish(
        workdir,
        title="Retrieval after learning from groups",
        lead=f"{len(photographs.names)} classes, {config.per_class} photographs of each in the database in groups of "
        f"{config.group_size}, as many queries; {config.num_splits} random splits, intervals widened for the "
        "photographs that splits share.",
        headline=Table(head, rows, f"Right photographs among the nearest {config.k}"),
        sections=[Section("Right photographs in the top K", tuple(blocks))],
        credits=(photographs.credit,),
    )


def _width_pictures(config: ConfigDict, arrays: dict[str, dict[str, np.ndarray]]) -> list[Picture]:
    """Kernel RCA against its width, with what does not depend on it as level lines."""
    pictures = []
    for scaling, found in arrays.items():
        if "by width" not in found:
            continue
        parts = np.array(config.curve_widths)
        lines = [Curve(METHODS["kernel_rca"].title, parts, found["by width"].mean(axis=0))]
        for name in ("pixels", *(each for each in config.methods if each.startswith("kernel_np_per"))):
            lines.append(Curve(_title(name), parts, np.full(len(parts), found[name][:, -1].mean())))
        figure = figures.curves(
            lines, x_label="axes kept, as a part of rank S_g", y_label=f"right photographs in the top {config.k}",
            title=f"Kernel RCA against its width: {scaling}", log_x=True,
        )  # fmt: skip
        note = "Mean over splits. The others do not depend on a width."
        pictures.append(Picture(f"width_{scaling.replace(' ', '_')}.svg", figures.to_svg(figure), note))
    return pictures
