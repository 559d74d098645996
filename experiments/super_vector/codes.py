"""Mixtures of the training descriptors, and every image as a vector.

All vectors of a mixture come from one E-step an image. Fisher vectors have a Gaussian mixture for each view, the others
one mixture of probabilistic CCA. Everything is normalised alike: signed root, unit rows, unit length.
"""

from collections.abc import Mapping

import jax
from ml_collections import ConfigDict

from experiments.super_vector.sets import Descriptors
from jaxface import mixtures
from jaxface.core import prng
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import raise_if_failed
from jaxface.mixtures import encoding, gmm, normalization
from jaxface.mixtures.normalization import Parts

FISHER = ("Fisher vector of x", "Fisher vector of y", "Fisher vectors of both")
SUPER = ("latent vector", "gradient vector", "super vector", "super vector, whitened")
METHODS = (*FISHER, *SUPER)
BASELINE, CLAIM = FISHER[2], SUPER[2]


def settings(config: ConfigDict) -> list[tuple[int, int]]:
    """(components, latent dimensions): the default first, then other numbers of either."""
    default = (config.num_components, config.latent_dim)
    others = {(k, config.latent_dim) for k in config.components} | {(default[0], d) for d in config.latent_dims}
    return [default, *sorted(others - {default})]


def longest(descriptors: Descriptors, num_components: int, latent_dim: int) -> int:
    """The length of the longest vector, the super vector."""
    return num_components * (latent_dim + 2 * descriptors.x.shape[2] + 2 * descriptors.y.shape[2])


def fisher(
    config: ConfigDict, key: jax.Array, descriptors: Descriptors, *, num_components: int
) -> Mapping[str, jax.Array]:
    """Vectors `[i, f]` from a Gaussian mixture for each view."""
    blocks: list[Parts] = []
    for name, view, sample in zip("xy", descriptors[:2], descriptors.sample, strict=True):
        start = gmm.init(prng.stream(key, f"Gaussians of {name}"), sample, num_components=num_components)
        model, info = gmm.fit(sample, start, num_iters=config.num_iters)
        raise_if_failed(info, f"Gaussian mixture of view {name}")
        scores = encoding.encode_batch(model, view, encoder=encoding.whitened)
        blocks.append((*scores.means, *scores.noises))
    return dict(zip(FISHER, map(_normalized, (*blocks, (*blocks[0], *blocks[1]))), strict=True))


def shared(
    config: ConfigDict, key: jax.Array, descriptors: Descriptors, *, num_components: int, latent_dim: int
) -> Mapping[str, jax.Array]:
    """Vectors `[i, f]` from one mixture of probabilistic CCA."""
    start = mixtures.init(
        prng.stream(key, "pairs"), *descriptors.sample, num_components=num_components, latent_dim=latent_dim
    )
    model, info = mixtures.fit(*descriptors.sample, start, num_iters=config.num_iters)
    raise_if_failed(info, "mixture of probabilistic CCA")
    scores = encoding.encode_batch(model, descriptors.x, descriptors.y, encoder=encoding.closed_form)
    whitened = each_row(encoding.whiten, model, scores)
    private, white = (
        tuple(block for pair in zip(each.means, each.noises, strict=True) for block in pair)
        for each in (scores, whitened)
    )
    blocks = ((scores.latent,), private, (scores.latent, *private), (scores.latent, *white))
    return dict(zip(SUPER, map(_normalized, blocks), strict=True))


@jax.jit
def _normalized(blocks: Parts) -> jax.Array:
    """Parts `[i, k, f]` as vectors of unit length."""
    return jax.vmap(normalization.standard)(blocks)
