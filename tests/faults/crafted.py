"""Changes to the header and the tensors of a model file, and whether the file may be read after them."""

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np

Header = dict[str, Any]
Tensors = dict[str, np.ndarray]
Change = Callable[[Header, Tensors], "Header | str | None"]
Craft = tuple[Change, bool | None]  # a change, and whether it may be read; None where a reader may do either


def _set(*keys: str, value: Any) -> Change:
    def apply(header: Header, tensors: Tensors) -> None:
        inner = header
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value

    return apply


def _without(*keys: str) -> Change:
    def apply(header: Header, tensors: Tensors) -> None:
        inner = header
        for key in keys[:-1]:
            inner = inner[key]
        inner.pop(keys[-1])

    return apply


def _first(change: Callable[[dict[str, Any]], Any]) -> Change:
    """Changes the first array of the structure."""

    def walk(inner: Any) -> bool:
        if isinstance(inner, dict):
            if "array" in inner:
                change(inner)
                return True
            return any(walk(value) for value in inner.values())
        return isinstance(inner, list) and any(walk(value) for value in inner)

    return lambda header, tensors: walk(header["structure"]) and None


def _all_static(value: Any) -> Change:
    return lambda header, tensors: header["structure"]["static"].update(
        dict.fromkeys(header["structure"]["static"], value)
    )


def _deep(header: Header, tensors: Tensors) -> str:
    return '{"version": 1, "structure": ' + '{"tuple": [' * 50_000 + "]}" * 50_000 + "}"


def _deep_class(header: Header, tensors: Tensors) -> None:
    inner = copy.deepcopy(header["structure"])
    for _ in range(300):
        inner = {"tuple": [inner]}
    name = next(iter(header["structure"]["fields"]))
    header["structure"]["fields"][name] = inner


HEADERS: dict[str, Craft] = {
    "the version of text": (_set("version", value="1"), False),
    "the version 2": (_set("version", value=2), False),
    "no version": (_without("version"), False),
    "a version that is a list": (_set("version", value=[1]), False),
    "no structure": (_without("structure"), False),
    "a structure that is a list": (_set("structure", value=[]), False),
    "a structure that is text": (_set("structure", value="model"), False),
    "a structure of nothing": (_set("structure", value=None), False),
    "an empty structure": (_set("structure", value={}), False),
    "fields that are a list": (_set("structure", "fields", value=[]), False),
    "fields that are nothing": (_set("structure", "fields", value=None), False),
    "no fields": (_without("structure", "fields"), False),
    "no static fields": (_without("structure", "static"), False),
    "static fields that are text": (_set("structure", "static", value="x"), False),
    "static fields of a dictionary": (_all_static({}), False),
    "static fields of text": (_all_static("x"), False),
    "static fields of nothing": (_all_static(None), False),
    "a field more": (_set("structure", "fields", "more", value={"none": True}), False),
    "a field of nothing": (lambda h, t: h["structure"]["fields"].update(
        {next(iter(h["structure"]["fields"])): {"none": True}}), None),
    "another class": (_set("structure", "class", value="os.system"), False),
    "a class that is a number": (_set("structure", "class", value=3), False),
    "a shape of other sizes": (_first(lambda a: a.update(shape=[7, 7])), False),
    "a shape of 10^18": (_first(lambda a: a.update(shape=[10**18])), False),
    "a negative shape": (_first(lambda a: a.update(shape=[-1])), False),
    "a shape that is text": (_first(lambda a: a.update(shape="ab")), False),
    "no shape": (_first(lambda a: a.pop("shape")), False),
    "an array that is nowhere": (_first(lambda a: a.update(array="nowhere")), False),
    "an array that is a number": (_first(lambda a: a.update(array=3)), False),
    "an array that is a list": (_first(lambda a: a.update(array=["x"])), False),
    "notes that are a list": (_set("notes", value=["x"]), None),
    "notes of nothing": (_set("notes", value=None), None),
    "no notes": (_without("notes"), None),
    "notes of notes": (_set("notes", value={"data": {"a": [1]}}), None),
    "a great depth": (_deep, False),
    "a depth of 300": (_deep_class, False),
    "text that is no JSON": (lambda h, t: "{", False),
    "a number": (lambda h, t: "3", False),
    "nothing": (lambda h, t: "null", False),
    "NaN": (lambda h, t: "NaN", False),
    "no digest": (lambda h, t: json.dumps({k: v for k, v in h.items() if k != "digest"}), False),
    "a digest that is a list": (lambda h, t: json.dumps(h | {"digest": [h["digest"]]}), False),
    "an escape in the class": (_set("structure", "class", value="\x1b[2J"), False),
    "no change": (lambda h, t: None, True),
}  # fmt: skip


def of_tensor(
    craft: tuple[Callable[[Tensors, str, np.random.Generator], None], bool | None], rng: np.random.Generator
) -> Craft:
    """Applies a change of `TENSORS` to a tensor drawn at random."""
    change, may_be_read = craft

    def apply(header: Header, tensors: Tensors) -> None:
        names = sorted(tensors)
        change(tensors, names[rng.integers(len(names))], rng)

    return apply, may_be_read


def _replaced(value: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Any:
    def change(tensors: Tensors, name: str, rng: np.random.Generator) -> None:
        tensors[name] = np.ascontiguousarray(value(tensors[name], rng))

    return change


def _entry(number: float) -> Any:
    def put(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        x = x.copy()
        x.reshape(-1)[rng.integers(x.size)] = number
        return x

    return _replaced(put)


def _covariance(value: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Of the verifier; a model without covariances keeps its mean from being finite instead."""

    def change(tensors: Tensors, name: str, rng: np.random.Generator) -> None:
        name = "model.noise_cov" if "model.noise_cov" in tensors else name
        bad = value(tensors[name]) if tensors[name].ndim == 2 and name.endswith("cov") else tensors[name] * np.nan
        tensors[name] = np.ascontiguousarray(bad.astype(np.float32))

    return change


TENSORS: dict[str, tuple[Any, bool | None]] = {
    "missing": (lambda tensors, name, rng: tensors.pop(name), False),
    "more": (lambda tensors, name, rng: tensors.update(more=np.ones(3, np.float32)), None),
    "under another name": (lambda tensors, name, rng: tensors.update({f"{name}x": tensors.pop(name)}), False),
    "with NaN": (_entry(np.nan), False),
    "with infinity": (_entry(np.inf), False),
    "with minus infinity": (_entry(-np.inf), False),
    "of float16": (_replaced(lambda x, rng: x.astype(np.float16)), None),
    "of float64": (_replaced(lambda x, rng: x.astype(np.float64)), None),
    "of integers": (_replaced(lambda x, rng: np.ones(x.shape, np.int32)), False),
    "of booleans": (_replaced(lambda x, rng: x > 0), False),
    "without numbers": (_replaced(lambda x, rng: x.reshape(-1)[:0]), False),
    "with an axis more": (_replaced(lambda x, rng: x[None]), None),
    "of other sizes": (_replaced(lambda x, rng: np.ones((3, 5), np.float32)), False),
    "with a row more": (_replaced(lambda x, rng: np.concatenate([np.atleast_1d(x), np.atleast_1d(x)])), False),
    "indefinite": (_covariance(lambda c: c - 5 * np.eye(len(c))), False),
    "negative definite": (_covariance(np.negative), False),
    "of zeros for noise": (_covariance(np.zeros_like), False),
    "that is not symmetric": (_covariance(lambda c: np.triu(c)), False),
}
