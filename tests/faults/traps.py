"""What a child process runs: the small study, with a trap at one of its touches of the disk.

A touch is a file opened to be written, a rename, a flush, a folder made or a file removed, below the run's folder, in
any thread. The traps: a signal before the touch, or an error of the system from there on or once.
"""

import builtins
import errno
import json
import os
import pathlib
import resource
import signal
import sys
from typing import Any

from tests.faults import study, verdict
from tests.faults.verdict import Wrong

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_EVENTS = ("os.rename", "os.mkdir", "os.remove", "os.rmdir")


class Trap:
    """Counts the touches, and springs at one of them."""

    def __init__(self, run: str, *, at: int = 0, does: str = "", once: bool = True):
        self.run, self.at, self.does, self.once = run, at, does, once
        self.touches = 0
        self._plain_fsync = os.fsync
        os.fsync = self._fsync
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if not (isinstance(flags, int) and flags & _WRITING):
                return
        elif event in _EVENTS:
            path = args[0]
        else:
            return
        if isinstance(path, str | bytes | os.PathLike) and os.path.abspath(os.fsdecode(path)).startswith(self.run):
            self._touch()

    def _fsync(self, handle: int) -> None:
        self._touch()
        self._plain_fsync(handle)

    def _touch(self) -> None:
        self.touches += 1
        if not self.does or (self.touches != self.at if self.once else self.touches < self.at):
            return
        if self.does.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, self.does))
        else:
            code = getattr(errno, self.does)
            raise OSError(code, os.strerror(code))


def child(folder: str, *, trap: dict[str, Any], segments: bool, no_locks: str = "", limit: int = 0) -> None:
    """Runs the study in `folder` and writes how it went to `outcome.json`; never returns."""
    handle = os.open(pathlib.Path(folder) / "outcome.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.chdir(folder)
    set_trap = Trap(os.path.join(os.path.abspath(folder), study.RUN), **trap)
    if no_locks:
        _without_locks(getattr(errno, no_locks))
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    outcome = _outcome(segments)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    os.write(handle, json.dumps(outcome | {"touches": set_trap.touches}).encode())
    os._exit(0)


def _outcome(segments: bool) -> dict[str, Any]:
    try:
        return {"word": "right", "results": study.execute(segments=segments)}
    except KeyboardInterrupt:
        return {"word": "interrupted"}
    except BaseException as error:
        try:
            return {"word": verdict.refused(error, f"{study.RUN}/", study.RUN), "text": str(error)}
        except Wrong as wrong:
            return {"word": wrong.kind, "text": str(wrong)}
        except BaseException as other:
            return {"word": "traceback", "text": repr(other)}


def _without_locks(code: int) -> None:
    import fcntl

    def refuse(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    fcntl.flock = fcntl.lockf = refuse


def serve() -> None:
    """Forks children from a process that has imported everything and computed nothing."""
    import orbax.checkpoint  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "start":
            pid = os.fork()
            if pid == 0:
                builtins.print = lambda *_, **__: None
                child(**request["child"])
            answer: Any = pid
        else:
            answer = _wait(request["pid"], stopped=request["do"] == "wait until stopped")
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _wait(pid: int, *, stopped: bool) -> int | None:
    """The status of a child that ended or, when asked for, stopped; None after a hang, when it is killed."""
    waited = signal.sigtimedwait
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    left = float(verdict.SECONDS) / 2
    while left > 0:
        found, status = os.waitpid(pid, os.WNOHANG | (os.WUNTRACED if stopped else 0))
        if found:
            return status
        waited([signal.SIGCHLD], 0.05)
        left -= 0.05
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


if __name__ == "__main__":
    serve()
