"""The command line as a user meets it: each error is one line that says what to do."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image


@pytest.fixture(scope="module")
def faces(tmp_path_factory):
    """A folder of six people with four images each."""
    root = tmp_path_factory.mktemp("faces")
    rng = np.random.default_rng(0)
    for person in range(6):
        (root / f"p{person}").mkdir()
        base = rng.uniform(60, 190, (12, 10))
        for shot in range(4):
            pixels = np.clip(base + rng.normal(0, 12, base.shape), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(root / f"p{person}" / f"{shot}.png")
    return root


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "experiments.weak_labels", *map(str, arguments)],
        capture_output=True, text=True, check=False, env=os.environ | {"JAX_PLATFORMS": "cpu"},
    )  # fmt: skip


def own_faces(root, workdir):
    return (
        "--config=configs/weak_labels.py:smoke", f"--workdir={workdir}", "--config.data.loader=folders",
        f"--config.data.root={root}", "--config.data.options.size=(12,10)", "--config.num_train=3",
        "--config.group_sizes=(3,)", "--config.videos.sizes=()", "--config.methods=('eigenfaces','np_per')",
        "--config.clustering.methods=('np_per',)",
    )  # fmt: skip


def test_own_faces_run_once_and_a_second_time_does_nothing(faces, tmp_path):
    first = command(*own_faces(faces, tmp_path / "run"))
    assert first.returncode == 0, first.stderr
    assert "report:" in first.stdout
    results = (tmp_path / "run" / "results.json").read_bytes()
    stamp = (tmp_path / "run" / "report.html").stat().st_mtime_ns
    second = command(*own_faces(faces, tmp_path / "run"))
    assert second.returncode == 0
    assert "nothing to do" in second.stderr
    assert (tmp_path / "run" / "results.json").read_bytes() == results
    assert (tmp_path / "run" / "report.html").stat().st_mtime_ns == stamp
    changed = command(*own_faces(faces, tmp_path / "run"), "--config.seed=7")
    assert changed.returncode == 1
    assert "Differing keys: seed: 0 -> 7" in changed.stderr
    assert json.loads((tmp_path / "run" / "run.json").read_text())["exit"] == "ok"
    photo = faces / "p2" / "1.png"
    whole = photo.read_bytes()
    Image.fromarray(np.zeros((12, 10), np.uint8)).save(photo)
    noise = command(*own_faces(faces, tmp_path / "run"))
    photo.write_bytes(whole)
    assert noise.returncode == 1
    assert "1 changed (p2/1.png). Put the old data back, or choose another --workdir." in noise.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "error: --config is missing: name a config file"),
        (("--config=configs/weak_labels.py:smoke",), "error: --workdir is missing"),
        (("--config=configs/weak_labels.py:smok", "--workdir=x"), "unknown variant 'smok'; the variants are default"),
        (("--config=configs/nothing.py", "--workdir=x"), "--config names configs/nothing.py, which is not a file"),
        (("--config=configs/weak_labels.py", "--config.num_draws=many", "--workdir=x"), "num_draws"),
        (("--config=configs/weak_labels.py", "--wrokdir=x"), "Did you mean: workdir"),
        (("--config=configs/weak_labels.py", "smoke"), "Did you mean --config=configs/weak_labels.py:smoke?"),
        (("--config=configs/weak_labels.py", "--config.num_drows=3", "--workdir=x"), "Did you mean 'num_draws'"),
        (("--config=configs/weak_labels.py", "--config.clustering.num_drows=3", "--workdir=x"),
         "Did you mean 'clustering.num_draws'"),
    ],
)  # fmt: skip
def test_errors_of_the_command_line(arguments, message):
    done = command(*arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_image_that_does_not_decode_is_named_and_nothing_is_half_written(faces, tmp_path):
    import shutil

    broken = tmp_path / "broken"
    shutil.copytree(faces, broken)
    (broken / "p2" / "1.png").write_bytes(b"not an image")
    done = command(*own_faces(broken, tmp_path / "run"))
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert "p2/1.png" in last
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run" / "results.json").exists()


def test_a_program_with_flags_of_its_own_can_import_every_module():
    """The library defines no flags, so `--workdir` and `--config` are free for others."""
    program = (
        "import importlib, pkgutil\n"
        "from absl import flags\n"
        "import experiments, jaxface\n"
        "for package in (jaxface, experiments):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(module.name)\n"
        "for name in ('config', 'workdir', 'traceback'):\n"
        "    flags.DEFINE_string(name, None, 'A flag of this program.')\n"
        "flags.FLAGS(['program', '--workdir=here'])\n"
        "print(flags.FLAGS.workdir)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    assert done.stdout == "here\n", done.stderr
