"""Scores images with a fitted verifier: pairs (default) or probes against enrolled people (`:identify`).

    python -m experiments.score --config=configs/score.py --workdir=runs/score \
        --config.model=runs/verify/params/verifier.safetensors \
        --config.images.root=FOLDER --config.pairs=PAIRS.csv

Takes seconds. On the test images that `experiments.verify` leaves in its folder it gives the error rates of its report.
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
    config.images = _folder()  # verify: one folder a person
    config.pairs = placeholder(str)  # verify: CSV with the header a,b,same, or a,b if the truth is unknown
    config.gallery = _folder()  # identify: people to know, one folder each, any number of photos
    config.probes = _folder()  # identify: photos to name; names of folders serve only to count right answers
    return common.variant(config, variant, {"identify": _identify})


def _folder() -> ConfigDict:
    data = ConfigDict()
    data.loader = "folders"  # or embeddings: an .npz of `experiments.embed` or of another tool
    data.root = placeholder(str)
    data.options = ConfigDict({"size": (56, 46), "min_people": 1})
    return data


def _identify(config: ConfigDict) -> None:
    config.task = "identify"
