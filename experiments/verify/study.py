"""Joint Bayesian verification with transfer, from labelled faces to a calibrated report and a saved model.

python -m experiments.verify --config=configs/verify.py --workdir=runs/verify
"""

import contextlib
from functools import partial
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from experiments.common import inputs, people, trials
from experiments.common.publish import publish
from experiments.verify import changes, domains, measures, report, saved, transfer
from experiments.verify.measures import MEASURES
from experiments.verify.transfer import METHODS
from jaxface.runtime import log
from jaxface.runtime.workdir import Workdir


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Measures every method over the splits, saves the model of the first split, and writes the report."""
    transfer.check(config)
    people.check(config)
    changes.check(config)
    workdir.uses(data=inputs.path_of(config.data), target=inputs.path_of(config.target))
    source, target = domains.load(config)

    def measured() -> dict[str, np.ndarray]:
        rng = np.random.default_rng((config.seed, 1))
        with contextlib.closing(log.JsonlWriter(workdir.path / "metrics.jsonl", resume_step=0)) as writer:
            return measures.measure(config, source, target, rng, writer)

    arrays = workdir.stage("transfer", measured)
    simulated = {}
    if config.changes.num_draws:
        simulated = workdir.stage("changes", partial(changes.measure, config.changes, config.seed))
    model = saved.write(config, workdir, target, arrays)
    publish(
        workdir,
        title="Joint Bayesian verification with transfer",
        lead=f"Mean over {config.num_splits} random splits of the people; intervals are over the splits, widened for "
        "the people that splits share, so that they hold for new people. "
        + trials.rule(config.max_images, float(arrays["largest share"].max())),
        headline=report.headline(config, arrays),
        sections=(
            *report.sections(config, arrays),
            *((changes.section(config.changes, simulated),) if simulated else ()),
            report.saved_model(workdir, model),
        ),
        credits=tuple(dict.fromkeys([source.credit, target.credit])),
    )
    last = len(config.target_people) - 1
    means = {
        f"{measure}, {method}": float(arrays["measures"][i, m, last].mean())
        for i, measure in enumerate(MEASURES)
        for m, method in enumerate(METHODS)
    }
    return means | {f"saved model: {name}": value for name, value in model.rates.items()}
