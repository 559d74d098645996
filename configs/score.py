"""Scores images with a fitted verifier: pairs (default) or probes against enrolled people (`:identify`).

    python -m experiments.score --config=configs/score.py --workdir=runs/score \
        --config.model=runs/verify/params/verifier.safetensors \
        --config.images.root=FOLDER --config.pairs=PAIRS.csv

Takes seconds. On the test images that `experiments.verify` leaves in its folder it gives the error rates of its report.

`--config.far=0.01 --config.strangers.root=FOLDER` sets the threshold by a rate of false accepts.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=True)
    config.task = "verify"  # verify pairs, or identify probes
    config.model = placeholder(str)  # params/verifier.safetensors of a run of experiments.verify
    config.prior = 0.5  # probability, before looking, of one person; identify: of somebody enrolled
    config.images = _folder(min_people=0)  # verify: one folder a person, or a flat folder
    config.pairs = placeholder(str)  # verify: CSV with the header a,b,same, or a,b if the truth is unknown
    config.gallery = _folder(min_people=1)  # identify: people to know, one folder each, any number of photos
    config.probes = _folder(min_people=0)  # identify: photos to name; names of folders only count right answers
    config.num_best = 1  # identify: people listed for each probe in candidates.csv, the one with most evidence first
    config.far = placeholder(float)  # share of impostors, or of strangers, who may pass; instead of the prior
    config.strangers = _folder(min_people=1)  # with far: known people who are in no fit and not in your data
    config.cohort = _folder(min_people=0)  # strangers to everything here, for s-normed scores beside the ratios
    config.cohort_best = placeholder(int)  # of the cohort, the nearest alone: some hundred; None takes all
    config.max_images = 10  # with far: of a stranger in pairs
    config.num_resamples = 1000  # with far: of the strangers, for the interval of pairs
    return common.variant(config, variant, {"identify": _identify})


def _folder(*, min_people: int) -> ConfigDict:
    """A set of images or vectors; with `min_people = 0` nobody needs to know whom they show."""
    data = ConfigDict()
    data.loader = "folders"  # or embeddings: vectors of `experiments.embed` or of another tool
    data.root = placeholder(str)
    data.options = common.options_of_vectors()
    data.options.size = (56, 46)
    data.options.min_people = min_people
    return data


def _identify(config: ConfigDict) -> None:
    config.task = "identify"
