"""The parameters of a verifier."""

import jax

from jaxface.core import checks
from jaxface.core.pytree import params, static
from jaxface.faces.pipeline import ImagePipeline
from jaxface.joint_bayes import JointBayes
from jaxface.losses.calibration import Affine
from jaxface.subspace import LinearMap

__all__ = ["Presence", "Verifier"]


@params
class Presence:
    """How far a ratio speaks for one of N people and against a stranger.

        log(exp(floor) + exp(slope * ratio - crowd * log N + offset))

    Entry k is for people with k + 1 enrolled photos, the last entry for people with more as well.
    """

    slope: jax.Array  # [m]
    crowd: jax.Array  # [m]
    offset: jax.Array  # [m]
    floor: jax.Array  # [m], log of the share of photos that show nothing recognisable

    def check(self) -> None:
        """Refuses parts whose shapes do not fit together."""
        checks.shapes(slope=(self.slope, "m"), crowd=(self.crowd, "m"), offset=(self.offset, "m"))
        checks.shapes(slope=(self.slope, "m"), floor=(self.floor, "m"))


@params
class Verifier:
    """A fitted recogniser: image steps, reduction, length normalisation, model and calibrations.

    `runtime.params_io` writes it to one file and reads it: `load("verifier.safetensors", Verifier)`.
    """

    steps: ImagePipeline
    reduction: LinearMap  # PCA
    model: JointBayes
    calibration: Affine
    length_normalize: bool = static()
    presence: Presence | None = None  # None: the ratios of pairs are taken at their word

    def check(self) -> None:
        """Refuses parts whose shapes do not fit together."""
        checks.shapes(basis=(self.reduction.basis, "d r"), mean=(self.model.mean, "r"))
        checks.shapes(slope=(self.calibration.slope, ""), offset=(self.calibration.offset, ""))
