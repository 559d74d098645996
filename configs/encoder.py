"""An encoder trained through the log-likelihood ratio of pairs and sets, and what the ratio sees in the pixels.

    python -m experiments.encoder --config=configs/encoder.py --workdir=runs/encoder
    python -m experiments.encoder --config=configs/encoder.py:lfw --config.data.root=LFW --workdir=runs/encoder-lfw

ORL: 20 people train, 8 choose the step and calibrate, 12 test; half a minute. Expected: no gain for people never seen,
EER 11.3 % by PCA and Joint Bayes and 11.5 % trained (+0.2 points, -0.4 to +0.8): 20 people are few for 45,000 weights.
`:lfw` takes the people of LFW with five photos or more, 260 of whom train, 7 minutes: 22.7 % and 23.4 % (+0.7, -0.3 to
+1.7), 24.0 % at the last step.
"""

from ml_collections import ConfigDict

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=False)
    config.data = common.orl_faces(height=28, width=23)
    config.num_splits = 10
    config.train_people = 20
    config.held_out_people = 8
    config.test_people = 12
    config.max_images = 10  # of a person, to choose, calibrate and test
    config.num_components = 40  # of the PCA from which the encoder begins, and of its coordinates
    config.num_hidden = 64  # units beside the PCA
    config.rank = 19  # of T_mu
    config.num_iters = 20  # of EM, for the start
    config.people_a_batch = 10
    config.images_a_person = 4
    config.prior = 0.5  # of one person, in the loss
    config.learning_rate = 1e-3
    config.num_segments = 10  # held-out people choose after which of them to stop
    config.steps_a_segment = 10
    return common.variant(config, variant, {"smoke": _smoke, "lfw": _lfw})


def _smoke(config: ConfigDict) -> None:
    config.data.options.size = (14, 12)
    config.num_splits = 2
    config.num_components = 8
    config.num_hidden = 4
    config.rank = 4
    config.num_iters = 3
    config.people_a_batch = 4
    config.images_a_person = 3
    config.num_segments = 2
    config.steps_a_segment = 2


def _lfw(config: ConfigDict) -> None:
    """People of LFW with five photos or more."""
    config.data.loader = "lfw"
    config.data.options = ConfigDict({"size": (28, 23), "crop": (68, 80, 112, 92), "min_images": 5})
    config.num_splits = 5
    config.train_people = 260
    config.held_out_people = 60
    config.test_people = 100
    config.num_components = 100
    config.num_hidden = 256
    config.rank = 99
    config.people_a_batch = 32
    config.steps_a_segment = 50
