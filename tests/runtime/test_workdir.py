import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial

import numpy as np
import pytest

from jaxface.core import prefetch
from jaxface.runtime import files
from jaxface.runtime.record import recorded
from jaxface.runtime.workdir import Workdir


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


def opened(folder, config=None):
    return Workdir(folder, config or {"seed": 0, "method": {"ridge": 0.1, "name": "lda"}})


def test_a_stage_runs_once_and_keeps_its_arrays(folder):
    calls = []

    def work():
        calls.append(1)
        return {"x": np.arange(3.0), "name": np.array("ä"), "n": 3}

    for _ in range(2):
        run = opened(folder)
        arrays = run.stage("fit", work)
        run.close()
        np.testing.assert_array_equal(arrays["x"], np.arange(3.0))
        assert str(arrays["name"]) == "ä"
        assert int(arrays["n"]) == 3
    assert len(calls) == 1


def test_stages_at_once_are_those_one_after_the_other(folder):
    """Two stages meet in time, which one after the other never do; finished ones are not made again."""
    calls, meeting = [], threading.Barrier(2, timeout=10)

    def work(name, meets):
        calls.append(name)
        if meets:
            meeting.wait()
        return {"x": np.arange(3.0) + len(name)}

    for at_once, is_first in ((2, True), (2, False), (1, False)):
        run = opened(folder)
        works = {name: partial(work, name, is_first and name != "ccc") for name in ("a", "bb", "ccc")}
        found = list(run.stages(works, at_once=at_once))
        run.close()
        assert [name for name, _ in found] == ["a", "bb", "ccc"]
        for name, arrays in found:
            np.testing.assert_array_equal(arrays["x"], np.arange(3.0) + len(name))
    assert sorted(calls) == ["a", "bb", "ccc"]
    journal = Workdir(folder, run.config)  # every line of the journal is whole
    assert {f"stages/{name}.npz" for name in ("a", "bb", "ccc")} <= set(journal._digests.names())
    journal.close()


def test_a_stage_that_ends_after_the_folder_was_closed_is_not_written(folder):
    run, released = opened(folder), threading.Event()

    def late():
        released.wait(10)
        return {"x": 1}

    with contextlib.closing(run.stages({"first": lambda: {"x": 0}, "late": late}, at_once=2)) as stages:
        assert next(stages)[0] == "first"
    run.close()
    again = opened(folder)  # another process could now be here
    released.set()
    while prefetch.is_busy():
        time.sleep(0.001)
    assert not (folder / "stages" / "late.npz").exists()
    with pytest.raises(ValueError, match="is closed: nothing is written to it any more"):
        run.write_text("report.html", "")
    again.close()


def test_a_config_with_which_nothing_was_made_may_be_replaced(folder):
    """As after a mistyped path: the folder holds what was asked for, how it ended, and nothing else."""
    run = opened(folder)
    run.write_json("run.json", {"exit": "ValueError"})
    run.close()
    opened(folder, {"seed": 1}).close()
    assert json.loads((folder / "config.json").read_text())["seed"] == 1


def test_another_config_is_refused_with_the_differing_keys(folder):
    run = opened(folder)
    run.stage("fit", lambda: {"x": 1})
    run.close()
    with pytest.raises(
        ValueError, match=r"another config\. Differing keys: method\.ridge: 0\.1 -> 0\.2; seed: 0 -> 1\. Choose"
    ):
        opened(folder, {"seed": 1, "method": {"ridge": 0.2, "name": "lda"}})
    with pytest.raises(ValueError, match=r"Differing keys: method\.extra: 'absent' -> 1\."):
        opened(folder, {"seed": 0, "method": {"ridge": 0.1, "name": "lda", "extra": 1}})
    opened(folder).close()


def test_a_second_process_is_refused_while_the_first_runs(folder):
    first = opened(folder)
    with pytest.raises(ValueError, match="another process is running in"):
        opened(folder)
    first.close()
    opened(folder).close()


def test_a_damaged_stage_is_named(folder):
    run = opened(folder)
    run.stage("fit", lambda: {"x": np.ones(100)})
    file = run.path / "stages" / "fit.npz"
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(ValueError, match=r"fit\.npz is damaged .*Delete it and run the same command again"):
        run.stage("fit", dict)
    run.close()


def test_objects_and_files_in_the_way_are_errors(folder, tmp_path):
    run = opened(folder)
    with pytest.raises(ValueError, match=r"stage 'fit' must return arrays, numbers or strings; 'x' is a Python object"):
        run.stage("fit", lambda: {"x": object()})
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        run.write_json("x.json", {"x": object()})
    run.close()
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="--workdir must be a folder"):
        opened(tmp_path / "file")


def test_json_takes_numpy_and_paths_and_is_the_same_bytes_every_time(folder):
    run = opened(folder)
    value = {"b": np.float32(0.5), "a": np.arange(2), "p": folder.parent, "t": (1, 2)}
    first = run.write_json("x.json", value).read_bytes()
    assert run.write_json("x.json", dict(reversed(value.items()))).read_bytes() == first
    assert json.loads(first)["a"] == [0, 1]
    run.close()


def full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(folder, monkeypatch, broken):
    run = opened(folder)
    run.write_text("notes.txt", "old")
    before = sorted(os.listdir(folder))
    monkeypatch.setattr(files.os, broken, full_disk)
    with pytest.raises(OSError, match=r"the disk is full: .*notes\.txt was not written\. Free some space") as caught:
        run.write_text("notes.txt", "new")
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert (folder / "notes.txt").read_text() == "old"
    assert sorted(os.listdir(folder)) == before
    run.close()


def test_the_record_says_how_a_run_ended(folder):
    run = opened(folder)
    during = []

    def study():
        with recorded(run, {"command": ["x"]}):
            during.append(json.loads((folder / "run.json").read_text())["exit"])
            raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        study()
    assert during == ["running"]
    assert json.loads((folder / "run.json").read_text())["exit"] == "ValueError: bad"
    with recorded(run, {}):
        pass
    assert json.loads((folder / "run.json").read_text())["exit"] == "ok"
    run.close()


STUDY = textwrap.dedent("""
    import numpy as np
    from ml_collections import ConfigDict
    from jaxface.runtime import launch

    def run(config, work):
        rng = np.random.default_rng(config.seed)
        a = work.stage("a", lambda: {"x": rng.normal(size=5)})
        b = work.stage("b", lambda: {"y": np.cumsum(a["x"])})
        work.write_text("report.html", str(b["y"]))
        return {"sum": float(b["y"].sum())}

    def execute(folder):
        launch.execute(run, ConfigDict({"seed": 3}), folder)
""")
KILLED = STUDY + textwrap.dedent("""
    import os, signal, sys
    from jaxface.runtime import files

    folder, fatal, moment = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    writes = 0
    plain = os.replace

    def replace(source, target):
        global writes
        writes += 1
        if writes == fatal and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        plain(source, target)
        if writes == fatal and moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    files.os.replace = replace
    execute(folder)
    print(writes)
""")


def killed(folder, fatal, moment):
    return subprocess.run(
        [sys.executable, "-c", KILLED, str(folder), str(fatal), moment], capture_output=True, text=True, check=False
    )


def test_killed_at_every_write_and_run_again_gives_the_same_results(tmp_path):
    whole = killed(tmp_path / "whole", 0, "never")
    assert whole.returncode == 0, whole.stderr
    expected = (tmp_path / "whole" / "results.json").read_bytes()
    here = {}
    exec(STUDY, here)  # to go on needs no process of its own
    for fatal in range(1, int(whole.stdout) + 1):
        moment = "before" if fatal % 2 else "after"
        folder = tmp_path / f"killed-{fatal}"
        assert killed(folder, fatal, moment).returncode == -signal.SIGKILL
        here["execute"](folder)
        assert (folder / "results.json").read_bytes() == expected
        assert json.loads((folder / "config.json").read_text()) == {"seed": 3}


def test_results_are_json_and_files_stay_below_the_folder(folder):
    run = opened(folder)
    run.finish({"cllr": float("inf"), "curve": [1.0, float("nan")], "n": 3})
    assert json.loads((folder / "results.json").read_text(), parse_constant=pytest.fail) == {
        "cllr": None,
        "curve": [1.0, None],
        "n": 3,
    }
    with pytest.raises(ValueError, match=r"name must stay below .*run; got '\.\./x'"):
        run.write_text("../x", "lost")
    run.close()
