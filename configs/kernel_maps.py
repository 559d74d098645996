"""Random feature maps: how well they estimate a kernel, what they cost, and how far they can be inverted.

    python -m experiments.kernel_maps --config=configs/kernel_maps.py --workdir=runs/kernel_maps
    python -m experiments.kernel_maps --config=configs/kernel_maps.py:smoke --workdir=runs/smoke   a quick look

The default takes 2 minutes 20 seconds of processor time. Expected, on ORL: error of the kernel .0048 by Fastfood and
.0012 by orthogonal rows with 16,384 frequencies; images come back to 1e-3 up to |x| / sigma = 0.3 by clipped arcsines,
0.6 by the angles of pairs, 1.5 and 2.5 by Gauss-Newton; identification error 3.9 % by the exact Gaussian kernel, 4.1 by
Fastfood with 5,120 frequencies, 7.5 by ridge regression on the pixels. `--config.data.options.size="(64,64)"` takes
larger images.
"""

from ml_collections import ConfigDict

from configs import common


def get_config(variant: str | None = None) -> ConfigDict:
    """The whole study; see the fields."""
    config = common.base(x64=False)  # float32, as maps are used; the way back is still exact to 1e-6
    config.data = common.orl_faces(height=32, width=32)  # 1,024 pixels: one block of Fastfood, unpadded

    config.estimates = ConfigDict()
    config.estimates.num_images = 100
    config.estimates.num_draws = 10
    config.estimates.sizes = (64, 256, 512, 1024, 2048, 4096, 16384)  # frequencies
    config.estimates.small_dim = 16  # the same on so many principal components, where SORF shows its bias

    config.cost = ConfigDict()
    config.cost.dims = (64, 128, 256, 512, 1024, 2048, 4096)
    config.cost.expansion = 4  # frequencies for each dimension
    config.cost.num_vectors = 1024
    config.cost.num_repeats = 9

    config.inverse = ConfigDict()
    config.inverse.num_images = 20
    config.inverse.expansions = (5, 10)
    config.inverse.ratios = (0.2, 0.3, 0.38, 0.44, 0.5, 0.6, 0.75, 0.85, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)  # |x| / sigma
    config.inverse.shown = (0.38, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)  # ratios of the pictures

    config.ridge = ConfigDict()
    config.ridge.num_splits = 20
    config.ridge.num_train = 5  # images a person
    config.ridge.num_held_out = 2  # images a person that choose bandwidth and ridge; the rest are probes
    config.ridge.bandwidths = (0.35, 0.5, 0.7, 1.0, 1.4)  # of the Gaussian, in units of the median distance
    config.ridge.ridges = (0.001, 0.01, 0.1)  # in units of the mean eigenvalue
    config.ridge.quantile = 0.999  # share of |V x| within pi / 2, for the invertible sine
    config.ridge.sizes = (64, 256, 1024, 2048, 5120)  # frequencies

    config.learning = ConfigDict()
    config.learning.num_draws = 5
    config.learning.sizes = (64, 256, 1024)
    config.learning.num_iters = 300
    config.learning.learning_rate = 0.002
    return common.variant(config, variant, {"smoke": _smoke})


def _smoke(config: ConfigDict) -> None:
    # 64 dimensions and 128 frequencies nearly everywhere: what is compiled once serves every part.
    config.data.options.size = (8, 8)
    config.estimates.num_images = 20
    config.estimates.num_draws = 2
    config.estimates.sizes = (32, 128)
    config.estimates.small_dim = 4
    config.cost.dims = (64,)
    config.cost.expansion = 2
    config.cost.num_vectors = 32
    config.cost.num_repeats = 2
    config.inverse.num_images = 2
    config.inverse.expansions = (2,)
    config.inverse.ratios = (0.3, 1.0)
    config.inverse.shown = (1.0,)
    config.ridge.num_splits = 2
    config.ridge.bandwidths = (1.0,)
    config.ridge.ridges = (0.01,)
    config.ridge.sizes = (32, 128)
    config.learning.num_draws = 2
    config.learning.sizes = (128,)
    config.learning.num_iters = 20
