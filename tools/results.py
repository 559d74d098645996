"""Runs the studies whose numbers stand in README and docs, and keeps the numbers in `docs/results.json`.

Beside the results of a run, the file has the tables of its report, as lines of CSV, and what its paragraphs say in
numbers. `tools/figures.py` compares the pages with it.

    make results DATA=FOLDER                  all of them, for hours; stopped and repeated, it goes on
    make results DATA=FOLDER ONLY=verify:lfw  one of them
    make results VARIANT=smoke                every study at its smallest, in minutes; docs/results.json stays as it is
    make results ARGS=--collect               only gathers what is finished
    make results DATA=FOLDER ARGS=--again     makes results and reports of finished runs again, from their stages

FOLDER holds the sets that are not ours to pass on: `lfw`, `lfw_sface.npz`, `yale`, `yaleb`, `two_view`, `corel1k`. A
run whose set is missing is left out, by name.
"""

import argparse
import html
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from concurrent import futures
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results.json"
LFW, SFACE = "lfw/lfw-deepfunneled", "lfw_sface.npz"
DATA_ROOT, VIEWS_ROOT = "config.data.root", "config.views.root"


class Run(NamedTuple):
    """A study and its variant, with the flags that name sets below the folder of data, and other flags.

    `label` tells two runs of one variant apart.
    """

    study: str
    variant: str = ""
    data: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()
    label: str = ""

    @property
    def name(self) -> str:
        """STUDY, STUDY:VARIANT or STUDY:VARIANT+LABEL."""
        variant = f":{self.variant}" if self.variant else ""
        return f"{self.study}{variant}" + (f"+{self.label}" if self.label else "")

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return self.name.replace(":", "-")

    def flags(self, data: str) -> list[str]:
        """The flags of the command, with the folder of data as `data`."""
        named = [f"--{flag}={data}/{path}" for flag, path in self.data]
        variant = f":{self.variant}" if self.variant else ""
        return [
            f"--config=configs/{self.study}.py{variant}",
            *named,
            *(f"--config.{option}" for option in self.options),
        ]


RUNS = (
    Run("tour"),
    Run("verify"),
    Run("verify", "lfw", ((DATA_ROOT, LFW),)),
    Run("verify", "lfw_yale", ((DATA_ROOT, LFW), ("config.target.root", "yale/Yale_64x64.mat"))),
    Run("verify", "lfw_yaleb", ((DATA_ROOT, LFW), ("config.target.root", "yaleb/YaleB_32x32_ori.mat"))),
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
    Run("hallucinate", "", (), ("num_tests=1", "methods=('dw_ksvd','ridge')"), "one_fold"),
    Run(
        "hallucinate",
        "lfw",
        ((DATA_ROOT, LFW),),
        (
            "bandwidths.max_faces=2000",
            "measurements.max_faces=2000",
            "kernels.sizes=(500,1000,2000)",
            "methods=('dw_ksvd','ridge')",
        ),
        "parts",
    ),
    Run("hallucinate", "overcomplete", ((DATA_ROOT, LFW),)),
    Run(
        "hallucinate",
        "overcomplete",
        ((DATA_ROOT, LFW),),
        (
            "methods=('dw_ksvd','streamed_dw_ksvd','streamed_matched','streamed_5x_some','streamed_5x',"
            "'streamed_5x_dekernelized','ridge')",
            *(f"settings.{name}.num_faces=1000000" for name in ("streamed_dw_ksvd", "streamed_matched", "streamed_5x")),
            *("bandwidths.max_faces=500", "measurements.max_faces=500", "kernels.sizes=(500,)"),
        ),
        "million",
    ),
    Run("super_vector"),
    Run("super_vector", "lfw", ((DATA_ROOT, LFW),)),
    Run("super_vector", "ablations"),
    Run("super_vector", "two_view", ((VIEWS_ROOT, "two_view/buaaRnSp.mat"),)),
    Run(
        "super_vector",
        "missing",
        ((VIEWS_ROOT, "two_view/orl_four_views.mat"),),
        ("views.variable=X", "views.labels=Y"),
    ),
    Run("super_vector", "missing", ((VIEWS_ROOT, "two_view/buaaRnSp.mat"),), label="two_view"),
    Run("weak_labels", "lfw", ((DATA_ROOT, LFW),)),
    Run("weak_labels", "many"),
    Run("retrieve", "classes", ((DATA_ROOT, "corel1k"),), ("num_splits=10",)),
    Run("retrieve", "made"),
    Run("quality"),
    Run("quality", "lfw", ((DATA_ROOT, LFW),)),
    Run("quality", "embedded", ((DATA_ROOT, LFW),)),
    Run("encoder"),
    Run("encoder", "lfw", ((DATA_ROOT, LFW),)),
    Run("people", "", ((DATA_ROOT, SFACE),)),
)
SMALL_CODES = (
    "data.options.size=(28,23)", "descriptors.block=2", "descriptors.stride=4", "num_splits=2", "num_axes=12",
    "num_descriptors=2000", "num_components=4", "latent_dim=2", "num_iters=5",
)  # fmt: skip
SMALL_VIEWS = (
    "num_splits=2", "num_train=(5,)", "latent_dims=(4,)", "num_iters=5", "num_resamples=20", "logistic.num_iters=10",
    "views.components=(1,)", "views.latent_dims=(5,)", "views.latent_dim=20",
)  # fmt: skip
SMALL_GROUPS = ("many.sizes=(200,400)", "many.num_features=(32,)", "many.num_people=40", "many.num_components=8")
SMOKE = (
    *(
        Run(study, "smoke")
        for study in (
            "tour", "verify", "finetune", "verifier", "committee", "weak_labels", "retrieve", "kernel_maps",
            "hallucinate", "super_vector", "quality", "encoder", "people",
        )
    ),
    Run("super_vector", "ablations", options=SMALL_CODES),
    Run("super_vector", "missing", ((VIEWS_ROOT, "two_view/buaaRnSp.mat"),), ("num_splits=2", "num_iters=3")),
    Run("super_vector", "two_view", ((VIEWS_ROOT, "two_view/buaaRnSp.mat"),), SMALL_VIEWS),
    Run("weak_labels", "many", options=SMALL_GROUPS),
    Run("verify_lfw", "embeddings", ((DATA_ROOT, "lfw"), ("config.embeddings", SFACE)), ("view=1", "num_iters=3")),
)  # fmt: skip


def missing(run: Run, data: str | None) -> str | None:
    """The first set that a run wants and the folder of data does not have."""
    for _, path in run.data:
        if data is None or not (pathlib.Path(data) / path).exists():
            return path
    return None


def perform(run: Run, data: str | None, folder: pathlib.Path) -> bool:
    """Runs a study in its folder below `folder`, where finished work is kept; whether it ended well."""
    command = [sys.executable, "-m", f"experiments.{run.study}", *run.flags(data or "DATA")]
    begin = time.monotonic()
    code = subprocess.call([*command, f"--workdir={folder / run.folder}"], cwd=ROOT)
    print(f"{run.name}: {'done' if code == 0 else f'exit code {code}'}, {time.monotonic() - begin:.0f} s", flush=True)
    return code == 0


def lines_of(table: pathlib.Path) -> list[str]:
    """The lines of a CSV, with six digits of each number with more."""
    long = re.compile(r"(?<=,)-?\d+\.\d{6,}(?:e[-+]?\d+)?(?=,|$)", re.MULTILINE)
    return long.sub(lambda match: f"{float(match.group()):.6g}", table.read_text()).splitlines()


def words_of(report: pathlib.Path) -> list[str]:
    """The paragraphs of a report that state a number with a decimal point."""
    paragraphs = map(html.unescape, re.findall(r"<p>(.*?)</p>", report.read_text(), re.DOTALL))
    return [text for text in paragraphs if re.search(r"\d\.\d", text)]


def collected(runs: tuple[Run, ...], folder: pathlib.Path, known: dict) -> dict:
    """What is known, with the numbers of every run that is finished in `folder`."""
    found = dict(known)
    for run in runs:
        workdir = folder / run.folder
        if (workdir / "results.json").exists():
            record = json.loads((workdir / "run.json").read_text())
            found[run.name] = {
                "command": " ".join([f"python -m experiments.{run.study}", *run.flags("DATA")]),
                "date": record["ended"][:10],
                "versions": {name: record["packages"][name] for name in ("jaxface", "jax", "numpy")},
                "results": json.loads((workdir / "results.json").read_text()),
                "words": words_of(workdir / "report.html"),
                "tables": {file.stem: lines_of(file) for file in sorted((workdir / "tables").glob("*.csv"))},
            }
    return dict(sorted(found.items()))


def keep(runs: tuple[Run, ...], folder: pathlib.Path) -> None:
    """Adds what is finished to docs/results.json."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps(collected(runs, folder, known), indent=1, sort_keys=True, ensure_ascii=False) + "\n")


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
    parser.add_argument("--collect", action="store_true", help="run nothing, gather what is finished")
    parser.add_argument("--again", action="store_true", help="results and reports again, from finished stages")
    parser.add_argument("--folder", type=pathlib.Path, help="where the runs are kept")
    given = parser.parse_args()
    folder = given.folder or ROOT / "runs" / ("results-smoke" if given.variant == "smoke" else "results")
    data = str(pathlib.Path(given.data).resolve()) if given.data else None
    runs = chosen(given.variant, given.only)

    def made(run: Run) -> bool:
        """Whether a run ended well; one whose set is missing is left out."""
        if (absent := missing(run, data)) is not None:
            where = given.data or "DATA (name the folder)"
            print(f"{run.name}: left out, for there is no {absent} in {where}", flush=True)
            return True
        if given.again:
            if not (folder / run.folder / "results.json").exists():
                return True
            (folder / run.folder / "results.json").unlink()
        ended_well = perform(run, data, folder)
        if given.variant != "smoke":
            keep(runs, folder)
        return ended_well

    if given.collect and given.variant != "smoke":
        keep(runs, folder)
    todo = () if given.collect else runs
    begin = time.monotonic()
    with futures.ThreadPoolExecutor(2 if given.variant == "smoke" else 1) as pool:  # small runs leave cores idle
        failed = [run.name for run, ended_well in zip(todo, pool.map(made, todo), strict=True) if not ended_well]
    times = os.times()
    cpu = times.children_user + times.children_system
    print(f"in all {time.monotonic() - begin:.0f} s, {cpu:.0f} s of CPU time", flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
