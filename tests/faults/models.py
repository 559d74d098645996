"""Faults of model files: damaged bytes, edited headers, tensors that are missing, of another shape, NaN, indefinite.

A crafted file has a valid digest, so that what is behind the digest is reached.
"""

import hashlib
import json
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy

from jaxface import verifier
from jaxface.core.pytree import params, static
from jaxface.faces import pipeline
from jaxface.joint_bayes import JointBayes
from jaxface.losses.calibration import Affine
from jaxface.runtime import params_io
from jaxface.runtime.params_io import ModelFileError
from jaxface.subspace import LinearMap
from tests.faults import damage
from tests.faults.crafted import HEADERS, TENSORS, Craft, of_tensor
from tests.faults.verdict import Wrong, expect, refused

D, R = 4, 2


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
    z = verifier.encode_vectors(model, x)
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
    return f"{use}: tensor {change}", lambda folder: _crafted(folder, use, of_tensor(table[change], rng))


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


def _digest(header: Any, tensors: dict[str, np.ndarray]) -> str:
    """The digest that fits a crafted file, by the format of model files."""
    rest = {key: value for key, value in header.items() if key != "digest"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tensors[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    return digest.hexdigest()


def _crafted(folder: pathlib.Path, use: str, craft: Craft) -> str:
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
        header["digest"] = _digest(header, tensors)
        text = json.dumps(header, sort_keys=True)
    path.write_bytes(safetensors.numpy.save(tensors, metadata={"jaxface": text}))
    return _judge(path, use, "crafted", may_be_read=may_be_read)
