"""A whole face from its eye region: dictionaries of the paper, and regressions.

    python -m experiments.hallucinate --config=configs/hallucinate.py --workdir=runs/hallucinate
    python -m experiments.hallucinate --config=configs/hallucinate.py:lfw --config.data.root=FOLDER --workdir=runs/lfw

ORL by four folds of people, 3 minutes: PSNR 18.8 dB by DW-KSVD, 18.9 by Fastfood DW-KSVD 5x and 10x, 20.3 by ridge
regression. LFW with 822 people held out, 7 minutes: 19.6, 20.0 and 19.9, 21.7, and 22.1 dB by a network on ridge; on
another machine to 0.1 dB. `overcomplete` in the place of `lfw` learns 4,096 atoms (Fastfood 10x: 8,192) from up to
300,000 variations of these faces, 25 minutes of CPU time: 19.35 dB by DW-KSVD, 19.50 by Fastfood 5x, 19.32 by 10x.
`million` learns 4,096 from a million.
"""

from ml_collections import ConfigDict

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=True)  # for KCFA; faces and dictionaries are float32
    config.data = common.orl_faces(height=32, width=32)
    config.data.options.crop = (26, 4, 84, 84)
    config.visible = (0, 13, 0, 32)  # top, bottom, left and right of what is seen
    config.max_images = 10  # of a person
    config.num_folds = 4  # of people
    config.num_tests = 4  # folds that are tested, each by models of all others
    config.tuning_part = 0.2  # of the people who train: they choose settings, and then train too
    config.num_resamples = 1000  # of people, for intervals
    config.num_shown = 10  # people in a gallery

    config.methods = (
        "pca",
        "ksvd",
        "dw_ksvd",
        "fastfood_5x_dekernelized",
        "fastfood_5x",
        "fastfood_10x",
        "matched_dw_ksvd",
        "pca_prior",
        "ridge",
        "fastfood_ridge",
        "kernel_ridge",
        "network",
    )
    config.settings = settings(num_atoms=100, sparsity=6, num_iters=8)
    config.settings.network.batch_size = 32

    config.kcfa = ConfigDict()
    config.kcfa.min_images = 2  # of a person who gets a filter
    config.kcfa.ridge = 1e-6
    config.kcfa.num_bins = 4096  # of scores in [-1, 1]
    config.kcfa.num_resamples = 500
    config.kcfa.max_kept = 1500  # images of a fold: intervals need their scores; of more, random people give them

    config.measurements = ConfigDict()  # other parts of the face, random pixels, small images
    config.measurements.methods = ("dw_ksvd", "fastfood_5x", "ridge")
    config.measurements.max_faces = 3000  # that train
    config.measurements.ridge = 0.03
    config.measurements.share = 0.1  # of the pixels, drawn at random
    config.measurements.factor = 4  # pixels of a square whose mean is seen

    config.bandwidths = ConfigDict()  # of fastfood_5x, in the other settings
    config.bandwidths.forms = ("sin", "cos_sin")
    config.bandwidths.inverses = ("least_squares", "gauss_newton")
    config.bandwidths.quantiles = (0.999, 0.99, 0.9, 0.7)  # share of the features that are not folded
    config.bandwidths.max_faces = 3000  # that train
    config.bandwidths.max_tests = 400

    config.kernels = ConfigDict()
    config.kernels.sizes = (75, 150, 300)  # training faces of a fit whose burden is measured
    config.kernels.num_atoms = 50
    config.kernels.sparsity = 6
    config.kernels.num_iters = 5
    config.kernels.kernels = ("gaussian, half", "gaussian", "polynomial")  # half: of the median distance
    config.kernels.num_people = 40  # who are named by dictionaries
    config.kernels.num_train = 5  # photos of a person; the others are named
    config.kernels.class_atoms = 5
    config.kernels.class_sparsity = 3
    config.kernels.num_splits = 10

    config.streaming = ConfigDict()
    config.streaming.seed = 0
    config.streaming.method = "dw_ksvd"  # or fastfood_dw_ksvd, whose features are made for each batch and not kept
    config.streaming.beta = 10.0
    config.streaming.expansion = 5  # the next four are of Fastfood
    config.streaming.quantile = 0.999
    config.streaming.form = "sin"
    config.streaming.inverse = "least_squares"
    config.streaming.num_faces = 0  # variations of the faces that train; 0 takes these faces, each once
    config.streaming.flip = True  # the next four say how much variations differ
    config.streaming.shift = 1.0  # pixels
    config.streaming.scale = 0.05
    config.streaming.brightness = 0.1
    config.streaming.num_atoms = 60
    config.streaming.sparsity = 6
    config.streaming.batch_size = 50  # 0 takes as many as atoms
    config.streaming.batches_a_segment = 2  # checkpoints are that far apart
    config.streaming.num_first = 100  # faces of the first dictionary, the mean and the bandwidths
    config.streaming.num_first_iters = 3  # sweeps of K-SVD on them
    config.streaming.num_seen_twice = 60  # faces that begin the pass and end it: as many as atoms, or to fill a batch
    config.streaming.num_iters = 10  # sweeps of K-SVD in memory, to compare with; 0 leaves it out
    return common.variant(config, variant, _VARIANTS)


def settings(
    *,
    num_atoms: int,
    sparsity: int,
    num_iters: int,
    streamed_atoms: int = 200,
    num_faces: tuple[int, int, int] = (1000, 3000, 10_000),
) -> ConfigDict:
    """A section for each name in `config.methods`: a method of `jaxface.hallucination.METHODS` and its settings.

    A tuple is a grid, from which held-out people choose. An expansion is part of a method's label in the report.
    Methods whose name begins with `streamed` learn `streamed_atoms` atoms (Fastfood 10x twice as many) in one pass over
    variations of the faces; `few`, `some` and otherwise many of them are the three numbers in `num_faces`.
    """
    sizes = {"num_atoms": num_atoms, "sparsity": sparsity, "num_iters": num_iters, "atom_update": "approximate"}
    dictionary = {"beta": 10.0, **sizes}
    mapped = {**dictionary, "quantile": 0.999, "form": "sin"}  # form: sin, or cos_sin for pairs
    fastfood = {**mapped, "inverse": "least_squares"}  # clipped arcsines, or gauss_newton
    inverted = {"method": "fastfood_dw_ksvd_dekernelized", **fastfood}
    ridges = (0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0)
    kernel = {"bandwidth": (1.0, 2.0, 4.0), "ridge": (0.01, 0.03, 0.1, 0.3)}  # in units of the median distance
    few, some, many = num_faces
    maps = {"beta": 10.0, "quantile": 0.999, "form": "sin"}
    pixels = {"num_atoms": streamed_atoms, "sparsity": sparsity}
    matched = {"method": "streamed_matched_dw_ksvd", "expansion": 5, **maps, **pixels}
    mapped_5x = {"method": "streamed_fastfood_dw_ksvd", "expansion": 5, "inverse": "least_squares", **maps, **pixels}
    inverted_5x = {**mapped_5x, "method": "streamed_fastfood_dw_ksvd_dekernelized"}
    return ConfigDict(
        {
            "streamed_dw_ksvd": {"method": "streamed_dw_ksvd", "beta": 10.0, "num_faces": many, **pixels},
            "streamed_matched_few": {**matched, "num_faces": few},
            "streamed_matched_some": {**matched, "num_faces": some},
            "streamed_matched": {**matched, "num_faces": many},
            "streamed_5x_few": {**mapped_5x, "num_faces": few},
            "streamed_5x_some": {**mapped_5x, "num_faces": some},
            "streamed_5x": {**mapped_5x, "num_faces": many},
            "streamed_5x_dekernelized": {**inverted_5x, "num_faces": some},
            "streamed_10x": {**mapped_5x, "expansion": 10, "num_atoms": 2 * streamed_atoms, "num_faces": some},
            "pca": {"method": "pca", "num_components": 60},
            "ksvd": {"method": "ksvd", **sizes},
            "dw_ksvd": {"method": "dw_ksvd", **dictionary},
            "fastfood_5x_dekernelized": {"expansion": 5, **inverted},
            "fastfood_5x": {"method": "fastfood_dw_ksvd", "expansion": 5, **fastfood},
            "fastfood_10x": {"method": "fastfood_dw_ksvd", "expansion": 10, **fastfood},
            "matched_dw_ksvd": {"method": "matched_dw_ksvd", "expansion": 5, **mapped},
            "pca_prior": {"method": "pca_prior", "num_components": (20, 60, 120, 200)},
            "ridge": {"method": "ridge", "ridge": ridges},
            "fastfood_ridge": {"method": "fastfood_ridge", "num_features": 2560, **kernel},
            "kernel_ridge": {"method": "kernel_ridge", **kernel},
            "network": {
                "method": "network",
                "ridge": 0.03,
                "width": 1024,
                "num_layers": 2,
                "num_epochs": 40,
                "batch_size": 256,
                "learning_rate": 0.001,
                "dropout": 0.3,
                "weight_decay": 0.01,
            },
        }
    )


def _smoke(config: ConfigDict) -> None:
    config.data.options.size = (16, 16)
    config.visible = (0, 7, 0, 16)
    config.num_tests = 1
    config.methods = ("pca", "dw_ksvd", "fastfood_5x", "ridge")
    config.settings = settings(num_atoms=30, sparsity=3, num_iters=1, streamed_atoms=40, num_faces=(80, 100, 120))
    config.settings.pca.num_components = 20
    config.settings.ridge.ridge = (0.03, 0.1)
    config.kcfa.num_resamples = 50
    config.num_resamples = 50
    config.measurements.methods = ("ridge",)
    config.bandwidths.quantiles = (0.9,)
    config.bandwidths.forms = ("sin",)
    config.bandwidths.inverses = ("least_squares",)
    config.bandwidths.max_tests = 10
    config.kernels.sizes = (300,)
    config.kernels.num_atoms = 30
    config.kernels.sparsity = 3
    config.kernels.num_iters = 1
    config.kernels.kernels = ("gaussian",)
    config.kernels.num_people = 5
    config.kernels.num_splits = 2
    config.streaming.num_atoms = 20
    config.streaming.sparsity = 3
    config.streaming.num_iters = 1
    config.streaming.num_first_iters = 1


def _lfw(config: ConfigDict) -> None:
    """LFW: 821 people held out, at most 6 images of anybody."""
    config.data.loader = "lfw"
    config.data.options.crop = (75, 75, 100, 100)
    config.max_images = 6
    config.num_folds = 7
    config.num_tests = 1
    config.settings = settings(num_atoms=300, sparsity=6, num_iters=8)
    config.kernels.sizes = (500, 1000, 2000, 4000)
    config.kernels.num_atoms = 300
    config.kernels.num_train = 3
    config.kernels.class_atoms = 3
    config.kernels.class_sparsity = 2
    config.streaming.num_atoms = 300
    config.streaming.batch_size = 300
    config.streaming.batches_a_segment = 3
    config.streaming.num_first = 1000
    config.streaming.num_seen_twice = 300


def _overcomplete(config: ConfigDict) -> None:
    """Four times as many atoms as pixels, learnt from variations of 8,289 faces of LFW in one pass each."""
    _lfw(config)
    config.methods = (
        "pca",
        "ksvd",
        "dw_ksvd",
        "fastfood_5x",
        "streamed_dw_ksvd",
        "streamed_matched_few",
        "streamed_matched_some",
        "streamed_matched",
        "streamed_5x_few",
        "streamed_5x_some",
        "streamed_5x",
        "streamed_10x",
        "pca_prior",
        "ridge",
    )
    sizes = {"num_atoms": 300, "sparsity": 6, "num_iters": 8}
    config.settings = settings(streamed_atoms=4096, num_faces=(10_000, 100_000, 300_000), **sizes)


def _million(config: ConfigDict) -> None:
    """The paper's number of faces, made of 8,289 of LFW: Fastfood 5x with 4,096 atoms, one pass.

    Fastfood in memory, KCFA of more people, and intervals from more images would take more memory than the pass.
    """
    _lfw(config)
    config.methods = ("dw_ksvd", "ridge")
    config.kcfa.min_images = 4
    config.kcfa.max_kept = 700
    config.streaming.method = "fastfood_dw_ksvd"
    config.streaming.num_faces = 1_000_000
    config.streaming.num_atoms = 4096
    config.streaming.batch_size = 4000
    config.streaming.batches_a_segment = 25
    config.streaming.num_first = 4096
    config.streaming.num_first_iters = 0
    config.streaming.num_seen_twice = 4000
    config.streaming.num_iters = 0


_VARIANTS = {"smoke": _smoke, "lfw": _lfw, "overcomplete": _overcomplete, "million": _million}
