"""Fine-tuning Joint Bayes."""

import dataclasses

import numpy as np

from configs import finetune as finetune_config
from experiments.finetune import study as finetune
from experiments.verify import transfer
from tests.experiments.problems import two_domains
from tests.tolerances import assert_close


def test_held_out_people_choose_the_step_of_fine_tuning(rng):
    """Tested on the held-out people themselves, the raw Cllr is the loss that was watched."""
    config, *sides = two_domains(finetune_config, rng, target_people=(4,), num_segments=3, rank=5)
    (problem,) = transfer.draws(config, *sides, np.random.default_rng(0))
    held = {"test": "held_out", "held_out": "held_out", "train": "train"}
    problem = dataclasses.replace(
        problem, features={name: problem.features[part] for name, part in held.items()},
        ids={name: problem.ids[part] for name, part in held.items()},
    )  # fmt: skip
    found = finetune.fine_tuned(config, problem)
    watched, trained = found["held-out loss"], found["training loss"]
    assert_close(found["measures"][1, 1:], np.array([watched.min(), watched[-1]]), factor=1e3)
    assert trained[-1] < trained[0]
    assert np.argmin(watched) < np.argmin(trained)  # else the choice would not show
