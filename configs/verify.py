"""Joint Bayesian verification with transfer: does a source model help when few target people are known?

    python -m experiments.verify --config=configs/verify.py --workdir=runs/verify

Default: 16 ORL people are the source; the other 24 are seen by a camera of 12 x 12 pixels with noise of 40 grey
levels: 2, 5 or 10 of them train, 4 calibrate, 10 test. About 20 seconds on two cores. Expected at 10 target people: EER
14.7 % for transfer, 14.5 pooled, 16.2 source only, 17.9 target only; raw Cllr 0.72, 0.83, 2.25, 0.91 bits.

`:lfw` takes LFW as the source and ORL as the target, with `--config.data.root=LFW` (LBP features, up to 20 people).
`:lfw_yale` and `:lfw_yaleb` take Yale and Extended Yale B instead, `--config.target.root=Yale_64x64.mat` or
`YaleB_32x32_ori.mat`.
Your own images: `--config.data.loader=folders --config.data.root=SOURCE --config.target.loader=folders
--config.target.root=TARGET`; vectors of a network by `:embeddings`, with `.npz` files on both sides and all their
dimensions.
"""

from ml_collections import ConfigDict

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=True)
    config.data = common.orl_faces(height=56, width=46)  # the source
    config.people = common.people()  # of two sets; a simulated camera takes all
    config.update(common.camera_change())
    config.changes = ConfigDict()  # simulated source models and cameras
    config.changes.num_draws = 20  # 0 leaves them out, as with sets of one's own
    config.changes.dim = 20
    config.changes.num_images = 1000  # without labels
    config.changes.num_people = 100  # of four images, who test
    variants = {"smoke": _smoke, "lfw": _lfw, "lfw_yale": _lfw_yale, "lfw_yaleb": _lfw_yaleb}
    return common.variant(config, variant, {**variants, "embeddings": _embeddings})


def _smoke(config: ConfigDict) -> None:
    config.num_splits = 2
    config.target_people = (5,)
    config.num_iters = 5
    config.weights = (0.0, 0.5, 1.0)
    config.changes.update(num_draws=2, num_images=200, num_people=20)


def _lfw(config: ConfigDict) -> None:
    """People of LFW are the source and those of ORL the target, cropped so that eyes and mouths agree."""
    config.runtime.x64 = False  # 9,164 x 5,664 features
    config.changes.num_draws = 0
    config.data.loader = "lfw"
    config.data.options = ConfigDict({"size": (64, 52), "crop": (54, 72, 129, 106), "min_images": 2})
    config.target.loader = "orl"
    config.target.options.size = (64, 52)
    config.image_steps = (("lbp", {"radii": (1, 2), "cells": (8, 6), "root": True}),)
    config.num_components = 100
    config.length_normalize = True
    config.target_people = (2, 5, 10, 20)


def _lfw_yale(config: ConfigDict) -> None:
    """People of LFW are the source and the 15 of Yale the target, who have 11 images each."""
    _lfw(config)
    config.data.options = ConfigDict({"size": (64, 64), "crop": (89, 75, 102, 102), "min_images": 2})
    config.target.loader = "matlab"
    config.target.options = ConfigDict({"shape": (64, 64)})
    config.image_steps = (("lbp", {"radii": (1, 2), "cells": (8, 8), "root": True}),)
    config.target_people = (2, 5)
    config.test_people = 6


def _lfw_yaleb(config: ConfigDict) -> None:
    """People of LFW are the source and the 38 of Extended Yale B the target, each under about 64 lights."""
    _lfw(config)
    config.data.options = ConfigDict({"size": (32, 32), "crop": (92, 86, 87, 77), "min_images": 2})
    config.target.loader = "matlab"
    config.target.options = ConfigDict({"shape": (32, 32)})
    config.image_steps = (("lbp", {"radii": (1, 2), "cells": (4, 4), "root": True}),)


def _embeddings(config: ConfigDict) -> None:
    common.embedded_domains(config)
    config.changes.num_draws = 0
