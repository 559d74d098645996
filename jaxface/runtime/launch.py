"""The absl entry point of every experiment.

    def run(config, workdir) -> dict: ...

    if __name__ == "__main__":
        launch.main(run)

`--config=configs/NAME.py:VARIANT` picks the study, `--config.section.field=value` changes a field, `--workdir=FOLDER`
is where it runs. The same command again does nothing when the run is finished and resumes it when it is not.
"""

import os
import runpy
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import app, flags, logging
from ml_collections import ConfigDict, config_flags

from jaxface.core import checks
from jaxface.core.fitinfo import FitError
from jaxface.runtime import environment
from jaxface.runtime.workdir import Workdir, recorded

Run = Callable[[ConfigDict, Workdir], Mapping[str, Any]]

_CONFIG = config_flags.DEFINE_config_file(
    "config", None, "Config file, with a variant after a colon.", lock_config=True
)
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of the run.")
_TRACEBACK = flags.DEFINE_bool("traceback", False, "Show where in the code an error arose.")

# What a user can cause and mend; anything else is our mistake and shows its traceback.
USER_ERRORS = (ValueError, OSError, FitError)


def main(run: Run) -> None:
    """Parses flags, prepares the process and runs the study."""
    app.run(lambda _: sys.exit(_main(run)), flags_parser=_parse)


def execute(run: Run, config: ConfigDict, workdir_path: str) -> Mapping[str, Any]:
    """Runs a study in its folder, or returns the results it already has."""
    workdir = Workdir(workdir_path, config.to_dict())
    try:
        done = workdir.finished()
        if done is not None:
            workdir.check_data()
            logging.info("nothing to do: %s holds the finished run", workdir.path)
            return done
        with recorded(workdir, environment.provenance()):
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
        execute(run, _CONFIG.value, _WORKDIR.value)
    except USER_ERRORS as error:
        if _TRACEBACK.value:
            traceback.print_exc()
        return _complain(str(error))
    except KeyboardInterrupt:
        return _complain("interrupted; the same command goes on after the last finished stage.")
    report = f"{_WORKDIR.value.rstrip('/')}/report.html"
    print(f"results: {_WORKDIR.value.rstrip('/')}/results.json\nreport:  {report}")
    return 0


def _parse(argv: Sequence[str]) -> Sequence[str]:
    """The parser of absl, after a look at the config of our own: its errors are then ones a user can act on."""
    try:
        _check_config(argv)
        return flags.FLAGS(list(argv))
    except (flags.Error, AttributeError, KeyError, TypeError, *USER_ERRORS) as error:
        sys.exit(_complain(str(error)))


def _check_config(argv: Sequence[str]) -> None:
    """Loads the config file and checks the names of overrides; an unknown one suggests the nearest key."""
    given = [argument.lstrip("-") for argument in argv[1:] if argument.startswith("-")]
    named = [argument.removeprefix("config=") for argument in given if argument.startswith("config=")]
    if not named:
        return
    file, _, variant = named[-1].partition(":")
    if not os.path.isfile(file):
        raise FileNotFoundError(f"--config names {file}, which is not a file.")
    known = _dotted_keys(runpy.run_path(file)["get_config"](*([variant] if variant else [])))
    sections = {key.rpartition(".")[0] for key in known}
    for argument in given:
        name = argument.partition("=")[0]
        key = name.removeprefix("config.")
        if name.startswith("config.") and key not in known and key not in sections:
            hint = checks.did_you_mean(key, known)
            raise ValueError(f"unknown config key {key!r}.{hint} The keys are: {', '.join(known)}.")


def _dotted_keys(config: ConfigDict, prefix: str = "") -> list[str]:
    keys = []
    for name, value in config.items():
        keys += _dotted_keys(value, f"{prefix}{name}.") if isinstance(value, ConfigDict) else [f"{prefix}{name}"]
    return keys


def _complain(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 1
