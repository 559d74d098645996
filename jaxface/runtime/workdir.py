"""A run's folder: its config, the arrays of its stages, and its results.

Every file is written to a temporary name, flushed and renamed, so a file that exists is whole. A study is cut into
stages whose arrays are kept: the same command again loads finished stages and computes the others, and a different
config in the same folder is refused. Of several processes, process 0 alone reads and writes the folder: the others hear
from it what is finished, and get the arrays of stages.
"""

import json
import os
import pathlib
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from absl import logging

from jaxface.core import messages, prefetch, processes
from jaxface.runtime import distributed, files, serial, sources
from jaxface.runtime.files import Arrays
from jaxface.runtime.lock import FolderLock

__all__ = ["Workdir"]

# The files of every run, also of one that ended before its first stage.
_HOUSEKEEPING = ("config.json", "run.json", "data.json", "digests.jsonl", "logs")
_AGAIN = "Delete it and run the same command again."
_RESTORE = "Put the old file back, or choose another --workdir."


class Workdir:
    """The folder of one run; only process 0 writes."""

    def __init__(self, path: str | os.PathLike[str], config: Mapping[str, Any]):
        self.path = pathlib.Path(path)
        self.config = json.loads(serial.to_json(config))
        self.is_writer = processes.index() == 0
        self._lock: FolderLock | None = None
        self._writing = threading.Lock()  # stages may end at the same time
        self._is_closed = False
        try:
            processes.from_first(self._enter)
            distributed.check_shared(self.path)
            self._compare_configs()
            self.is_resumed = processes.from_first(self._open) is not None
        except BaseException:
            self.close()
            raise

    def _enter(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"--workdir must be a folder; {self.path} is a file.")
        files.make_folder(self.path)
        self._lock = FolderLock(self.path)

    def _compare_configs(self) -> None:
        """Refuses processes that were started with different configs."""
        first = processes.from_first(lambda: serial.to_json(self.config).encode())
        if first != serial.to_json(self.config).encode():
            changes = serial.changes(json.loads(first or b"{}"), self.config)
            raise ValueError(f"all processes must have one config. Process 0 and this one differ in {changes}.")

    def _open(self) -> bytes | None:
        """Reads what the folder holds; nothing in a folder without work."""
        self._digests = files.Digests(self.path / "digests.jsonl")
        is_resumed = self.is_resumed = self._holds_work()
        self._adopt()
        self._claim()
        self._data = self._recorded_data() if is_resumed else {}
        return b"" if is_resumed else None

    def close(self) -> None:
        """Lets another process use the folder; stages that threads still compute are not written any more."""
        with self._writing:
            self._is_closed = True
            if self._lock is not None:
                self._lock.close()
                self._lock = None

    def uses(self, **paths: sources.Path | Iterable[sources.Path] | None) -> None:
        """Declares the files and folders that the study reads, each under its role: `uses(data=root, pairs=None)`.

        Call it before the first stage. Stages that were made from other data are refused: the results would mix both
        sets. The record is `data.json`; None and empty paths are left out.
        """
        if not self.is_writer:
            return
        for role, named in paths.items():
            listed = (named,) if isinstance(named, str | os.PathLike) else tuple(named or ())
            existing = [path for path in listed if path is not None and os.fspath(path)]
            if existing:
                self._data[role] = self._compared(role, existing)
        self.write_json("data.json", {role: sources.to_json(source) for role, source in self._data.items()})

    def check_data(self) -> None:
        """Refuses a finished run whose data have changed; of data that are gone nothing can be said."""
        if not self.is_writer:
            return
        if not (self.path / "data.json").exists():
            logging.warning("%s did not record its data: whether they are the same cannot be told", self.path)
        for role, source in self._data.items():
            self._compared(role, source.paths)

    def stage(self, name: str, work: Callable[[], Mapping[str, Any]]) -> Arrays:
        """The arrays of a stage: loaded when it is finished, otherwise made by `work()` and kept.

        A stage returns what later stages and the report need, as named arrays, numbers or strings.
        """
        file_name = files.portable(f"stages/{name}.npz")
        done = processes.from_first(lambda: self._stored(file_name, name))
        if done is not None:
            return files.parse_arrays(self.path / file_name, done)
        logging.info("stage %s: started", name)
        start = time.monotonic()
        arrays = {key: np.asarray(value) for key, value in work().items()}
        for key, value in arrays.items():
            if value.dtype == object:
                raise ValueError(f"stage {name!r} must return arrays, numbers or strings; {key!r} is a Python object.")
        data = processes.from_first(lambda: self._written(file_name, serial.npz(arrays)))
        logging.info("stage %s: done in %.1f s", name, time.monotonic() - start)
        return arrays if self.is_writer or data is None else files.parse_arrays(self.path / file_name, data)

    def stages(
        self, works: Mapping[str, Callable[[], Mapping[str, Any]]], *, at_once: int
    ) -> Generator[tuple[str, Arrays], None, None]:
        """Name and arrays of stages that need nothing of each other, in turn; `at_once` of them run at the same time.

        Two stages use two cores where one alone compiles or waits. They run in threads, which no `with` of the caller
        reaches, such as `jax.enable_x64`. Close the generator if the loop may end early (`contextlib.closing`): then no
        further stage begins. Several processes run one stage after the other, because all of them must ask process 0
        for the same one.
        """
        named = {name: partial(self.stage, name, work) for name, work in works.items()}
        if at_once > 1 and processes.count() == 1:
            yield from prefetch.in_threads(named, at_once=at_once)
        else:
            yield from ((name, stage()) for name, stage in named.items())

    def finished(self) -> dict[str, Any] | None:
        """The results of a finished run, if they and its models are unchanged; None of an unfinished one."""
        content = processes.from_first(self._checked_results)
        return None if content is None else json.loads(content)

    def wait(self) -> None:
        """Returns when the files that process 0 was to write so far are there: call it before any is read back."""
        processes.from_first(lambda: None)

    def _stored(self, file_name: str, stage: str) -> bytes | None:
        if not (self.path / file_name).exists():
            return None
        logging.info("stage %s: already done", stage)
        return self._original(file_name, _AGAIN)

    def _written(self, name: str, data: bytes) -> bytes:
        self.write_bytes(name, data)
        return data

    def _checked_results(self) -> bytes | None:
        if not (self.path / "results.json").exists():
            return None
        remedy = f"{_AGAIN[:-1]}: finished stages are kept."
        content = self._original("results.json", remedy)
        files.parse_object(self.path / "results.json", content, remedy)
        if (written := self._digests.names()) and "results.json" not in written:
            raise ValueError(f"{self.path / 'results.json'} was not written by this run. {remedy}")
        for name in self._digests.names():
            if name.startswith("params/") and (self.path / name).exists():
                self._original(name, f"Delete it and {self.path / 'results.json'}, and run the same command again.")
        return content

    def finish(self, results: Mapping[str, Any]) -> None:
        """Writes the headline numbers; a run is finished when their file exists.

        NaN and infinities become null, because JSON has none.
        """
        self.write_json("results.json", serial.without_nan(json.loads(serial.to_json(results))))

    def write_json(self, name: str, value: Any) -> pathlib.Path:
        """Writes JSON with sorted keys, so equal content is equal bytes."""
        return self.write_bytes(name, (serial.to_json(value) + "\n").encode())

    def write_text(self, name: str, text: str) -> pathlib.Path:
        """Writes UTF-8 text; bytes of names that are not UTF-8 appear as escapes."""
        return self.write_bytes(name, serial.utf8(text))

    def write_arrays(self, name: str, arrays: Mapping[str, np.ndarray]) -> pathlib.Path:
        """Writes an `.npz` without pickles."""
        return self.write_bytes(name, serial.npz(arrays))

    def write_bytes(self, name: str, data: bytes) -> pathlib.Path:
        """Writes a file below the folder; `name` may hold subfolders."""
        file = self.path / name
        # `Path.resolve` raises at a link to itself, which is written over like any other file.
        if not pathlib.Path(os.path.realpath(file)).is_relative_to(os.path.realpath(self.path)):
            raise ValueError(f"name must stay below {self.path}; got {name!r}.")
        if self.is_writer:
            with self._writing:
                if self._is_closed:
                    raise ValueError(f"{self.path} is closed: nothing is written to it any more.")
                files.make_folder(file.parent)
                self._digests.add(name, data)
                files.write_atomically(file, data)
        return file

    def _original(self, name: str, remedy: str) -> bytes:
        """The content of a file as this run wrote it; a changed file is refused."""
        content = files.read_bytes(self.path / name)
        if not self._digests.is_original(name, content):
            if name not in self._digests.names():
                raise ValueError(
                    f"{self.path / name} was not written by this run, as far as digests.jsonl says. {remedy} If that "
                    "file lost lines, delete it instead."
                )
            raise ValueError(f"{self.path / name} is damaged or was changed after the run wrote it. {remedy}")
        return content

    def _adopt(self) -> None:
        """Accepts the files of a run whose journal is gone without a comparison."""
        if not self.is_resumed or self._digests.names():
            return
        logging.warning("%s has no digests.jsonl: its files are taken as they are", self.path)
        for name in ("config.json", "data.json", "results.json", "stages/*", "params/*"):
            for file in sorted(self.path.glob(name)):
                if file.is_file() and not file.name.startswith("."):
                    self._digests.add(file.relative_to(self.path).as_posix(), files.read_bytes(file))

    def _kept(self, name: str) -> bytes | None:
        """The content of a file that identifies the inputs of the stages; None in a folder that never had one."""
        if (self.path / name).exists():
            return self._original(name, _RESTORE)
        if name in self._digests.names():
            raise ValueError(f"{self.path / name} is missing, and says what the stages were made from. {_RESTORE}")
        return None

    def _holds_work(self) -> bool:
        """Whether an earlier run left more than its housekeeping; a run with a mistyped path leaves nothing else."""
        entries = (entry for entry in self.path.iterdir() if entry.name not in _HOUSEKEEPING)
        written = (file for entry in entries for file in (entry.rglob("*") if entry.is_dir() else (entry,)))
        return any(file.is_file() and not file.name.startswith(".") for file in written)

    def _recorded_data(self) -> dict[str, sources.Source]:
        file = self.path / "data.json"
        content = self._kept("data.json")
        record = files.parse_object(file, content, _RESTORE) if content is not None else {}
        try:
            return {role: sources.from_json(value) for role, value in record.items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{file} is damaged ({error!r}). {_RESTORE}") from error

    def _compared(self, role: str, paths: Sequence[sources.Path]) -> sources.Source:
        """The recorded source of a role, compared with its files now; the present one if nothing was recorded."""
        before = self._data.get(role)
        if before is None:
            if self.is_resumed:
                logging.warning("%s holds stages whose %s was not recorded and cannot be compared", self.path, role)
            source = sources.survey(paths)
            size = sum(file.size for file in source.files.values())
            logging.info("%s: %d files of %.1f MB in all", role, len(source.files), size / 1e6)
            return source
        named = messages.printable(", ".join(os.fspath(path) for path in paths))
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
        """Writes the config on first use; later runs in a folder with finished stages must have the same config."""
        file = self.path / "config.json"
        content = self._kept("config.json") if self.is_resumed else None
        if content is None:
            self.write_json("config.json", self.config)
            return
        if changes := serial.changes(files.parse_object(file, content, _RESTORE), self.config):
            raise ValueError(
                f"{self.path} holds a run with another config. Differing keys: {changes}. "
                "Choose another --workdir, or repeat the old config."
            )
