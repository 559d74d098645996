"""Random-sampling LDA committees against single LDAs.

    python -m experiments.committee --config=configs/committee.py --workdir=runs/committee

ORL with 2, 3 and 5 training images a person; about 3 minutes on two cores. Expected errors of random subspaces with
the sum rule: 18.3, 10.1 and 3.8 %, against 21.4, 12.1 and 4.5 % for the best PCA and LDA, each +- 1.
`:yaleb` takes Extended Yale B from its MATLAB file and 5, 10 and 20 images: 30.8, 17.6 and 9.4 against 36.0, 20.0 and
10.4 %; about 10 minutes. `:lfw` takes the people of LFW with 20 images or more: `--config.data.root=...`.
`:embeddings` takes vectors of a network, `--config.data.root=FILE.npz`: with SFace, 62 people of LFW and 5 images the
mean over members verifies other photos of them with an EER of 0.7 % and a Cllr of 0.04; about 5 minutes.
"""

from ml_collections import ConfigDict

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=True)
    config.data = common.orl_faces(height=56, width=46)
    config.people = common.people()
    config.update(members())
    config.size_parts = ((0.0, 0.2), (0.0, 0.5), (0.1, 0.3), (0.2, 0.4), (0.3, 0.5))  # (M0, M1) of the analysis
    config.num_candidates = 200  # random subspaces that members may choose from
    config.candidate_part = 0.4  # axes of a candidate
    config.choices = (1, 2, 5, 10, 25, 50, 100, 200)
    config.num_resamples = 500  # of people, for intervals of the verification
    return common.variant(config, variant, {"smoke": _smoke, "yaleb": _yaleb, "lfw": _lfw, "embeddings": _embeddings})


def members() -> ConfigDict:
    """Splits, single LDAs and committees; the tour has these fields too."""
    config = ConfigDict()
    config.image_steps = ()  # none: the grey values themselves
    config.num_train = (2, 3, 5)  # images a person
    config.num_held_out = 2  # images a person that choose settings
    config.num_splits = 20
    config.max_images = 10  # probes of a person, in the pairs of the verification

    config.pca_widths = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0)  # of single LDAs, as parts of N - C; the last is N - C
    config.ridges = (0.01, 0.1, 1.0, 10.0)  # of single LDAs on all axes, in units of the mean eigenvalue

    config.committees = (  # besides random subspaces
        "random subspaces, drawn from all axes",
        "random subspaces, LDA axes tuned",
        "bags of people",
        "bags of images",
        "bootstrap of all images",
        "random subspaces of bags of people",
        "random subspaces of bags of images",
    )
    config.posterior = "gaussian"  # or cosine
    config.pair_score = "cosine"  # or distance, same_class: what the members score pairs of images by
    config.num_members = 100
    config.fixed_part = 0.2  # M0, as a part of N - C
    config.random_part = 0.4  # M1
    config.lda_widths = (0.1, 0.25, 0.5, 0.75, 1.0)  # M_lda to choose from, as parts of the most there can be
    config.floor = 1e-5  # least variance of an axis that may be drawn, relative to the largest
    config.people_part = 0.6  # people in a bag
    config.images_part = 0.7  # images a person in a bag
    config.bag_ridge = 0.1
    config.block_size = 25  # members in flight
    return config


def _smoke(config: ConfigDict) -> None:
    config.data.options.size = (28, 23)
    config.num_train = (3,)
    config.num_splits = 2
    config.num_members = 5
    config.ridges = (0.1, 1.0)
    config.size_parts = ((0.2, 0.4),)
    config.num_candidates = 6
    config.choices = (1, 6)
    config.num_resamples = 20


def _yaleb(config: ConfigDict) -> None:
    """Extended Yale B, 38 people x 64, from its `fea`/`gnd` file."""
    config.data.loader = "matlab"
    config.data.options = ConfigDict({"shape": (32, 32)})
    config.num_train = (5, 10, 20)


def _lfw(config: ConfigDict) -> None:
    """People of LFW with at least 20 images."""
    config.data.loader = "lfw"
    config.data.options = ConfigDict({"size": (56, 46), "crop": (68, 80, 112, 92), "min_images": 20})
    config.num_train = (5, 10)


def _embeddings(config: ConfigDict) -> None:
    """Vectors of a network: the people with 20 images or more, and 20 images of each."""
    common.embedded(config)
    config.people.min_images = 20
    config.people.max_images = 20
    config.num_splits = 10
