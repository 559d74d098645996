"""A study that is small enough to be killed a thousand times: data, stages, checkpoints, metrics, a model, results.

It works in the current folder: data in `data`, its run in `run`.
"""

import contextlib
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from jaxface.runtime import launch, log
from jaxface.runtime.checkpoint import run_in_segments
from jaxface.runtime.params_io import to_bytes
from jaxface.runtime.workdir import Workdir
from jaxface.subspace import LinearMap

RUN = "run"
STEPS = 3
Stop = Callable[[str], None]  # called at named moments


def write_data(folder: pathlib.Path) -> None:
    """Two files of numbers."""
    (folder / "data").mkdir()
    for name in ("a", "b"):
        numbers = np.random.default_rng(ord(name)).normal(size=(4, 3))
        np.savetxt(folder / "data" / f"{name}.txt", numbers)


def execute(stop: Stop = lambda moment: None, *, segments: bool = True) -> dict[str, Any]:
    """Runs the study in the current folder, or goes on with it."""
    config = ConfigDict({"seed": 3, "data": "data", "segments": segments})
    return dict(launch.execute(lambda config, work: _run(config, work, stop), config, RUN))


def _run(config: ConfigDict, work: Workdir, stop: Stop) -> dict[str, Any]:
    work.uses(data=config.data)
    numbers = work.stage("numbers", lambda: {"x": _read(config.data), "name": "faces"})
    stop("numbers")
    fitted = work.stage("fit", lambda: _fit(config, work, numbers["x"], stop))
    stop("fit")
    order = np.random.default_rng(config.seed).permutation(len(fitted["basis"]))
    ranks = work.stage("ranks", lambda: {"order": order, "total": fitted["basis"].sum()})
    with contextlib.closing(log.JsonlWriter(work.path / "metrics.jsonl", resume_step=0)) as writer:
        for step, value in enumerate(fitted["objective"]):
            writer.scalars(step, {"objective": value})
    model = LinearMap(mean=numbers["x"].mean(0), basis=fitted["basis"])
    work.write_bytes("params/map.safetensors", to_bytes(model, notes={"data": str(numbers["name"])}))
    stop("params")
    work.write_text("report.html", f"<html>{fitted['objective'].tolist()}</html>")
    return {"total": float(ranks["total"]), "first": int(ranks["order"][0]), "objective": fitted["objective"].tolist()}


def _read(folder: str) -> np.ndarray:
    return np.concatenate([np.loadtxt(file) for file in sorted(pathlib.Path(folder).glob("*.txt"))])


def _fit(config: ConfigDict, work: Workdir, x: np.ndarray, stop: Stop) -> dict[str, Any]:
    """The power method, a step a segment."""
    begin = {"basis": np.eye(3)[:, :2], "objective": np.zeros(STEPS)}

    def advance(state: dict[str, Any], step: int) -> dict[str, Any]:
        stop(f"step {step}")
        basis = x.T @ (x @ np.asarray(state["basis"]))
        objective = np.array(state["objective"])
        objective[step] = np.linalg.norm(basis)
        return {"basis": np.linalg.qr(basis)[0], "objective": objective}

    if not config.segments:
        state = begin
        for step in range(STEPS):
            state = advance(state, step)
        return state
    state = run_in_segments(work.path / "checkpoints" / "fit", advance, begin, num_steps=STEPS, every=1)
    return {name: np.asarray(value) for name, value in state.items()}


@contextlib.contextmanager
def inside(folder: pathlib.Path) -> Iterator[None]:
    """Works in a folder for a while."""
    before = pathlib.Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def snapshot(folder: pathlib.Path) -> dict[str, bytes]:
    """What a run is for, bit for bit: all but its records, its temporary files and its checkpoints."""
    run = folder / RUN
    names = ["results.json", "report.html", "metrics.jsonl", "params/map.safetensors"]
    found = [*names, *(f"stages/{file.name}" for file in (run / "stages").glob("*.npz"))]
    return {name: (run / name).read_bytes() for name in found if (run / name).is_file()}
