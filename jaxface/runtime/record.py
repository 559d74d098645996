"""`run.json`: the command, versions, times and end of a run, and the attempts before it."""

import contextlib
import datetime
import time
from collections.abc import Iterator, Mapping
from typing import Any

from absl import logging

from jaxface.runtime import files
from jaxface.runtime.workdir import Workdir

__all__ = ["in_words"]

RUNNING = "running"
KILLED = "killed: the process ended without a word"
_NAME = "run.json"
_FORMAT = "%Y-%m-%dT%H:%M:%S%z"
_KEPT = 20
_OF_AN_ATTEMPT = ("started", "ended", "exit", "packages", "git")
_COMPARED = ("jaxface", "jax", "jaxlib", "numpy")  # other versions of these may change numbers


@contextlib.contextmanager
def recorded(workdir: Workdir, provenance: Mapping[str, Any]) -> Iterator[None]:
    """Keeps the record of a run: its provenance, when it began and ended, and how."""
    record = {**provenance, "started": _now(), "ended": None, "exit": RUNNING, "before": _attempts(workdir)}
    workdir.write_json(_NAME, record)
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(OSError):  # the first error is the one to report
            workdir.write_json(_NAME, record | {"ended": _now(), "exit": _in_words(error)})
        raise
    workdir.write_json(_NAME, record | {"ended": _now(), "exit": "ok"})


def in_words(workdir: Workdir) -> str:
    """When the run in this folder began and how long it has taken, over all attempts; nothing without a record.

    The time of an attempt that was killed is not known: the sum is then a least one.
    """
    last = _last(workdir)
    try:
        attempts = [*last["before"], last] if last.get("exit") == RUNNING else []
        begun = [_moment(attempt["started"]) for attempt in attempts]
        ended = [_moment(attempt["ended"]) if attempt.get("ended") else None for attempt in attempts[:-1]]
    except (KeyError, TypeError, ValueError):
        return ""  # a record of another version
    if not begun:
        return ""
    ends = [*ended, datetime.datetime.now(datetime.UTC)]
    seconds = sum((end - start).total_seconds() for start, end in zip(begun, ends, strict=True) if end is not None)
    took = f"{'at least ' if None in ends else ''}{_duration(seconds)}"
    tries = f" over {len(begun)} attempts" if len(begun) > 1 else ""
    return f"Begun on {begun[0]:%Y-%m-%d} at {begun[0]:%H:%M %Z}; took {took}{tries}."


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.strptime(text, _FORMAT)


def _duration(seconds: float) -> str:
    """Two units at most: 0.4 s, 12 s, 3 min 5 s, 2 h 10 min."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def look_back(workdir: Workdir, provenance: Mapping[str, Any], *, is_finished: bool) -> None:
    """Completes the record of the last run in this folder: it was killed, or it ran with other versions.

    A run with results is finished, also when it was killed before its record said so.
    """
    last = _last(workdir)
    if is_finished and last and last.get("exit") != "ok":
        workdir.write_json(_NAME, last | {"exit": "ok"})
    elif last.get("exit") == RUNNING:
        logging.warning("the run in %s that began at %s was killed", workdir.path, last.get("started"))
        workdir.write_json(_NAME, last | {"exit": KILLED})
    if workdir.is_resumed:
        _compare_versions(workdir, last.get("packages"), provenance.get("packages"))


def _compare_versions(workdir: Workdir, before: Any, now: Any) -> None:
    if not isinstance(before, dict) or not isinstance(now, dict):
        return
    names = [name for name in _COMPARED if before.get(name) != now.get(name)]
    if names:
        then, today = (", ".join(f"{name} {versions.get(name)}" for name in names) for versions in (before, now))
        logging.warning("%s was made with %s; this is %s: numbers may differ", workdir.path, then, today)


def _attempts(workdir: Workdir) -> list[dict[str, Any]]:
    """The earlier runs in this folder, oldest first."""
    last = _last(workdir)
    before = last.get("before")
    attempt = {name: last[name] for name in _OF_AN_ATTEMPT if name in last}
    return [*(before if isinstance(before, list) else []), *([attempt] if attempt else [])][-_KEPT:]


def _last(workdir: Workdir) -> dict[str, Any]:
    """The present record; a damaged one is named and replaced, because no result depends on it."""
    file = workdir.path / _NAME
    try:
        return files.parse_object(file, files.read_bytes(file), "It is begun anew.") if file.exists() else {}
    except ValueError as error:
        logging.warning("%s", error)
        return {}


def _in_words(error: BaseException) -> str:
    return "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"


def _now() -> str:
    return time.strftime(_FORMAT)
