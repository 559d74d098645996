"""The absl entry point of every experiment.

    def run(config, workdir) -> dict: ...

    if __name__ == "__main__":
        launch.main(run)

`--config=configs/NAME.py:VARIANT` picks the study, `--config.section.field=value` changes a field, `--workdir=FOLDER`
is where it runs. The same command again does nothing when the run is finished and resumes it when it is not.
"""

import contextlib
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from absl import app, flags, logging
from ml_collections import ConfigDict, config_flags

from jaxface.core import messages
from jaxface.core.fitinfo import FitError
from jaxface.runtime import command, environment
from jaxface.runtime.record import look_back, recorded
from jaxface.runtime.workdir import Workdir

__all__ = ["execute", "main"]

Run = Callable[[ConfigDict, Workdir], Mapping[str, Any]]

_CONFIG = config_flags.DEFINE_config_file(
    "config", None, "Config file, with a variant after a colon.", lock_config=True
)
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")
_TRACEBACK = flags.DEFINE_bool("traceback", False, "Show where in the code an error arose.")

# What a user can cause and mend; anything else is our mistake and shows its traceback.
USER_ERRORS = (ValueError, OSError, FitError)


class Terminated(KeyboardInterrupt):
    """The process was asked to end by SIGTERM or by closing its terminal."""


def main(run: Run) -> None:
    """Parses flags, prepares the process and runs the study."""
    app.run(lambda _: sys.exit(_main(run)), flags_parser=_parse)


def execute(run: Run, config: ConfigDict, workdir_path: str) -> Mapping[str, Any]:
    """Runs a study in its folder, or returns the results it already has."""
    workdir = Workdir(workdir_path, config.to_dict())
    try:
        provenance = environment.provenance()
        done = workdir.finished()
        if workdir.is_writer:
            look_back(workdir, provenance, is_finished=done is not None)
        if done is not None:
            workdir.check_data()
            logging.info("nothing to do: %s holds the finished run", workdir.path)
            return done
        with recorded(workdir, provenance):
            results = run(config, workdir)
            workdir.finish(results)
        return results
    finally:
        workdir.close()


def _main(run: Run) -> int:
    logging.set_verbosity(logging.INFO)
    try:
        if _CONFIG.value is None:
            raise ValueError("--config is missing: name a config file, e.g. --config=configs/tour.py:smoke.")
        if not _WORKDIR.value:
            raise ValueError("--workdir is missing: name the folder of the run, e.g. --workdir=runs/tour.")
        environment.configure(x64=_CONFIG.value.runtime.x64)
        with _ended_by_signals():
            execute(run, _CONFIG.value, _WORKDIR.value)
    except USER_ERRORS as error:
        return _complain(error)
    except KeyboardInterrupt as error:
        _say("interrupted; the same command goes on after the last finished stage.")
        return 128 + (signal.SIGTERM if isinstance(error, Terminated) else signal.SIGINT)
    except (AttributeError, KeyError) as error:
        key = command.missing_key(error)
        if key is None:
            raise
        return _complain(error, command.another_study(key, flags.FLAGS["config"].config_filename, _study(run)))
    folder = messages.printable(_WORKDIR.value.rstrip("/"))
    print(f"results: {folder}/results.json\nreport:  {folder}/report.html")
    return 0


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Turns the first request to end into an exception, so that the record of the run says how it ended."""

    def end(number: int, _: Any) -> None:
        signal.signal(number, before[number])
        raise Terminated

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] == signal.SIG_DFL:  # nohup ignores SIGHUP, and so do we
            signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, before[number])


def _parse(argv: Sequence[str]) -> Sequence[str]:
    """The parser of absl, with checks before and after it whose errors a user can act on."""
    try:
        default = command.default_config(argv)
        if default is not None:
            command.check_keys(argv, default)
        rest = flags.FLAGS(list(argv))
        command.check_words(rest[1:], argv)
        if default is not None:
            command.check_values(_CONFIG.value, default)
        return rest
    except (flags.Error, AttributeError, KeyError, TypeError, *USER_ERRORS) as error:
        sys.exit(_complain(error))


def _study(run: Run) -> str:
    """The words after `python -m`."""
    name = environment.command()[0]
    return name if name.startswith("experiments.") else run.__module__.removesuffix(".study")


def _complain(error: BaseException, message: str = "") -> int:
    if flags.FLAGS.is_parsed() and _TRACEBACK.value:
        traceback.print_exception(error)
    _say(message or str(error))
    return 1


def _say(message: str) -> None:
    print(f"error: {messages.printable_lines(message)}", file=sys.stderr)
