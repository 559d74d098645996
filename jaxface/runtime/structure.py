"""Models as JSON and named tensors, and back: every part is checked against the annotations of its class.

Arrays must be finite floating point numbers, unless their field says otherwise: those of `core.pytree.whole()` are
integers, those of `core.pytree.unbounded()` may hold infinities. A method `check` of a class raises ValueError for a
model that the equations do not allow.
"""

import collections.abc
import dataclasses
import math
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = []

Tensors = dict[str, np.ndarray]


def class_name(cls: type) -> str:
    """Module and name of a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def describe(value: Any, path: str, tensors: Tensors) -> Any:
    """The structure as JSON; arrays go to `tensors` under their path."""
    if value is None:
        return {"none": True}
    if isinstance(value, jax.Array | np.ndarray | np.generic | float):
        tensors[path] = np.ascontiguousarray(value)
        return {"array": path, "shape": list(np.shape(value))}
    if isinstance(value, tuple):
        return {"tuple": [describe(item, f"{path}.{i}", tensors) for i, item in enumerate(value)]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields: dict[str, Any] = {}
        static: dict[str, Any] = {}
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            if field.metadata.get("static"):
                static[field.name] = inner
            else:
                fields[field.name] = describe(inner, _inner(path, field.name), tensors)
        return {"class": class_name(type(value)), "fields": fields, "static": static}
    raise TypeError(f"{path or 'model'} is a {type(value).__name__}; a model holds arrays, tuples and params classes.")


def build(structure: Any, cls: type, tensors: Tensors) -> Any:
    """The model of class `cls`; ValueError says which part does not fit."""
    builder = _Builder(tensors)
    model = builder.build(structure, cls, "", {})
    if unused := sorted(tensors.keys() - builder.used):
        raise ValueError(f"it holds tensors that no field of {class_name(cls)} takes: {', '.join(unused[:3])}.")
    return model


class _Builder:
    """Builds one model; `used` are the tensors that fields have taken."""

    def __init__(self, tensors: Tensors):
        self.tensors = tensors
        self.used: set[str] = set()

    def build(self, structure: Any, hint: Any, path: str, meaning: Mapping[str, Any]) -> Any:
        """The value that `structure` describes, if the annotation `hint` and the metadata of its field allow it."""
        if not isinstance(structure, dict):
            raise ValueError(f"{_part(path)} is described by {structure!r:.40}, which is no object.")
        if "none" in structure:
            _expect(types.NoneType in _members(hint), path, "nothing", hint)
            return None
        if "array" in structure:
            _expect(any(_is_array(member) for member in _members(hint)), path, "an array", hint)
            return self._array(structure, path, meaning)
        if "tuple" in structure:
            return self._tuple(structure["tuple"], hint, path, meaning)
        return self._model(structure, hint, path)

    def _array(self, structure: Mapping[str, Any], path: str, meaning: Mapping[str, Any]) -> jax.Array:
        name, shape = structure["array"], structure.get("shape")
        if not isinstance(name, str) or name not in self.tensors:
            raise ValueError(f"{_part(path)} is the tensor {name!r:.40}, which is missing.")
        tensor = self.tensors[name]
        is_scalar = shape == [] and tensor.shape == (1,)  # as safetensors holds one
        if not is_scalar and list(tensor.shape) != shape:
            raise ValueError(f"{_part(path)} has shape {shape!r:.40}; its tensor has {list(tensor.shape)}.")
        self.used.add(name)
        _check_dtype(tensor, path, (np.int32, np.int64) if meaning.get("whole") else (np.float32, np.float64))
        with np.errstate(over="ignore"):  # float64 may be too large for this process: it is found infinite below
            array = jnp.asarray(tensor).reshape(() if is_scalar else tensor.shape)
        _check_finite(np.asarray(array), path, may_be_infinite=bool(meaning.get("unbounded")))
        return array

    def _tuple(self, items: Any, hint: Any, path: str, meaning: Mapping[str, Any]) -> tuple[Any, ...]:
        kind = next((member for member in _members(hint) if _is_tuple(member)), None)
        _expect(kind is not None and isinstance(items, list), path, "a tuple", hint)
        hints = typing.get_args(kind) or tuple(typing.get_type_hints(kind).values())
        if len(hints) == 2 and hints[1] is Ellipsis:
            hints = (hints[0],) * len(items)
        if len(items) != len(hints):
            raise ValueError(f"{_part(path)} is a tuple of {len(items)}; expected {len(hints)}.")
        pairs = enumerate(zip(items, hints, strict=True))
        parts = tuple(self.build(item, each, f"{path}.{i}", meaning) for i, (item, each) in pairs)
        return parts if typing.get_origin(kind) is tuple else typing.cast(Any, kind)(*parts)

    def _model(self, structure: Mapping[str, Any], hint: Any, path: str) -> Any:
        name, fields, static = (structure.get(key) for key in ("class", "fields", "static"))
        matching = [cls for member in _members(hint) for cls in _classes(member, name) if class_name(cls) == name]
        _expect(bool(matching), path, f"a {name!s:.80}", hint)
        if not isinstance(fields, dict) or not isinstance(static, dict):
            raise ValueError(f"{_part(path)} has no fields, or they are no objects.")
        cls = matching[0]
        known = {field.name: field for field in dataclasses.fields(cls)}
        stored = sorted([*fields, *static])
        if stored != sorted(known):
            raise ValueError(f"the fields of {name} are {stored}; this jaxface expects {sorted(known)}.")
        hints = typing.get_type_hints(cls)
        values = {
            key: self.build(inner, hints[key], _inner(path, key), known[key].metadata) for key, inner in fields.items()
        }
        values |= {key: _static(value, hints[key], _inner(path, key)) for key, value in static.items()}
        return _checked(cls(**values), path)


def _checked(model: Any, path: str) -> Any:
    """The model, if its own `check` has nothing against it."""
    check = getattr(model, "check", None)
    if callable(check):
        try:
            check()
        except ValueError as error:
            raise ValueError(f"{_part(path)} is not valid: {error}") from error
    return model


def _check_dtype(tensor: np.ndarray, path: str, allowed: tuple[Any, ...]) -> None:
    if tensor.dtype not in allowed:
        names = " or ".join(np.dtype(dtype).name for dtype in allowed)
        raise ValueError(f"{_part(path)} holds {tensor.dtype}; expected {names}.")


def _check_finite(array: np.ndarray, path: str, *, may_be_infinite: bool) -> None:
    bad = np.isnan(array) if may_be_infinite else ~np.isfinite(array)
    if bad.any():
        what = "NaN" if may_be_infinite else "NaN or infinite"
        raise ValueError(f"{_part(path)} must be finite; {int(bad.sum())} of {array.size} values are {what}.")


def _static(value: Any, hint: Any, path: str) -> Any:
    """A static field as its annotation has it: JSON has lists where it holds tuples."""
    frozen = _frozen(value)
    if not _fits(frozen, hint):
        raise ValueError(f"{_part(path)} is {value!r:.40}; expected {_in_words(hint)}.")
    return frozen


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _fits(value: Any, hint: Any) -> bool:
    """Whether a static value fits its annotation; annotations that are not known here allow hashable values."""
    if isinstance(value, float) and not math.isfinite(value):
        return False
    members = _members(hint)
    if len(members) > 1:
        return any(_fits(value, member) for member in members)
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)
        if not isinstance(value, tuple):
            return False
        inner = (inner[0],) * len(value) if len(inner) == 2 and inner[1] is Ellipsis else inner
        return len(inner) == len(value) and all(map(_fits, value, inner))
    if hint in (int, float, str, bool, types.NoneType):
        allowed = (int, float) if hint is float else (hint,)
        return isinstance(value, allowed) and isinstance(value, bool) == (hint is bool)
    return not isinstance(value, dict)


def _members(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the annotation itself."""
    is_union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    return tuple(m for arg in typing.get_args(hint) for m in _members(arg)) if is_union else (hint,)


def _classes(hint: Any, name: Any) -> list[Any]:
    """The classes that a member of an annotation allows: itself, or, for a function such as a kernel, one of ours.

    That class is looked up by its name in the imported modules; nothing is imported for a file.
    """
    if not _is_function(hint) or not isinstance(name, str) or not name.startswith("jaxface."):
        return [hint] if dataclasses.is_dataclass(hint) else []
    module, _, attribute = name.rpartition(".")
    cls = getattr(sys.modules.get(module), attribute, None)
    if not isinstance(cls, type) or not dataclasses.is_dataclass(cls):
        return []
    return [cls] if any("__call__" in vars(base) for base in cls.__mro__) else []


def _is_function(hint: Any) -> bool:
    return typing.get_origin(hint) is collections.abc.Callable


def _is_tuple(hint: Any) -> bool:
    """Whether a tuple is meant, or a NamedTuple."""
    return typing.get_origin(hint) is tuple or (isinstance(hint, type) and issubclass(hint, tuple))


def _is_array(hint: Any) -> bool:
    return not (hint is types.NoneType or dataclasses.is_dataclass(hint) or _is_tuple(hint) or _is_function(hint))


def _expect(condition: bool, path: str, kind: str, hint: Any) -> None:
    if not condition:
        raise ValueError(f"{_part(path)} is {kind}; expected {_in_words(hint)}.")


def _in_words(hint: Any) -> str:
    names = (class_name(m) if isinstance(m, type) and not typing.get_origin(m) else str(m) for m in _members(hint))
    return " or ".join(name.removeprefix("builtins.") for name in names)


def _part(path: str) -> str:
    return f"field {path!r}" if path else "the model"


def _inner(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
