"""What a fault is, and when its outcome is right.

A fault is a pure function of its kind and seed. It acts in an empty folder of its own and returns a word for a right
outcome; anything else is `Wrong`.

    refused   a clear error: of our own words, naming the file or the argument
    right     the answer of the clean input, or the one that follows from it
    status    a fit says that it failed
    nan       NaN where NaN came in, and only there
"""

import contextlib
import dataclasses
import pathlib
import re
import shutil
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jaxface
from jaxface.core.fitinfo import FitError

OUTCOMES = ("refused", "right", "status", "nan")
SECONDS = 120  # no fault takes a tenth of this
_OURS = tuple(str(pathlib.Path(jaxface.__file__).parents[1] / name) for name in ("jaxface", "experiments"))
_CLEAR = (ValueError, OSError, FitError)
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


class Wrong(Exception):
    """An outcome that must not be: of which kind (`wrong result`, `silent NaN`, `traceback`, ...), and how."""

    def __init__(self, kind: str, text: str):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


@dataclasses.dataclass(frozen=True)
class Fault:
    """One fault; `name` repeats it: `make faults ONLY=files:1234`."""

    name: str
    what: str
    act: Callable[[pathlib.Path], str]
    group: str = ""  # faults of one group share compiled programs


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a fault went: a word of `OUTCOMES`, or the kind of what was wrong and its text."""

    fault: Fault
    word: str
    text: str = ""

    @property
    def is_right(self) -> bool:
        return self.word in OUTCOMES


def run(fault: Fault) -> Outcome:
    """Acts out a fault in a fresh folder, within a time limit; never raises."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fault-"))
    try:
        with warnings.catch_warnings(), _time_limit(SECONDS):
            warnings.simplefilter("ignore")
            word = fault.act(folder)
        return Outcome(fault, word) if word in OUTCOMES else Outcome(fault, "no verdict", word)
    except Wrong as wrong:
        return Outcome(fault, wrong.kind, str(wrong))
    except TimeoutError as error:
        return Outcome(fault, "hang", str(error))
    except Exception as error:
        return Outcome(fault, "traceback", _last_frames(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def refused(error: BaseException, *names: str) -> str:
    """`refused` when an error is clear: of a kind that users see, in our words, naming one of `names`."""
    text = str(error)
    if isinstance(error, TimeoutError) and "fault" in text:
        raise error
    if not isinstance(error, _CLEAR):
        raise Wrong("traceback", _last_frames(error)) from error
    if not _is_ours(error):
        raise Wrong("inner message", _last_frames(error)) from error
    if not any(_names(text, name) for name in names):
        raise Wrong("unnamed", f"none of {names[:6]} in the message {text!r}") from error
    check_printable(text)
    return "refused"


def check_printable(text: str) -> None:
    """A message must reach any terminal, and only as text."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Wrong("unprintable", f"{text!r} has no UTF-8") from error
    if _CONTROL.search(text):
        raise Wrong("unprintable", f"control characters in {text!r}")


def expect(condition: Any, kind: str, text: str) -> None:
    """Raises `Wrong` unless the condition holds."""
    if not condition:
        raise Wrong(kind, text)


def _names(text: str, name: str) -> bool:
    """File names anywhere, arguments as words."""
    return name in text if "/" in name or "." in name else re.search(rf"\b{re.escape(name)}\b", text) is not None


def _is_ours(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename.startswith(_OURS)


def _last_frames(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f.filename.startswith(_OURS)][-1:]
    places = [f"{pathlib.Path(f.filename).name}:{f.lineno} {f.name}" for f in (*ours, *frames[-1:])]
    return f"{type(error).__name__}: {str(error)[:500]} [{' > '.join(places)}]"


@contextlib.contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    def late(*_: Any) -> None:
        raise TimeoutError(f"the fault took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
