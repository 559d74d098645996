"""The model in a run's folder, with the target people that it has not seen, ready for `experiments.score`."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs
from experiments.common.inputs import Vectors
from experiments.verify import domains, photos
from jaxface import verifier
from jaxface.data import pairs
from jaxface.faces import pipeline
from jaxface.joint_bayes import JointBayes
from jaxface.losses.calibration import Affine
from jaxface.metrics import calibration, verification
from jaxface.runtime import params_io
from jaxface.runtime.workdir import Workdir
from jaxface.subspace import LinearMap
from jaxface.verifier import Verifier


class Saved(NamedTuple):
    """The error rates of the saved model on people that it has not seen."""

    rates: dict[str, float]
    options: str  # by which `experiments.score` finds these people


class Unseen(NamedTuple):
    """Images or vectors in the run's folder."""

    files: list[str]
    coordinates: jax.Array  # [n, r]
    options: str


def parts(reduction: LinearMap, model: JointBayes, affine: Affine) -> dict[str, np.ndarray]:
    """The fitted parts of a verifier as the named arrays of a stage."""
    by_name = {"reduction": reduction, "model": model, "calibration": affine}
    return {f"{part}.{field}": np.asarray(value) for part, p in by_name.items() for field, value in vars(p).items()}


def whole(config: ConfigDict, target: Vectors, arrays: Mapping[str, np.ndarray]) -> Verifier:
    """The verifier of these parts, with the image steps of the study if the target has images."""

    def fields(part: str) -> dict[str, jax.Array]:
        return {
            name.removeprefix(f"{part}."): jnp.asarray(value)
            for name, value in arrays.items()
            if name.startswith(f"{part}.")
        }

    return Verifier(
        steps=pipeline.build(config.image_steps if target.images is not None else ()),
        reduction=LinearMap(**fields("reduction")),
        model=JointBayes(**fields("model")),
        calibration=Affine(**fields("calibration")),
        length_normalize=config.length_normalize,
    )


def write(
    config: ConfigDict, workdir: Workdir, target: Vectors, arrays: Mapping[str, np.ndarray], *, study: str = "transfer"
) -> Saved:
    """Writes the model, the rows of the target that it has not seen and their pairs, and scores these pairs."""
    model, rows = whole(config, target, arrays), arrays["unseen"]
    workdir.write_bytes("params/verifier.safetensors", params_io.to_bytes(model, notes=_notes(config, study)))
    unseen = (_write_vectors if target.images is None else _write_photos)(workdir, model, target, rows)
    trial = pairs.all_pairs(target.ids[rows])
    lines = [f"{unseen.files[i]},{unseen.files[j]},{int(same)}" for i, j, same in zip(*trial, strict=True)]
    workdir.write_text("test/pairs.csv", "\n".join(["a,b,same", *lines]) + "\n")
    scores = np.asarray(verifier.score_pairs(model, unseen.coordinates, trial.first, trial.second))
    rates = {
        "EER": verification.eer(verification.roc(scores, trial.is_same)),
        "Cllr": calibration.cllr(scores, trial.is_same),
    }
    return Saved(rates, unseen.options)


def _write_vectors(workdir: Workdir, model: Verifier, target: Vectors, rows: np.ndarray) -> Unseen:
    files = [f"person-{target.ids[row]:04d}/{k:05d}" for k, row in enumerate(rows)]
    arrays = {"features": target.x[rows], "labels": target.ids[rows], "files": np.asarray(files)}
    workdir.write_arrays("test/test.npz", arrays)
    options = f"--config.images.loader=embeddings --config.images.root={workdir.path}/test/test.npz"
    return Unseen(files, verifier.encode_vectors(model, target.x[rows]), options)


def _write_photos(workdir: Workdir, model: Verifier, target: Vectors, rows: np.ndarray) -> Unseen:
    assert target.images is not None
    files = [f"person-{target.ids[row]:04d}/{k:05d}.png" for k, row in enumerate(rows)]
    for file, row in zip(files, rows, strict=True):
        workdir.write_bytes(f"test/{file}", photos.to_png(target.images[row]))
    images = jnp.asarray(photos.rounded(target.images[rows]), inputs.working_dtype())
    size = "{}, {}".format(*target.images.shape[1:3])
    options = f'--config.images.root={workdir.path}/test --config.images.options.size="({size})"'
    return Unseen(files, verifier.encode(model, images), options)


def _notes(config: ConfigDict, study: str) -> dict[str, str]:
    """Texts in the model file that say where the model comes from."""
    if not domains.is_simulated(config):
        return {"study": study}
    size, noise = config.camera.size, config.camera.noise
    return {"study": study, "target": f"a simulated camera of {size} x {size} pixels, noise of {noise:g} levels"}
