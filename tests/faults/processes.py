"""Faults of processes: a run killed, interrupted, out of disk or without locks, and two of them in one folder.

Whatever happened, the same command again ends with the results of a run without a fault, bit for bit.
"""

import atexit
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.faults import study
from tests.faults.verdict import Wrong, expect

ERRORS = ("ENOSPC", "ENOSPC", "ENOSPC", "EDQUOT", "EIO", "EROFS")
SIGNALS = ("SIGKILL", "SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")
NO_LOCKS = ("ENOLCK", "ENOTSUP", "ENOSYS", "EINVAL")
ROOT = pathlib.Path(__file__).parents[2]


class Server:
    """A process that forks children: they start in a hundredth of a second, with JAX imported and not begun."""

    def __init__(self) -> None:
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore", "ABSL_MIN_LOG_LEVEL": "3"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.traps"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, cwd=ROOT, env=environment,
        )  # fmt: skip
        atexit.register(self.close)

    def ask(self, **request: Any) -> Any:
        """One request, one answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """Ends the server."""
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)


server = functools.cache(Server)


def start(folder: pathlib.Path, *, segments: bool, trap: dict[str, Any] | None = None, **more: Any) -> int:
    (folder / "outcome.json").unlink(missing_ok=True)
    settings = {"folder": str(folder), "segments": segments, "trap": trap or {}} | more
    return server().ask(do="start", child=settings)


def finish(folder: pathlib.Path, pid: int) -> dict[str, Any]:
    """How a child ended: its own words, or the signal."""
    status = server().ask(do="wait", pid=pid)
    if status is None:
        raise Wrong("hang", "the process had to be killed")
    if os.WIFSIGNALED(status):
        return {"word": signal.Signals(os.WTERMSIG(status)).name}
    text = (folder / "outcome.json").read_text()
    return json.loads(text) if text else {"word": f"ended with status {status} and no outcome"}


def run(folder: pathlib.Path, **settings: Any) -> dict[str, Any]:
    return finish(folder, start(folder, **settings))


@functools.cache
def clean(segments: bool) -> tuple[dict[str, Any], dict[str, bytes], int]:
    """Results, files and number of touches of a run without a fault."""
    import shutil
    import tempfile

    folder = pathlib.Path(tempfile.mkdtemp(prefix="clean-run-"))
    study.write_data(folder)
    outcome = run(folder, segments=segments)
    if outcome["word"] != "right":
        raise Wrong("wrong result", f"without a fault: {outcome}")
    found = outcome["results"], study.snapshot(folder), outcome["touches"]
    shutil.rmtree(folder)
    return found


def draw(rng: np.random.Generator) -> tuple[str, Callable[[pathlib.Path], str]]:
    segments = bool(rng.integers(2))
    how = "with checkpoints" if segments else "of stages"
    kind = rng.integers(10)
    at = rng.random(4)
    if kind < 4:
        signals = [SIGNALS[i] for i in rng.integers(0, len(SIGNALS), rng.integers(1, 4))]
        return f"{', '.join(signals)} in a run {how}", lambda folder: _ended(folder, segments, signals, at)
    if kind < 6:
        error, once = ERRORS[rng.integers(len(ERRORS))], bool(rng.integers(2))
        what = f"{error} {'once' if once else 'from a moment on'} in a run {how}"
        return what, lambda folder: _failing(folder, segments, error, once, at[0])
    if kind == 6:
        limit = int(rng.integers(1, 3000))
        return f"no file above {limit} bytes in a run {how}", lambda folder: _limited(folder, segments, limit)
    if kind == 7:
        error = NO_LOCKS[rng.integers(len(NO_LOCKS))]
        return f"no locks ({error}) in a run {how}", lambda folder: _without_locks(folder, segments, error, at[0])
    error = NO_LOCKS[rng.integers(len(NO_LOCKS))] if kind == 8 else ""
    locks = f"without locks ({error})" if error else "with locks"
    return f"two runs {how} {locks}", lambda folder: _two(folder, segments, error, at[0])


def _moment(segments: bool, share: float) -> int:
    return 1 + int(share * clean(segments)[2])


def _judge(folder: pathlib.Path, segments: bool, what: str, **settings: Any) -> str:
    """The same command again, without a trap."""
    outcome = run(folder, segments=segments, **settings)
    expect(outcome["word"] == "right", "not resumed", f"{what}; then {outcome}")
    results, files, _ = clean(segments)
    expect(outcome["results"] == results, "wrong result", f"{what}; then {outcome['results']}")
    found = study.snapshot(folder)
    differing = sorted(name for name in files.keys() | found.keys() if files.get(name) != found.get(name))
    expect(not differing, "wrong result", f"{what}; then {differing} differ")
    record = json.loads((folder / study.RUN / "run.json").read_text())
    # A run that was killed between its results and its record has been finished, and killed.
    fine = record["exit"] == "ok" or record["exit"].startswith("killed")
    expect(fine, "wrong result", f"{what}; then run.json says {record['exit']!r}")
    return outcome["word"]


def _ended(folder: pathlib.Path, segments: bool, signals: list[str], at: Any) -> str:
    study.write_data(folder)
    told = []
    for name, share in zip(signals, at, strict=False):
        touch = _moment(segments, share)
        outcome = run(folder, segments=segments, trap={"at": touch, "does": name})
        told.append(f"{name} at touch {touch}: {outcome['word']}")
        # A resumed run has fewer touches: it may end before the signal.
        fine = outcome["word"] in (name, "interrupted", "right")
        expect(fine, "traceback", f"{'; '.join(told)} {outcome.get('text', '')}")
    return _judge(folder, segments, "; ".join(told))


def _failing(folder: pathlib.Path, segments: bool, error: str, once: bool, share: float) -> str:
    study.write_data(folder)
    touch = _moment(segments, share)
    outcome = run(folder, segments=segments, trap={"at": touch, "does": error, "once": once})
    what = f"{error} at touch {touch}: {outcome}"
    expect(outcome["word"] in ("refused", "right"), outcome["word"], what)
    if outcome["word"] == "refused" and error == "ENOSPC":
        expect("disk is full" in outcome["text"], "unnamed", what)
    _judge(folder, segments, what)
    return outcome["word"]


def _limited(folder: pathlib.Path, segments: bool, limit: int) -> str:
    """As a quota: also the writes of libraries fail, in the middle of a file."""
    study.write_data(folder)
    outcome = run(folder, segments=segments, limit=limit)
    expect(outcome["word"] in ("refused", "right"), outcome["word"], f"{outcome}")
    _judge(folder, segments, f"{outcome}")
    return outcome["word"]


def _without_locks(folder: pathlib.Path, segments: bool, error: str, share: float) -> str:
    """A kill, and the same command again, where no lock can be had."""
    study.write_data(folder)
    touch = _moment(segments, share)
    outcome = run(folder, segments=segments, no_locks=error, trap={"at": touch, "does": "SIGKILL"})
    expect(outcome["word"] in ("SIGKILL", "right"), outcome["word"], f"{outcome}")
    _judge(folder, segments, f"killed at touch {touch}", no_locks=error)
    return _judge(folder, segments, "run twice", no_locks=error)


def _two(folder: pathlib.Path, segments: bool, no_locks: str, share: float) -> str:
    """The first stops at a moment, the second comes, the first goes on."""
    study.write_data(folder)
    touch = _moment(segments, share)
    first = start(folder, segments=segments, no_locks=no_locks, trap={"at": touch, "does": "SIGSTOP"})
    status = server().ask(do="wait until stopped", pid=first)
    expect(status is not None, "hang", "the first process did not come to its stop")
    locked = (folder / study.RUN / "config.json").exists()  # before that it may not have the folder yet
    (folder / "outcome.json").rename(folder / "first.json")
    second = run(folder, segments=segments, no_locks=no_locks)
    os.kill(first, signal.SIGCONT)
    server().ask(do="wait", pid=first)
    told = json.loads((folder / "first.json").read_text())
    what = f"stopped at touch {touch}; the second: {second}; the first: {told}"
    words = (told["word"], second["word"])
    expect(set(words) <= {"right", "refused"} and "right" in words, "wrong result", what)
    expect(not locked or words == ("right", "refused"), "wrong result", what)
    return "refused" if _judge(folder, segments, what) and "refused" in words else "right"
