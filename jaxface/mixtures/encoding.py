"""Sets of descriptors as vectors: how a set deviates from a mixture that was fitted to all sets.

Of a set of N descriptors, with the responsibilities g and posteriors of z from one E-step,

    latent      Z_k    = (1/N) sum g zhat                                              [k, d]
    means       G_mu   = -(2/N) Psi^-1 sum g (v - mu - W zhat)                         [k, n] a view, (42), (44)
    noise       G_Psi  = (1/N) Psi^-1 {N_k Psi - sum g E[(v - mu - W z)(...)']} Psi^-1     a view, (43), (45)

The gradients are `-(2/N) dL/dtheta` of the log-likelihood (12), and `autodiff` takes them so; Z is `(1/N) dL/dm` for a
prior mean m of z. Z is a linear function of the others, `Z_k = -(1/2) sum over views of W'G_mu`: to a linear classifier
it adds what the normalisation makes of it. All of it is zero on the training set once EM has converged.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, machine
from jaxface.linalg import scaling
from jaxface.linalg.small_cholesky import inverse
from jaxface.mixtures import em, normalization, stats
from jaxface.mixtures.normalization import Parts
from jaxface.mixtures.views import Mixture, View, checked, is_full, noise_powers

__all__ = [
    "closed_form",
    "encode_batch",
    "fisher_vector",
    "gradient_vector",
    "latent_vector",
    "super_vector",
    "whiten",
    "whitened",
]


class Scores(NamedTuple):
    """What the log-likelihood of a set says about each parameter."""

    latent: jax.Array  # [k, d], Z
    means: tuple[jax.Array, ...]  # [k, n] of each view, G_mu
    noises: tuple[jax.Array, ...]  # [k, n] of each view, G_Psi; [k, n, n] for full noise


class PaddedSets(NamedTuple):
    """Ragged sets in arrays."""

    views: tuple[np.ndarray, ...]  # [i, s, n] of each view, 0 where padded
    sample_weights: np.ndarray  # [i, s], 1 for a descriptor, 0 for padding


Code = TypeVar("Code")
Scoring = Callable[..., Scores]
Normalization = Callable[[Parts], jax.Array]


def closed_form(model: Mixture, *views: ArrayLike, sample_weights: ArrayLike | None = None) -> Scores:
    """Scores of one set, `[s, n]` a view, from one E-step; `sample_weights` `[s]` are 0 where a set is padded."""
    number = _number(model, views, sample_weights)
    moments, _ = stats.e_step_blocks(
        model.log_weights, model.views, stats.to_blocks(model, views, sample_weights, with_nan=True)
    )
    means, noises = [], []
    for view, sums in zip(model.views, moments.views, strict=True):
        private = sums.first - jnp.einsum("knd,kd->kn", view.loadings, moments.latent)
        left = em.residual(view, moments, sums)
        powers = noise_powers(view.noise)[None, :]
        if is_full(view.noise):
            precision = inverse(view.noise)
            means.append(-2 * jnp.einsum("knm,km->kn", precision, private) / number)
            noises.append(precision @ (moments.weight[:, None, None] * view.noise - left) @ precision / number)
        else:
            means.append(-2 * private / (number * view.noise))
            # Psi^2 of very small or large noise is out of range, and not in units near it.
            noise, left = (scaling.shifted(sums, -2 * powers) for sums in (view.noise, left))
            over = (moments.weight[:, None] * noise - left) / (number * noise**2)
            noises.append(scaling.shifted(over, -2 * powers))
    return Scores(moments.latent / number, tuple(means), tuple(noises))


def autodiff(model: Mixture, *views: ArrayLike, sample_weights: ArrayLike | None = None) -> Scores:
    """The same scores as derivatives of the log-likelihood."""
    number = _number(model, views, sample_weights)
    rows = stats.to_blocks(model, views, sample_weights, with_nan=True)

    def log_likelihood(prior_mean: jax.Array, means: Parts, noises: Parts) -> jax.Array:
        moved = tuple(
            View(mean + jnp.einsum("knd,kd->kn", view.loadings, prior_mean), view.loadings, noise)
            for view, mean, noise in zip(model.views, means, noises, strict=True)
        )
        return stats.log_likelihood_of_blocks(model.log_weights, moved, rows)

    k, _, d = model.views[0].loadings.shape
    means, noises = (tuple(getattr(view, name) for view in model.views) for name in ("mean", "noise"))
    zero = jnp.zeros((k, d), model.log_weights.dtype)
    latent, means, noises = jax.grad(log_likelihood, argnums=(0, 1, 2))(zero, means, noises)
    return Scores(latent / number, *jax.tree.map(lambda leaf: -2 * leaf / number, (means, noises)))


def whiten(model: Mixture, scores: Scores) -> Scores:
    """Gradients divided by the root of their Fisher information, as if Psi were all of the covariance.

    `-G_mu sqrt(psi) / (2 sqrt(w))` and `-G_Psi psi / sqrt(2 w)`: for a `GMM`, the Fisher vector. Diagonal noise only.
    """
    if any(is_full(view.noise) for view in model.views):
        raise ValueError("model must have diagonal noise; got full covariances, whose gradients are not whitened here.")
    # The gradients of a component of no weight are zero, and so is its part.
    least = machine.tiny(model.log_weights.dtype) ** 0.5
    root_weight = jnp.maximum(jnp.exp(model.log_weights / 2), least)[:, None]
    variances = [view.noise for view in model.views]
    means = zip(scores.means, variances, strict=True)
    noises = zip(scores.noises, variances, strict=True)
    return Scores(
        scores.latent,
        tuple(-g * jnp.sqrt(psi) / (2 * root_weight) for g, psi in means),
        tuple(-g * psi / (math.sqrt(2) * root_weight) for g, psi in noises),
    )


def whitened_closed_form(model: Mixture, *views: ArrayLike, sample_weights: ArrayLike | None = None) -> Scores:
    """`closed_form`, whitened: what `super_vector` may take for `scoring`."""
    return whiten(model, closed_form(model, *views, sample_weights=sample_weights))


def fisher_vector(
    model: Mixture,
    *views: ArrayLike,
    sample_weights: ArrayLike | None = None,
    scoring: Scoring = closed_form,
    normalization: Normalization = normalization.standard,
) -> jax.Array:
    """The whitened gradients `[2 k n]` of one set: of a `GMM`, the Fisher vector without the weights' part."""
    return normalization(_gradients(whiten(model, scoring(model, *views, sample_weights=sample_weights))))


def gradient_vector(
    model: Mixture,
    *views: ArrayLike,
    sample_weights: ArrayLike | None = None,
    scoring: Scoring = closed_form,
    normalization: Normalization = normalization.standard,
) -> jax.Array:
    """(42)-(45) of one set, `[G_mux, G_Psix, G_muy, G_Psiy]`: `[2 k (n + m)]` with diagonal noise."""
    return normalization(_gradients(scoring(model, *views, sample_weights=sample_weights)))


def latent_vector(
    model: Mixture,
    *views: ArrayLike,
    sample_weights: ArrayLike | None = None,
    scoring: Scoring = closed_form,
    normalization: Normalization = normalization.standard,
) -> jax.Array:
    """Z `[k d]` of one set: what its views share."""
    return normalization((scoring(model, *views, sample_weights=sample_weights).latent,))


def super_vector(
    model: Mixture,
    *views: ArrayLike,
    sample_weights: ArrayLike | None = None,
    scoring: Scoring = closed_form,
    normalization: Normalization = normalization.standard,
) -> jax.Array:
    """`[Z, G_mux, G_Psix, G_muy, G_Psiy]` of one set: `[k (d + 2 n + 2 m)]` with diagonal noise."""
    scores = scoring(model, *views, sample_weights=sample_weights)
    return normalization((scores.latent, *_gradients(scores)))


def encode_batch(
    model: Mixture,
    *views: ArrayLike,
    encoder: Callable[..., Code],
    sample_weights: ArrayLike | None = None,
    block_size: int = 8,
) -> Code:
    """`encoder` of every image: descriptors `[i, s, n]` a view to vectors `[i, f]`, `block_size` images at a time.

    Ragged sets are padded, with `sample_weights` `[i, s]` 0 there: `pad_sets`. The vector of an image that holds NaN where its
    weight is above 0 is NaN. With a scoring for the encoder, `closed_form`
    or `whitened_closed_form`, the result is `Scores` of every image, from which all the vectors follow. Name an encoder of your own
    at module level: it is a static argument.
    """
    checks.at_least("block_size", block_size, 1)
    # Arrays of NumPy are passed on as they are: a copy would cost as much as a product with them.
    given = checked(model, views, "i s")
    checks.at_least("the number of images", given[0].shape[0], 1)
    if sample_weights is not None:
        checks.shapes(x=(given[0], "i s n"), sample_weights=(sample_weights, "i s"))
        checks.between("weights", sample_weights, 0.0, jnp.inf, closed_high=False)
        sample_weights = jnp.asarray(sample_weights, jnp.result_type(*given))
        if (
            checks.is_concrete(sample_weights)
            and (empty := np.flatnonzero(np.asarray(sample_weights).sum(axis=1) <= 0)).size
        ):
            raise ValueError(
                f"every image must have a descriptor; {empty.size} have none, the first is image {empty[0]}."
            )
    return _encode_batch(model, tuple(given), sample_weights, encoder=encoder, block_size=block_size)


@partial(jax.jit, static_argnames=("encoder", "block_size"))
def _encode_batch(
    model: Mixture,
    views: tuple[jax.Array, ...],
    sample_weights: jax.Array | None,
    *,
    encoder: Callable[..., Code],
    block_size: int,
) -> Code:
    def of_image(image: tuple[tuple[jax.Array, ...], jax.Array | None]) -> Code:
        return encoder(model, *image[0], sample_weights=image[1])

    images = views[0].shape[0]
    size = min(block_size, images)
    number = blocks.num_blocks(images, size)

    def in_blocks(leaf: jax.Array) -> jax.Array:
        """The last block is filled with the first images: no encoder need know what to make of an empty one."""
        return jnp.concatenate([leaf, leaf[: number * size - images]]).reshape(number, size, *leaf.shape[1:])

    coded = jax.lax.map(jax.vmap(of_image), jax.tree.map(in_blocks, (views, sample_weights)))
    whole: Code = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 2)[:images], coded)
    return whole


def pad_sets(*views: Sequence[ArrayLike]) -> PaddedSets:
    """Ragged sets, a list of `[s_i, n]` a view, as arrays of one length; on the host."""
    for name, view in zip("xy", views, strict=False):
        for number, one in enumerate(view):
            width = np.shape(view[0])[-1] if np.ndim(view[0]) else 0
            if np.ndim(one) != 2 or np.shape(one)[1] != width:
                raise ValueError(
                    f"{name} must hold sets [s, n] of one width n; got shape {np.shape(one)} for image {number}."
                )
    lengths = [[len(np.asarray(one)) for one in view] for view in views]
    for other in lengths[1:]:
        if other != lengths[0]:
            raise ValueError(f"views must have the same descriptors of every image; got {lengths[0]} and {other}.")
    if not lengths or min(lengths[0], default=0) < 1:
        raise ValueError(f"every image must have a descriptor; got numbers {lengths[0] if lengths else []}.")
    longest = max(lengths[0])
    sample_weights = (np.arange(longest)[None, :] < np.asarray(lengths[0])[:, None]).astype(np.float32)
    return PaddedSets(tuple(_padded(view, longest) for view in views), sample_weights)


def _padded(view: Sequence[ArrayLike], longest: int) -> np.ndarray:
    return np.stack([np.pad(one, ((0, longest - len(one)), (0, 0))) for one in map(np.asarray, view)])


def _gradients(scores: Scores) -> Parts:
    """The gradients view by view as blocks `[k, f]`."""
    pairs = zip(scores.means, scores.noises, strict=True)
    return tuple(gradient.reshape(gradient.shape[0], -1) for pair in pairs for gradient in pair)


def _number(model: Mixture, views: tuple[ArrayLike, ...], sample_weights: ArrayLike | None) -> jax.Array:
    """N, the descriptors of a set that fits the model; there must be one."""
    checked(model, views, "s")
    dtype = jnp.result_type(*views)
    size = jnp.shape(views[0])[0]
    number = jnp.asarray(size, dtype) if sample_weights is None else jnp.asarray(sample_weights, dtype).sum()
    if size == 0 or (checks.is_concrete(number) and float(number) <= 0):
        raise ValueError("a set must hold at least one descriptor; got none.")
    return jnp.maximum(number, machine.tiny(dtype))
