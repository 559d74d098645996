"""Two processes as a user starts them: results of one, a repeated command after a kill, a sentence for each failure."""

import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

from jaxface.runtime import distributed

SIDE_BY_SIDE = ("one,two,killed,again,failing,unshared,unlike", "lost,numbers,nobody")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All scenarios, done once."""
    folder = tmp_path_factory.mktemp("two_runs")
    command = [sys.executable, "-W", "ignore", "-m", "tests.runtime.two_runs", str(folder), *SIDE_BY_SIDE]
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(pathlib.Path(__file__).parents[2])}
    subprocess.run(command, env=environment, check=True, timeout=180)
    return folder


def said(folder, scenario, place):
    """The error of a process, or its last sentence, its exit code and its seconds.

    The library of connections may add lines of its own when the other process has left.
    """
    lines = (folder / f"{scenario}.{place}").read_text().strip().splitlines()
    code, seconds = re.fullmatch(r"code (\d+) after ([\d.]+) s", lines[-1]).groups()
    spoken = [line for line in lines[:-1] if line]
    errors = [line for line in spoken if line.startswith("error: ")]
    return (errors or spoken)[-1], int(code), float(seconds)


def test_two_processes_give_the_results_of_one(folder):
    whole = (folder / "one" / "results.json").read_bytes()
    assert (folder / "two" / "results.json").read_bytes() == whole
    assert said(folder, "two", 0)[1] == said(folder, "two", 1)[1] == 0
    for name in ("made", "doubled"):
        one, two = (np.load(folder / run / "stages" / f"{name}.npz") for run in ("one", "two"))
        for key in one.files:
            np.testing.assert_array_equal(one[key], two[key])
    assert "stage doubled: done" in (folder / "two" / "logs" / "process-1.log").read_text()
    assert "stage" not in (folder / "two.1").read_text()
    assert not (folder / "one" / "logs").exists()
    steps = sorted(entry.name for entry in (folder / "two" / "checkpoints").iterdir() if entry.is_dir())
    assert steps == ["step-00000003", "step-00000004"]


def test_killed_and_repeated_is_the_same(folder):
    message, code, _ = said(folder, "killed", 1)
    assert code == 1
    assert message.startswith("error: process 0 has ended")
    assert "resumed at step 2 of 4" in (folder / "again.0").read_text()
    assert said(folder, "again", 0)[1] == said(folder, "again", 1)[1] == 0
    assert (folder / "killed" / "results.json").read_bytes() == (folder / "one" / "results.json").read_bytes()


def test_a_process_that_was_killed_ends_the_others_with_a_sentence(folder):
    message, code, seconds = said(folder, "lost", 0)
    assert code == 1
    assert message.startswith("error: another process has ended")
    assert "finished stages are kept" in message
    assert seconds < 30


def test_an_error_of_one_process_is_said_by_all(folder):
    assert said(folder, "failing", 1)[0] == "error: the second process has no more faces"
    message, code, _ = said(folder, "failing", 0)
    assert message == "error: process 1 failed: the second process has no more faces"
    assert code == 1


def test_a_folder_that_is_not_shared_is_refused(folder):
    for place in (0, 1):
        message, code, seconds = said(folder, "unshared", place)
        assert "--workdir must be a folder that all processes share; process 1 does not see" in message
        assert code == 1
        assert seconds < 10


def test_processes_with_different_configs_are_refused(folder):
    message = "all processes must have one config. Process 0 and this one differ in seed: 0 -> 1."
    assert said(folder, "unlike", 1)[:2] == (f"error: {message}", 1)
    assert said(folder, "unlike", 0)[:2] == (f"error: process 1 failed: {message}", 1)


def test_different_numbers_of_processes_are_refused(folder):
    message = "error: --num_processes must be the same in all processes; process 0 has 3, process 1 has 2."
    for place in (0, 1):
        assert said(folder, "numbers", place)[:2] == (message, 1)
        assert said(folder, "numbers", place)[2] < 10


def test_a_wrong_address_is_refused(folder):
    message, code, seconds = said(folder, "nobody", 1)
    assert re.match(r"error: --coordinator=127.0.0.1:\d+ does not answer within 1 s", message)
    assert code == 1
    assert seconds < 10


@pytest.mark.parametrize(
    ("coordinator", "num_processes", "process_id", "detect", "message"),
    [
        ("here:1", None, None, False, "--num_processes, --process_id is missing"),
        (None, None, 0, True, "--coordinator, --num_processes is missing"),
        ("here", 2, 0, False, "--coordinator must be HOST:PORT of process 0; got 'here'"),
        ("here:99999", 2, 0, False, "--coordinator must be HOST:PORT"),
        ("here:1", 0, 0, False, "--num_processes must be at least 1; got 0"),
        ("here:1", 2, 2, False, r"--process_id must lie in 0 \.\.\. 1; got 2"),
    ],
)
def test_flags_that_do_not_fit(coordinator, num_processes, process_id, detect, message):
    with pytest.raises(ValueError, match=message):
        distributed.start(coordinator=coordinator, num_processes=num_processes, process_id=process_id, detect=detect)


def test_one_process_needs_nothing():
    distributed.start(coordinator=None, num_processes=None, process_id=None, detect=False)
    distributed.check_shared(pathlib.Path("nowhere"))
    distributed.announce("nothing")
    assert distributed.leave(3) == 3
