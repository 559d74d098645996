"""Recognition when training images come in small groups without names.

    python -m experiments.weak_labels --config=configs/weak_labels.py --workdir=runs/weak_labels

About half a minute on two cores. Expected on ORL with local 5 x 5 normalisation, at groups of 2, 4 and 6 images:
Eigenfaces, which know no name, 32.5, 46.1 and 32.5 % error; Fisherfaces with a ridge, which know all, 22.5, 31.8 and
22.5 % (groups of 4 leave two of the six images of a person out of the gallery). `:raw` takes the pixels as they are.
"""

from ml_collections import ConfigDict

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=True)
    config.data = common.orl_faces(height=56, width=46)
    config.image_steps = (("local_norm", {"window": 5}),)
    config.num_train = 6  # images a person to draw groups from; the rest are probes
    config.group_sizes = (2, 4, 6)
    config.num_draws = 100  # random groupings for each size
    config.gallery = "grouped"  # grouped: only images of some group; all: every training image

    config.methods = ConfigDict()
    config.methods.eigenfaces = ConfigDict({"num_components": 39})
    config.methods.fisherfaces = ConfigDict({"num_components": 39, "ridge": 0.1})
    return common.variant(config, variant, {"smoke": _smoke, "raw": _raw})


def _smoke(config: ConfigDict) -> None:
    config.data.options.size = (28, 23)
    config.num_draws = 3
    config.group_sizes = (2, 6)


def _raw(config: ConfigDict) -> None:
    """Pixels as they are."""
    config.image_steps = ()
