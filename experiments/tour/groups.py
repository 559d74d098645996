"""Weak labels: small groups of images of somebody, and nobody's name."""

import math
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs
from experiments.tour.part import Part
from experiments.weak_labels import draws
from experiments.weak_labels.methods import METHODS
from jaxface.data import LabeledImages, splits
from jaxface.reports import figures, sheets
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Estimate, Spread, Table

_SHOWN_GROUPS = 6


def run(config: ConfigDict, faces: LabeledImages, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Errors `[draws]` of every method at every group size, and some groups to look at."""
    x = inputs.encode(jnp.asarray(faces.images, inputs.working_dtype()), config.image_steps)
    part = splits.k_shot(faces.ids, num_train=config.num_train, rng=rng)[0]
    task = draws.problem_of(x, faces.ids, splits.of_parts(part))
    arrays: dict[str, np.ndarray] = {"sizes": np.array(config.group_sizes)}
    for size in config.group_sizes:
        drawn = draws.random_draws(config, task, size, seed=int(rng.integers(2**31)))
        for name in config.methods:
            method = METHODS[name]
            setting = draws.choose_setting(config, task, drawn, method)
            found = draws.embed(task, drawn, method, setting)
            arrays[f"{name}/{size}"] = draws.errors(task, drawn, found, gallery="grouped")
        if size == min(config.group_sizes):
            rows, groups = drawn.rows[0], drawn.groups[0]
            arrays["shown"] = np.stack([rows[groups == group][:size] for group in range(_SHOWN_GROUPS)])
    return arrays


def render(arrays: Mapping[str, np.ndarray], faces: LabeledImages) -> Part:
    """Some groups, the curves and the table."""
    sizes = [int(size) for size in arrays["sizes"]]
    names = [name for name in METHODS if f"{name}/{sizes[0]}" in arrays]
    mean = {name: np.array([100 * arrays[f"{name}/{size}"].mean() for size in sizes]) for name in names}
    spread = {name: np.array([100 * arrays[f"{name}/{size}"].std() for size in sizes]) for name in names}
    low, high = ({name: np.clip(mean[name] + sign * spread[name], 0, 100) for name in names} for sign in (-1, 1))
    lines = [Curve(METHODS[name].title, sizes, mean[name], low[name], high[name]) for name in names]
    figure = figures.curves(lines, x_label="images in a group", y_label="identification error %")
    rows: list[tuple[Cell, ...]] = [
        (METHODS[name].title, *(_cell(*pair) for pair in zip(mean[name], spread[name], strict=True))) for name in names
    ]
    section = Section(
        "Groups without names: NP-PER",
        (
            "All that is known is that the images of a group show one person; two groups may show the same one. NP-PER "
            "projects to the directions in which no group varies, RCA whitens the variation within groups.",
            sheets.sheet(
                "groups.png",
                np.swapaxes(faces.images[arrays["shown"]], 0, 1),
                title="Six groups, one a column",
                caption="What training looks like.",
            ),
            Picture("groups.svg", figures.to_svg(figure), "Band: one standard deviation over random groupings."),
            Table(
                ("method", *(f"groups of {size}" for size in sizes)),
                rows,
                "Identification error %, mean ± standard deviation over the groupings of one split, where there are "
                "several; more by experiments.weak_labels",
            ),
        ),
    )
    headline: list[tuple[Cell, ...]] = [
        ("weak labels", f"NP-PER, groups of {sizes[-1]}: error %", Estimate(float(mean["np_per"][-1])))
    ]
    return Part(section, headline, {f"error, {name}": float(mean[name][-1]) / 100 for name in names})


def _cell(mean: float, spread: float) -> Spread:
    """All images of a person in one group: there is one such grouping, and nothing to deviate."""
    return Spread(mean, spread if spread > 1e-9 * mean else math.nan)
