"""Faults of MATLAB files of faces and of two views: damaged bytes, and variables of another kind."""

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

from jaxface.data import matlab
from tests.faults import damage
from tests.faults.verdict import Wrong, expect, refused

ROWS, SIDE = 6, 4
LABELS = np.arange(ROWS)[:, None] % 3 + 1


def pixels() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (ROWS, SIDE * SIDE)).astype(np.uint8)


def views() -> np.ndarray:
    cells = np.empty((1, 2), object)
    for column, width in enumerate((3, 5)):
        cells[0, column] = np.random.default_rng(column).normal(size=(ROWS, width))
    return cells


def _faces(path: pathlib.Path) -> list[np.ndarray]:
    data = matlab.load(path)
    return [data.images.reshape(len(data.images), -1), data.ids]


def _views(path: pathlib.Path) -> list[np.ndarray]:
    data = matlab.load_views(path)
    return [*data.views, data.ids]


Variables = dict[str, Any]
READERS: dict[str, tuple[Callable[[], Variables], Callable[[pathlib.Path], list[np.ndarray]]]] = {
    "faces": (lambda: {"fea": pixels(), "gnd": LABELS}, _faces),
    "views": (lambda: {"X": views(), "Y": LABELS}, _views),
}


def draw(rng: np.random.Generator) -> tuple[str, Callable[[pathlib.Path], str]]:
    kind = list(READERS)[rng.integers(2)]
    version = ("5", "5", "4")[rng.integers(3)] if kind == "faces" else "5"  # the fourth has no cells
    how = {"do_compression": bool(rng.integers(2)), "format": version}
    form = f"MATLAB {kind} ({'packed' if how['do_compression'] else 'plain'}, version {version})"
    fault = rng.integers(5)
    if fault < 3:
        return f"{form}: damaged bytes", lambda folder: _damaged(folder, kind, how, rng)
    if fault == 3:
        return f"{form}: another thing", lambda folder: _another(folder, kind, how, rng)
    name = list(CHANGES)[rng.integers(len(CHANGES))]
    return f"MATLAB {kind}: {name}", lambda folder: _changed(folder, kind, name)


def _write(folder: pathlib.Path, kind: str, how: dict[str, Any], variables: Variables | None = None) -> pathlib.Path:
    path = folder / "faces.mat"
    scipy.io.savemat(path, READERS[kind][0]() if variables is None else variables, **how)
    return path


def _damaged(folder: pathlib.Path, kind: str, how: dict[str, Any], rng: np.random.Generator) -> str:
    """Plain numbers have no checksum: what is read has the shapes of what was written, and is finite."""
    path, read = _write(folder, kind, how), READERS[kind][1]
    clean, whole = read(path), path.read_bytes()
    done = damage.damage_bytes(path, rng)
    try:
        found = read(path)
    except Exception as error:
        try:
            return refused(error, str(path))
        except Wrong as wrong:
            raise Wrong(wrong.kind, f"{done.what}: {wrong}") from wrong
    kept = path.read_bytes()
    expect(all(np.isfinite(part).all() for part in found), "silent NaN", done.what)
    expect(all(part.dtype.isnative for part in found), "wrong result", f"{done.what}: a foreign byte order")
    sizes = {len(part) for part in found}
    expect(len(sizes) == 1, "wrong result", f"{done.what}: {[part.shape for part in found]}")
    if whole.startswith(kept):
        same = all(np.array_equal(a, b) for a, b in zip(found, clean, strict=True))
        expect(same, "wrong result", f"{done.what}: numbers that are not in the file")
    return "right"


def _another(folder: pathlib.Path, kind: str, how: dict[str, Any], rng: np.random.Generator) -> str:
    path = _write(folder, kind, how)
    what = damage.replace_file(path, rng)
    try:
        READERS[kind][1](path)
    except Exception as error:
        return refused(error, str(path))
    raise Wrong("wrong result", f"{what} was read")


def _changed(folder: pathlib.Path, kind: str, name: str) -> str:
    make, read = READERS[kind]
    variables = make()
    data, labels = variables
    change, accepted = CHANGES[name]
    change(variables, data, labels)
    path = _write(folder, kind, {"format": "5"}, variables)
    try:
        found = read(path)
    except Exception as error:
        expect(not accepted, "wrong result", f"refused: {error}")
        return refused(error, str(path))
    expect(accepted, "wrong result", f"read as {[part.shape for part in found]}")
    path = _write(folder, kind, {"format": "5"})
    same = all(np.allclose(a, b) for a, b in zip(found, read(path), strict=True))
    expect(same, "wrong result", "other numbers")
    return "right"


Change = Callable[[Variables, str, str], Any]


def _data(change: Callable[[np.ndarray], Any]) -> Change:
    """Changes the faces, or the first view."""

    def apply(variables: Variables, data: str, labels: str) -> None:
        if variables[data].dtype == object:
            variables[data][0, 0] = change(variables[data][0, 0])
        else:
            variables[data] = change(variables[data].astype(float) / 255)

    return apply


def _labels(change: Callable[[np.ndarray], Any]) -> Change:
    return lambda variables, data, labels: variables.update({labels: change(variables[labels])})


def _with(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def put(x: np.ndarray) -> np.ndarray:
        x = x.copy()
        x[1, 2] = value
        return x

    return put


CHANGES: dict[str, tuple[Change, bool]] = {
    "NaN": (_data(_with(np.nan)), False),
    "infinity": (_data(_with(np.inf)), False),
    "texts": (_data(lambda x: "faces"), False),
    "complex numbers": (_data(lambda x: x + 1j), False),
    "three axes": (_data(lambda x: x[..., None] * np.ones(2)), False),
    "a row less": (_data(lambda x: x[:-1]), False),
    "no numbers": (_data(lambda x: x[:0]), False),
    "a structure": (_data(lambda x: {"a": x}), False),
    "doubles": (_data(lambda x: x.astype(float)), True),
    "labels of text": (_labels(lambda y: np.array(["a", "b"])), False),
    "labels in fractions": (_labels(lambda y: y + 0.5), False),
    "labels with NaN": (_labels(lambda y: np.where(y == 1, np.nan, y)), False),
    "labels as doubles": (_labels(lambda y: y.astype(float)), True),
    "labels in a row": (_labels(lambda y: y.T), True),
    "labels of nobody": (_labels(lambda y: np.where(y == 1, -1, y)), False),
    "labels that are huge": (_labels(lambda y: y * 1e300), False),
    "too few labels": (_labels(lambda y: y[:-1]), False),
    "labels in cells": (_labels(lambda y: y.astype(object)), False),
    "sparse labels": (_labels(scipy.sparse.csc_matrix), False),
    "no labels": (lambda variables, data, labels: variables.pop(labels), False),
    "no data": (lambda variables, data, labels: variables.pop(data), False),
    "another variable": (lambda variables, data, labels: variables.update(more=np.arange(3)), True),
}
