"""Retrieval of photographs after learning from groups of five.

    python -m experiments.retrieve --config=configs/retrieve.py --config.data.root=PHOTOS --workdir=runs/retrieve

PHOTOS holds one folder of colour photographs a class, for example Corel-1k; about 3 minutes on two cores. Expected
there, right photographs in the top 15 with rooted and balanced features: kernel NP-PER 7.7, kernel RCA 6.9, each
+- 0.2; with `:many`, nine groups a class instead of three, 6.9 and 7.5. `:classes` takes 4, 6, 8 and 10 of the classes.
`:made` needs no photographs: a generator makes pictures of 100 classes, of which 20, 50, 70 and 100 take part (right
ones in the top 15 by kernel RCA 3.5, 1.9, 2.2 and 1.8, by kernel NP-PER 2.8, 1.2, 0.9 and 0.6; about 10 minutes).
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=True)
    config.data = ConfigDict()
    config.data.loader = "folders"  # made: pictures of jaxface.data.patterns
    config.data.root = placeholder(str)
    config.data.options = ConfigDict({"size": (128, 128), "color": True})
    config.color_steps = (("rgb_to_luv", {}), ("luv_histogram", {"num_bins": 16}))
    config.texture_steps = (("to_gray", {}), ("block_dct", {"grid": (16, 16), "num_coefficients": 4}))
    config.scalings = ("rooted and balanced", "balanced", "plain")
    config.num_classes = placeholder(tuple)  # numbers of classes; None takes all there are
    config.per_class = 15  # photographs of each class in the database, and as many queries
    config.k = 15
    config.group_size = 5
    config.num_splits = 20
    config.num_draws = 1  # groupings of each split
    config.curve_widths = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)  # of kernel RCA, for a figure
    config.methods = (
        "rca", "ridge_rca", "np_per", "kernel_rca", "kernel_ridge_rca", "kernel_np_per", "kernel_np_per_rkhs",
    )  # fmt: skip

    # What methods choose from, on groups held out of the first split.
    config.num_folds = 3
    config.widths = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)  # PCA axes, as parts of rank S_g
    config.ridges = (0.001, 0.01, 0.1, 1.0)  # in units of the mean eigenvalue
    config.weights = (0.2, 0.6)  # of the prior of Joint Bayes
    config.bandwidths = (0.35, 0.5, 0.7, 1.0, 1.4)  # in units of the median distance
    return common.variant(config, variant, {"smoke": _smoke, "many": _many, "classes": _classes, "made": _made})


def _smoke(config: ConfigDict) -> None:
    """A few made pictures: `--config.data.loader=folders` and its root for photographs."""
    config.data.loader = "made"
    made = {"num_classes": 6, "images_per_class": 13, "size": (32, 32), "spread": 1.0, "variation": 0.7}
    config.data.options = ConfigDict({**made, "off_topic": 0.1})
    config.num_classes = (3, 6)
    config.color_steps = (("rgb_to_luv", {}), ("luv_histogram", {"num_bins": 4}))
    config.texture_steps = (("to_gray", {}), ("block_dct", {"grid": (4, 4), "num_coefficients": 4}))
    config.scalings = ("rooted and balanced",)
    config.per_class = 6
    config.k = 6
    config.group_size = 2
    config.num_splits = 2
    config.num_folds = 2
    config.methods = ("np_per", "kernel_rca", "kernel_np_per")
    config.widths = (0.3, 0.7)
    config.bandwidths = (0.7, 1.4)
    config.curve_widths = (0.3, 1.0)


def _many(config: ConfigDict) -> None:
    """Nine groups of each class instead of three."""
    config.per_class = 45


def _classes(config: ConfigDict) -> None:
    """Some of the classes; the study's own features only."""
    config.num_classes = (4, 6, 8, 10)
    config.scalings = ("rooted and balanced",)


def _made(config: ConfigDict) -> None:
    """As many classes as in the paper, and as many pictures of each; a generator makes them."""
    config.data.loader = "made"
    config.data.options = ConfigDict(
        {
            "num_classes": 100,
            "images_per_class": 31,
            "size": (64, 64),
            "spread": 1.0,
            "variation": 0.7,
            "off_topic": 0.2,
        }
    )
    config.num_classes = (20, 50, 70, 100)
    config.scalings = ("rooted and balanced",)
    config.per_class = 15  # one picture of each class is left over
    config.num_splits = 3
    config.methods = ("kernel_rca", "kernel_ridge_rca", "kernel_np_per", "kernel_np_per_rkhs")
    config.num_folds = 2
    config.widths = (0.05, 0.1, 0.2, 0.4)
    config.ridges = (0.01, 0.1)
    config.bandwidths = (0.5, 0.7, 1.0)
