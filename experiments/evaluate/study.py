"""Scores of any system, from files of trials to a report.

    python -m experiments.evaluate --config=configs/evaluate.py --workdir=runs/evaluated --config.trials=SCORES.csv

Every system is measured on the same trials. Calibration is fitted on people who are in no trial that it is applied to;
intervals and differences resample people, the same ones for every system.
"""

from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.common.publish import publish
from experiments.evaluate import measures, report, systems
from experiments.evaluate.systems import Systems
from jaxface.reports.tables import csv_text
from jaxface.runtime import params_io
from jaxface.runtime.workdir import Workdir

FUSED = "all systems, fused"
_MOST_ROWS = 100_000  # of a CSV with all trials


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Measures every system, compares it with the reference, and writes calibrated ratios."""
    systems.check(config)
    workdir.uses(**systems.paths(config))
    known = systems.load(config)
    measured = {name: measures.measure(config, known, name) for name in known.scores}
    if config.fuse and len(measured) > 1:
        measured[FUSED], model = measures.fused(config, known)
        notes = {"systems": ", ".join(known.scores), "use": "the ratio is weights' scores + offset, in nats"}
        workdir.write_bytes("params/fusion.safetensors", params_io.to_bytes(model, notes=notes))
    reference = config.reference or next(iter(measured))
    llr = {name: found.llr for name, found in measured.items()}
    others = {name: found for name, found in measured.items() if name != reference}
    differences = {name: measures.differences(found, measured[reference]) for name, found in others.items()}
    compared = {name: both for name, both in differences.items() if both is not None}
    _write(workdir, known, llr)
    for name in known.scores:
        notes = {"system": name, "use": "the calibrated ratio is slope * score + offset, in nats"}
        workdir.write_bytes(f"params/{_file(name)}.safetensors", params_io.to_bytes(measured[name].affine, notes=notes))
    publish(
        workdir,
        title="Scores of verification systems" if len(measured) > 1 else "Scores of a verification system",
        lead=report.lead(config, known),
        headline=report.headline(config, measured),
        sections=report.sections(config, known, measured, compared, reference),
    )
    return {"trials": len(known.is_same), "genuine": int(known.is_same.sum())} | {
        f"{name}: {what}": value for name, found in measured.items() for what, value in found.numbers.items()
    }


def _write(workdir: Workdir, known: Systems, llr: dict[str, np.ndarray]) -> None:
    """The calibrated ratios of all trials: as arrays, and as a CSV where a spreadsheet can hold them."""
    arrays = {f"llr of {name}": values for name, values in llr.items()}
    workdir.write_arrays("scores/calibrated.npz", {"is_same": known.is_same, **arrays})
    if len(known.is_same) > _MOST_ROWS:
        return
    names = zip(known.trials.first, known.trials.second, strict=True) if known.trials.first else None
    head = [*(("a", "b") if names else ()), "same", *(f"llr {name}" for name in llr)]
    columns = zip(*(np.char.mod("%.6f", values) for values in llr.values()), strict=True)
    body = (
        (*(pair or ()), int(same), *values)
        for pair, same, values in zip(names or [None] * len(known.is_same), known.is_same, columns, strict=True)
    )
    workdir.write_text("scores/calibrated.csv", csv_text([head, *body]))


def _file(name: str) -> str:
    """The name of a system as that of a file."""
    return "calibration-" + "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
