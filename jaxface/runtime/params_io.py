"""Model files: safetensors with the classes, static fields, format version and a digest of everything.

A file is loaded as the class that the caller names, and loading never executes code. Nested models are found through
the type annotations of their fields; a file of another class or version, a truncated or an edited one is a named error.
"""

import hashlib
import json
import os
import pathlib
from typing import Any, TypeVar

import numpy as np

from jaxface.core import messages
from jaxface.runtime import structure

__all__ = ["ModelFileError", "load", "notes", "to_bytes"]

T = TypeVar("T")

FORMAT_VERSION = 1
MAX_HEADER_BYTES = 10_000_000  # some 50,000 tensors; a longer one is no model of this library
_KEY = "jaxface"


class ModelFileError(ValueError):
    """A model file that cannot be used: another class or version, damaged, or not a model at all."""


def to_bytes(model: Any, *, notes: dict[str, str] | None = None) -> bytes:
    """The file's content; `notes` are free texts that travel with it (data set, date, config)."""
    import safetensors.numpy

    tensors: dict[str, np.ndarray] = {}
    described = structure.describe(model, "", tensors)
    header = {"version": FORMAT_VERSION, "structure": described, "notes": notes or {}}
    header["digest"] = _digest(header, tensors)
    # One entry only: safetensors writes several in no fixed order, and equal models should be equal bytes.
    return safetensors.numpy.save(tensors, metadata={_KEY: json.dumps(header, sort_keys=True)})


def load(file: str | os.PathLike[str], cls: type[T]) -> T:
    """Reads the model of class `cls` from a file; NaN, wrong shapes and what the class does not allow are refused."""
    header, tensors = _read(pathlib.Path(file))
    if not isinstance(header["structure"], dict) or "class" not in header["structure"]:
        raise ModelFileError(f"{file} holds no model of a class; expected {structure.class_name(cls)}.")
    try:
        return structure.build(header["structure"], cls, tensors)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{file}: {messages.printable(error)} Fit the model again, or use another file."
        ) from error


def notes(file: str | os.PathLike[str]) -> dict[str, str]:
    """The free texts that were saved with a model."""
    return _read(pathlib.Path(file))[0]["notes"]


def _read(file: pathlib.Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and tensors of a file whose digest fits; the parts of the header have the types that are expected."""
    text, tensors = _contents(file)
    try:
        header = json.loads(text, object_pairs_hook=_without_duplicates)
        version = header["version"]
        if version == FORMAT_VERSION:
            _check_parts(header)
            is_whole = header["digest"] == _digest(header, tensors)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFileError(f"{file} has a damaged header ({_in_words(error)}). Save the model again.") from error
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{file} has format version {version!r:.40}; this jaxface reads version {FORMAT_VERSION}. "
            "Load it with the jaxface that wrote it, or fit the model again."
        )
    if not is_whole:
        raise ModelFileError(f"{file} was changed after it was saved: its digest does not match. Use the original.")
    return header, tensors


def _contents(file: pathlib.Path) -> tuple[str, dict[str, np.ndarray]]:
    """Our header as text, and the tensors."""
    import safetensors

    if not file.is_file():
        raise FileNotFoundError(f"no model file at {file}.")
    try:
        _check_length(file)
        with safetensors.safe_open(file, framework="numpy") as archive:
            metadata = archive.metadata() or {}
            tensors = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118 - not a dict
    except Exception as error:
        raise ModelFileError(f"{file} is not a whole model file ({error}). Save the model again.") from error
    if _KEY not in metadata:
        raise ModelFileError(f"{file} is a safetensors file but not a jaxface model. Save it with params_io.to_bytes.")
    return metadata[_KEY], tensors


def _check_length(file: pathlib.Path) -> None:
    """A file begins with the length of its header, which is read whole before anything else."""
    with open(file, "rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
    if length > MAX_HEADER_BYTES:
        raise ValueError(f"its header claims {length} bytes; at most {MAX_HEADER_BYTES} are read")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r:.40} stands twice")
    return dict(pairs)


def _check_parts(header: dict[str, Any]) -> None:
    texts = header["notes"]
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise TypeError("notes must be texts")
    if not isinstance(header["digest"], str) or "structure" not in header:
        raise TypeError("digest and structure are missing")


def _in_words(error: Exception) -> str:
    return f"the key {error} is missing" if isinstance(error, KeyError) else messages.printable(str(error))


def _digest(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> str:
    described = {key: value for key, value in header.items() if key != "digest"}
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
