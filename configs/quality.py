"""Weights of photos from their quality: photos blurred, shrunk and darkened by known amounts.

    python -m experiments.quality --config=configs/quality.py --workdir=runs/quality
    python -m experiments.quality --config=configs/quality.py:lfw --config.data.root=LFW --workdir=runs/quality_lfw
    python -m experiments.quality --config=configs/quality.py:embedded --config.data.root=PHOTOS --workdir=runs/sface

Every method with the features as they are and scaled to one length. The ORL faces by default, 35 s on two cores:
expected EER 19.5 % without weights, 16.0 with weights of the known kind and amount, 16.7 with those of the measured
sharpness and contrast; scaled to one length 15.1 without weights and no gain by any, each +- 1.5.

`:lfw` takes 610 people of LFW by LBP, some four minutes. `:embedded` takes photos in folders of people, such as
`LFW/lfw-deepfunneled`, looks for the face in the degraded photo and describes it by SFace (extra `embed`); some five
minutes. Expected EER of vectors of one length: 11.6 % without weights, 10.7 with weights of their length before, 11.1
with those of the score of the detector, each +- 0.9.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=False)
    config.data = common.orl_faces(height=112, width=92)
    config.data.options.crop = None  # top, left, height, width
    config.data.options.min_images = placeholder(int)  # of a person, for the loader lfw
    config.people = common.people()
    config.people.min_images = 2
    config.people.max_images = 10
    config.num_people = placeholder(int)  # drawn at random; None takes all
    config.is_embedded = False  # SFace vectors of photos in the place of the image steps
    config.detector = ConfigDict({"min_score": 0.3, "face": "weighted", "max_side": 640})  # as of configs/embed.py
    config.degrade = ConfigDict()
    config.degrade.num_levels = 4
    config.degrade.blur = 4.0  # pixels of a standard deviation, at the strongest level
    config.degrade.height = 16  # pixels that the strongest shrinking leaves
    config.degrade.dark = 0.06  # the light that the strongest darkening leaves
    config.degrade.noise = 2.0  # grey levels of 255, on every photo
    config.image_steps = (("lbp", {"radii": (1, 2, 3), "cells": (6, 5), "root": True}),)
    config.num_components = 40  # PCA of the training people; None takes the vectors as they are
    config.num_folds = 5  # of people, each of whom tests once
    config.held_out = 0.25  # of the others: they choose exponents and calibrate
    config.num_bins = 8  # of equal numbers of photos
    config.num_bins_of_two = 4  # a side, where two qualities together make bins
    config.alphas = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0)  # 0 is the model without weights
    config.num_iters = 30
    config.num_resamples = 1000  # of people
    return common.variant(config, variant, {"smoke": _smoke, "lfw": _lfw, "embedded": _embedded})


def _smoke(config: ConfigDict) -> None:
    config.data.options.size = (56, 46)
    config.image_steps = (("lbp", {"radii": (1,), "cells": (3, 3), "root": True}),)
    config.people.max_images = 4
    config.num_folds = 2
    config.num_components = 6
    config.num_bins = 4  # as many as kinds and pairs of halves: one program for all
    config.num_bins_of_two = 2
    config.degrade.num_levels = 1
    config.alphas = (0.0, 0.5)
    config.num_iters = 3
    config.num_resamples = 50


def _lfw(config: ConfigDict) -> None:
    """Faces of LFW; `--config.data.root` holds the folder of the photos."""
    config.data.loader = "lfw"
    config.data.options.size = None
    config.data.options.crop = (65, 65, 120, 120)
    config.data.options.min_images = 4
    config.people.min_images = 4
    config.people.max_images = 6
    config.image_steps = (("lbp", {"radii": (1, 2, 3), "cells": (8, 8), "root": True}),)
    config.num_components = 100
    config.num_folds = 3


def _embedded(config: ConfigDict) -> None:
    """Photos of 250 x 250 pixels, as those of LFW."""
    config.data.loader = "folders"
    config.data.options.size = None
    config.is_embedded = True
    config.image_steps = ()
    config.people.min_images = 4
    config.people.max_images = 6
    config.num_people = 400
    config.degrade.blur = 8.0
    config.degrade.height = 24
    config.degrade.dark = 0.03
    config.num_components = None
    config.num_folds = 3
