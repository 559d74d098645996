"""Runs that two processes do together, all in one subprocess that forks them: JAX is imported once.

    python -m tests.runtime.two_runs FOLDER SCENARIO,SCENARIO ...

The scenarios of a list run one after the other, the lists side by side, for most of the time is spent waiting. Each
leaves what the processes said in FOLDER/SCENARIO.0 and .1, with the exit code and the seconds in the last line. The
study uses what differs between processes: a stage, a sum over processes, checkpoints of a replicated state.
"""

import os
import pathlib
import signal
import socket
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from jaxface.core import mesh, processes
from jaxface.runtime import distributed, environment, launch, roll_call
from jaxface.runtime.checkpoint import run_in_segments
from jaxface.runtime.workdir import Workdir

CONFIG = """
from ml_collections import ConfigDict
def get_config():
    return ConfigDict({"seed": 0, "runtime": {"x64": True, "quick_compile": False, "distributed": "off"}}).lock()
"""


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Doubles numbers four times, with a checkpoint after each step."""
    scenario, place = os.environ["SCENARIO"], processes.index()
    made = workdir.stage("made", lambda: {"x": np.arange(3.0) + config.seed + place, "long": np.ones(600_000)})
    if scenario == "failing" and place == 1:
        raise ValueError("the second process has no more faces")
    if scenario == "lost" and place == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    state = mesh.replicate({"x": jnp.asarray(made["x"]), "done": np.zeros(4)}, mesh.create("data"))

    def advance(state: dict[str, Any], step: int) -> dict[str, Any]:
        if scenario == "killed" and place == 0 and step == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        both = float(mesh.sum_over_processes(jnp.ones(()))) / processes.count()
        return {"x": 2 * state["x"] + both, "done": state["done"].at[step].set(1)}

    state = run_in_segments(workdir.path / "checkpoints", advance, state, num_steps=4, every=1)
    doubled = workdir.stage("doubled", lambda: {name: np.asarray(value) for name, value in state.items()})
    workdir.write_text("report.html", "done")
    return {name: value.tolist() for name, value in doubled.items()}


def start(folder: pathlib.Path, scenario: str, address: str, place: int) -> int:
    """One process of a scenario; the number of the process."""
    if pid := os.fork():
        return pid
    with open(folder / f"{scenario}.{place}", "w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    shared = folder / ("killed" if scenario == "again" else scenario)
    workdir = shared / str(place) if scenario == "unshared" else shared
    os.environ["SCENARIO"] = scenario
    flags = ["--config=config.py", f"--workdir={workdir}"]
    if scenario == "unlike":
        flags.append(f"--config.seed={place}")
    if scenario != "one":
        number = 3 if scenario == "numbers" and place == 0 else 2
        flags += [f"--coordinator={address}", f"--num_processes={number}", f"--process_id={place}"]
    sys.argv = ["study", *flags]
    begin = time.monotonic()
    leave, os._exit = os._exit, lambda code: ending(code)  # type: ignore[assignment,return-value]

    def ending(code: int) -> None:
        print(f"\ncode {code} after {time.monotonic() - begin:.1f} s", flush=True)
        leave(code)

    try:
        launch.main(run)
    except SystemExit as end:
        ending(int(end.code or 0))
    return 0


def run_in_turn(folder: pathlib.Path, scenarios: list[str]) -> None:
    """Runs the scenarios one after the other."""
    for scenario in scenarios:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        places = {"one": [0], "nobody": [1]}.get(scenario, [0, 1])
        for pid in [start(folder, scenario, address, place) for place in places]:
            os.waitpid(pid, 0)


def main(folder: pathlib.Path, lists: list[list[str]]) -> None:
    """Runs the lists of scenarios side by side."""
    (folder / "config.py").write_text(CONFIG)
    os.chdir(folder)
    environment.use_compilation_cache = lambda folder=None: None  # type: ignore[assignment]
    roll_call.SECONDS_TO_REACH = distributed.SECONDS_TO_SEE = 1.0
    distributed.SECONDS_TO_NOTICE = 3
    lanes = []
    for scenarios in lists:
        if pid := os.fork():
            lanes.append(pid)
        else:
            run_in_turn(folder, scenarios)
            os._exit(0)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in lanes]
    if any(codes):
        raise SystemExit(f"exit codes of the lists: {codes}")


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    main(pathlib.Path(sys.argv[1]), [names.split(",") for names in sys.argv[2:]])
