"""Mixtures of the training descriptors, and every image as one vector, its code.

Fisher vectors come from a Gaussian mixture for each view, the other codes from one mixture of probabilistic CCA. All
codes have the same normalisation: signed root, unit rows, unit length.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
from ml_collections import ConfigDict

from experiments.super_vector.sets import Descriptors
from jaxface import mixtures
from jaxface.core import prng
from jaxface.core.fitinfo import raise_if_failed
from jaxface.linalg import distances
from jaxface.mixtures import GMM, PCCAMixture, encoding, gmm, normalization
from jaxface.mixtures.encoding import FisherScores

FISHER = ("Fisher vector of x", "Fisher vector of y", "Fisher vectors of both")
SUPER = ("latent vector", "gradient vector", "super vector", "super vector, whitened")
METHODS = (*FISHER, *SUPER)
BASELINE = FISHER[2]


def settings(config: ConfigDict) -> list[tuple[int, int]]:
    """Pairs (components, latent dimensions): the default first, then other numbers of one of the two."""
    default = (config.num_components, config.latent_dim)
    others = {(k, config.latent_dim) for k in config.components} | {(default[0], d) for d in config.latent_dims}
    return [default, *sorted(others - {default})]


def longest(descriptors: Descriptors, num_components: int, latent_dim: int) -> int:
    """The length of the longest vector, the super vector."""
    return num_components * (latent_dim + 2 * descriptors.x.shape[2] + 2 * descriptors.y.shape[2])


def fisher_vectors(
    config: ConfigDict, key: jax.Array, descriptors: Descriptors, *, num_components: int
) -> Mapping[str, jax.Array]:
    """Fisher vectors `[i, f]` of each view, from a Gaussian mixture for each, and of both views joined."""
    of_views = []
    for name, view, sample in zip("xy", descriptors[:2], descriptors.sample, strict=True):
        start = gmm.init(prng.stream(key, f"Gaussians of {name}"), sample, num_components=num_components)
        model, info = gmm.fit(sample, start, num_iters=config.num_iters)
        raise_if_failed(info, f"Gaussian mixture of view {name}")
        scores = mixtures.encode_batch(model, view, encoder=encoding.closed_form)
        of_views.append(_fisher_rows(model, view, scores))
    vectors = (*of_views, jnp.concatenate(of_views, axis=1))
    return dict(zip(FISHER, map(_unit, vectors), strict=True))


_unit = jax.jit(distances.normalize)


@jax.jit
def _fisher_rows(model: GMM, view: jax.Array, scores: FisherScores) -> jax.Array:
    """Fisher vectors `[i, f]` without unit length, so that those of two views can be joined."""

    def of_image(descriptors: jax.Array, scores: FisherScores) -> jax.Array:
        scoring = encoding.precomputed(scores)
        return mixtures.fisher_vector(model, descriptors, scoring=scoring, normalization=normalization.unit_rows)

    return jax.vmap(of_image)(view, scores)


def super_vectors(
    config: ConfigDict, key: jax.Array, descriptors: Descriptors, *, num_components: int, latent_dim: int
) -> Mapping[str, jax.Array]:
    """The codes `[i, f]` named in `SUPER`, from one mixture of probabilistic CCA."""
    model = fit_mixture(config, key, descriptors, num_components=num_components, latent_dim=latent_dim)
    return codes_of(model, descriptors)


def fit_mixture(
    config: ConfigDict, key: jax.Array, descriptors: Descriptors, *, num_components: int, latent_dim: int
) -> PCCAMixture:
    """A mixture of probabilistic CCA of the training descriptors."""
    start = mixtures.init(
        prng.stream(key, "pairs"), *descriptors.sample, num_components=num_components, latent_dim=latent_dim
    )
    model, info = mixtures.fit(*descriptors.sample, start, num_iters=config.num_iters)
    raise_if_failed(info, "mixture of probabilistic CCA")
    return model


def codes_of(model: PCCAMixture, descriptors: Descriptors) -> Mapping[str, jax.Array]:
    """The codes `[i, f]` named in `SUPER`."""
    views = descriptors.x, descriptors.y
    scores = mixtures.encode_batch(model, *views, encoder=encoding.closed_form)
    return _super_vectors(model, views, scores)


@jax.jit
def _super_vectors(
    model: PCCAMixture, views: tuple[jax.Array, jax.Array], scores: FisherScores
) -> Mapping[str, jax.Array]:
    """All codes from one E-step an image."""

    def of_image(views: tuple[jax.Array, jax.Array], scores: FisherScores) -> Mapping[str, jax.Array]:
        plain, whitened = map(encoding.precomputed, (scores, encoding.whiten(model, scores)))
        vectors = (
            mixtures.latent_vector(model, *views, scoring=plain),
            mixtures.gradient_vector(model, *views, scoring=plain),
            mixtures.super_vector(model, *views, scoring=plain),
            mixtures.super_vector(model, *views, scoring=whitened),
        )
        return dict(zip(SUPER, vectors, strict=True))

    return jax.vmap(of_image)(views, scores)
