"""What `run.json` says of a run that ended, was interrupted, or was killed; and of the versions it ran with."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap

import pytest

from jaxface.runtime import record
from jaxface.runtime.workdir import Workdir


@pytest.fixture
def run(tmp_path):
    work = Workdir(tmp_path / "run", {})
    yield work
    work.close()


def written(run):
    return json.loads((run.path / "run.json").read_text())


def test_the_record_says_how_a_run_ended_and_what_was_before_it(run):
    for error in (ValueError("bad"), KeyboardInterrupt(), None):
        during = None
        try:
            with record.recorded(run, {"packages": {"jax": "1"}}):
                during = written(run)["exit"]
                if error is not None:
                    raise error
        except (ValueError, KeyboardInterrupt):
            pass
        assert during == "running"
    assert written(run)["exit"] == "ok"
    assert [attempt["exit"] for attempt in written(run)["before"]] == ["ValueError: bad", "interrupted"]
    assert written(run)["before"][0]["packages"] == {"jax": "1"}


def test_a_killed_run_is_said_so_by_the_next(run, caplog):
    run.write_json("run.json", {"exit": "running", "started": "then", "packages": {"jax": "1"}})
    with caplog.at_level("WARNING", logger="absl"):
        record.look_back(run, {"packages": {"jax": "1"}}, is_finished=False)
    assert "that began at then was killed" in caplog.text
    assert written(run)["exit"].startswith("killed")
    with record.recorded(run, {}):
        pass
    assert written(run)["before"][0]["exit"].startswith("killed")


def test_a_run_with_results_is_finished_whatever_it_could_say_of_itself(run):
    for end in ("running", "interrupted"):
        run.write_json("run.json", {"exit": end, "started": "then"})
        record.look_back(run, {}, is_finished=True)
        assert written(run) == {"exit": "ok", "started": "then"}


def test_other_versions_are_named_when_there_is_work_of_the_old_ones(tmp_path, caplog):
    folder = tmp_path / "run"
    old = {"jaxface": "0.1", "jax": "0.9", "numpy": "2.0", "chex": "1"}
    now = {"jaxface": "0.1", "jax": "0.10", "numpy": "2.1", "chex": "2"}
    for is_resumed in (False, True):
        work = Workdir(folder, {})
        work.write_json("run.json", {"exit": "ok", "packages": old})
        caplog.clear()
        with caplog.at_level("WARNING", logger="absl"):
            record.look_back(work, {"packages": now}, is_finished=True)
            record.look_back(work, {"packages": old}, is_finished=True)
        said = [line.getMessage() for line in caplog.records]
        expected = f"{folder} was made with jax 0.9, numpy 2.0; this is jax 0.10, numpy 2.1: numbers may differ"
        assert said == ([expected] if is_resumed else [])
        work.stage("x", lambda: {"x": 1})
        work.close()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"exit": ', b"\xff", b'{"before": 3, "packages": [], "exit": 1}'])
def test_a_damaged_record_is_named_and_begun_anew(tmp_path, content, caplog):
    for _ in range(2):
        work = Workdir(tmp_path / "run", {})
        (work.path / "run.json").write_bytes(content)
        with caplog.at_level("WARNING", logger="absl"):
            record.look_back(work, {"packages": {}}, is_finished=False)
            with record.recorded(work, {}):
                work.stage("x", lambda: {"x": 1})
        assert written(work)["exit"] == "ok"
        work.close()
    assert ("run.json is damaged" in caplog.text) == (not content.startswith(b'{"before'))


STUDY = textwrap.dedent("""
    import signal, time
    from jaxface.runtime import launch

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores it

    def run(config, work):
        work.stage("first", lambda: {"x": 1})
        if config.fate == "key":
            return {"n": config.nothing}
        if config.fate == "threads":
            def slow():
                time.sleep(0.5)  # until the main thread does nothing but wait
                print("ready", flush=True)
                time.sleep(60)

            list(work.stages({"second": slow, "third": lambda: time.sleep(60) or {}}, at_once=2))
        if config.fate == "mistake":
            works = {"second": lambda: time.sleep(0.5) or len(3), "third": lambda: time.sleep(60) or {}}
            list(work.stages(works, at_once=2))
        print("ready", flush=True)
        time.sleep(60)

    launch.main(run)
""")
CONFIG = """
from ml_collections import ConfigDict
def get_config():
    return ConfigDict({"fate": "sleep", "runtime": {"x64": False, "quick_compile": False, "distributed": "off"}}).lock()
"""


@pytest.fixture
def started(tmp_path):
    (tmp_path / "study.py").write_text(STUDY)
    (tmp_path / "own\x1b.py").write_text(CONFIG)
    processes = []

    def start(*flags):
        command = [sys.executable, "study.py", "--config=own\x1b.py", "--workdir=run", *flags]
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "XDG_CACHE_HOME": str(tmp_path / "cache")}
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()


@pytest.mark.parametrize("fate", ["sleep", "threads"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_an_interrupted_run_says_so(started, tmp_path, number, code, fate):
    process = started(f"--config.fate={fate}")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == code
    assert said.splitlines()[-1] == "error: interrupted; the same command goes on after the last finished stage."
    assert json.loads((tmp_path / "run" / "run.json").read_text())["exit"] == "interrupted"


def test_a_mistake_of_ours_ends_the_process_though_a_thread_works(started, tmp_path):
    process = started("--config.fate=mistake")
    _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "Traceback" in said
    assert said.splitlines()[-1] == "TypeError: object of type 'int' has no len()"
    assert json.loads((tmp_path / "run" / "run.json").read_text())["exit"].startswith("TypeError")


def test_a_killed_run_and_a_missing_key_are_told_by_the_launcher(started, tmp_path):
    process = started()
    assert process.stdout.readline() == "ready\n"
    process.kill()
    process.communicate(timeout=30)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["exit"] == "running"
    (tmp_path / "run" / "stages" / "first.npz").unlink()
    again = started("--config.fate=key")
    _, said = again.communicate(timeout=30)
    assert again.returncode == 1
    assert "was killed" in said
    assert "error: own\\x1b.py has no key 'nothing', which __main__ reads." in said
    assert "\x1b" not in said
    assert "Traceback" not in said


def test_a_page_says_when_its_run_began_and_how_long_it_took(run, monkeypatch):
    """The record of the run is what counts, so a page that is made again after the run does not change."""
    assert record.in_words(run) == ""
    clock = {"now": "2026-11-19T14:00:00+0000"}
    monkeypatch.setattr(record, "_now", lambda: clock["now"])
    with contextlib.suppress(KeyboardInterrupt), record.recorded(run, {}):
        clock["now"] = "2026-11-19T15:10:00+0000"
        raise KeyboardInterrupt
    assert record.in_words(run) == ""  # nothing runs
    now = record.datetime.datetime.now(record.datetime.UTC)
    clock["now"] = (now - record.datetime.timedelta(seconds=62)).strftime("%Y-%m-%dT%H:%M:%S+0000")
    with record.recorded(run, {}):
        words = record.in_words(run)
        assert re.fullmatch(r"Begun on 2026-11-19 at 14:00 UTC; took 1 h 11 min over 2 attempts\.", words)
    last = written(run)
    last["before"][0]["ended"], last["exit"] = None, "running"  # killed
    run.write_json("run.json", last)
    assert re.fullmatch(r".*; took at least 1 min [2-9] s over 2 attempts\.", record.in_words(run))
    run.write_json("run.json", {"exit": "running", "started": "today", "before": []})
    assert record.in_words(run) == ""
