"""The start and the end of several processes, by `jax.distributed`: each failure is one sentence, never a hang.

start          connects the processes, found by JAX (SLURM, Open MPI, Kubernetes, TPU) or named by flags
check_shared   refuses a folder that some process does not see
announce       tells the other processes why this one ends
leave          ends this process: together with the others after success, at once after a failure

A process that fails says so in the key-value store, and a thread in each of the others waits for that. A process that
is killed says nothing: JAX notices that its heartbeats stop, and ends the others by `abort()`, for which Python's own
signal handlers come too late. The handler of that signal is therefore set below Python, and says what happened.
"""

import _thread
import contextlib
import ctypes
import os
import pathlib
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
from absl import logging

from jaxface.core import prefetch, processes
from jaxface.runtime import files, roll_call

__all__ = []

SECONDS_TO_SEE = 3.0  # a new file on a shared disk
SECONDS_TO_NOTICE = 20  # a process without heartbeats
_SECONDS_TO_LEAVE = 3.0
_SECONDS_TO_HEAR = 2.0
_FAILED, _LEFT = "jaxface/failed", "jaxface/left"
_AGAIN = "Start all processes again with the same command: finished stages are kept."

_handlers: list[Any] = []  # a handler of C must outlive its use
_watchers: list[threading.Thread] = []
_failure: list[str] = []  # what another process said before it ended
_is_leaving = threading.Event()


def start(*, coordinator: str | None, num_processes: int | None, process_id: int | None, detect: bool) -> None:
    """Connects this process with the others; nothing happens without flags and without `detect`."""
    named = (coordinator, num_processes, process_id)
    if all(value is None for value in named) and not detect:
        return
    _check(*named, detect=detect)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.config.update("jax_enable_preemption_service", False)  # it would take SIGTERM away from the launcher
    whom = f"process 0 at {coordinator}" if coordinator else "process 0"
    _on_abort(lambda: f"{whom} did not gather all processes: some did not start, or started with other flags.")
    if coordinator is not None and num_processes is not None and process_id is not None:
        if process_id:
            roll_call.report(coordinator, num_processes, process_id)
        else:
            roll_call.answer(coordinator, num_processes)
    try:
        jax.distributed.initialize(
            coordinator,
            num_processes,
            process_id,
            initialization_timeout=roll_call.SECONDS_TO_START,
            heartbeat_timeout_seconds=SECONDS_TO_NOTICE,
            shutdown_timeout_seconds=SECONDS_TO_NOTICE,
        )
    except (ValueError, RuntimeError) as error:  # a port in use, or nothing detected
        raise ValueError(_not_started(coordinator, error)) from error
    _on_abort(_who_ended)
    if hasattr(signal, "SIGUSR2"):
        signal.signal(signal.SIGUSR2, signal.default_int_handler)
    _watchers.append(threading.Thread(target=_watch, daemon=True))
    _watchers[-1].start()
    logging.info("process %d of %d", processes.index(), processes.count())


def check_shared(folder: pathlib.Path) -> None:
    """Refuses a folder in which some process does not see what process 0 writes; the error is raised in all."""
    if processes.count() == 1:
        return
    name = processes.from_first(lambda: _write_token(folder)) or b""
    token = folder / os.fsdecode(name)
    answers = processes.gather(b"sees" if _appears(token) else b"blind")
    if processes.index() == 0:
        token.unlink(missing_ok=True)
    blind = ", ".join(str(other) for other, answer in enumerate(answers) if answer != b"sees")
    if blind:
        raise ValueError(
            f"--workdir must be a folder that all processes share; process {blind} does not see what process 0 writes "
            f"to {folder}. Name a folder on a shared disk."
        )


def announce(message: str) -> None:
    """Tells the other processes that this one fails, so that they end with the message."""
    if processes.count() > 1 and not _failure:
        with contextlib.suppress(processes.PeerError):
            processes.tell(_FAILED, f"{processes.index()} {message}".encode(errors="backslashreplace"))


def stay_uninterrupted() -> None:
    """From here on a failure of another process interrupts this one no more, which has a failure of its own."""
    _is_leaving.set()
    is_main = threading.current_thread() is threading.main_thread()
    if processes.count() > 1 and is_main and hasattr(signal, "SIGUSR2"):
        with contextlib.suppress(KeyboardInterrupt):  # `_watch` was about to
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)


def failure() -> str | None:
    """Why this process has to end: what another one said before it ended."""
    return _failure[0] if _failure else None


def in_words(error: Exception) -> str:
    """The message of an error; of a collective operation that another process left, what that one said before."""
    if processes.count() == 1 or not (isinstance(error, jax.errors.JaxRuntimeError) or "Gloo " in str(error)):
        return str(error)
    end = time.monotonic() + _SECONDS_TO_HEAR
    while not _failure and time.monotonic() < end:
        with contextlib.suppress(KeyboardInterrupt):  # by `_watch`
            time.sleep(0.1)
    reason = str(error).splitlines()[0][:200]
    return failure() or f"another process has ended during a collective operation ({reason}). {_AGAIN}"


def leave(code: int) -> int:
    """Ends the work of this process with the others; after a failure it ends the process, with the exit code."""
    if processes.count() == 1:
        if code and prefetch.is_busy():
            _exit(code)  # Python would wait until the threads have finished their stages
        return code
    if code == 0 and _finish_together():
        return code
    stay_uninterrupted()
    with contextlib.suppress(processes.PeerError, TimeoutError):
        _wait_for_the_others()
    _exit(code or 1)
    return code


def _finish_together() -> bool:
    """Waits for the others and disconnects; false when one of them failed, although this process has succeeded."""
    try:
        processes.rendezvous()
    except (KeyboardInterrupt, processes.PeerError) as error:  # the first by `_watch`
        _say(failure() or str(error) or "interrupted.")
        return False
    _is_leaving.set()
    processes.tell(_FAILED, b"")  # wakes the watchers: a thread must not return into an interpreter that ends
    for watcher in _watchers:
        watcher.join()
    jax.distributed.shutdown()
    _on_abort(None)
    return True


def _check(coordinator: str | None, num_processes: int | None, process_id: int | None, *, detect: bool) -> None:
    values = {"--coordinator": coordinator, "--num_processes": num_processes, "--process_id": process_id}
    missing = [name for name, value in values.items() if value is None]
    if 0 < len(missing) < 3 or (missing and not detect):
        raise ValueError(f"{', '.join(missing)} is missing: --coordinator, --num_processes, --process_id go together.")
    if missing:
        return
    host, _, port = str(coordinator).rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"--coordinator must be HOST:PORT of process 0; got {coordinator!r}.")
    if num_processes is None or num_processes < 1:
        raise ValueError(f"--num_processes must be at least 1; got {num_processes}.")
    if process_id is None or not 0 <= process_id < num_processes:
        raise ValueError(f"--process_id must lie in 0 ... {num_processes - 1}; got {process_id}.")


def _write_token(folder: pathlib.Path) -> bytes:
    token = folder / f".shared-{secrets.token_hex(8)}"
    files.write_atomically(token, b"")
    return os.fsencode(token.name)


def _appears(file: pathlib.Path) -> bool:
    end = time.monotonic() + SECONDS_TO_SEE
    while not file.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def _not_started(coordinator: str | None, error: Exception) -> str:
    if coordinator is not None:
        return roll_call.unopened(coordinator, error)
    reason = str(error).splitlines()[0]
    return (
        f"runtime.distributed=auto found no cluster that JAX knows ({reason}). Name the processes by --coordinator, "
        "--num_processes and --process_id."
    )


def _watch() -> None:
    """Ends this process when another one says that it failed."""
    try:
        place, _, message = processes.wait_for(_FAILED).decode().partition(" ")
    except processes.PeerError:  # process 0 is gone: JAX ends this process, or `leave` does
        return
    if not place or int(place) == processes.index():
        return
    _failure.append(f"process {place} failed: {message}")
    if _is_leaving.is_set():
        return
    _interrupt()
    time.sleep(_SECONDS_TO_LEAVE)
    if not _is_leaving.is_set():  # the main thread waits inside a collective
        _say(_failure[0])
        leave(1)


def _interrupt() -> None:
    """Raises KeyboardInterrupt in the main thread. For commands in the background, shells ignore SIGINT."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR2)
    else:
        _thread.interrupt_main()


def _wait_for_the_others() -> None:
    """Process 0 goes last, for the store goes with it."""
    if processes.index():
        processes.tell(f"{_LEFT}/{processes.index()}", b"")
        return
    end = time.monotonic() + 1.5 * _SECONDS_TO_LEAVE
    for other in range(1, processes.count()):
        processes.wait_for(f"{_LEFT}/{other}", seconds=end - time.monotonic())


def _who_ended() -> str:
    if said := failure():  # JAX noticed the end sooner than this process could leave by itself
        return said
    if roll_call.silence(processes.address()):
        return f"process 0 has ended: it does not answer at {processes.address()}. {_AGAIN}"
    return f"another process has ended or does not answer any more: its number stands above. {_AGAIN}"


def _on_abort(explain: Callable[[], str] | None) -> None:
    """Says a sentence when native code ends the process by `abort()`; a handler of Python's would never run."""

    def end(_: int) -> None:
        if explain is not None:
            _say(explain())
        os._exit(1)

    with contextlib.suppress(AttributeError, OSError, TypeError):  # a system without a C library by that name
        set_handler = ctypes.CDLL(None).signal
        handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(end) if explain is not None else ctypes.c_void_p()
        set_handler(int(signal.SIGABRT), handler)
        _handlers.append(handler)


def _say(message: str) -> None:
    print(f"error: {message}", file=sys.stderr, flush=True)


def _exit(code: int) -> None:
    """Without JAX's own shutdown, which waits for the others."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
