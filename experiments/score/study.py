"""Using a fitted verifier: pairs, enrolled people and unknown probes, from images or embeddings.

    python -m experiments.score --config=configs/score.py --workdir=runs/score \
        --config.model=runs/verify/params/verifier.safetensors --config.images.root=FOLDER --config.pairs=PAIRS.csv
    python -m experiments.score --config=configs/score.py:identify --workdir=runs/who \
        --config.model=MODEL --config.gallery.root=PEOPLE --config.probes.root=PHOTOS

Writes `scores.csv` with the log-likelihood ratio, the probability at the stated prior, and the decision at the Bayes
threshold of that prior, and a page. If the truth is known it reports the error rates: the pairs file has a column
`same`, or a probe's folder the name of an enrolled person.

The prior of a pair is the probability of one person, before looking. The prior of a probe is the probability that it
shows somebody enrolled, the same for each person. With `--config.far=0.01 --config.strangers.root=...` the threshold is
the one that so many of these strangers pass, and the page says in which interval the rate of other strangers lies.
`--config.num_best=5` lists the five people with the most evidence for each probe in `candidates.csv`.
"""

from typing import Any

from ml_collections import ConfigDict

from experiments.common import fields, inputs
from experiments.score import false_accepts, identification, verification
from jaxface.core import checks
from jaxface.runtime import params_io
from jaxface.runtime.workdir import Workdir
from jaxface.verifier import Verifier

TASKS = {"verify": verification.run, "identify": identification.run}


def run(config: ConfigDict, workdir: Workdir) -> dict[str, Any]:
    """Verifies the pairs of a file, or identifies probes among enrolled people."""
    fields.words(config, "task", TASKS)
    fields.counts(config, "num_best", minimum=1)
    checks.between("config.prior", config.prior, 0.0, 1.0, closed_low=False, closed_high=False)
    false_accepts.check(config)
    if config.model is None:
        raise ValueError("--config.model is missing: name a verifier, e.g. runs/verify/params/verifier.safetensors.")
    workdir.uses(
        model=config.model,
        images=inputs.path_of(config.images),
        pairs=config.pairs,
        gallery=inputs.path_of(config.gallery),
        probes=inputs.path_of(config.probes),
        strangers=inputs.path_of(config.strangers),
        cohort=inputs.path_of(config.cohort),
    )
    return TASKS[config.task](config, workdir, params_io.load(config.model, Verifier))
