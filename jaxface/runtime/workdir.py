"""A run's folder: what was asked, what ran, what came out.

Every file is written to a temporary name, flushed and renamed, so a file that exists is whole. A study is cut into
stages whose arrays are kept: the same command again loads finished stages and does the rest, and a different config in
the same folder is refused.
"""

import contextlib
import errno
import fcntl
import io
import json
import math
import os
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import jax
import numpy as np
from absl import logging

from jaxface.core import checks
from jaxface.runtime import sources

Arrays = dict[str, np.ndarray]

# What every run leaves, also one that ended before it made anything.
_HOUSEKEEPING = ("config.json", "run.json", "data.json")


class Workdir:
    """The folder of one run; only process 0 writes."""

    def __init__(self, path: str | os.PathLike[str], config: Mapping[str, Any]):
        self.path = pathlib.Path(path)
        self.config = json.loads(_to_json(config))
        self.is_writer = jax.process_index() == 0
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"--workdir must be a folder; {self.path} is a file.")
        self._make_folder(self.path)
        self._lock = self._take_lock()
        try:
            self._is_resumed = self._holds_work()
            self._claim()
            self._data = self._recorded_data() if self._is_resumed else {}
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Lets another process use the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def uses(self, **paths: sources.Path | Iterable[sources.Path] | None) -> None:
        """Says which files and folders the study reads, each under its role: `uses(data=root, pairs=None)`.

        Call it before the first stage. Stages that were made from other data are refused: results would be those of
        neither. The record is `data.json`; None and empty paths are left out.
        """
        if not self.is_writer:
            return
        for role, given in paths.items():
            listed = (given,) if isinstance(given, str | os.PathLike) else tuple(given or ())
            existing = [path for path in listed if path is not None and os.fspath(path)]
            if existing:
                self._data[role] = self._compared(role, existing)
        self.write_json("data.json", {role: sources.to_json(source) for role, source in self._data.items()})

    def check_data(self) -> None:
        """Refuses a finished run whose data are no longer what they were; data that are gone cannot tell."""
        if not (self.path / "data.json").exists():
            logging.warning("%s did not record its data: whether they are the same cannot be told", self.path)
        for role, source in self._data.items():
            self._compared(role, source.paths)

    def stage(self, name: str, work: Callable[[], Mapping[str, Any]]) -> Arrays:
        """The arrays of a stage: loaded when it is finished, otherwise made by `work()` and kept.

        A stage returns what later stages and the report need, as named arrays, numbers or strings.
        """
        file = self.path / "stages" / f"{name}.npz"
        if file.exists():
            logging.info("stage %s: already done", name)
            return read_arrays(file)
        logging.info("stage %s: started", name)
        start = time.monotonic()
        arrays = {key: np.asarray(value) for key, value in work().items()}
        for key, value in arrays.items():
            if value.dtype == object:
                raise ValueError(f"stage {name!r} must return arrays, numbers or strings; {key!r} is a Python object.")
        self.write_arrays(f"stages/{name}.npz", arrays)
        logging.info("stage %s: done in %.1f s", name, time.monotonic() - start)
        return arrays

    def finished(self) -> dict[str, Any] | None:
        """The results of this run when it was finished before."""
        file = self.path / "results.json"
        return json.loads(file.read_text()) if file.exists() else None

    def finish(self, results: Mapping[str, Any]) -> None:
        """Writes the headline numbers; this file's existence is what says a run is finished.

        NaN and infinities become null, for JSON has none.
        """
        self.write_json("results.json", _without_nan(json.loads(_to_json(results))))

    def write_json(self, name: str, value: Any) -> pathlib.Path:
        """Writes JSON with sorted keys, so equal content is equal bytes."""
        return self.write_bytes(name, (_to_json(value) + "\n").encode())

    def write_text(self, name: str, text: str) -> pathlib.Path:
        """Writes UTF-8 text."""
        return self.write_bytes(name, text.encode())

    def write_arrays(self, name: str, arrays: Mapping[str, np.ndarray]) -> pathlib.Path:
        """Writes an `.npz` without pickles."""
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        return self.write_bytes(name, buffer.getvalue())

    def write_bytes(self, name: str, data: bytes) -> pathlib.Path:
        """Writes a file below the folder; `name` may hold subfolders."""
        file = self.path / name
        if not file.resolve().is_relative_to(self.path.resolve()):
            raise ValueError(f"name must stay below {self.path}; got {name!r}.")
        if self.is_writer:
            self._make_folder(file.parent)
            write_atomically(file, data)
        return file

    def _make_folder(self, folder: pathlib.Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(folder, error) from error

    def _take_lock(self) -> BinaryIO | None:
        if not self.is_writer:
            return None
        lock = open(self.path / ".lock", "ab")  # noqa: SIM115 - held until `close`
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise ValueError(
                f"another process is running in {self.path}; wait for it or choose another --workdir."
            ) from None
        return lock

    def _holds_work(self) -> bool:
        """Whether an earlier run left more than the note of what was asked for, as one with a mistyped path does."""
        visible = (entry.name for entry in self.path.iterdir() if not entry.name.startswith("."))
        return any(name not in _HOUSEKEEPING for name in visible)

    def _recorded_data(self) -> dict[str, sources.Source]:
        file = self.path / "data.json"
        record = json.loads(file.read_text()) if file.exists() else {}
        return {role: sources.from_json(value) for role, value in record.items()}

    def _compared(self, role: str, paths: Sequence[sources.Path]) -> sources.Source:
        """The source of a role as it was recorded, or as it is now when nothing was made from it yet."""
        before = self._data.get(role)
        if before is None:
            if self._is_resumed:
                logging.warning("%s holds stages whose %s was not recorded and cannot be compared", self.path, role)
            return sources.survey(paths)
        named = checks.printable(", ".join(os.fspath(path) for path in paths))
        if not sources.exist(paths):
            logging.warning("%s is gone: whether it is what this run was made from cannot be told", named)
            return before
        if differing := sources.differences(before, paths):
            raise ValueError(
                f"{self.path} holds a run made from other data: of {role} {named}, {differing}. "
                "Put the old data back, or choose another --workdir."
            )
        return before

    def _claim(self) -> None:
        """Writes the config on first use; once there is something made with it, it must be the same."""
        file = self.path / "config.json"
        if not file.exists() or not self._is_resumed:
            self.write_json("config.json", self.config)
            return
        before = _flat(json.loads(file.read_text()))
        now = _flat(self.config)
        differing = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
        if differing:
            changes = "; ".join(
                f"{key}: {before.get(key, 'absent')!r} -> {now.get(key, 'absent')!r}" for key in differing
            )
            raise ValueError(
                f"{self.path} holds a run with another config. Differing keys: {changes}. "
                "Choose another --workdir, or repeat the old config."
            )


def read_arrays(file: pathlib.Path) -> Arrays:
    """Reads an `.npz` that `Workdir` wrote; a damaged file is named."""
    try:
        with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:
        raise ValueError(f"{file} is damaged ({error}). Delete it and run the same command again.") from error


def write_atomically(file: pathlib.Path, data: bytes) -> None:
    """Writes `data` under a temporary name, flushes it to the disk and renames it to `file`."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as target:
            target.write(data)
            target.flush()
            os.fsync(target.fileno())
        os.replace(temporary, file)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise storage_error(file, error) from error


@contextlib.contextmanager
def recorded(workdir: Workdir, provenance: Mapping[str, Any]) -> Iterator[None]:
    """Keeps `run.json`: the provenance, when the run began and ended, and how."""
    record = {**provenance, "started": _now(), "ended": None, "exit": "running"}
    workdir.write_json("run.json", record)
    try:
        yield
    except BaseException as error:
        record |= {"ended": _now(), "exit": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(OSError):  # the first error is the one to report
            workdir.write_json("run.json", record)
        raise
    workdir.write_json("run.json", record | {"ended": _now(), "exit": "ok"})


def storage_error(path: pathlib.Path, error: OSError) -> OSError:
    """The same error in words that say which file, and what to do when the disk is full."""
    if error.errno == errno.ENOSPC:
        text = f"the disk is full: {path} was not written. Free some space and run the same command again."
        return OSError(error.errno, text)
    return OSError(error.errno, f"{path} could not be written: {error.strerror}.")


def _to_json(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, default=_plain, allow_nan=True)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    """Arrays, NumPy scalars and tuples as JSON; anything else is an error that names its type."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | jax.Array):
        return np.asarray(value).tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    raise TypeError(f"{checks.describe(value)} cannot be written as JSON")


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as dotted keys."""
    if not isinstance(tree, dict) or not tree:
        return {prefix: tree}
    parts = (_flat(value, f"{prefix}.{key}" if prefix else str(key)) for key, value in tree.items())
    return {name: leaf for part in parts for name, leaf in part.items()}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
