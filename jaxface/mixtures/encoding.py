"""Codes: a set of descriptors as one vector that says how the set deviates from a mixture fitted to all sets.

For a set of N descriptors, with the responsibilities g and posteriors of z from one E-step,

    latent      Z_k    = (1/N) sum g zhat                                              [k, d]
    means       G_mu   = -(2/N) Psi^-1 sum g (v - mu - W zhat)                         [k, n] a view, (42), (44)
    noise       G_Psi  = (1/N) Psi^-1 {N_k Psi - sum g E[(v - mu - W z)(...)']} Psi^-1     a view, (43), (45)

The gradients are `-(2/N) dL/dtheta` of the log-likelihood (12), which is how `autodiff` computes them; Z is
`(1/N) dL/dm` for a prior mean m of z. Z is a linear function of the gradients, `Z_k = -(1/2) sum over views of W'G_mu`:
for a linear classifier only its normalisation is new. After EM has converged all scores of the training set are zero.

With `present` bool `[s, v]` descriptors may lack views. The sums of a view are over the descriptors that have it, N
counts all of them, and a set that lacks a view altogether has zeros in its place.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, machine
from jaxface.linalg import scaling
from jaxface.linalg.small_cholesky import inverse
from jaxface.mixtures import em, stats
from jaxface.mixtures.normalization import Parts, standard
from jaxface.mixtures.padding import pad_sets as pad_sets
from jaxface.mixtures.patterns import Presence, checked_presence, to_blocks
from jaxface.mixtures.views import Mixture, View, batched_matvec, checked, is_full, noise_powers

__all__ = [
    "FisherScores",
    "autodiff",
    "closed_form",
    "encode_batch",
    "fisher_vector",
    "gradient_vector",
    "latent_vector",
    "precomputed",
    "super_vector",
    "whiten",
    "whitened_closed_form",
]


class FisherScores(NamedTuple):
    """Derivatives of the log-likelihood of a set by each parameter, with the factors of the paper."""

    latent: jax.Array  # [k, d], Z
    means: tuple[jax.Array, ...]  # [k, n] of each view, G_mu
    noises: tuple[jax.Array, ...]  # [k, n] of each view, G_Psi; [k, n, n] for full noise


Code = TypeVar("Code")
Scoring = Callable[..., FisherScores]
Normalization = Callable[[Parts], jax.Array]
Present = ArrayLike | Presence | None  # bool [s, v], which views a descriptor has; None: all of them


def closed_form(
    model: Mixture, *views: ArrayLike, sample_weights: ArrayLike | None = None, present: Present = None
) -> FisherScores:
    """FisherScores of one set, `[s, n]` a view, from one E-step; `sample_weights` `[s]` are 0 where a set is padded."""
    number = _number(model, views, sample_weights)
    samples = to_blocks(model, views, sample_weights, present=present, with_nan=True)
    moments, _ = stats.e_step_blocks(model.log_weights, model.views, samples)
    means, noises = [], []
    for view, sums in zip(model.views, moments.views, strict=True):
        private = sums.first - batched_matvec(view.loadings, sums.latent)
        residual = em.residual(view, sums)
        powers = noise_powers(view.noise)[None, :]
        if is_full(view.noise):
            precision = inverse(view.noise)
            means.append(-2 * batched_matvec(precision, private) / number)
            noises.append(precision @ (sums.weight[:, None, None] * view.noise - residual) @ precision / number)
        else:
            means.append(-2 * private / (number * view.noise))
            # In units near the noise Psi^2 is in range, also for very small or large noise.
            noise, residual = (scaling.shifted(each, -2 * powers) for each in (view.noise, residual))
            gradient = (sums.weight[:, None] * noise - residual) / (number * noise**2)
            noises.append(scaling.shifted(gradient, -2 * powers))
    return FisherScores(moments.latent / number, tuple(means), tuple(noises))


def autodiff(
    model: Mixture, *views: ArrayLike, sample_weights: ArrayLike | None = None, present: Present = None
) -> FisherScores:
    """The same scores as derivatives of the log-likelihood."""
    number = _number(model, views, sample_weights)
    rows = to_blocks(model, views, sample_weights, present=present, with_nan=True)

    def log_likelihood(prior_mean: jax.Array, means: Parts, noises: Parts) -> jax.Array:
        moved = tuple(
            View(mean + batched_matvec(view.loadings, prior_mean), view.loadings, noise)
            for view, mean, noise in zip(model.views, means, noises, strict=True)
        )
        return stats.log_likelihood_of_blocks(model.log_weights, moved, rows)

    k, _, d = model.views[0].loadings.shape
    means, noises = (tuple(getattr(view, name) for view in model.views) for name in ("mean", "noise"))
    zero = jnp.zeros((k, d), model.log_weights.dtype)
    latent, means, noises = jax.grad(log_likelihood, argnums=(0, 1, 2))(zero, means, noises)
    return FisherScores(latent / number, *jax.tree.map(lambda leaf: -2 * leaf / number, (means, noises)))


def whiten(model: Mixture, scores: FisherScores) -> FisherScores:
    """Gradients divided by the square root of their Fisher information, with Psi in the place of the full covariance.

    `-G_mu sqrt(psi) / (2 sqrt(w))` and `-G_Psi psi / sqrt(2 w)`: for a `GMM`, the Fisher vector. Diagonal noise only.
    """
    if any(is_full(view.noise) for view in model.views):
        raise ValueError("model must have diagonal noise; got full covariances, whose gradients are not whitened here.")
    # Avoids 0 / 0 for an empty component; its rows are zero.
    least = machine.tiny(model.log_weights.dtype) ** 0.5
    root_weight = jnp.maximum(jnp.exp(model.log_weights / 2), least)[:, None]
    variances = [view.noise for view in model.views]
    means = zip(scores.means, variances, strict=True)
    noises = zip(scores.noises, variances, strict=True)
    return FisherScores(
        scores.latent,
        tuple(-g * jnp.sqrt(psi) / (2 * root_weight) for g, psi in means),
        tuple(-g * psi / (math.sqrt(2) * root_weight) for g, psi in noises),
    )


def whitened_closed_form(
    model: Mixture, *views: ArrayLike, sample_weights: ArrayLike | None = None, present: Present = None
) -> FisherScores:
    """`closed_form` with whitened gradients, as in a Fisher vector: another `scoring` for the encoders."""
    return whiten(model, closed_form(model, *views, sample_weights=sample_weights, present=present))


def precomputed(scores: FisherScores) -> Scoring:
    """A `scoring` that returns these scores: several codes of one set from one E-step."""

    def scoring(*_: Any, **__: Any) -> FisherScores:
        return scores

    return scoring


def fisher_vector(
    model: Mixture,
    *views: ArrayLike,
    sample_weights: ArrayLike | None = None,
    present: Present = None,
    scoring: Scoring = closed_form,
    normalization: Normalization = standard,
) -> jax.Array:
    """The whitened gradients `[2 k n]` of one set: for a `GMM`, the Fisher vector without the part of the weights."""
    return normalization(_gradients(whiten(model, _scored(scoring, model, views, sample_weights, present))))


def gradient_vector(
    model: Mixture,
    *views: ArrayLike,
    sample_weights: ArrayLike | None = None,
    present: Present = None,
    scoring: Scoring = closed_form,
    normalization: Normalization = standard,
) -> jax.Array:
    """(42)-(45) of one set, `[G_mux, G_Psix, G_muy, G_Psiy]`: `[2 k (n + m)]` with diagonal noise."""
    return normalization(_gradients(_scored(scoring, model, views, sample_weights, present)))


def latent_vector(
    model: Mixture,
    *views: ArrayLike,
    sample_weights: ArrayLike | None = None,
    present: Present = None,
    scoring: Scoring = closed_form,
    normalization: Normalization = standard,
) -> jax.Array:
    """Z `[k d]` of one set: the mean posterior of the latent that its views share."""
    return normalization((_scored(scoring, model, views, sample_weights, present).latent,))


def super_vector(
    model: Mixture,
    *views: ArrayLike,
    sample_weights: ArrayLike | None = None,
    present: Present = None,
    scoring: Scoring = closed_form,
    normalization: Normalization = standard,
) -> jax.Array:
    """`[Z, G_mux, G_Psix, G_muy, G_Psiy]` of one set, `[k (d + 2 n + 2 m)]` with diagonal noise; so for more views."""
    scores = _scored(scoring, model, views, sample_weights, present)
    return normalization((scores.latent, *_gradients(scores)))


def _scored(
    scoring: Scoring, model: Mixture, views: tuple[ArrayLike, ...], sample_weights: ArrayLike | None, present: Present
) -> FisherScores:
    """Scores by any `scoring`; only one for descriptors that lack views must know the argument `present`."""
    missing = {} if present is None else {"present": present}
    return scoring(model, *views, sample_weights=sample_weights, **missing)


def encode_batch(
    model: Mixture,
    *views: ArrayLike,
    encoder: Callable[..., Code],
    sample_weights: ArrayLike | None = None,
    present: ArrayLike | None = None,
    block_size: int = 8,
) -> Code:
    """`encoder` of every image: descriptors `[i, s, n]` a view to vectors `[i, f]`, `block_size` images at a time.

    Pad ragged sets with `pad_sets`; `sample_weights` `[i, s]` are 0 in the padding. An image with NaN where its weight
    is above 0 has a vector of NaN. `present` bool `[i, s, v]` says which views a descriptor has. An encoder is any
    function of a model, the views of one set, `sample_weights` and, where it is given, `present`, to be handed on to
    `e_step` or a `scoring`; it may return a tree of vectors. Define your own at module level: it is a static argument.
    """
    checks.at_least("block_size", block_size, 1)
    # NumPy arrays are not copied to the device here: that would take as long as a product with them.
    arrays = checked(model, views, "i s")
    checks.at_least("the number of images", arrays[0].shape[0], 1)
    if sample_weights is not None:
        checks.shapes(x=(arrays[0], "i s n"), sample_weights=(sample_weights, "i s"))
        checks.between("sample_weights", sample_weights, 0.0, jnp.inf, closed_high=False)
        sample_weights = jnp.asarray(sample_weights, jnp.result_type(*arrays))
        if (
            checks.is_concrete(sample_weights)
            and (empty := np.flatnonzero(np.asarray(sample_weights).sum(axis=1) <= 0)).size
        ):
            raise ValueError(
                f"every image must have a descriptor; {empty.size} have none, the first is image {empty[0]}."
            )
    shape = (*np.shape(arrays[0])[:2], len(arrays))
    presence = None if present is None else checked_presence(present, shape, sample_weights)
    return _encode_batch(model, tuple(arrays), sample_weights, presence, encoder=encoder, block_size=block_size)


@partial(jax.jit, static_argnames=("encoder", "block_size"))
def _encode_batch(
    model: Mixture,
    views: tuple[jax.Array, ...],
    sample_weights: jax.Array | None,
    presence: Presence | None,
    *,
    encoder: Callable[..., Code],
    block_size: int,
) -> Code:
    def of_image(image: tuple[tuple[jax.Array, ...], jax.Array | None, Presence | None]) -> Code:
        missing = {} if presence is None else {"present": image[2]}
        return encoder(model, *image[0], sample_weights=image[1], **missing)

    images = views[0].shape[0]
    size = min(block_size, images)
    number = blocks.num_blocks(images, size)

    def in_blocks(leaf: jax.Array) -> jax.Array:
        """Pads the last block with the first images, which every encoder can handle."""
        return jnp.concatenate([leaf, leaf[: number * size - images]]).reshape(number, size, *leaf.shape[1:])

    coded = jax.lax.map(jax.vmap(of_image), jax.tree.map(in_blocks, (views, sample_weights, presence)))
    whole: Code = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 2)[:images], coded)
    return whole


def _gradients(scores: FisherScores) -> Parts:
    """The gradients view by view as parts `[k, f]`."""
    pairs = zip(scores.means, scores.noises, strict=True)
    return tuple(gradient.reshape(gradient.shape[0], -1) for pair in pairs for gradient in pair)


def _number(model: Mixture, views: tuple[ArrayLike, ...], sample_weights: ArrayLike | None) -> jax.Array:
    """N, the total weight of a set; refuses a set without descriptors or of another shape than the model's."""
    checked(model, views, "s")
    dtype = jnp.result_type(*views)
    size = jnp.shape(views[0])[0]
    number = jnp.asarray(size, dtype) if sample_weights is None else jnp.asarray(sample_weights, dtype).sum()
    if size == 0 or (checks.is_concrete(number) and float(number) <= 0):
        raise ValueError("a set must hold at least one descriptor; got none.")
    return jnp.maximum(number, machine.tiny(dtype))
