"""Faults of model files: damaged bytes, edited headers, tensors that are missing, of another shape, NaN, indefinite.

A crafted file has a valid digest, so that what is behind the digest is reached.
"""

import copy
import json
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy

from experiments.verification import verifier
from jaxface.core.pytree import params, static
from jaxface.faces import pipeline
from jaxface.joint_bayes import JointBayes
from jaxface.losses.calibration import Affine
from jaxface.runtime import params_io
from jaxface.runtime.params_io import ModelFileError
from jaxface.subspace import LinearMap
from tests.faults import damage
from tests.faults.verdict import Wrong, expect, refused

D, R = 4, 2
Header = dict[str, Any]
Tensors = dict[str, np.ndarray]


@params
class Nested:
    """A model with a tuple, something optional and static fields."""

    maps: tuple[LinearMap, ...]
    calibration: Affine | None
    prior: float = static()
    sizes: tuple[int, ...] = static()


def a_verifier() -> verifier.Verifier:
    rng = np.random.default_rng(0)
    return verifier.Verifier(
        steps=pipeline.build([("resize", {"height": 2, "width": 2, "method": "area"})]),
        reduction=_linear_map(rng),
        model=JointBayes(
            mean=jnp.zeros(R, np.float32),
            identity_cov=jnp.asarray(np.diag([2.0, 1.0]).astype(np.float32)),
            noise_cov=jnp.asarray(np.array([[1.0, 0.2], [0.2, 0.5]], np.float32)),
        ),
        calibration=Affine(slope=jnp.asarray(1.5, np.float32), offset=jnp.asarray(-0.5, np.float32)),
        length_normalize=False,
    )


def _linear_map(rng: np.random.Generator) -> LinearMap:
    return LinearMap(
        mean=jnp.asarray(rng.normal(size=D).astype(np.float32)),
        basis=jnp.asarray(rng.normal(size=(D, R)).astype(np.float32)),
    )


def nested() -> Nested:
    rng = np.random.default_rng(1)
    calibration = Affine(slope=jnp.asarray(1.0, np.float32), offset=jnp.asarray(0.0, np.float32))
    return Nested(maps=(_linear_map(rng), _linear_map(rng)), calibration=calibration, prior=0.5, sizes=(2, 3))


def _scores(model: verifier.Verifier) -> np.ndarray:
    """What a user does with a verifier: features, then decisions."""
    x = jnp.asarray(np.random.default_rng(2).normal(size=(3, D)).astype(np.float32))
    z = verifier.features(model, x)
    return np.asarray(verifier.score_matrix(model, z, z))


def _outputs(model: Nested) -> np.ndarray:
    """Everything that the model holds."""
    leaves = [np.ravel(leaf).astype(float) for leaf in jax.tree.leaves(model)]
    return np.concatenate([*leaves, np.array([model.prior, *model.sizes], float)])


USES: dict[str, tuple[Callable[[], Any], Callable[[Any], np.ndarray]]] = {
    "verifier": (a_verifier, _scores),
    "nested model": (nested, _outputs),
}


def draw(rng: np.random.Generator) -> tuple[str, Callable[[pathlib.Path], str]]:
    use = list(USES)[rng.integers(2)]
    kind = rng.integers(8)
    if kind < 3:
        return f"{use}: damaged bytes", lambda folder: _damaged(folder, use, rng)
    if kind == 3:
        return f"{use}: another thing", lambda folder: _another(folder, use, rng)
    if kind < 6:
        name = list(HEADERS)[rng.integers(len(HEADERS))]
        return f"{use}: header with {name}", lambda folder: _crafted(folder, use, HEADERS[name])
    change, table = list(TENSORS)[rng.integers(len(TENSORS))], TENSORS
    return f"{use}: tensor {change}", lambda folder: _crafted(folder, use, _of_tensor(table[change], rng))


def _save(folder: pathlib.Path, use: str) -> pathlib.Path:
    path = folder / "model.safetensors"
    path.write_bytes(params_io.to_bytes(USES[use][0](), notes={"data": "faces"}))
    return path


def _judge(path: pathlib.Path, use: str, what: str, *, may_be_read: bool | None = True) -> str:
    """Refused with the name of the file at loading, or with the cause at scoring; else the scores of the model."""
    make, scores = USES[use]
    try:
        model = params_io.load(path, type(make()))
        params_io.notes(path)
    except Exception as error:
        expect(isinstance(error, ModelFileError | OSError), "traceback", f"{what}: {type(error).__name__}: {error}")
        return refused(error, str(path))
    try:
        found = scores(model)
    except (TypeError, ValueError) as error:
        if use == "nested model":
            raise Wrong("wrong result", f"{what}: read, and then {error}") from error
        return refused(error, "noise_cov", "identity_cov", "mean", "basis", "model", "slope", "offset", "reduction")
    expect(np.isfinite(found).all(), "silent NaN", f"{what}: scores {found.ravel()[:4]}")
    expect(may_be_read is not False, "wrong result", f"{what}: read, and scores are {found.ravel()[:4]}")
    near = 1e-2 if may_be_read is None else 1e-5  # rounded to another type, say
    same = found.shape == (clean := scores(make())).shape and np.allclose(found, clean, rtol=near, atol=near)
    expect(same, "wrong result", f"{what}: other scores {found.ravel()[:4]}")
    return "right"


def _damaged(folder: pathlib.Path, use: str, rng: np.random.Generator) -> str:
    path = _save(folder, use)
    done = damage.damage_bytes(path, rng)
    return _judge(path, use, done.what)


def _another(folder: pathlib.Path, use: str, rng: np.random.Generator) -> str:
    path = _save(folder, use)
    if rng.integers(2):
        return _judge(path, use, damage.replace_file(path, rng), may_be_read=False)
    other = next(name for name in USES if name != use)
    path.write_bytes(params_io.to_bytes(USES[other][0]()))
    return _judge(path, use, "a model of another class", may_be_read=False)


Change = Callable[[Header, Tensors], "Header | str | None"]


def _crafted(folder: pathlib.Path, use: str, craft: tuple[Change, bool | None]) -> str:
    """Writes the file again with a change and a digest that fits; `None` where a reader may do either."""
    path = _save(folder, use)
    change, may_be_read = craft
    with safetensors.safe_open(path, framework="numpy") as archive:
        header = json.loads(archive.metadata()["jaxface"])
        tensors = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118 - not a dict
    changed = change(header, tensors)
    if isinstance(changed, str):
        text = changed
    else:
        header = header if changed is None else changed
        header["digest"] = params_io._digest(header, tensors)
        text = json.dumps(header, sort_keys=True)
    path.write_bytes(safetensors.numpy.save(tensors, metadata={"jaxface": text}))
    return _judge(path, use, "crafted", may_be_read=may_be_read)


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


HEADERS: dict[str, tuple[Change, bool | None]] = {
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


def _of_tensor(
    craft: tuple[Callable[[Tensors, str, np.random.Generator], None], bool | None], rng: np.random.Generator
) -> tuple[Change, bool | None]:
    """Applies a change to a tensor drawn at random."""
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
