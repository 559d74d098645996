"""The parameters of a verifier."""

from jaxface.core import checks
from jaxface.core.pytree import params, static
from jaxface.faces.pipeline import ImagePipeline
from jaxface.joint_bayes import JointBayes
from jaxface.losses.calibration import Affine
from jaxface.subspace import LinearMap

__all__ = ["Verifier"]


@params
class Verifier:
    """A fitted recogniser: image steps, reduction, length normalisation, model and calibration.

    `runtime.params_io` writes it to one file and reads it: `load("verifier.safetensors", Verifier)`.
    """

    steps: ImagePipeline
    reduction: LinearMap  # PCA
    model: JointBayes
    calibration: Affine
    length_normalize: bool = static()

    def check(self) -> None:
        """Refuses parts whose shapes do not fit together."""
        checks.shapes(basis=(self.reduction.basis, "d r"), mean=(self.model.mean, "r"))
        checks.shapes(slope=(self.calibration.slope, ""), offset=(self.calibration.offset, ""))
