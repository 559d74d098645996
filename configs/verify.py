"""Joint Bayesian verification with transfer: does a source model help when few target people are known?

    python -m experiments.verify --config=configs/verify.py --workdir=runs/verify

Default: 16 ORL people are the source; the other 24 are seen by a camera of 12 x 12 pixels with noise of 40 grey levels,
2, 5 or 10 of them train, 4 calibrate, 10 test. About 2 minutes on two cores. Expected at 10 target people: EER near 17 %
for transfer and pooled training, near 19 % for source only and target only; Cllr (raw) 0.8, 1.0, 3.3 and 1.0.

Your own images: `--config.data.loader=folders --config.data.root=SOURCE --config.target.loader=folders
--config.target.root=TARGET`.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=True)
    config.data = common.orl_faces(height=56, width=46)  # the source
    config.target = ConfigDict()
    config.target.loader = placeholder(str)  # a target set of its own; None simulates another camera
    config.target.root = placeholder(str)
    config.target.options = ConfigDict({"size": (56, 46)})
    config.camera = ConfigDict({"size": 12, "noise": 40.0})  # pixels a side, grey levels of 255

    config.num_splits = 20
    config.source_people = 16  # of the one set, when the target is simulated
    config.target_people = (2, 5, 10)  # to train on
    config.calibration_people = 4  # choose w and calibrate; count in every method's budget
    config.test_people = 10

    config.image_steps = (("crop", {"top": 0, "left": 0, "height": 56, "width": 46}),)
    config.num_components = 20  # PCA of the source
    config.length_normalize = False
    config.e_step = "full"  # full, or approximate (means only, as in the paper)
    config.num_iters = 30
    config.weights = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)  # w = lambda / (1 + lambda)
    return common.variant(config, variant, {"smoke": _smoke})


def _smoke(config: ConfigDict) -> None:
    config.num_splits = 2
    config.target_people = (5,)
    config.num_iters = 5
    config.weights = (0.0, 0.5, 1.0)
