"""Joint Bayesian verification with transfer, from labelled faces to a calibrated report and a saved model.

python -m experiments.verify --config=configs/verify.py --workdir=runs/verify
"""

import contextlib
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs, trials
from experiments.common.inputs import Vectors
from experiments.common.publish import publish
from experiments.verify import photos, report, transfer
from experiments.verify.transfer import MEASURES, METHODS
from jaxface import verifier
from jaxface.data import pairs
from jaxface.metrics import calibration, verification
from jaxface.reports.html import Command, Section
from jaxface.runtime import log, params_io
from jaxface.runtime.workdir import Workdir


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Measures every method over the splits, writes the report, and saves the model of the first split."""
    transfer.check(config)
    workdir.uses(data=inputs.path_of(config.data), target=inputs.path_of(config.target))
    source, target = transfer.domains(config)

    def measured() -> dict[str, np.ndarray]:
        rng = np.random.default_rng((config.seed, 1))
        with contextlib.closing(log.JsonlWriter(workdir.path / "metrics.jsonl", resume_step=0)) as writer:
            return transfer.measure(config, source, target, rng, writer)

    arrays = workdir.stage("transfer", measured)
    saved = _save_model(config, workdir, source, target)
    publish(
        workdir,
        title="Joint Bayesian verification with transfer",
        lead=f"Mean over {config.num_splits} random splits of the people; intervals are over the splits, "
        "widened for the people that splits share: what other people would give. "
        + trials.rule(config.max_images, float(arrays["largest share"].max())),
        headline=report.headline(config, arrays),
        sections=(*report.sections(config, arrays), _saved_model(workdir, saved)),
        credits=tuple(dict.fromkeys([source.credit, target.credit])),
    )
    last = len(config.target_people) - 1
    means = {
        f"{measure}, {method}": float(arrays["measures"][i, m, last].mean())
        for i, measure in enumerate(MEASURES)
        for m, method in enumerate(METHODS)
    }
    return means | {f"saved model: {name}": value for name, value in saved.rates.items()}


class Saved(NamedTuple):
    """The model in the run's folder, on the target people it has never seen."""

    rates: dict[str, float]
    options: str  # how `experiments.score` finds the test data


def _save_model(config: ConfigDict, workdir: Workdir, source: Vectors, target: Vectors) -> Saved:
    """Saves the first split's transfer model, its unseen test data and their pairs, and says how well it does."""
    model, rows = transfer.final_verifier(config, source, target, np.random.default_rng((config.seed, 1)))
    workdir.write_bytes("params/verifier.safetensors", params_io.to_bytes(model, notes=_notes(config)))
    if target.images is None:
        files = [f"person-{target.ids[row]:04d}/{k:05d}" for k, row in enumerate(rows)]
        arrays = {"features": target.x[rows], "labels": target.ids[rows], "files": np.asarray(files)}
        workdir.write_arrays("test/test.npz", arrays)
        z = verifier.encode_vectors(model, target.x[rows])
        options = f"--config.images.loader=embeddings --config.images.root={workdir.path}/test/test.npz"
    else:
        files = [f"person-{target.ids[row]:04d}/{k:05d}.png" for k, row in enumerate(rows)]
        for file, row in zip(files, rows, strict=True):
            workdir.write_bytes(f"test/{file}", photos.to_png(target.images[row]))
        z = verifier.encode(model, jnp.asarray(photos.rounded(target.images[rows]), inputs.working_dtype()))
        size = "{}, {}".format(*target.images.shape[1:3])
        options = f'--config.images.root={workdir.path}/test --config.images.options.size="({size})"'
    trial = pairs.all_pairs(target.ids[rows])
    lines = [f"{files[i]},{files[j]},{int(same)}" for i, j, same in zip(*trial, strict=True)]
    workdir.write_text("test/pairs.csv", "\n".join(["a,b,same", *lines]) + "\n")
    scores = np.asarray(verifier.score_pairs(model, z, trial.first, trial.second))
    rates = {
        "EER": verification.eer(verification.roc(scores, trial.is_same)),
        "Cllr": calibration.cllr(scores, trial.is_same),
    }
    return Saved(rates, options)


def _notes(config: ConfigDict) -> dict[str, str]:
    """What a reader of the model file should know."""
    if not transfer.is_simulated(config):
        return {"study": "transfer"}
    size, noise = config.camera.size, config.camera.noise
    return {"study": "transfer", "target": f"a simulated camera of {size} x {size} pixels, noise of {noise:g} levels"}


def _saved_model(workdir: Workdir, saved: Saved) -> Section:
    command = (
        f"python -m experiments.score --config=configs/score.py --workdir={workdir.path}-scored "
        f"--config.model={workdir.path}/params/verifier.safetensors "
        f"{saved.options} --config.pairs={workdir.path}/test/pairs.csv"
    )
    return Section(
        "The saved model",
        (
            "The transfer model of the first split is saved with its image steps, PCA and calibration. On its test "
            f"people, in the folder test, it has an EER of {100 * saved.rates['EER']:.2f} % and a Cllr of "
            f"{saved.rates['Cllr']:.4f} bits. To score them again from the saved file alone, or data of your own:",
            Command(command),
        ),
    )
