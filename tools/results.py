"""Runs the studies whose numbers stand in README and docs, and keeps the numbers in `docs/results.json`.

    make results DATA=FOLDER                  all of them, for hours; stopped and repeated, it goes on
    make results DATA=FOLDER ONLY=verify:lfw  one of them
    make results VARIANT=smoke                every study at its smallest, in minutes; docs/results.json stays as it is

FOLDER holds the sets that are not ours to pass on: `lfw`, `lfw_sface.npz`, `yale`, `yaleb`, `two_view`, `corel1k`. A
run whose set is missing is left out, by name.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results.json"
LFW, SFACE = "lfw/lfw-deepfunneled", "lfw_sface.npz"
DATA_ROOT = "config.data.root"


class Run(NamedTuple):
    """A study and its variant, with the flags that name sets below the folder of data."""

    study: str
    variant: str = ""
    data: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """STUDY or STUDY:VARIANT."""
        return f"{self.study}:{self.variant}" if self.variant else self.study

    def flags(self, data: str) -> list[str]:
        """The flags of the command, with the folder of data as `data`."""
        named = [f"--{flag}={data}/{path}" for flag, path in self.data]
        variant = f":{self.variant}" if self.variant else ""
        return [f"--config=configs/{self.study}.py{variant}", *named]


RUNS = (
    Run("tour"),
    Run("verify"),
    Run("verify", "lfw", ((DATA_ROOT, LFW),)),
    Run("finetune"),
    Run("verifier"),
    Run("verifier", "embeddings", ((DATA_ROOT, SFACE),)),
    Run("verify_lfw", "", ((DATA_ROOT, "lfw"),)),
    Run("verify_lfw", "embeddings", ((DATA_ROOT, "lfw"), ("config.embeddings", SFACE))),
    Run("committee"),
    Run("committee", "yaleb", ((DATA_ROOT, "yaleb/YaleB_32x32_ori.mat"),)),
    Run("committee", "lfw", ((DATA_ROOT, LFW),)),
    Run("weak_labels"),
    Run("weak_labels", "raw"),
    Run("weak_labels", "yale", ((DATA_ROOT, "yale/Yale_64x64.mat"),)),
    Run("weak_labels", "yaleb", ((DATA_ROOT, "yaleb/YaleB_32x32_ori.mat"),)),
    Run("retrieve", "", ((DATA_ROOT, "corel1k"),)),
    Run("retrieve", "many", ((DATA_ROOT, "corel1k"),)),
    Run("kernel_maps"),
    Run("hallucinate"),
    Run("hallucinate", "lfw", ((DATA_ROOT, LFW),)),
    Run("super_vector"),
    Run("super_vector", "lfw", ((DATA_ROOT, LFW),)),
    Run("super_vector", "two_view", (("config.views.root", "two_view/buaaRnSp.mat"),)),
    Run("weak_labels", "lfw", ((DATA_ROOT, LFW),)),
    Run("weak_labels", "many"),
    Run("retrieve", "classes", ((DATA_ROOT, "corel1k"),)),
    Run("retrieve", "made"),
    Run("quality"),
    Run("encoder"),
    Run("people", "", ((DATA_ROOT, SFACE),)),
)
SMOKE = tuple(
    Run(study, "smoke")
    for study in (
        "tour", "verify", "finetune", "verifier", "committee", "weak_labels", "kernel_maps", "hallucinate",
        "super_vector",
    )
)  # fmt: skip


def missing(run: Run, data: str | None) -> str | None:
    """The first set that a run wants and the folder of data does not have."""
    for _, path in run.data:
        if data is None or not (pathlib.Path(data) / path).exists():
            return path
    return None


def perform(run: Run, data: str | None, folder: pathlib.Path) -> bool:
    """Runs a study in its folder below `folder`, where finished work is kept; whether it ended well."""
    workdir = folder / run.name.replace(":", "-")
    command = [sys.executable, "-m", f"experiments.{run.study}", *run.flags(data or "DATA"), f"--workdir={workdir}"]
    begin = time.monotonic()
    code = subprocess.call(command, cwd=ROOT)
    print(f"{run.name}: {'done' if code == 0 else f'exit code {code}'}, {time.monotonic() - begin:.0f} s", flush=True)
    return code == 0


def collected(runs: tuple[Run, ...], folder: pathlib.Path, known: dict) -> dict:
    """What is known, with the numbers of every run that is finished in `folder`."""
    found = dict(known)
    for run in runs:
        workdir = folder / run.name.replace(":", "-")
        if (workdir / "results.json").exists():
            record = json.loads((workdir / "run.json").read_text())
            found[run.name] = {
                "command": " ".join([f"python -m experiments.{run.study}", *run.flags("DATA")]),
                "date": record["ended"][:10],
                "versions": {name: record["packages"][name] for name in ("jaxface", "jax", "numpy")},
                "results": json.loads((workdir / "results.json").read_text()),
            }
    return dict(sorted(found.items()))


def chosen(variant: str, only: str) -> tuple[Run, ...]:
    """The runs that are asked for."""
    runs = SMOKE if variant == "smoke" else RUNS
    picked = tuple(run for run in runs if not only or run.name in only.split(","))
    if not picked:
        sys.exit(f"ONLY={only} names no run; there are {', '.join(run.name for run in runs)}.")
    return picked


def main() -> None:
    """Runs what is asked for and is not finished, and writes the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the folder of the sets")
    parser.add_argument("--variant", default="", choices=["", "default", "smoke"])
    parser.add_argument("--only", default="", help="names of runs, with commas")
    parser.add_argument("--folder", type=pathlib.Path, help="where the runs are kept")
    given = parser.parse_args()
    folder = given.folder or ROOT / "runs" / ("results-smoke" if given.variant == "smoke" else "results")
    data = str(pathlib.Path(given.data).resolve()) if given.data else None
    runs, failed = chosen(given.variant, given.only), []
    for run in runs:
        if (absent := missing(run, data)) is not None:
            print(
                f"{run.name}: left out, for there is no {absent} in {given.data or 'DATA (name the folder)'}",
                flush=True,
            )
        elif not perform(run, data, folder):
            failed.append(run.name)
        if given.variant != "smoke":
            known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
            RESULTS.write_text(json.dumps(collected(runs, folder, known), indent=1, sort_keys=True) + "\n")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
