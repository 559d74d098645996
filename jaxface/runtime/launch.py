"""The absl entry point of every experiment.

    def run(config, workdir) -> dict: ...

    if __name__ == "__main__":
        launch.main(run)

`--config=configs/NAME.py:VARIANT` picks the study, `--config.section.field=value` changes a field, `--workdir=FOLDER`
is where it runs. The same command again does nothing when the run is finished and resumes it when it is not.
Importing this module defines no flags: only `main` does. Several processes run one study when the config says
`runtime.distributed=auto`, or when each is started with `--coordinator --num_processes --process_id`.
"""

import contextlib
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
from absl import app, flags, logging
from ml_collections import ConfigDict, config_flags

from jaxface.core import messages, prefetch, processes
from jaxface.core.fitinfo import FitError
from jaxface.runtime import command, distributed, environment, log
from jaxface.runtime.record import look_back, recorded
from jaxface.runtime.workdir import Workdir

__all__ = ["execute", "main"]

Run = Callable[[ConfigDict, Workdir], Mapping[str, Any]]

# Errors that a user can cause and mend; any other is a mistake of ours and shows its traceback.
USER_ERRORS = (ValueError, OSError, FitError)


class Terminated(KeyboardInterrupt):
    """The process was asked to end by SIGTERM or by closing its terminal."""


class _Flags(NamedTuple):
    """The flags of every study."""

    config: flags.FlagHolder
    workdir: flags.FlagHolder
    traceback: flags.FlagHolder
    coordinator: flags.FlagHolder
    num_processes: flags.FlagHolder
    process_id: flags.FlagHolder


def main(run: Run) -> None:
    """Defines and parses the flags, prepares the process and runs the study."""
    study_flags = _define_flags()
    app.run(lambda _: sys.exit(_with_others(run, study_flags)), flags_parser=partial(_parse, study_flags))


def execute(run: Run, config: ConfigDict, workdir_path: str) -> Mapping[str, Any]:
    """Runs a study in its folder, or returns the results it already has."""
    workdir = Workdir(workdir_path, config.to_dict())
    try:
        log.keep_own(workdir.path / "logs")
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


def _define_flags() -> _Flags:
    return _Flags(
        config_flags.DEFINE_config_file("config", None, "Config file, with a variant after a colon.", lock_config=True),
        flags.DEFINE_string("workdir", None, "Folder of the run."),
        flags.DEFINE_bool("traceback", False, "Show where in the code an error arose."),
        flags.DEFINE_string("coordinator", None, "Of several processes: HOST:PORT of process 0, a free port."),
        flags.DEFINE_integer("num_processes", None, "Of several processes: how many there are."),
        flags.DEFINE_integer("process_id", None, "Of several processes: which one this is, from 0."),
    )


def _with_others(run: Run, study_flags: _Flags) -> int:
    """Runs the study and ends the process with the others, whatever happened."""
    try:
        code = _main(run, study_flags)
    except BaseException as error:
        if processes.count() == 1:
            if not prefetch.is_busy() or isinstance(error, SystemExit):
                raise
            traceback.print_exception(error)
            return distributed.leave(1)
        traceback.print_exception(error)
        distributed.announce(f"{type(error).__name__}: {error}")
        code = 1
    return distributed.leave(code)


def _main(run: Run, study_flags: _Flags) -> int:
    """Runs the study; an error that a user can mend is one sentence. Returns the exit code."""
    logging.set_verbosity(logging.INFO)
    shown = study_flags.traceback.value
    try:
        folder = _prepare_and_execute(run, study_flags)
    except (*USER_ERRORS, processes.PeerError) as error:
        return _complain(distributed.in_words(error), error if shown else None)
    except jax.errors.JaxRuntimeError as error:
        if processes.count() == 1:
            raise
        return _complain(distributed.in_words(error), error if shown else None)
    except KeyboardInterrupt as error:
        if message := distributed.failure():
            return _complain(message, None)
        distributed.announce("it was interrupted")
        _say("interrupted; the same command goes on after the last finished stage.")
        return 128 + (signal.SIGTERM if isinstance(error, Terminated) else signal.SIGINT)
    except (AttributeError, KeyError) as error:
        key = command.missing_key(error)
        if key is None:
            raise
        message = command.another_study(key, flags.FLAGS["config"].config_filename, _study(run))
        return _complain(message, error if shown else None)
    folder = messages.printable(folder.rstrip("/"))
    if processes.index() == 0:
        print(f"results: {folder}/results.json\nreport:  {folder}/report.html")
    return 0


def _prepare_and_execute(run: Run, study_flags: _Flags) -> str:
    """Sets up the process, connects it with the others if there are any, and runs the study; its folder."""
    config, folder = study_flags.config.value, study_flags.workdir.value
    if config is None:
        raise ValueError("--config is missing: name a config file, e.g. --config=configs/tour.py:smoke.")
    if not folder:
        raise ValueError("--workdir is missing: name the folder of the run, e.g. --workdir=runs/tour.")
    environment.configure(x64=config.runtime.x64, quick_compile=config.runtime.quick_compile)
    distributed.start(
        coordinator=study_flags.coordinator.value,
        num_processes=study_flags.num_processes.value,
        process_id=study_flags.process_id.value,
        detect=_is_detected(config.runtime.distributed),
    )
    with _ended_by_signals():
        try:
            execute(run, config, folder)
        except BaseException:
            distributed.stay_uninterrupted()
            raise
    return str(folder)


def _is_detected(distributed: str) -> bool:
    if distributed not in ("off", "auto"):
        raise ValueError(f"--config.runtime.distributed must be off or auto; got {distributed!r}.")
    return distributed == "auto"


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


def _parse(study_flags: _Flags, argv: Sequence[str]) -> Sequence[str]:
    """The parser of absl, with checks before and after parsing whose errors a user can act on."""
    try:
        default = command.default_config(argv)
        if default is not None:
            command.check_keys(argv, default)
        rest = flags.FLAGS(list(argv))
        command.check_words(rest[1:], argv)
        if default is not None:
            command.check_values(study_flags.config.value, default)
        return rest
    except (flags.Error, AttributeError, KeyError, TypeError, *USER_ERRORS) as error:
        is_asked = flags.FLAGS.is_parsed() and study_flags.traceback.value
        sys.exit(_complain(str(error), error if is_asked else None))


def _study(run: Run) -> str:
    """The words after `python -m`."""
    name = environment.command()[0]
    return name if name.startswith("experiments.") else run.__module__.removesuffix(".study")


def _complain(message: str, shown: BaseException | None) -> int:
    """Prints the message, after the traceback of the error that is to be shown; the exit code."""
    if shown is not None:
        traceback.print_exception(shown)
    _say(message)
    distributed.announce(message)
    return 1


def _say(message: str) -> None:
    print(f"error: {messages.printable_lines(message)}", file=sys.stderr)
