"""Super vectors of mixtures of probabilistic CCA against Fisher vectors.

    python -m experiments.super_vector --config=configs/super_vector.py --workdir=runs/super_vector

The default is ORL with 2 and 5 training images a person, about 20 minutes on two cores. Expected error with 2 images
and the nearest neighbour: 7.0 % for the Fisher vectors of both views, 6.2 % for the super vector, a difference within
the noise; with logistic regression 5.2 and 6.0 %. EER of the cosine: 8.3 and 6.9 %.

`:two_view` reads a file of visible and infrared views, `--config.views.root=buaaRnSp.mat`, and adds retrieval across
views, 5 minutes. Expected: the first answer is another capture of the person for 81 % of the probes by the likelihood
ratio and for 71 % by CCA.

`:missing` removes views at random from a file with any number of them, `--config.views.root=orl_four_views.mat`
`--config.views.variable=X --config.views.labels=Y`, in training, at test and in both, 5 minutes on a busy machine.
Expected error of the super vector on these four views of ORL: 5.3 % with nothing missing, 32.2 % with half of the views
missing in training and at test.

`:ablations` leaves out steps of the normalisation, and the prior of Joint Bayes; 3 minutes. Expected error with 2
images: 6.3 %, without rows of unit length 20.4, without the root 6.5, without both 15.3.

`:lfw` takes the people of LFW with 20 images or more, `--config.data.root=LFW`, 4 minutes. Expected error with 5 images
and logistic regression: 35.7 % for the Fisher vectors of both views, 32.5 % for the super vector.
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """All fields of the study."""
    config = common.base(x64=False)
    # images: or ablations, of images too; or a file with vectors of each image: views, a pair; missing, all with gaps
    config.source = "images"
    config.data = common.orl_faces(height=56, width=46)
    config.views = ConfigDict()
    config.views.root = placeholder(str)  # the MATLAB file
    config.views.variable = "data"  # the cell array of views
    config.views.labels = "truth"  # the array of labels
    config.views.x = 0  # place of view x in the cell array
    config.views.y = 1
    config.views.num_axes = placeholder(int)  # PCA of each view before CCA; None for no PCA
    config.views.credit = ""
    config.views.components = (1, 2, 4)  # of the models for retrieval across views; 1 is CCA
    config.views.latent_dim = 80
    config.views.latent_dims = (5, 10, 20, 40, 60, 80, 100)
    config.views.ridge = 0.01  # relative to the mean variance of a view
    config.views.num_iters = 30
    config.reconstruction = ConfigDict()  # of view y from view x
    config.reconstruction.num_atoms = 100
    config.reconstruction.sparsities = (6, 12, 24)
    config.reconstruction.num_iters = 8
    config.reconstruction.beta = 10.0  # weight of view x in the dictionaries
    config.reconstruction.expansion = 5  # of Fastfood
    config.reconstruction.quantile = 0.999
    config.reconstruction.ridges = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    config.reconstruction.tuning_part = 0.2  # of the people who train: they choose sparsity, ridge, latent dimensions
    config.missing = ConfigDict({"shares": (0.25, 0.5)})  # of the views of an image that are removed at random
    config.update(vectors())
    config.components = (4, 16, 32)  # further sizes, with config.latent_dim
    config.latent_dims = (4, 8, 16, 32, 48)  # further sizes, with config.num_components
    config.num_resamples = 500  # of people, for intervals of the verification
    config.leading_axes = 20  # ablations: of Joint Bayes without a prior
    variants = {"smoke": _smoke, "lfw": _lfw, "two_view": _two_view, "missing": _missing, "ablations": _ablations}
    return common.variant(config, variant, variants)


def vectors() -> ConfigDict:
    """Descriptors, codes and classifiers; a section of the tour has the same fields."""
    config = ConfigDict()
    config.descriptors = ConfigDict()  # of images: gradients (x) and binary patterns (y) of dense patches
    config.descriptors.cells = (4,)  # side of a cell in pixels, one number for each scale
    config.descriptors.radii = (1.0,)  # of the patterns in pixels, one for each scale
    config.descriptors.block = 4  # cells along a side of a patch
    config.descriptors.stride = 2  # pixels
    config.descriptors.num_bins = 8
    config.num_train = (2, 5)  # images a person
    config.num_splits = 10
    config.max_images = 10  # at most so many probes of a person in the pairs of the verification
    config.num_axes = 64  # PCA of each kind of descriptor
    config.num_descriptors = 30_000  # of training images, for the fit of PCA and mixtures
    config.num_components = 16
    config.latent_dim = 32
    config.num_iters = 50  # of EM
    config.logistic = ConfigDict({"ridge": 1e-6, "num_iters": 100})  # on squared coefficients; of L-BFGS
    config.joint_bayes = ConfigDict({"prior_weight": 0.5, "num_iters": 20})  # of an isotropic prior
    return config


def small(config: ConfigDict) -> None:
    """Values of `vectors` for a quick run on images of 28 x 23 pixels."""
    config.descriptors.block = 2
    config.descriptors.stride = 4
    config.num_train = (2,)
    config.num_splits = 2
    config.num_axes = 12
    config.num_descriptors = 2000
    config.num_components = 4
    config.latent_dim = 2
    config.num_iters = 5
    config.logistic.num_iters = 10
    config.joint_bayes.num_iters = 3


def _smoke(config: ConfigDict) -> None:
    config.data.options.size = (28, 23)
    small(config)
    config.num_resamples = 20
    config.components = (4,)
    config.latent_dims = (2,)


def _lfw(config: ConfigDict) -> None:
    """People of LFW with at least 20 images."""
    config.data.loader = "lfw"
    config.data.options = ConfigDict({"size": (56, 46), "crop": (68, 80, 112, 92), "min_images": 20})
    config.num_splits = 5
    config.components = (16,)
    config.latent_dims = (32,)


def _two_view(config: ConfigDict) -> None:
    """Visible (x) and infrared (y) views of 150 people, one pair for each image."""
    config.source = "views"
    config.views.credit = "Visible and near-infrared face views: BUAA-VisNir"
    config.num_axes = 30
    config.num_components = 1  # for 300 pairs: a second component collapses onto a few of them
    config.latent_dim = 8
    config.components = (1,)
    config.latent_dims = (4, 8, 16)


def _missing(config: ConfigDict) -> None:
    """All views of a file, some of them removed."""
    config.source = "missing"
    config.num_train = (5,)
    config.num_axes = 30
    config.num_components = 1
    config.latent_dim = 16


def _ablations(config: ConfigDict) -> None:
    """The same super vectors with steps left out, on the splits of the default."""
    config.source = "ablations"
