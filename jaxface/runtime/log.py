"""Numbers while a study runs: a file of JSON lines, and progress of long host loops.

Of several processes, process 0 writes the numbers and shows progress; each has a log of its own.
"""

import contextlib
import json
import logging as python_logging
import math
import os
import pathlib
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any, TypeVar

from absl import logging

from jaxface.core import processes
from jaxface.runtime.files import make_folder, read_bytes, storage_error, write_atomically

__all__ = ["JsonlWriter", "progress"]

T = TypeVar("T")


class JsonlWriter:
    """One JSON object a line; reopening drops a half-written last line and any step at or beyond `resume_step`."""

    def __init__(self, file: pathlib.Path, *, resume_step: int | None = None):
        if processes.index():
            file = pathlib.Path(os.devnull)
        else:
            kept = _kept_lines(file, resume_step)
            write_atomically(file, "".join(json.dumps(line) + "\n" for line in kept).encode())
        self._path = file
        with self._naming_errors():
            self._file = open(file, "a", encoding="utf-8", newline="\n")  # noqa: SIM115 - held until `close`

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Writes named numbers at a step as one line; NaN and infinities become null, because JSON has none."""
        entry = {"step": int(step)} | {name: _finite_or_none(value) for name, value in values.items()}
        with self._naming_errors():
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Flushes and closes the file."""
        with self._naming_errors():
            self._file.close()

    @contextlib.contextmanager
    def _naming_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise storage_error(self._path, error) from error


def progress(
    items: Iterable[T],
    what: str,
    *,
    total: int | None = None,
    start: int = 0,
    each: int = 1,
    unit: str = "",
    every_seconds: float = 20.0,
) -> Iterator[T]:
    """Passes items through, with a bar on a terminal and now and then a line of the log elsewhere.

    start: items done before, by a run that was interrupted, among the `total`
    each, unit: what an item stands for, such as 4,000 faces; with a unit, lines tell the pace and the time left
    """
    total = start + len(items) if total is None and isinstance(items, Sized) else total
    if processes.index():
        yield from items
        return
    if sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(items, desc=what, total=total, initial=start, unit=unit or "it", unit_scale=each)
        return
    begin = last = time.monotonic()
    for done, item in enumerate(items, start=start):
        if time.monotonic() - last >= every_seconds:
            last = time.monotonic()
            whole = f" of {each * total:,}" if total is not None else ""
            pace = _pace(done - start, None if total is None else total - done, last - begin, each, unit)
            logging.info("%s: %s%s%s", what, f"{each * done:,}", whole, pace)
        yield item


def keep_own(folder: pathlib.Path) -> None:
    """Of several processes, each writes its log to a file; on the terminal all but process 0 show warnings only."""
    if processes.count() == 1:
        return
    make_folder(folder)
    handler = python_logging.FileHandler(folder / f"process-{processes.index()}.log", encoding="utf-8")
    handler.setFormatter(logging.PythonFormatter())
    handler.setLevel(python_logging.INFO)
    for chosen in logging.get_absl_handler().filters:
        handler.addFilter(chosen)
    logging.get_absl_logger().addHandler(handler)
    if processes.index():
        logging.get_absl_handler().setLevel(python_logging.WARNING)


def _pace(done: int, left: int | None, seconds: float, each: int, unit: str) -> str:
    """Units a second and the time left, for items counted by a unit."""
    if not unit or done == 0 or seconds <= 0:
        return f" {unit}" if unit else ""
    rate = done / seconds
    time_left = f", {_duration(left / rate)} left" if left is not None else ""
    return f" {unit}, {each * rate:,.0f} a second{time_left}"


def _duration(seconds: float) -> str:
    """Hours and minutes, or seconds where they are fewer than 100."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _kept_lines(file: pathlib.Path, resume_step: int | None) -> Iterator[dict[str, Any]]:
    """The lines before `resume_step`: a damaged line is named in the log, a half-written last one is dropped."""
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
