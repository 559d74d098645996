"""A verifier of your own and its evidence: one set of known people in, the recogniser to keep out.

    python -m experiments.verifier --config=configs/verifier.py --workdir=runs/verifier
    python -m experiments.verifier --config=configs/verifier.py:embeddings --config.data.root=FILE.npz --workdir=runs/v
    python -m experiments.verifier --config=configs/verifier.py:images --config.data.root=FOLDER --workdir=runs/v
    python -m experiments.verifier --config=configs/verifier.py:photos --config.data.root=PHOTOS --workdir=runs/v
    python -m experiments.verifier --config=configs/verifier.py:stream --config.data.root=FILE.npy --workdir=runs/v \
        --config.data.options.labels=LABELS.txt

The default takes the ORL faces. `:embeddings` takes vectors of `experiments.embed` or of another tool (`.npz`, `.npy`,
CSV, Kaldi), `:images` one folder of cropped faces a person, `:photos` one folder of photos a person: faces are found,
aligned and embedded first (extra `embed`). `:stream` leaves the vectors of a `.npy` or `.npz` on the disk, for more of
them than fit into memory; the people of one fold test.

Expected on SFace embeddings of LFW, 20 minutes on two busy cores: EER of the cosine 0.64 %, of Joint Bayes 0.49 %, a
difference of 0.15 points [0.02, 0.27]; Cllr 0.030, min Cllr 0.024. On ORL, in 3 minutes: LDA with the cosine 8.1 %, the
plain cosine 15.4 %, a difference of 7.3 points [3.6, 12.2].
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=True)
    config.data = common.orl_faces(height=28, width=23)
    config.image_steps = ()  # of images; cosines keep d x d matrices, so some hundred dimensions
    config.num_folds = 10  # of the people: each fold tests once
    config.share_calibrate = 0.2  # of the people of the other folds: calibrate; the rest fit
    config.people = (
        ConfigDict(  # files with a name a line, instead of folds; of the others some calibrate, the rest fit
            {"fit": placeholder(str), "calibrate": placeholder(str), "test": placeholder(str)}
        )
    )
    config.trials = placeholder(str)  # a list of pairs of files, instead of folds: its people test, with these pairs
    config.num_choice_folds = (
        3  # of the people that do not test: choose among the kinds; of a stream those who calibrate
    )
    config.max_images = 10  # of a person in pairs, so that no person decides alone
    config.kinds = (
        "cosine",
        "centered cosine",
        "LDA, cosine",
        "Joint Bayes",
        "LDA, Joint Bayes",
        "whitened, one length, Joint Bayes",
    )
    config.quality = placeholder(
        str
    )  # of photos: an array of the .npz, FILE.csv:COLUMN, or length; see docs/quality.md
    config.num_quality_bins = 8
    config.quality_exponents = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)  # of weights; held-out people choose
    config.source = ConfigDict()  # other people by another camera: their model with and without the names here
    config.source.loader = "embeddings"
    config.source.root = placeholder(str)
    config.source.options = common.options_of_vectors()
    config.source.weights = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)  # of the source; held-out people choose
    config.num_components = 150  # most axes of a reduction; None keeps all
    config.num_iters = 30  # of EM
    config.num_resamples = 1000  # of the people, for intervals
    config.far = (0.01, 0.001)
    config.stream = ConfigDict(
        {
            "batch_size": 16_384,  # vectors
            "num_groups": 50,  # of the people who test: pairs stay within a group, and intervals resample groups
            "calibrate_people": 1000,  # at most
        }
    )
    config.pairs = placeholder(str)  # CSV of pairs of files to decide on, with the header a,b or a,b,same
    config.prior = 0.5  # of one person, for these decisions
    config.presence_prior = 0.05  # of somebody enrolled, in the report's table of identification
    config.norms = False  # report identification by normalised scores too
    config.min_score = 0.6  # photos: of a detected face
    config.face = "weighted"  # photos, of several faces: size less distance from the centre; or largest, central
    config.max_side = 640  # photos: pixels; larger ones are searched in a smaller copy
    variants = {"smoke": _smoke, "embeddings": _embeddings, "images": _images, "photos": _photos, "stream": _stream}
    return common.variant(config, variant, variants)


def _smoke(config: ConfigDict) -> None:
    config.num_folds = 2
    config.num_choice_folds = 2
    config.kinds = ("cosine", "LDA, cosine", "Joint Bayes")
    config.num_components = 20
    config.num_iters = 5
    config.num_resamples = 50


def _vectors(config: ConfigDict) -> None:
    """Vectors of a deep network keep all their dimensions."""
    config.runtime.x64 = False
    config.num_components = None
    config.image_steps = ()


def _embeddings(config: ConfigDict) -> None:
    _vectors(config)
    config.data.loader = "embeddings"
    config.data.options = common.options_of_vectors()


def _images(config: ConfigDict) -> None:
    config.data.loader = "folders"


def _photos(config: ConfigDict) -> None:
    _vectors(config)
    config.data.loader = "photos"
    config.data.options = ConfigDict()


def _stream(config: ConfigDict) -> None:
    _vectors(config)
    config.data.loader = "stream"
    config.data.options = common.options_of_vectors()
