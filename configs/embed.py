"""Embeddings of your own photos by a small deep network: needs the extra `embed`.

    python -m experiments.embed --config=configs/embed.py --config.data.root=PHOTOS --workdir=runs/embedded
    python -m experiments.embed --config=configs/embed.py:aligned --config.data.root=lfw.bin --workdir=runs/lfw

PHOTOS holds one folder a person, or is a flat folder of photos whose people nobody knows. About 20 photos a second on
one core. `:aligned` is for photos that are aligned faces already, such as those in the `.bin` of a verification set
(insightface: LFW, CFP, AgeDB); about 40 a second.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=False)
    config.data = ConfigDict({"root": placeholder(str)})  # a folder, or a .bin
    config.min_score = 0.6  # of the detector, 0 to 1
    # Of several faces in a photo: `weighted` takes by size less the distance from the centre, `largest`, `central`;
    # `all` makes a row of each, without labels; `whole` takes the photo as an aligned face and detects nothing.
    config.face = "weighted"
    config.max_side = 640  # pixels; larger photos are searched in a smaller copy
    return common.variant(config, variant, {"aligned": _aligned})


def _aligned(config: ConfigDict) -> None:
    config.face = "whole"
