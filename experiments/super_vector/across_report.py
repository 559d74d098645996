"""Tables and a figure of search and verification across two views."""

from collections.abc import Mapping

import numpy as np
from ml_collections import ConfigDict

from experiments.common import ratios
from experiments.super_vector.cross_view import MEASURES, SCORES, TASKS, TRAINING
from jaxface.metrics import intervals
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table, percent_interval

Measured = Mapping[str, np.ndarray]
_CCA = 1  # of SCORES: only one component has it
_RATIO = 1.0  # as many people are searched as train: intervals are widened for it


def results(config: ConfigDict, across: Measured) -> dict[str, float]:
    """The headline numbers."""
    rates = 100 * across["rank one"].mean(axis=-1)
    found = {
        f"rank 1 %, {SCORES[s]}, {k} components, {training}, {task}": float(rates[i, j, s, t])
        for i, k in enumerate(config.views.components)
        for j, training in enumerate(TRAINING)
        for s in range(len(SCORES))
        for t, task in enumerate(TASKS)
        if (k == 1 or s > _CCA) and not np.isnan(rates[i, j, s, t])
    }
    return found | {
        f"{measure}, {SCORES[s]}, across views, {training}": float(across["verification"][j, s, m].mean())
        for j, training in enumerate(TRAINING)
        for s in range(len(SCORES))
        for m, measure in enumerate(MEASURES)
        if not np.isnan(across["verification"][j, s, m]).any()
    }


def section(config: ConfigDict, across: Measured) -> Section:
    """Rank-1 rates, and verification between the views."""
    floored = [str(k) for i, k in enumerate(config.views.components) if across["floored"][i].any()]
    caution = [
        f"With {' and '.join(floored)} components there are too few pairs for full covariances: the noise was raised "
        f"to its floor of {config.views.ridge:g} times the mean variance."
    ]
    lines = [
        Curve(
            f"{SCORES[s]}, {training}",
            config.views.latent_dims,
            100 * across["rank one by dimension"][:, j, s, 1].mean(axis=-1),
        )
        for s in range(1, len(SCORES))
        for j, training in enumerate(TRAINING)
    ]
    figure = figures.curves(lines, x_label="latent dimensions", y_label="rank-1 rate %", title=TASKS[1].capitalize())
    return Section(
        "Search with one view in the other",
        (
            f"Half of the people train. Probes are views x of the other people, the gallery holds their views y. "
            f"{config.views.latent_dim} latent dimensions, full noise. Models are fitted to the pairs of captures "
            "(captures), or to every x of a person with every y (people). The first answer must be the same capture "
            "or, with that capture taken out of the gallery, another capture of the person.",
            *(_rank_one(config, across, t) for t in range(len(TASKS))),
            "Verification across the views: do two different captures, one in each view, show one person? The ratio is "
            "a log-likelihood ratio of one pair against two, the cosines are not. A calibration is fitted, as always, "
            f"to the pairs of people in other folds ({ratios.NUM_FOLDS} folds of the test people).",
            *(_verified(across, j) for j in range(len(TRAINING))),
            *(caution if floored else ()),
            Picture("across.svg", figures.to_svg(figure), "One component, mean over the splits."),
        ),
    )


def _verified(across: Measured, training: int) -> Table:
    """EER, Cllr and min Cllr of every score, from models fitted to one kind of pairs."""
    rows: list[tuple[Cell, ...]] = []
    for s, score in enumerate(SCORES):
        values = across["verification"][training, s]
        if not np.isnan(values[0]).any():
            bits = [ratios.estimate(column, test_to_train=_RATIO) for column in values[1:]]
            rows.append((score, _rate(values[0]), *bits))
    caption = f"Fitted to {TRAINING[training]}: verification, 95 % intervals over splits of the people"
    return Table(("score", "EER %", "Cllr, raw", "Cllr, calibrated", "min Cllr"), rows, caption)


def _rank_one(config: ConfigDict, across: Measured, task: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for i, k in enumerate(config.views.components):
        for s, score in enumerate(SCORES):
            if k > 1 and s <= _CCA:
                continue
            cells = ["–" if np.isnan(values).any() else _rate(values) for values in across["rank one"][i, :, s, task]]
            rows.append((score, "–" if s == 0 else str(k), *cells))
    head = ("score", "components", *(f"fitted to {training}" for training in TRAINING))
    return Table(head, rows, f"{TASKS[task].capitalize()}: rank-1 rate %, 95 % intervals over splits of the people")


def _rate(values: np.ndarray) -> Cell:
    return percent_interval(intervals.split_interval(values, test_to_train=_RATIO, within=intervals.RATE))
