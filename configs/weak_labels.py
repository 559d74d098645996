"""Recognition when training images come in small groups without names.

    python -m experiments.weak_labels --config=configs/weak_labels.py --workdir=runs/weak_labels

ORL with local 5 x 5 normalisation; about 5 minutes on two cores. Expected errors with groups of 2: NP-PER 19.9 %, RCA
after PCA 28.9 %, RCA with a ridge 19.6 %, Joint Bayes 18.1 %, each +- 0.5. `:raw` takes the pixels as they are (the
first three: 4.5, 3.4 and 4.5 %).
`:yale` and `:yaleb` take the usual MATLAB files: `--config.data.root=Yale_64x64.mat` (Yale, groups of 3: 20.4, 34.2 and
20.3 %, about 5 minutes; Extended Yale B, groups of 2: 0.7, 1.4 and 0.6 %, about 9).
`:lfw` takes 256 people of LFW with 3 images to train and 2 to test each: `--config.data.root=LFW` (groups of 3: NP-PER
45.9, RCA after PCA 64.1, with a ridge 49.6 %; about 4 minutes). `:videos` takes videos only, your own with
`--config.videos.root=VIDEOS`: one folder a person, in it one folder of frames a video. `:many` takes up to 16,000 drawn
faces, random features in the place of a kernel (4.3 % with 2,048 features; about 5 minutes).
`:embeddings` takes vectors of a network, `--config.data.root=FILE.npz`, of the people with 20 images or more:
on SFace and LFW every method errs by less than 0.4 %, RCA with a ridge and groups of 6 by 0.1 %.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=True)
    config.data = common.orl_faces(height=48, width=48)  # 2,304 pixels
    config.people = common.people()
    config.update(groups())
    config.gallery = "grouped"  # grouped: only images of some group; all: every training image

    config.clustering = ConfigDict()
    config.clustering.methods = ("eigenfaces", "rca", "np_per", "kernel_rca", "kernel_np_per")
    config.clustering.starts = ("k-means++", "random")
    config.clustering.num_draws = 20
    config.clustering.num_restarts = 20
    config.clustering.num_iters = 30

    config.scatter = ConfigDict({"num_draws": 10, "num_simulated": 512})  # groupings; simulated images a person

    config.videos = ConfigDict()
    config.videos.root = placeholder(str)  # your own: one folder a person, in it one folder of frames a video
    config.videos.methods = ("rca", "ridge_rca", "np_per", "kernel_rca", "kernel_np_per")
    config.videos.sizes = (7, 15, 30, 60)  # most frames in a group
    config.videos.num_draws = 3  # sets of videos
    config.videos.num_people = 8
    config.videos.frames_per_run = 60  # two runs a person to train on, three to test
    config.videos.movement = 2.0  # pixels from one frame to the next; of your own videos, pixels of a warped face
    config.videos.min_score = 0.6  # of the detector, 0 to 1, for your own videos
    config.videos.max_side = 640  # pixels; larger frames are searched in a smaller copy
    config.videos.size = 48  # pixels a side, after the warp
    config.videos.seed = 0
    config.videos.num_folds = 2
    config.videos.widths = (0.05, 0.2, 0.5)
    config.videos.ridges = (0.01, 0.1, 1.0)
    config.videos.weights = (0.2, 0.6)
    config.videos.bandwidths = (0.7, 1.0, 1.4)

    config.many = ConfigDict()
    config.many.sizes = ()  # training images; :many
    config.many.group_size = 4
    config.many.kernel_most = 2000  # images of which a kernel matrix is made
    config.many.num_features = (256, 1024)  # random frequencies; a sine and a cosine of each
    config.many.bandwidth = 2.0  # in units of the median distance
    config.many.num_components = 20  # directions of NP-PER from sums
    config.many.ridge = 0.01  # in units of the mean eigenvalue
    config.many.num_people = 300  # new ones, to test
    config.many.num_images = 4  # of each, one of them the gallery
    variants = {"smoke": _smoke, "raw": _raw, "yale": _yale, "yaleb": _yaleb, "lfw": _lfw, "embeddings": _embeddings}
    variants |= {"videos": _videos, "many": _many}
    return common.variant(config, variant, variants)


def groups() -> ConfigDict:
    """Random groups and what methods choose from; the tour has these fields too."""
    config = ConfigDict()
    config.image_steps = (("local_norm", {"window": 5}),)
    config.num_train = 6  # images a person to draw groups from; the rest are probes
    config.group_sizes = (2, 4, 6)
    config.num_draws = 100  # random groupings for each size
    config.methods = (
        "eigenfaces", "fisherfaces", "rca", "ridge_rca", "np_per", "joint_bayes", "np_per_joint_bayes",
        "kernel_rca", "kernel_ridge_rca", "kernel_np_per", "kernel_np_per_rkhs",
        "cosine_rca", "cosine_np_per", "cosine_np_per_rkhs",
    )  # fmt: skip

    # Settings are chosen among these, on groups held out.
    config.num_folds = 5
    config.widths = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)  # PCA axes, as parts of rank S_g
    config.ridges = (0.001, 0.01, 0.1, 1.0)  # in units of the mean eigenvalue
    config.weights = (0.05, 0.2, 0.4, 0.6, 0.8)  # of the prior of Joint Bayes
    config.bandwidths = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0)  # s of exp(-d^2 / 2 s^2), in units of the median distance
    return config


def _smoke(config: ConfigDict) -> None:
    config.data.options.size = (28, 23)
    config.num_draws = 3
    config.group_sizes = (3,)
    config.methods = ("eigenfaces", "fisherfaces", "rca", "ridge_rca", "np_per", "kernel_rca", "kernel_np_per")
    config.num_folds = 2
    config.widths = (0.3, 0.9)
    config.ridges = (0.1,)
    config.weights = (0.2, 0.6)
    config.bandwidths = (0.7, 1.4)
    config.scatter.num_draws = 2
    config.scatter.num_simulated = 8
    config.clustering.methods = ("np_per", "kernel_np_per")
    config.clustering.num_draws = 2
    config.clustering.num_restarts = 3
    config.videos.sizes = (7,)
    config.videos.num_draws = 1
    config.videos.num_people = 3
    config.videos.frames_per_run = 14
    config.videos.size = 24
    config.videos.methods = ("ridge_rca", "np_per")
    config.videos.ridges = (0.1,)


def _raw(config: ConfigDict) -> None:
    """Pixels as they are."""
    config.image_steps = ()


def _yale(config: ConfigDict) -> None:
    """Yale, 15 people x 11, from its `fea`/`gnd` file, with the group sizes and repetitions of the paper."""
    config.data.loader = "matlab"
    config.data.options = ConfigDict({"shape": (64, 64)})
    config.image_steps = (
        ("resize", {"height": 48, "width": 48, "method": "area"}),
        ("local_norm", {"window": 5}),
    )
    config.num_train = 7
    config.group_sizes = (3, 5, 7)
    config.clustering.num_draws = 100
    config.clustering.num_restarts = 100
    config.videos.sizes = ()


def _yaleb(config: ConfigDict) -> None:
    """Extended Yale B, 38 people x 64, from its `fea`/`gnd` file."""
    config.data.loader = "matlab"
    config.data.options = ConfigDict({"shape": (32, 32)})
    config.num_train = 12
    config.group_sizes = (2, 4, 6, 12)
    config.videos.sizes = ()


def _lfw(config: ConfigDict) -> None:
    """Many people with few images: as many as in the paper's FERET, 3 images of each to train and 2 to test."""
    config.data.loader = "lfw"
    config.data.options = ConfigDict({"size": (56, 46), "crop": (68, 80, 112, 92), "min_images": 7})
    config.people.max_images = 5
    config.image_steps = (("lbp", {"radii": (1, 2), "cells": (8, 6), "root": True}),)  # pixels: 85 % error
    config.num_train = 3
    config.group_sizes = (2, 3)
    config.num_draws = 10
    config.num_folds = 2
    config.widths = (0.1, 0.3, 0.6)
    config.ridges = (0.01, 0.1, 1.0)
    config.weights = (0.2, 0.6)
    config.bandwidths = (0.7, 1.0)
    config.scatter.num_draws = 2
    config.clustering.methods = ("np_per", "kernel_np_per")
    config.clustering.starts = ("k-means++",)
    config.clustering.num_draws = 1
    config.clustering.num_restarts = 3
    config.videos.sizes = ()


def _embeddings(config: ConfigDict) -> None:
    """Vectors of a network: the people with 20 images or more, and 20 images of each.

    Linear NP-PER needs more dimensions than grouped images less groups, so only the kernel methods have a null space.
    """
    common.embedded(config)
    config.people.min_images = 20
    config.people.max_images = 20
    config.group_sizes = (2, 3, 6)
    config.num_draws = 20
    config.methods = ("eigenfaces", "fisherfaces", "rca", "ridge_rca", "kernel_ridge_rca", "kernel_np_per_rkhs")
    config.clustering.methods = ("eigenfaces", "rca", "kernel_np_per_rkhs")
    config.clustering.num_draws = 5
    config.videos.sizes = ()


def _videos(config: ConfigDict) -> None:
    """Videos only: simulated ones, or your own with `--config.videos.root=VIDEOS`."""
    config.group_sizes = ()


def _many(config: ConfigDict) -> None:
    """Up to 16,000 drawn faces in groups of 4: random features against a kernel of all with all."""
    config.group_sizes = ()
    config.videos.sizes = ()
    config.many.sizes = (1000, 2000, 4000, 8000, 16000)
