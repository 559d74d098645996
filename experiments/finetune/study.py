"""Fine-tuning Joint Bayes: gradient descent on a loss of its scores, from the model that EM found.

    python -m experiments.finetune --config=configs/finetune.py --workdir=runs/finetune

The loss of all pairs of the training people is minimised through the differentiable log-likelihood ratio, over free
parameters that keep both covariances positive definite. The loss on held-out people decides when to stop.
"""

import contextlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from experiments.common import fields, inputs, people, trials
from experiments.finetune import report
from experiments.verify import domains, measures, saved, transfer
from experiments.verify.measures import MEASURES
from experiments.verify.transfer import METHODS, Problem
from jaxface import joint_bayes
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import raise_if_failed
from jaxface.data import pairs
from jaxface.joint_bayes.model import FreeJointBayes, JointBayes
from jaxface.losses import calibration, scores
from jaxface.losses.calibration import Affine
from jaxface.losses.minimization import minimize
from jaxface.runtime import log
from jaxface.runtime.workdir import Workdir

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
    people.check(config)
    fields.words(config, "start", METHODS)
    fields.words(config, "loss", LOSSES)
    fields.counts(config, "rank", "num_segments", "num_steps")
    workdir.uses(data=inputs.path_of(config.data), target=inputs.path_of(config.target))
    source, target = domains.load(config)

    def measured() -> dict[str, np.ndarray]:
        draws = transfer.draws(config, source, target, np.random.default_rng((config.seed, 1)))
        of_splits = []
        with contextlib.closing(log.JsonlWriter(workdir.path / "metrics.jsonl", resume_step=0)) as writer:
            for number, problem in enumerate(log.progress(draws, "splits", total=config.num_splits)):
                of_splits.append(fine_tuned(config, problem))
                eers = of_splits[-1]["measures"][0]
                writer.scalars(number, {f"EER, {v}": eer for v, eer in zip(report.VERSIONS, eers, strict=True)})
        kept, names = of_splits[0], ("measures", "largest share", "training loss", "held-out loss")
        together = {name: np.stack([arrays[name] for arrays in of_splits], axis=-1) for name in names}
        return together | {name: value for name, value in kept.items() if name not in names}

    arrays = workdir.stage("finetune", measured)
    model = saved.write(config, workdir, target, arrays, study="fine-tuning")
    report.page(config, workdir, arrays, model, tuple(dict.fromkeys([source.credit, target.credit])))
    return {
        f"{measure}, {version}": float(arrays["measures"][i, v].mean())
        for i, measure in enumerate(MEASURES)
        for v, version in enumerate(report.VERSIONS)
    } | {f"saved model: {name}": value for name, value in model.rates.items()}


def fine_tuned(config: ConfigDict, problem: Problem) -> dict[str, np.ndarray]:
    """Measures `[measures, versions]` of one split, and the losses `[segments + 1]` along the way.

    Beside them the model that held-out people choose, in its parts, and the rows of the target that it has not seen.
    """
    people = max(config.target_people)
    start = transfer.fit(config, problem, people).models[METHODS.index(config.start)]
    train = _pairs_of(config, *transfer.training_part(problem, people))
    held = _pairs_of(config, problem.features["held_out"], problem.ids["held_out"])
    loss = LOSSES[config.loss]
    path = [joint_bayes.free(start, rank=config.rank)]
    for _ in range(config.num_segments):
        parameters, info = minimize(loss, path[-1], train, num_iters=config.num_steps)
        raise_if_failed(info, "fine-tuning")
        path.append(parameters)
    losses = [[float(loss(parameters, data)) for parameters in path] for data in (train, held)]
    best = path[int(np.argmin(losses[1]))]
    models = [start, joint_bayes.constrained(best), joint_bayes.constrained(path[-1])]
    found = [_measured(problem, model) for model in models]
    chosen = saved.parts(problem.source.reduction, models[1], found[1][1])
    return {
        **chosen,
        "unseen": problem.split.test,
        "measures": np.array([measured for measured, _ in found]).T,
        "largest share": np.array(trials.share_of(problem.ids["test"])),
        "training loss": np.array(losses[0]),
        "held-out loss": np.array(losses[1]),
    }


def _llr_of_pairs(parameters: FreeJointBayes, data: PairData) -> jax.Array:
    first, second, _ = data
    return each_row(joint_bayes.llr, joint_bayes.constrained(parameters), first, second)


def _pairs_of(config: ConfigDict, x: jax.Array, ids: np.ndarray) -> PairData:
    """All pairs of at most `max_images` images a person."""
    rows = pairs.limited(ids, max_rows=config.max_images)
    trial = pairs.all_pairs(ids[rows])
    return x[rows[trial.first]], x[rows[trial.second]], jnp.asarray(trial.is_same)


def _measured(problem: Problem, model: JointBayes) -> tuple[tuple[float, ...], Affine]:
    """`MEASURES` of the test people's pairs, and the calibration on held-out people."""
    (tested, is_same), (held, held_same) = (
        (transfer.pair_scores(model, problem.features[part], trial), trial.is_same)
        for part, trial in ((part, pairs.all_pairs(problem.ids[part])) for part in ("test", "held_out"))
    )
    affine = measures.calibrated_on(held, held_same)
    return measures.measures_of(tested, np.asarray(calibration.calibrate(affine, tested)), is_same), affine
