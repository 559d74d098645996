"""Number of components and of latent dimensions, by the log-likelihood of held-out samples, with BIC beside it.

Search both: a model with too few components compensates by too many latent dimensions.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo
from jaxface.core.fitinfo import Status
from jaxface.core.pytree import member
from jaxface.mixtures import em, multiview, stats
from jaxface.mixtures.multiview import MultiviewMixture
from jaxface.mixtures.patterns import Samples, are_connected, every_view_occurs, to_blocks
from jaxface.mixtures.views import Mixture, is_full

__all__ = ["Choice", "bic", "choose", "num_parameters"]


class Choice(NamedTuple):
    """The sizes with the highest held-out log-likelihood, and the results of all sizes; on the host."""

    num_components: int
    latent_dim: int
    model: MultiviewMixture
    held_out: np.ndarray  # [sizes of K, sizes of d], mean log-likelihood of a held-out sample
    bic: np.ndarray  # the same shape, lower is better
    status: np.ndarray  # int32, the same shape, of the best start


def num_parameters(model: Mixture) -> int:
    """Free parameters of a model, without the rotations of z, which the likelihood cannot distinguish.

    Two views with full noise are an exception: each takes its own covariance from Psi, and only `W_x W_y'` counts. One
    view with full noise, or very many latent dimensions, are any Gaussian.
    """
    widths = [view.mean.shape[-1] for view in model.views]
    k, n = model.log_weights.shape[-1], sum(widths)
    d = min(model.views[0].loadings.shape[-1], n)
    own = sum(width * (width + 1) // 2 for width in widths) if is_full(model.views[0].noise) else n
    rotations = d * (d - 1) // 2
    if len(widths) == 2 and is_full(model.views[0].noise):
        shared = min(d, *widths)
        of_cov = own + shared * (n - shared)
    else:
        of_cov = own + n * d - rotations
    return k - 1 + k * (n + min(of_cov, n * (n + 1) // 2))


def bic(model: Mixture, log_likelihood: ArrayLike, *, num_samples: int) -> float:
    """`p log N - 2 log L` for `num_parameters` p and N samples, whatever views they have; lower is better."""
    checks.at_least("num_samples", num_samples, 1)
    return num_parameters(model) * float(np.log(num_samples)) - 2 * float(np.asarray(log_likelihood))


def choose(
    key: jax.Array,
    views: tuple[ArrayLike, ...],
    held_out: tuple[ArrayLike, ...],
    *,
    num_components: Sequence[int],
    latent_dims: Sequence[int],
    num_starts: int,
    num_iters: int,
    present: ArrayLike | None = None,
    held_out_present: ArrayLike | None = None,
    full_noise: bool = False,
    floor: float = 1e-6,
) -> Choice:
    """Fits every size to `views` and measures it on `held_out`, views of other samples; on the host.

    Each size is fitted from `num_starts` starts, and the start with the highest likelihood counts. Unconnected views
    are refused, because every size would be UNIDENTIFIED.
    """
    checks.at_least("num_starts", num_starts, 1)
    checks.at_least("the number of sizes", min(len(num_components), len(latent_dims)), 1)
    every_view_occurs(present)
    shape = len(num_components), len(latent_dims)
    scores, bics, statuses = np.full(shape, -np.inf), np.full(shape, np.inf), np.zeros(shape, np.int32)
    models, size, widest = {}, np.shape(held_out[0])[0], max(latent_dims)
    for i, k in enumerate(num_components):
        keys = jax.random.split(jax.random.fold_in(key, k), num_starts)
        settings = {"num_components": k, "latent_dim": widest, "full_noise": full_noise, "present": present}
        starts = draw_starts(keys, tuple(views), **settings)
        samples = to_blocks(member(starts, 0), tuple(views), None, present=present)
        if not are_connected(samples, len(views)):
            fitinfo.raise_if_failed(fitinfo.closed_form(dtype=float, status=Status.UNIDENTIFIED), "choose")
        for j, d in enumerate(latent_dims):
            # A column of zeros stays one in EM: one program serves all latent dimensions.
            cut = with_columns(starts, np.arange(widest) < d)
            fitted, values, status = fit_starts(cut, samples, num_iters=num_iters, floor=floor)
            best = int(np.nan_to_num(values, nan=-np.inf).argmax())
            chosen, statuses[i, j] = member(fitted, best), status[best]
            scores[i, j] = float(stats.log_likelihood(chosen, *held_out, present=held_out_present)) / size
            models[i, j] = _narrow(chosen, d)
            bics[i, j] = bic(models[i, j], values[best], num_samples=np.shape(views[0])[0])
    i, j = (int(at) for at in np.unravel_index(np.nan_to_num(scores, nan=-np.inf).argmax(), shape))
    return Choice(num_components[i], latent_dims[j], models[i, j], scores, bics, statuses)


def with_columns(model: MultiviewMixture, kept: ArrayLike) -> MultiviewMixture:
    """The model with loadings of zero for the latent dimensions that `kept` `[d]` leaves out."""
    views = (view._replace(loadings=jnp.where(jnp.asarray(kept), view.loadings, 0)) for view in model.views)
    return MultiviewMixture(log_weights=model.log_weights, views=tuple(views))


def _narrow(model: MultiviewMixture, latent_dim: int) -> MultiviewMixture:
    """The first latent dimensions alone."""
    views = (view._replace(loadings=view.loadings[..., :latent_dim]) for view in model.views)
    return MultiviewMixture(log_weights=model.log_weights, views=tuple(views))


def draw_starts(keys: jax.Array, views: tuple[ArrayLike, ...], **settings: Any) -> MultiviewMixture:
    """`multiview.init` with these settings for each of several keys `[m]`."""
    return jax.vmap(lambda key: multiview.init(key, views, **settings))(keys)


@partial(jax.jit, static_argnames=("num_iters", "floor"))
def fit_starts(
    starts: MultiviewMixture, samples: Samples, *, num_iters: int, floor: float
) -> tuple[MultiviewMixture, jax.Array, jax.Array]:
    """Fits from several starts `[m]`, with the log-likelihoods `[m]` that they end at and the statuses `[m]`."""

    def of_start(start: MultiviewMixture) -> tuple[MultiviewMixture, jax.Array, jax.Array]:
        settings = {"num_iters": num_iters, "tol": 0.0, "floor": floor}
        model, info = em.fit_blocks(samples, start, regression=em.joint, **settings)
        return model, stats.log_likelihood_of_blocks(model.log_weights, model.views, samples), info.status

    return jax.vmap(of_start)(starts)
