"""Faults of a run's folder: each of its files damaged, edited, swapped or gone, and the same command again."""

import contextlib
import functools
import pathlib
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.faults import damage, study
from tests.faults.verdict import Wrong, expect, refused

MOMENTS = ("finished", "step 2", "fit", "params")  # when the run before it ended


class Stopped(Exception):
    """The run before ended here."""


@functools.cache
def template(moment: str) -> pathlib.Path:
    """A folder with data and a run that ended at a moment; for the life of the process."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="faulty-run-"))
    study.write_data(folder)

    def stop(now: str) -> None:
        if now == moment:
            raise Stopped

    with study.inside(folder), contextlib.suppress(Stopped):
        study.execute(stop)
    return folder


def forget() -> None:
    """Removes the templates."""
    for moment in MOMENTS:
        if template.cache_info().currsize:
            shutil.rmtree(template(moment), ignore_errors=True)
    template.cache_clear()


@functools.cache
def clean() -> tuple[dict[str, Any], dict[str, bytes]]:
    """Results and files of a run without a fault."""
    folder = template("finished")
    with study.inside(folder):
        return study.execute(), study.snapshot(folder)


def draw(rng: np.random.Generator) -> tuple[str, Callable[[pathlib.Path], str]]:
    moment = MOMENTS[rng.integers(len(MOMENTS))]
    kind = rng.integers(6)
    if kind < 3:
        return f"run ({moment}): damaged bytes", lambda folder: _damaged(folder, moment, rng)
    if kind == 3:
        return f"run ({moment}): another thing", lambda folder: _another(folder, moment, rng)
    name = list(EDITS)[rng.integers(len(EDITS))]
    return f"run ({moment}): {name}", lambda folder: _edited(folder, moment, name)


def _copied(folder: pathlib.Path, moment: str) -> pathlib.Path:
    shutil.copytree(template(moment), folder, dirs_exist_ok=True)
    return folder / study.RUN


def _drawn(run: pathlib.Path, rng: np.random.Generator) -> pathlib.Path:
    """A file of the run; checkpoints are many files and count as one in three."""
    files = sorted(file for file in run.rglob("*") if file.is_file() and file.stat().st_size)
    state = [file for file in files if "checkpoints" in file.parts]
    other = [file for file in files if file not in state]
    chosen = state if state and rng.integers(3) == 0 else other
    return chosen[rng.integers(len(chosen))]


def _again(folder: pathlib.Path, what: str, *names: str) -> str:
    """The same command again: refused with the file's name, and then right as the message says, or right at once."""
    word = "right"
    for _ in range(9):  # without the journal of digests, file after file
        try:
            with study.inside(folder):
                results = study.execute()
            break
        except Exception as error:
            try:
                word = refused(error, *names)
            except Wrong as wrong:
                raise Wrong(wrong.kind, f"{what}: {wrong}") from wrong
            if not _repaired(folder, str(error), what):
                return word
    else:
        raise Wrong("wrong result", f"{what}: to delete what is damaged does not help")
    expect(results == clean()[0], "wrong result", f"{what}: results {results}")
    for name, content in study.snapshot(folder).items():
        unused = (word == "right" and name in ("report.html", "metrics.jsonl")) or name.startswith("stages/")
        expect(content == clean()[1][name] or unused, "wrong result", f"{what}: {name} differs")
    return word


def _repaired(folder: pathlib.Path, message: str, what: str) -> bool:
    """Does what the message says when that is to delete a file."""
    if "Delete it" not in message and "delete it" not in message:
        return False
    with study.inside(folder):
        named = [file for file in pathlib.Path(study.RUN).rglob("*") if str(file) in message]
        expect(named, "unnamed", f"{what}: {message}")
        for file in named:
            shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink(missing_ok=True)
    return True


def _damaged(folder: pathlib.Path, moment: str, rng: np.random.Generator) -> str:
    run = _copied(folder, moment)
    file = _drawn(run, rng)
    name = str(file.relative_to(folder))
    return _again(folder, f"{name}: {damage.damage_bytes(file, rng).what}", *_names(name))


def _another(folder: pathlib.Path, moment: str, rng: np.random.Generator) -> str:
    run = _copied(folder, moment)
    file = _drawn(run, rng)
    name = str(file.relative_to(folder))
    what = damage.replace_file(file, rng)
    if what == "a named pipe":  # nobody has one there, and to open it is to wait
        file.unlink()
    return _again(folder, f"{name}: {what}", *_names(name))


def _names(name: str) -> tuple[str, ...]:
    """How a message may name a file: a checkpoint as a whole, a config or record of data by what it says."""
    told = {
        "config.json": "Differing keys",
        "data.json": "made from other data",
        "digests.jsonl": "run/",
    }
    if "checkpoints" in pathlib.PurePath(name).parts:
        return ("checkpoints/fit",)
    return (name, told[file]) if (file := pathlib.PurePath(name).name) in told else (name,)


def _digit(name: str) -> Callable[[pathlib.Path], str]:
    """Another digit in a number: still JSON."""

    def edit(run: pathlib.Path) -> str:
        text = (run / name).read_text()
        at = max(i for i, c in enumerate(text) if c.isdigit())
        (run / name).write_text(text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :])
        return name

    return edit


def _content(name: str, text: str | bytes) -> Callable[[pathlib.Path], str]:
    def edit(run: pathlib.Path) -> str:
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    return edit


def _gone(name: str) -> Callable[[pathlib.Path], str]:
    def edit(run: pathlib.Path) -> str:
        path = run / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        return name

    return edit


def _swapped(run: pathlib.Path) -> str:
    first, second = run / "stages" / "numbers.npz", run / "stages" / "fit.npz"
    if second.exists():
        kept = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(kept)
    return "stages/"


def _other_numbers(run: pathlib.Path) -> str:
    np.savez(run / "stages" / "numbers.npz", x=np.ones((8, 3)), name="faces")
    return "stages/numbers.npz"


def _other_data(run: pathlib.Path) -> str:
    file = run.parent / "data" / "a.txt"
    file.write_text(file.read_text().replace("1", "2"))
    return "a.txt"


def _line(line: bytes, at_end: bool) -> Callable[[pathlib.Path], str]:
    def edit(run: pathlib.Path) -> str:
        file = run / "metrics.jsonl"
        before = file.read_bytes() if file.exists() else b""
        file.write_bytes(before + line if at_end else line + b"\n" + before)
        return "metrics.jsonl"

    return edit


EDITS: dict[str, Callable[[pathlib.Path], str]] = {
    "a digit of results.json": _digit("results.json"),
    "a digit of config.json": _digit("config.json"),
    "a digit of data.json": _digit("data.json"),
    "a digit of run.json": _digit("run.json"),
    "results.json is a list": _content("results.json", "[]"),
    "results.json is a number": _content("results.json", "3"),
    "results.json is deep": _content("results.json", "[" * 100_000),
    "results.json is of another run": _content("results.json", '{"total": 1.0}\n'),
    "config.json is a list": _content("config.json", "[]"),
    "config.json is empty": _content("config.json", ""),
    "config.json is deep": _content("config.json", '{"a":' * 100_000),
    "run.json is a list": _content("run.json", "[]"),
    "run.json holds numbers": _content("run.json", '{"exit": 3, "before": 4, "packages": [1]}'),
    "data.json is a list": _content("data.json", "[]"),
    "data.json holds numbers": _content("data.json", '{"data": 3}'),
    "data.json holds text": _content("data.json", '{"data": {"paths": "x", "files": "y"}}'),
    "digests of text": _content("digests.jsonl", "hello\n"),
    "digests of numbers": _content("digests.jsonl", '3\n{"file": 3, "blake2b": [1]}\n{"file": "results.json"}\n'),
    "a line of text in metrics.jsonl": _line(b"hello", False),
    "a number in metrics.jsonl": _line(b"3", False),
    "a line without a step in metrics.jsonl": _line(b'{"loss": 1}', False),
    "a step of text in metrics.jsonl": _line(b'{"step": "x"}', False),
    "half a line in metrics.jsonl": _line(b'{"step": 3, "lo', True),
    "bytes in metrics.jsonl": _line(b"\xff\xfe\x00", True),
    "NaN in metrics.jsonl": _line(b'{"step": NaN}', False),
    "results.json gone": _gone("results.json"),
    "config.json gone": _gone("config.json"),
    "data.json gone": _gone("data.json"),
    "digests gone": _gone("digests.jsonl"),
    "stages gone": _gone("stages"),
    "checkpoints gone": _gone("checkpoints"),
    "a stage gone": _gone("stages/numbers.npz"),
    "stages swapped": _swapped,
    "a stage of other numbers": _other_numbers,
    "a stage that is a PNG": _content("stages/fit.npz", b"\x89PNG\r\n\x1a\n"),
    "a stage begun by another process": _content("stages/.fit.npz.7.tmp", b"half"),
    "other data": _other_data,
    "a folder called a checkpoint": lambda run: _beside_checkpoints(run, "step-00000009/x"),
    "a file among checkpoints": lambda run: _beside_checkpoints(run, "step-00000007"),
    "a checkpoint of a step too far": lambda run: _moved_checkpoint(run),
    "a lock of another time": _content(".lock", "x"),
    "an owner that ended": _content(".owner", '{"pid": 999999999, "host": "x"}'),
}  # fmt: skip


def _beside_checkpoints(run: pathlib.Path, name: str) -> str:
    file = run / "checkpoints" / "fit" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x")
    return "checkpoints/fit"


def _moved_checkpoint(run: pathlib.Path) -> str:
    folder = run / "checkpoints" / "fit"
    for checkpoint in sorted(folder.glob("step-*"))[-1:]:
        checkpoint.rename(folder / "step-00000050")
    return "checkpoints/fit"


def _edited(folder: pathlib.Path, moment: str, name: str) -> str:
    run = _copied(folder, moment)
    if name.startswith("a digit of") and not (run / name.split()[-1]).exists():
        return _again(folder, name, "none")  # the run before did not come so far
    changed = EDITS[name](run)
    if name in ("other data", "a stage of other numbers"):
        try:
            with study.inside(folder):
                results = study.execute()
        except Exception as error:
            return refused(error, changed)
        fine = name == "a stage of other numbers" and results == clean()[0]
        expect(fine, "wrong result", f"{name}: results {results}")
        return "right"
    return _again(folder, name, *_names(changed if changed == "stages/" else f"{study.RUN}/{changed}"))
