"""Embeddings of your own photos by a small deep network: needs the extra `embed`.

    python -m experiments.embed --config=configs/embed.py --config.data.root=PHOTOS --workdir=runs/embedded

PHOTOS holds one folder a person. About 20 photos a second on one core.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=False)
    config.data = ConfigDict({"root": placeholder(str)})
    config.min_score = 0.6  # of the detector, 0 to 1
    config.face = "weighted"  # of several: size less the distance from the centre; or largest, central
    config.max_side = 640  # pixels; larger photos are searched in a smaller copy
    return common.variant(config, variant, {})
