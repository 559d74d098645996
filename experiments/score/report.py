"""The page and the CSV of a scoring run."""

from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.common.publish import publish
from jaxface.reports.html import Section
from jaxface.reports.tables import Cell, Table, csv_text
from jaxface.runtime import params_io
from jaxface.runtime.workdir import Workdir


def write_csv(workdir: Workdir, header: tuple[str, ...], rows: Any) -> None:
    """Writes `scores.csv`."""
    body = ([_plain(value) for value in row] for row in rows)
    workdir.write_text("scores.csv", csv_text([header, *body]))


def _plain(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return int(value)
    return f"{value:.6f}" if isinstance(value, float | np.floating) else value


def page(
    config: ConfigDict, workdir: Workdir, title: str, results: dict[str, Any], blocks: list[Any], credit: str
) -> None:
    """The numbers and what a ratio means."""
    rows: list[tuple[Cell, ...]] = [(name, "–" if value is None else value) for name, value in results.items()]
    what = "one person" if config.task == "verify" else "somebody enrolled"
    prose = (
        f"A ratio (nats) above the threshold means: at a prior of {config.prior:g} for {what}, that is more probable "
        "than anything else. Another prior moves the threshold, not the ratios."
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
