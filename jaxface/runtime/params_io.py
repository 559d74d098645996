"""Model files: safetensors with the classes, static fields, format version and a digest of everything.

A file is loaded as the class that is asked for and never executes anything. Nested models are found through the type
annotations of their fields; a file of another class or version, a truncated or an edited one is a named error.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import types
import typing
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

T = TypeVar("T")

FORMAT_VERSION = 1
_KEY = "jaxface"


class ModelFileError(ValueError):
    """A model file that cannot be used: another class or version, damaged, or not a model at all."""


def to_bytes(model: Any, *, notes: dict[str, str] | None = None) -> bytes:
    """The file's content; `notes` are free texts that travel with it (data set, date, config)."""
    import safetensors.numpy

    tensors: dict[str, np.ndarray] = {}
    structure = _describe(model, "", tensors)
    header = {"version": FORMAT_VERSION, "structure": structure, "notes": notes or {}}
    header["digest"] = _digest(header, tensors)
    # One entry only: safetensors writes several in no fixed order, and equal models should be equal bytes.
    return safetensors.numpy.save(tensors, metadata={_KEY: json.dumps(header, sort_keys=True)})


def load(file: str | os.PathLike[str], cls: type[T]) -> T:
    """Reads the model of class `cls` from a file."""
    header, tensors = _read(pathlib.Path(file))
    structure = header["structure"]
    if "class" not in structure:
        raise ModelFileError(f"{file} holds no model of a class; expected {_class_name(cls)}.")
    return _build(structure, cls, "", tensors, file)


def notes(file: str | os.PathLike[str]) -> dict[str, str]:
    """The free texts that were saved with a model."""
    return _read(pathlib.Path(file))[0]["notes"]


def _read(file: pathlib.Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    import safetensors

    if not file.is_file():
        raise FileNotFoundError(f"no model file at {file}.")
    try:
        with safetensors.safe_open(file, framework="numpy") as archive:
            metadata = archive.metadata() or {}
            tensors = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118 - not a dict
    except Exception as error:
        raise ModelFileError(f"{file} is not a whole model file ({error}). Save the model again.") from error
    if _KEY not in metadata:
        raise ModelFileError(f"{file} is a safetensors file but not a jaxface model.")
    try:
        header = json.loads(metadata[_KEY])
        version = header["version"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ModelFileError(f"{file} has a damaged header ({error!r}). Save the model again.") from error
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{file} has format version {version}; this jaxface reads version {FORMAT_VERSION}. "
            "Load it with the jaxface that wrote it, or fit the model again."
        )
    if header.get("digest") != _digest(header, tensors):
        raise ModelFileError(f"{file} was changed after it was saved: its digest does not match. Use the original.")
    return header, tensors


def _digest(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> str:
    described = {key: value for key, value in header.items() if key != "digest"}
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _class_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _describe(value: Any, path: str, tensors: dict[str, np.ndarray]) -> Any:
    """The structure as JSON; arrays go to `tensors` under their path."""
    if value is None:
        return {"none": True}
    if isinstance(value, jax.Array | np.ndarray | np.generic | float):
        tensors[path] = np.ascontiguousarray(value)
        return {"array": path, "shape": list(np.shape(value))}
    if isinstance(value, tuple):
        return {"tuple": [_describe(item, f"{path}.{i}", tensors) for i, item in enumerate(value)]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields: dict[str, Any] = {}
        static: dict[str, Any] = {}
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            if field.metadata.get("static"):
                static[field.name] = inner
            else:
                fields[field.name] = _describe(inner, f"{path}.{field.name}".lstrip("."), tensors)
        return {"class": _class_name(type(value)), "fields": fields, "static": static}
    raise TypeError(f"{path or 'model'} is a {type(value).__name__}; a model holds arrays, tuples and params classes.")


def _build(structure: Any, hint: Any, path: str, tensors: dict[str, np.ndarray], file: Any) -> Any:
    """Rebuilds `structure` as what the annotation `hint` allows."""
    if "none" in structure:
        return None
    if "array" in structure:
        return jnp.asarray(tensors[structure["array"]]).reshape(structure["shape"])
    if "tuple" in structure:
        inner = [arg for arg in typing.get_args(hint) if arg is not Ellipsis]
        hints = inner if len(inner) == len(structure["tuple"]) else inner[:1] * len(structure["tuple"])
        parts = zip(structure["tuple"], hints, strict=True)
        return tuple(_build(item, each, f"{path}.{i}", tensors, file) for i, (item, each) in enumerate(parts))
    cls = _matching_class(structure["class"], hint)
    if cls is None:
        where = f"field {path!r}" if path else "the model"
        wanted = " or ".join(_class_name(c) for c in _classes(hint)) or str(hint)
        raise ModelFileError(f"{file}: {where} is a {structure['class']}; expected {wanted}.")
    annotations = typing.get_type_hints(cls)
    names = {field.name for field in dataclasses.fields(cls)}
    stored = structure["fields"].keys() | structure["static"].keys()
    if names != stored:
        raise ModelFileError(
            f"{file}: the fields of {structure['class']} are {sorted(stored)}; this jaxface expects {sorted(names)}."
        )
    values = {
        name: _build(inner, annotations[name], f"{path}.{name}".lstrip("."), tensors, file)
        for name, inner in structure["fields"].items()
    }
    return cls(**values, **{name: _hashable(value) for name, value in structure["static"].items()})


def _classes(hint: Any) -> list[type]:
    """The params classes an annotation names, looking into unions."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return [cls for arg in typing.get_args(hint) for cls in _classes(arg)]
    return [hint] if dataclasses.is_dataclass(hint) and isinstance(hint, type) else []


def _matching_class(name: str, hint: Any) -> type | None:
    return next((cls for cls in _classes(hint) if _class_name(cls) == name), None)


def _hashable(value: Any) -> Any:
    """JSON has lists where static fields hold tuples."""
    return tuple(_hashable(item) for item in value) if isinstance(value, list) else value
