"""Every study in its smallest variant: two processes must give the results of one. No test runs this.

    python -m tests.runtime.smoke_runs FOLDER                   all studies by one process and by two
    python -m tests.runtime.smoke_runs FOLDER tour verify       these studies

Takes some 30 minutes of two cores. Results are compared to 1e-6; numbers of seconds are left out.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import time
from typing import Any

from tests.two_processes import free_port

STUDIES = (
    "evaluate", "verify", "verifier", "finetune", "kernel_maps", "weak_labels", "tour", "super_vector", "committee",
    "hallucinate", "retrieve", "quality", "encoder", "people",
)  # fmt: skip
ROOT = pathlib.Path(__file__).parents[2]
SECONDS = ("seconds", "time", "took", "faster", "milliseconds", "speed")  # in the names of results that clocks decide


def flags_of(study: str, folder: pathlib.Path) -> list[str]:
    """The smallest variant."""
    if study != "evaluate":
        return [f"--config=configs/{study}.py:smoke"]
    trials = folder / "trials.csv"
    draw = random.Random(0)
    rows = [(a, b, int(a // 3 == b // 3)) for a in range(60) for b in range(a)]
    lines = [f"p{a // 3}/{a}.jpg,p{b // 3}/{b}.jpg,{same},{draw.gauss(2 * same, 1)}" for a, b, same in rows]
    trials.write_text("a,b,same,score\n" + "\n".join(lines) + "\n")
    return ["--config=configs/evaluate.py", f"--config.trials={trials}", "--config.num_resamples=100"]


def start(study: str, flags: list[str], workdir: pathlib.Path, count: int) -> list[subprocess.Popen[bytes]]:
    """The processes of a run; what each says goes to a file beside its folder."""
    address = f"127.0.0.1:{free_port()}"
    started = []
    for place in range(count):
        command = [sys.executable, "-m", f"experiments.{study}", *flags, f"--workdir={workdir}"]
        if count > 1:
            command += [f"--coordinator={address}", f"--num_processes={count}", f"--process_id={place}"]
        with open(f"{workdir}.{place}.log", "ab") as said:
            environment = os.environ | {"JAX_PLATFORMS": "cpu"}
            started.append(subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said, env=environment))
    return started


def run(study: str, flags: list[str], workdir: pathlib.Path, count: int) -> float:
    """Runs a study to its end; the seconds."""
    begin = time.monotonic()
    codes = [process.wait() for process in start(study, flags, workdir, count)]
    if any(codes):
        print(f"{study}: exit codes {codes}; see {workdir}.0.log", flush=True)
    return time.monotonic() - begin


def differences(one: Any, two: Any, path: str = "") -> list[str]:
    """Where two results differ by more than 1e-6."""
    if isinstance(one, dict) and isinstance(two, dict):
        names = [name for name in sorted(one.keys() | two.keys()) if not any(word in name for word in SECONDS)]
        return [line for name in names for line in differences(one.get(name), two.get(name), f"{path}.{name}")]
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        return [
            line for k, pair in enumerate(zip(one, two, strict=True)) for line in differences(*pair, f"{path}[{k}]")
        ]
    numbers = isinstance(one, int | float) and isinstance(two, int | float)
    same = abs(one - two) <= 1e-6 * max(1.0, abs(one)) if numbers else one == two
    return [] if same else [f"{path}: {one} -> {two}"]


def differing(one: pathlib.Path, two: pathlib.Path) -> list[str]:
    """Where the results of two runs differ."""
    try:
        return differences(*(json.loads((folder / "results.json").read_text()) for folder in (one, two)))
    except FileNotFoundError as error:
        return [str(error)]


def main(arguments: list[str]) -> None:
    """See the top of this file."""
    folder, *studies = arguments
    base = pathlib.Path(folder).resolve()
    base.mkdir(parents=True, exist_ok=True)
    for study in studies or STUDIES:
        flags = flags_of(study, base)
        one, two = (base / f"{study}-{name}" for name in ("one", "two"))
        alone, both = run(study, flags, one, 1), run(study, flags, two, 2)
        found = "; ".join(differing(one, two)) or "the same"
        print(f"{study}: {found} ({alone:.0f} s by one process, {both:.0f} s by two)", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
