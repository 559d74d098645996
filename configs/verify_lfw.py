"""LFW, unrestricted, outside data not used: uniform LBP, PCA, Joint Bayes, and what each step adds.

    python -m experiments.verify_lfw --config=configs/verify_lfw.py --config.data.root=LFW --workdir=runs/lfw

LFW holds `lfw-deepfunneled/` (or `lfw/`) and the protocol's `pairs.txt` and `people.txt`. About 15 minutes on two
cores. `:view1` is for choosing settings (one split), the default is View 2 (ten folds) for reporting. Expected there:
67.5 % for the cosine of raw LBP, 84.7 % for Joint Bayes with full EM, 86.0 % with length normalisation, 89.2 % for the
sum over four kinds of features with mirror images, each +- 0.6.

`:embeddings` takes the vectors of a network instead: `--config.embeddings=FILE.npz`, whose `files` name the photos
(Name/Name_0001.jpg); of LFW only the lists of the protocol are needed. Some minutes. Expected with SFace: 99.40 % for
the cosine, 99.55 % for Joint Bayes on the vectors as they are, each +- 0.12.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=False)  # 13,233 x 17,700 features: 0.9 GB in float32
    config.data = ConfigDict({"root": placeholder(str)})
    config.embeddings = placeholder(str)  # then crop, image steps, fused features and num_components have no meaning
    config.options = common.options_of_vectors()  # of the file of embeddings
    config.view = 2  # 1 chooses settings, 2 reports
    config.crop = (65, 65, 120, 120)  # top, left, height, width; View 1 prefers it to 150 x 150
    config.image_steps = (("lbp", {"radii": (1, 2, 3), "cells": (10, 10), "root": True}),)
    # Name, crop, image steps. Each is the mean over a face and its mirror image, scored by the best method, and summed.
    config.fused_features = (
        ("lbp", config.crop, config.image_steps),
        ("lbp-small", (75, 75, 100, 100), (("lbp", {"radii": (1, 2, 3), "cells": (8, 8), "root": True}),)),
        ("lbp-wide", (50, 50, 150, 150), (("lbp", {"radii": (3, 5, 7), "cells": (10, 10), "root": True}),)),
        ("hog", config.crop, (("hog", {"cell": 8, "num_bins": 9, "block": 2}),)),
    )
    config.num_components = 400
    config.lda_components = 150
    config.ranks = (1, 2, 5, 10, 20, 40, 80, 120, 200, 300)  # of the low-rank form, below the number of dimensions
    config.fitted_ranks = (10, 20, 40, 80)  # directions of T_mu that a fit may have, beside all
    config.num_iters = 20
    config.e_step = "full"  # "expanded" is PX-EM: far nearer to the maximum, the same accuracy
    config.num_resamples = 1000  # of people, for intervals
    return common.variant(config, variant, {"view1": _view1, "embeddings": _embeddings})


def _view1(config: ConfigDict) -> None:
    config.view = 1


def _embeddings(config: ConfigDict) -> None:
    """Vectors of a network, with all their dimensions."""
    config.image_steps = ()
    config.fused_features = ()
