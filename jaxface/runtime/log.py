"""Numbers while a study runs: one small interface, several places to write to, and progress for long host loops."""

import contextlib
import json
import math
import pathlib
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, Protocol, TypeVar

import numpy as np
from absl import logging

from jaxface.runtime.files import read_bytes, storage_error, write_atomically

__all__ = ["JsonlWriter", "Writer", "progress"]

T = TypeVar("T")


class Writer(Protocol):
    """Where scalars, images and texts go."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Named numbers at a step."""

    def images(self, step: int, images: Mapping[str, np.ndarray]) -> None:
        """Named images `[h, w]` or `[h, w, 3]` in [0, 1] at a step."""

    def text(self, step: int, texts: Mapping[str, str]) -> None:
        """Named texts at a step."""

    def flush(self) -> None:
        """Hands everything to the operating system."""

    def close(self) -> None:
        """Flushes and lets go of files."""


class JsonlWriter:
    """One JSON object a line; reopening drops a half-written last line and any step at or beyond `resume_step`."""

    def __init__(self, file: pathlib.Path, *, resume_step: int | None = None):
        kept = _kept_lines(file, resume_step)
        write_atomically(file, "".join(json.dumps(line) + "\n" for line in kept).encode())
        self._path = file
        with self._naming_errors():
            self._file = open(file, "a", encoding="utf-8", newline="\n")  # noqa: SIM115 - held until `close`

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Writes one line; NaN and infinities become null, for JSON has none."""
        self._line(step, {name: _finite_or_none(value) for name, value in values.items()})

    def images(self, step: int, images: Mapping[str, np.ndarray]) -> None:
        """Images have no place in a line of numbers."""

    def text(self, step: int, texts: Mapping[str, str]) -> None:
        """Writes one line."""
        self._line(step, texts)

    def flush(self) -> None:
        """Hands everything to the operating system."""
        with self._naming_errors():
            self._file.flush()

    def close(self) -> None:
        """Flushes and closes the file."""
        with self._naming_errors():
            self._file.close()

    def _line(self, step: int, values: Mapping[str, Any]) -> None:
        with self._naming_errors():
            self._file.write(json.dumps({"step": int(step)} | dict(values)) + "\n")
            self._file.flush()

    @contextlib.contextmanager
    def _naming_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise storage_error(self._path, error) from error


class LogWriter:
    """Scalars and texts as lines of the log."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """One line."""
        logging.info("step %d  %s", step, "  ".join(f"{name} {value:.6g}" for name, value in values.items()))

    def images(self, step: int, images: Mapping[str, np.ndarray]) -> None:
        """A log shows no images."""

    def text(self, step: int, texts: Mapping[str, str]) -> None:
        """One line a text."""
        for name, text in texts.items():
            logging.info("step %d  %s: %s", step, name, text)

    def flush(self) -> None:
        """The log flushes itself."""

    def close(self) -> None:
        """Nothing is held."""


class TensorboardWriter:
    """TensorBoard event files, without TensorFlow; needs the extra `tensorboard`."""

    def __init__(self, folder: pathlib.Path):
        try:
            import tensorboardX
        except ImportError as error:
            raise ValueError("TensorBoard files need tensorboardX: pip install 'jaxface[tensorboard]'.") from error
        self._writer = tensorboardX.SummaryWriter(str(folder))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """One point a name."""
        for name, value in values.items():
            self._writer.add_scalar(name, float(value), step)

    def images(self, step: int, images: Mapping[str, np.ndarray]) -> None:
        """One image a name."""
        for name, image in images.items():
            self._writer.add_image(name, np.asarray(image), step, dataformats="HWC" if np.ndim(image) == 3 else "HW")

    def text(self, step: int, texts: Mapping[str, str]) -> None:
        """One text a name."""
        for name, text in texts.items():
            self._writer.add_text(name, text, step)

    def flush(self) -> None:
        """Hands everything to the operating system."""
        self._writer.flush()

    def close(self) -> None:
        """Flushes and closes the files."""
        self._writer.close()


class MultiWriter:
    """Writes everything to each of several writers."""

    def __init__(self, writers: Sequence[Writer]):
        self._writers = tuple(writers)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Named numbers at a step."""
        for writer in self._writers:
            writer.scalars(step, values)

    def images(self, step: int, images: Mapping[str, np.ndarray]) -> None:
        """Named images at a step."""
        for writer in self._writers:
            writer.images(step, images)

    def text(self, step: int, texts: Mapping[str, str]) -> None:
        """Named texts at a step."""
        for writer in self._writers:
            writer.text(step, texts)

    def flush(self) -> None:
        """Flushes all."""
        for writer in self._writers:
            writer.flush()

    def close(self) -> None:
        """Closes all."""
        with contextlib.ExitStack() as stack:
            for writer in self._writers:
                stack.callback(writer.close)


def progress(items: Iterable[T], what: str, *, total: int | None = None, every_seconds: float = 20.0) -> Iterator[T]:
    """Passes items through: a bar on a terminal, a log line now and then elsewhere."""
    total = len(items) if total is None and isinstance(items, Sized) else total
    if sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(items, desc=what, total=total)
        return
    last = time.monotonic()
    for done, item in enumerate(items):
        if time.monotonic() - last >= every_seconds:
            last = time.monotonic()
            logging.info("%s: %d%s", what, done, f" of {total}" if total is not None else "")
        yield item


def _kept_lines(file: pathlib.Path, resume_step: int | None) -> Iterator[dict[str, Any]]:
    """The lines before `resume_step`; a damaged one is named, the half-written last line of a kill goes in silence."""
    content = read_bytes(file) if file.exists() and resume_step != 0 else b""
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            is_kept = resume_step is None or entry["step"] < resume_step
        except (ValueError, KeyError, TypeError, RecursionError):
            if line and number < len(lines):
                logging.warning("line %d of %s is damaged and left out", number, file)
            continue
        if is_kept:
            yield entry


def _finite_or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
