"""From images or vectors to coordinates; differentiable in the images and vectors but not in the verifier."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface import joint_bayes
from jaxface.core import checks
from jaxface.core.blocks import each_row
from jaxface.faces.pipeline import encode_batch
from jaxface.linalg import distances
from jaxface.subspace import LinearMap, transform
from jaxface.verifier.model import Verifier

__all__ = ["encode", "encode_vectors", "normalize_length", "reduce"]


def encode(verifier: Verifier, images: ArrayLike, *, block_size: int = 32) -> jax.Array:
    """Coordinates `[n, r]` of images `[n, h, w]` or `[n, h, w, 3]`, `block_size` of them at a time."""
    return encode_vectors(verifier, encode_batch(verifier.steps, jnp.asarray(images), block_size=block_size))


def encode_vectors(verifier: Verifier, vectors: ArrayLike) -> jax.Array:
    """Coordinates `[n, r]` of encoded images or embeddings `[n, d]`."""
    checks.shapes(vectors=(vectors, "n d"))
    checks.floating(vectors=vectors)
    vectors = jnp.asarray(vectors)
    num_dimensions = verifier.reduction.mean.shape[0]
    if vectors.shape[1] != num_dimensions:
        raise ValueError(
            f"the model was fitted to vectors of {num_dimensions} dimensions; got {vectors.shape[1]}. Give images of "
            "the same size as in the fit, or embeddings of the same tool."
        )
    return _coordinates(verifier, vectors)


@jax.jit
def _coordinates(verifier: Verifier, vectors: jax.Array) -> jax.Array:
    verifier = jax.lax.stop_gradient(verifier)  # a basis of eigenvectors has no derivative
    z = reduce(verifier.reduction, vectors, length_normalize=verifier.length_normalize)
    return each_row(joint_bayes.project, joint_bayes.diagonalize(verifier.model), z)


def reduce(reduction: LinearMap, vectors: jax.Array, *, length_normalize: bool) -> jax.Array:
    """`transform` of rows `[n, d]`, with `normalize_length` on request."""
    z = each_row(transform, reduction, vectors)
    return normalize_length(z) if length_normalize else z


def normalize_length(z: jax.Array) -> jax.Array:
    """Rows `[n, r]` scaled to length sqrt(r), which makes whitened vectors more nearly Gaussian."""
    return distances.normalize(z) * jnp.sqrt(jnp.asarray(z.shape[1], z.dtype))
