"""People out of a heap of photos: groups of photos of one person, without names.

    python -m experiments.people --config=configs/people.py --config.data.root=FILE.npz --workdir=runs/people
    python -m experiments.people --config=configs/people.py --config.data.root=FILE.npz --workdir=runs/mine \
        --config.model=runs/verifier/params/verifier.safetensors --config.num_people=40
    python -m experiments.people --config=configs/people.py:photos --config.data.root=PHOTOS --workdir=runs/mine \
        --config.model=runs/people/params/verifier.safetensors --config.num_people=40

With `--config.model`, a verifier that was trained on others, all photos become groups: `groups.csv` and a page with
faces. `num_people` is the number of people that you expect, roughly. `:photos` takes a folder of photos: every face of
every photo is found and described first (extra `embed`), and two faces of one photo are never one person.

Without a model the people must be known. Over random splits some people train a verifier, others choose settings, and
the photos of the rest are grouped and compared with the truth, beside average linkage of cosines and k-means. The
verifier of the first split is saved.

Expected on SFace embeddings of LFW, some 6 minutes on two busy cores: B-cubed F 99.3 % by ratios of sets with scaled
noise, 99.2 by average linkage (no difference shown), 75.8 by k-means; 1.02 times the true number of people.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=False)
    config.data = ConfigDict({"loader": "embeddings", "root": placeholder(str)})
    config.data.options = common.options_of_vectors()
    config.data.options.min_people = 0  # labels may be missing where there is a model
    config.image_steps = ()  # of images, where there is no model
    config.model = placeholder(str)  # params/verifier.safetensors, trained on other people
    config.num_people = placeholder(int)  # with a model: how many you expect; Ewens' alpha follows
    config.threshold = placeholder(float)  # with a model: least ratio of a merge in nats, instead of a number
    config.noise_scale = placeholder(float)  # with a model: of its noise; None takes its calibration of pairs
    config.num_neighbors = placeholder(int)  # on a list that merges follow; None: all, up to 20,000 faces, then 30
    config.min_images = 2  # without a model: of a person; people with fewer or more photos are left out
    config.max_images = 50
    config.num_splits = 5  # by people
    config.share_fit = 0.4  # of the people: train the verifier
    config.share_choose = 0.2  # of the people: choose the scale of the noise, calibrate
    config.kind = "whitened, one length, Joint Bayes"  # of verifier, as in configs/verifier.py
    config.num_components = 128  # most axes
    config.num_iters = 20  # of EM
    config.max_pairs_images = 10  # of a person in the pairs that calibrate
    config.noise_scales = (1.0, 1.25, 1.5, 1.75, 2.0, 2.5)  # of the model's noise: held-out people choose
    config.num_restarts = 3  # of k-means
    config.num_kmeans_iters = 30
    config.num_shown = 12  # groups with faces on the page
    config.min_score = 0.6  # photos: of a detected face
    config.face = "all"  # photos: every face; without a model: weighted, largest, central or whole
    config.max_side = 640  # photos: pixels; larger ones are searched in a smaller copy
    return common.variant(config, variant, {"smoke": _smoke, "photos": _photos})


def _smoke(config: ConfigDict) -> None:
    """The ORL faces by their grey values."""
    config.data.loader = "orl"
    config.data.options.min_people = None
    config.data.options.size = (28, 23)
    config.num_splits = 2
    config.num_components = 20
    config.num_iters = 3
    config.noise_scales = (1.0, 2.0)
    config.num_restarts = 1
    config.num_kmeans_iters = 5
    config.num_shown = 3


def _photos(config: ConfigDict) -> None:
    config.data.loader = "photos"
    config.data.options = ConfigDict()
