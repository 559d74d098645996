"""The page and the CSV of a scoring run."""

from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.common.publish import publish
from jaxface.reports import figures
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table, csv_text
from jaxface.runtime import params_io
from jaxface.runtime.workdir import Workdir

_NUM_SHOWN = 6


def write_csv(workdir: Workdir, header: tuple[str, ...], rows: Any, *, name: str = "scores.csv") -> None:
    """Writes a table of scores into the run's folder."""
    body = ([_plain(value) for value in row] for row in rows)
    workdir.write_text(name, csv_text([header, *body]))


def _plain(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return int(value)
    return f"{value:.6f}" if isinstance(value, float | np.floating) else value


def surest(
    images: np.ndarray, first: np.ndarray, second: np.ndarray, scores: np.ndarray, is_right: np.ndarray | None
) -> list[Picture]:
    """Pairs `[p]` with the largest ratios of either sign; the right and the wrong decisions apart if they are known."""
    order = np.argsort(-np.abs(scores))
    if is_right is None:
        shown = {"surest": order}
    else:
        shown = {"surest right": order[is_right[order]], "surest wrong": order[~is_right[order]]}
    pictures = []
    for title, chosen in ((title, pairs[:_NUM_SHOWN]) for title, pairs in shown.items()):
        if len(chosen):
            sheet = images[np.stack([first[chosen], second[chosen]])]
            labels = [f"{scores[k]:+.1f}" for k in chosen]
            grid = figures.image_grid(sheet, column_labels=labels, title=f"The {title} decisions, by ratio in nats")
            name = f"{title.replace(' ', '_')}.png"
            pictures.append(Picture(name, figures.to_png(grid), "Each column is a pair."))
    return pictures


def page(
    config: ConfigDict, workdir: Workdir, title: str, results: dict[str, Any], blocks: list[Any], credit: str
) -> None:
    """The numbers, and how to read a ratio."""
    rows: list[tuple[Cell, ...]] = [(name, "–" if value is None else value) for name, value in results.items()]
    what = "one person" if config.task == "verify" else "somebody enrolled"
    prose = (
        f"A ratio (in nats) above the threshold means that, at a prior of {config.prior:g} for {what}, this answer "
        "is more probable than every other. Another prior moves the threshold, not the ratios."
    )
    notes = "; ".join(f"{name}: {text}" for name, text in params_io.notes(config.model).items())
    publish(
        workdir,
        title=title,
        lead=f"Model {config.model} ({notes}).",
        headline=Table(("what", "value"), rows),
        sections=[Section("Decisions", (prose, *blocks))],
        credits=(credit,),
    )
