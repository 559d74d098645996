"""Checks of the command line before a study starts: each mistake is one sentence with the probable intention."""

import itertools
import math
import os
import pathlib
import runpy
from collections.abc import Sequence
from typing import Any

from ml_collections import ConfigDict

from jaxface.core import messages

__all__ = []


def default_config(argv: Sequence[str]) -> ConfigDict | None:
    """The config that `--config=FILE:VARIANT` names, without overrides; None when there is no such flag."""
    named = _config_flag(argv)
    if named is None:
        return None
    file, _, variant = named.partition(":")
    if not os.path.isfile(file):
        raise FileNotFoundError(f"--config names {file}, which is not a file.")
    try:
        config = runpy.run_path(file)["get_config"](*([variant] if variant else []))
    except ValueError:
        raise
    except KeyError as error:
        raise ValueError(f"{file} is no config file: it has no function get_config ({error}).") from error
    except Exception as error:
        raise ValueError(f"{file} cannot be loaded: {type(error).__name__}: {error}.") from error
    if not isinstance(config, ConfigDict):
        raise ValueError(f"get_config of {file} must return a ConfigDict; got {messages.describe(config)}.")
    return config


def check_keys(argv: Sequence[str], config: ConfigDict) -> None:
    """Refuses an override of a key that the config does not have; suggests the nearest."""
    known = list(_leaves(config))
    sections = {key.rpartition(".")[0] for key in known}
    for argument in _flags(argv):
        name = argument.partition("=")[0]
        key = name.removeprefix("config.")
        if name.startswith("config.") and key not in known and key not in sections:
            hint = messages.did_you_mean(key, known)
            raise ValueError(f"unknown config key {key!r}.{hint} The keys are: {', '.join(known)}.")


def check_values(config: ConfigDict, default: ConfigDict) -> None:
    """Refuses NaN, and entries of a sequence that are of another kind than the default's: text instead of numbers."""
    usual = _leaves(default)
    for key, value in _leaves(config).items():
        parts = _parts(value)
        if any(isinstance(part, float) and math.isnan(part) for part in parts):
            raise ValueError(f"--config.{key} must be a number; got NaN.")
        kinds = {_kind(part) for part in _parts(usual.get(key))}
        wrong = [part for part in parts if _kind(part) not in kinds]
        if isinstance(value, tuple | list) and len(kinds) == 1 and wrong:
            kind = kinds.pop()
            raise ValueError(f"--config.{key} must hold {kind}, as in {usual[key]!r}; got {wrong[0]!r}.")


def check_words(words: Sequence[str], argv: Sequence[str]) -> None:
    """Refuses words that are no flags: they would have no effect."""
    if not words:
        return
    word = words[0]
    named = _config_flag(argv)
    if "=" in word:
        meant = f"--{word.lstrip('-')}"
    elif ".py" in word:
        meant = f"--config={word}"
    elif os.path.isdir(word) or "/" in word:
        meant = f"--workdir={word}"
    else:
        meant = f"--config={(named or 'configs/NAME.py').partition(':')[0]}:{word}"
    raise ValueError(f"{word!r} is no flag and would have no effect. Did you mean {meant}?")


def missing_key(error: BaseException) -> str | None:
    """The config key whose absence raised an error; None for an error of another kind."""
    if not isinstance(error, AttributeError | KeyError) or error.__traceback__ is None:
        return None
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    is_of_config = last.tb_frame.f_globals.get("__name__", "").startswith("ml_collections.")
    return str(error.args[0]).splitlines()[0].strip("\"'") if is_of_config and error.args else None


def another_study(key: str, config_file: str, study: str) -> str:
    """The message when a study finds no `key` in its config, which is probably the config of another study."""
    file = pathlib.Path(config_file.partition(":")[0])
    name = study.removesuffix(".__main__").rpartition(".")[2]
    own = file.with_name(f"{name}.py")
    text = f"{config_file} has no key {key!r}, which {study.removesuffix('.__main__')} reads."
    if own.is_file() and file.stem != name:
        return f"{text} It is the config of another study ({file.stem}): did you mean --config={own}?"
    return f"{text} Add it, or give the config of that study."


def _flags(argv: Sequence[str]) -> list[str]:
    return [argument.lstrip("-") for argument in argv[1:] if argument.startswith("-")]


def _config_flag(argv: Sequence[str]) -> str | None:
    """The last value of --config, behind an equals sign or a space."""
    named = None
    for argument, following in itertools.pairwise([*argv[1:], ""]):
        if argument in ("--config", "-config"):
            named = following
        elif argument.startswith(("--config=", "-config=")):
            named = argument.partition("=")[2]
    return named


def _leaves(config: ConfigDict, prefix: str = "") -> dict[str, Any]:
    """Values by dotted key."""
    leaves: dict[str, Any] = {}
    for name, value in config.items():
        leaves |= _leaves(value, f"{prefix}{name}.") if isinstance(value, ConfigDict) else {f"{prefix}{name}": value}
    return leaves


def _parts(value: Any) -> list[Any]:
    """The scalars of nested sequences."""
    return [part for item in value for part in _parts(item)] if isinstance(value, tuple | list) else [value]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "numbers" if isinstance(value, int | float) else "words" if isinstance(value, str) else type(value).__name__
