"""The page and the CSV of a scoring run."""

import math
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.common.publish import publish
from experiments.score.false_accepts import Stated
from jaxface.reports import sheets
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Estimate, Table, csv_text, percent
from jaxface.runtime import params_io
from jaxface.runtime.workdir import Workdir

_NUM_SHOWN = 6
_RATES = (
    "EER",
    "FAR at the threshold",
    "VR at the threshold",
    "stated rate of strangers given a name",
    "rate of strangers given a name",
    "rate of enrolled people called unknown",
    "accuracy at the threshold",
    "identification rate of these",
    "largest share of a person in the same pairs",
)


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
    pictures: list[Picture] = []
    for title, chosen in ((title, pairs[:_NUM_SHOWN]) for title, pairs in shown.items()):
        if len(chosen):
            pictures.append(
                sheets.sheet(
                    f"{title.replace(' ', '_')}.png",
                    images[np.stack([first[chosen], second[chosen]])],
                    column_labels=[f"{scores[k]:+.1f}" for k in chosen],
                    title=f"The {title} decisions, by ratio in nats",
                    caption="Each column is a pair.",
                )
            )
    return pictures


def _in_words(name: str, value: float | None) -> tuple[str, Cell]:
    """A number with its name; rates in per cent."""
    if name in _RATES:
        return f"{name}, %", percent(math.nan if value is None else value, digits=2)
    return name, Estimate(math.nan) if value is None else value


def page(
    config: ConfigDict,
    workdir: Workdir,
    title: str,
    results: dict[str, Any],
    blocks: list[Any],
    credit: str,
    *,
    stated: Stated | None = None,
) -> None:
    """The numbers, and how to read a ratio; `stated` is what set the threshold if it was not the prior."""
    rows: list[tuple[Cell, ...]] = [_in_words(name, value) for name, value in results.items()]
    what = "one person" if config.task == "verify" else "somebody enrolled"
    prose = (
        stated.in_words()
        if stated is not None
        else (
            f"A ratio (in nats) above the threshold means that, at a prior of {config.prior:g} for {what}, this answer "
            "is more probable than every other. Another prior moves the threshold, not the ratios."
        )
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
