"""From images to calibrated log-likelihood ratios: what a verification study saves and `experiments.score` loads."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from experiments.common import inputs
from jaxface import joint_bayes
from jaxface.core import checks
from jaxface.core.pytree import params, static
from jaxface.faces.pipeline import ImagePipeline, encode_batch
from jaxface.joint_bayes import JointBayes
from jaxface.linalg import distances
from jaxface.losses import calibration
from jaxface.losses.calibration import Affine
from jaxface.subspace import LinearMap, transform


@params
class Verifier:
    """A fitted pipeline."""

    steps: ImagePipeline
    reduction: LinearMap  # PCA
    model: JointBayes
    calibration: Affine
    length_normalize: bool = static()

    def check(self) -> None:
        """Refuses parts that do not fit together."""
        checks.shapes(basis=(self.reduction.basis, "d r"), mean=(self.model.mean, "r"))
        checks.shapes(slope=(self.calibration.slope, ""), offset=(self.calibration.offset, ""))


def features(verifier: Verifier, vectors: jax.Array) -> jax.Array:
    """Model space `[n, r]` from encoded images `[n, d]`: PCA, then unit length when the verifier was fitted so."""
    wanted = len(verifier.reduction.mean)
    if vectors.shape[1] != wanted:
        raise ValueError(
            f"the model was fitted to vectors of {wanted} dimensions; got {vectors.shape[1]}. Give images of the size "
            "it was fitted to, or embeddings of the same tool."
        )
    return reduced(verifier.reduction, vectors, length_normalize=verifier.length_normalize)


def reduced(reduction: LinearMap, vectors: jax.Array, *, length_normalize: bool) -> jax.Array:
    """`transform` of rows, scaled to length sqrt(r) on request: whitened features then look Gaussian."""
    z = jax.vmap(transform, in_axes=(None, 0))(reduction, vectors)
    return distances.normalize(z) * jnp.sqrt(jnp.asarray(z.shape[1], z.dtype)) if length_normalize else z


def encode(verifier: Verifier, images: ArrayLike) -> jax.Array:
    """Model space `[n, r]` from images `[n, h, w]` or `[n, h, w, 3]`."""
    vectors = encode_batch(verifier.steps, jnp.asarray(images, inputs.working_dtype()), block_size=inputs.BLOCK)
    return features(verifier, vectors)


def score_matrix(verifier: Verifier, gallery: jax.Array, probes: jax.Array) -> jax.Array:
    """Calibrated log-likelihood ratios `[g, q]` of features."""
    basis = joint_bayes.diagonalize(verifier.model)
    return calibration.calibrate(verifier.calibration, joint_bayes.llr_matrix(basis, gallery, probes))
