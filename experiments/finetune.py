"""Fine-tuning Joint Bayes: gradient descent on what the scores are for, from the model that EM found.

    python -m experiments.finetune --config=configs/finetune.py --workdir=runs/finetune

The loss of all pairs of the training people is minimised through the differentiable log-likelihood ratio, over free
parameters that keep both covariances positive definite. Held-out people say when to stop.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments import fields, inputs, trials
from experiments.publish import publish
from experiments.verification import transfer, transfer_report
from experiments.verification.transfer import MEASURES, METHODS, Split
from jaxface import joint_bayes
from jaxface.core.fitinfo import raise_if_failed
from jaxface.data import pairs
from jaxface.joint_bayes.model import FreeJointBayes, JointBayes
from jaxface.losses import calibration, scores
from jaxface.losses.minimize import minimize
from jaxface.reports import figures
from jaxface.reports.figures import Curve
from jaxface.reports.html import Picture, Section
from jaxface.reports.tables import Cell, Table
from jaxface.runtime import launch, log
from jaxface.runtime.workdir import Workdir

VERSIONS = ("as EM leaves it", "fine-tuned, stopped by held-out people", "fine-tuned to the last step")

PairData = tuple[jax.Array, jax.Array, jax.Array]  # x1 [p, d], x2 [p, d], is_same [p]


def cllr(parameters: FreeJointBayes, data: PairData) -> jax.Array:
    """Cllr of raw scores, in bits."""
    return scores.cllr(_llr_of_pairs(parameters, data), data[2])


def pairwise_logistic(parameters: FreeJointBayes, data: PairData) -> jax.Array:
    """Cross-entropy where one pair in ten shows one person, in nats."""
    return scores.pairwise_logistic(_llr_of_pairs(parameters, data), data[2], prior=0.1)


LOSSES = {"cllr": cllr, "pairwise_logistic": pairwise_logistic}


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Fine-tunes the model of every split, and compares before and after on people never seen."""
    transfer.check(config)
    fields.words(config, "start", METHODS)
    fields.words(config, "loss", LOSSES)
    fields.counts(config, "rank", "num_segments", "steps_in_segment")
    workdir.uses(data=inputs.path_of(config.data), target=inputs.path_of(config.target))
    source, target = transfer.domains(config)

    def measured() -> dict[str, np.ndarray]:
        draws = transfer.draws(config, source, target, np.random.default_rng((config.seed, 1)))
        found = []
        with contextlib.closing(log.JsonlWriter(workdir.path / "metrics.jsonl", resume_step=0)) as writer:
            for number, split in enumerate(log.progress(draws, "splits", total=config.num_splits)):
                found.append(fine_tuned(config, split))
                writer.scalars(
                    number, {f"EER, {v}": e for v, e in zip(VERSIONS, found[-1]["measures"][0], strict=True)}
                )
        return {name: np.stack([each[name] for each in found], axis=-1) for name in found[0]}

    arrays = workdir.stage("finetune", measured)
    _publish(config, workdir, arrays, tuple(dict.fromkeys([source.credit, target.credit])))
    return {
        f"{measure}, {version}": float(arrays["measures"][i, v].mean())
        for i, measure in enumerate(MEASURES)
        for v, version in enumerate(VERSIONS)
    }


def fine_tuned(config: ConfigDict, split: Split) -> dict[str, np.ndarray]:
    """Measures `[measures, versions]` of one split, and the losses `[segments + 1]` along the way."""
    people = max(config.target_people)
    start = transfer.fit(config, split, people).models[METHODS.index(config.start)]
    train = _pairs_of(config, *transfer.training_part(split, people))
    held = _pairs_of(config, split.features["calibrate"], split.ids["calibrate"])
    loss = LOSSES[config.loss]
    path = [joint_bayes.free(start, rank=config.rank)]
    for _ in range(config.num_segments):
        parameters, info = minimize(loss, path[-1], train, num_iters=config.steps_in_segment)
        raise_if_failed(info, "fine-tuning")
        path.append(parameters)
    along = [[float(loss(parameters, data)) for parameters in path] for data in (train, held)]
    best = path[int(np.argmin(along[1]))]
    models = [start, joint_bayes.constrained(best), joint_bayes.constrained(path[-1])]
    return {
        "measures": np.array([_measured(split, model) for model in models]).T,
        "largest share": np.array(trials.share_of(split.ids["test"])),
        "training loss": np.array(along[0]),
        "held-out loss": np.array(along[1]),
    }


def _llr_of_pairs(parameters: FreeJointBayes, data: PairData) -> jax.Array:
    first, second, _ = data
    return jax.vmap(joint_bayes.llr, in_axes=(None, 0, 0))(joint_bayes.constrained(parameters), first, second)


def _pairs_of(config: ConfigDict, x: jax.Array, ids: np.ndarray) -> PairData:
    """All pairs of at most `max_images` images a person."""
    rows = pairs.limited(ids, max_rows=config.max_images)
    trial = pairs.all_pairs(ids[rows])
    return x[rows[trial.first]], x[rows[trial.second]], jnp.asarray(trial.is_same)


def _measured(split: Split, model: JointBayes) -> tuple[float, float, float]:
    """EER, raw Cllr and Cllr after calibration on held-out people, of the test people's pairs."""
    (tested, is_same), (held, held_same) = (
        (transfer.pair_scores(model, split.features[part], trial), trial.is_same)
        for part, trial in ((part, pairs.all_pairs(split.ids[part])) for part in ("test", "calibrate"))
    )
    affine, info = calibration.fit(held, held_same)
    raise_if_failed(info, "calibration")
    return transfer.measures_of(tested, np.asarray(calibration.calibrate(affine, tested)), is_same)


def _publish(config: ConfigDict, workdir: Workdir, arrays: Mapping[str, np.ndarray], credits: tuple[str, ...]) -> None:
    found = arrays["measures"]
    rows: list[tuple[Cell, ...]] = [
        (version, *(transfer_report.estimate(config, i, found[i, v]) for i in range(len(MEASURES))))
        for v, version in enumerate(VERSIONS)
    ]
    paired: list[tuple[Cell, ...]] = [
        (VERSIONS[v], *(transfer_report.estimate(config, i, found[i, v], found[i, 0]) for i in range(len(MEASURES))))
        for v in (1, 2)
    ]
    header = ("EER %", "Cllr, raw", "Cllr, calibrated")
    steps = config.steps_in_segment * np.arange(config.num_segments + 1)
    lines = [Curve(name, steps, arrays[name].mean(axis=-1)) for name in ("training loss", "held-out loss")]
    figure = figures.curves(
        lines, x_label="steps of L-BFGS", y_label=f"{config.loss} of raw scores", title="Loss along the way"
    )
    publish(
        workdir,
        title="Fine-tuning Joint Bayes",
        lead=f"From {config.start!r}, {max(config.target_people)} people to train on; mean over {config.num_splits} "
        "splits of the people, intervals widened for the people that splits share. "
        + trials.rule(config.max_images, float(arrays["largest share"].max())),
        headline=Table(("model", *header), rows, "Test people, never seen"),
        sections=(
            Section(
                "Before and after",
                (
                    "The likelihood asks for a good model of every image; the loss asks only for good scores. With few "
                    "people it is easily satisfied on those that it sees, so held-out people choose the step.",
                    Picture("loss.svg", figures.to_svg(figure), "Mean over the splits."),
                    Table(("model", *header), paired, "Minus the model that EM leaves; negative is better"),
                ),
            ),
        ),
        credits=credits,
    )


if __name__ == "__main__":
    launch.main(run)
