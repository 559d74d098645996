"""Mixtures of probabilistic CCA with any number of views, for samples that may lack some of them.

Sample i has the views O_i. In a component, `x_v = mu_v + W_v z + eps_v` for v in O_i. Hidden are the component and z,
and not the missing views: to impute them has the same maximum and takes about twice as many steps. The M-step of view v
sums over the samples that have it. The other modules know any number of views: `e_step`, `m_step`, `log_likelihood`,
`log_density`, `responsibilities` and the encoders accept a `MultiviewMixture`, and `fit` here also a `PCCAMixture`.

Views that are never seen together are compared through others. Where nothing connects them, their covariance is
arbitrary and the status is UNIDENTIFIED. Through a view of fewer dimensions than z only a part of it is determined.
"""

from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.core.fitinfo import FitInfo
from jaxface.core.pytree import params, unbounded
from jaxface.mixtures import em, initialization
from jaxface.mixtures.patterns import checked_presence, every_view_occurs, finite_where_counted, to_blocks
from jaxface.mixtures.pcca import Posterior, draw, posterior_given
from jaxface.mixtures.validity import check_noise, check_weights
from jaxface.mixtures.views import Mixture, View, batched_matvec, block_diagonal, is_full, names

__all__ = ["Conditional", "MultiviewMixture", "conditional", "fit", "init", "latent_posterior", "predict", "sample"]

M = TypeVar("M", bound=Mixture)


@params
class MultiviewMixture:
    """Parameters of the model; the noise is diagonal in all views, or full in all."""

    log_weights: jax.Array = unbounded()  # [k]
    views: tuple[View, ...]  # mean [k, n], loadings [k, n, d] and noise [k, n] or [k, n, n] of each

    def check(self) -> None:
        """Refuses wrong shapes, weights that do not add up to 1 and noise that is not positive; on the host."""
        for v, view in enumerate(self.views):
            named = {f"views[{v}].mean": (view.mean, f"... k n{v}")}
            checks.shapes(log_weights=(self.log_weights, "... k"), **named)
            check_noise(f"views[{v}].noise", view.noise, view.mean)
        loadings = {f"views[{v}].loadings": (view.loadings, f"... k n{v} d") for v, view in enumerate(self.views)}
        checks.shapes(log_weights=(self.log_weights, "... k"), **loadings)
        check_weights(self.log_weights)

    def with_views(self, log_weights: jax.Array, views: tuple[View, ...]) -> "MultiviewMixture":
        """The same model with other values."""
        return MultiviewMixture(log_weights=log_weights, views=views)


class Conditional(NamedTuple):
    """Views given others: a mixture of Gaussians over their dimensions side by side."""

    log_responsibilities: jax.Array  # [k], of the components given the views that are known
    mean: jax.Array  # [k, n]
    cov: jax.Array  # [k, n, n]


class Sample(NamedTuple):
    """Samples drawn from a model, with their components and latents."""

    views: tuple[jax.Array, ...]  # [s, n] of each
    component: jax.Array  # int32 [s]
    z: jax.Array  # [s, d]


def init(
    key: jax.Array,
    views: tuple[ArrayLike, ...],
    *,
    num_components: int,
    latent_dim: int,
    present: ArrayLike | None = None,
    full_noise: bool = False,
    ridge: float = 1e-3,
    num_iters: int = 10,
) -> MultiviewMixture:
    """A mixture for samples `[s, n]` of each view that may lack some, as bool `[s, v]` `present` says.

    k-means sees the mean in the place of a missing view. In each cluster the covariances of two views come from the
    samples that have both, and the leading axes of the whitened views, plus small random numbers, are the loadings.
    Start several times with different keys: where views are never seen together EM may end in a much lower maximum.
    `ridge` and `num_iters` are as in `mixtures.init`; gradients are stopped.
    """
    views = tuple(views)
    sizes = checks.shapes(**{name: (v, f"s {axis}") for (name, axis), v in zip(names(len(views)), views, strict=True)})
    checks.floating(**{name: view for (name, _), view in zip(names(len(views)), views, strict=True)})
    initialization.check_components(key, num_components, sizes["s"])
    checks.at_least("latent_dim", latent_dim, 1)
    width = sum(jnp.shape(view)[1] for view in views)
    checks.at_most("latent_dim", latent_dim, width - 1, f"the views have {width} dimensions in all")
    checks.positive("ridge", ridge)
    if len(views) == 1 and full_noise:
        raise ValueError("one view with full noise determines nothing but its covariance; use diagonal noise.")
    mask = None if present is None else checked_presence(present, (sizes["s"], len(views)), None).mask
    every_view_occurs(mask)
    finite_where_counted(views, None, mask)
    settings = {"num_components": num_components, "latent_dim": latent_dim, "full_noise": full_noise}
    return _init(key, tuple(map(jnp.asarray, views)), mask, ridge, num_iters=num_iters, **settings)


@partial(jax.jit, static_argnames=("num_components", "latent_dim", "full_noise", "num_iters"))
def _init(
    key: jax.Array,
    views: tuple[jax.Array, ...],
    mask: jax.Array | None,
    ridge: jax.Array | float,
    *,
    num_components: int,
    latent_dim: int,
    full_noise: bool,
    num_iters: int,
) -> MultiviewMixture:
    cluster_key, loading_key = jax.random.split(key)
    clusters = initialization.clusters_with_gaps(
        cluster_key, views, mask, ridge, num_components=num_components, num_iters=num_iters
    )
    widths = tuple(view.shape[1] for view in views)

    def of_component(part: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[View, ...]:
        each = initialization.shared_axes(*part, widths=widths, latent_dim=latent_dim)
        return each if full_noise else tuple(view._replace(noise=jnp.diagonal(view.noise)) for view in each)

    keys = jax.random.split(loading_key, num_components)
    return MultiviewMixture(
        log_weights=clusters.log_weights, views=jax.lax.map(of_component, (keys, clusters.mean, clusters.cov))
    )


def fit(
    views: tuple[ArrayLike, ...],
    init: M,
    *,
    num_iters: int,
    present: ArrayLike | None = None,
    tol: float = 0.0,
    sample_weights: ArrayLike | None = None,
    regression: em.Regression = em.joint,
    floor: float = 1e-6,
    block_size: int = 1024,
) -> tuple[M, FitInfo]:
    """EM on samples `[s, n]` of each view from `init`; what is not named here is as in `mixtures.fit`.

    `present` bool `[s, v]` says which views a sample has; None: all of them. Entries of missing views are never read.
    As a concrete array it groups the samples once, on the host; inside a transformation every one of the `2^v - 1`
    patterns is computed for all samples.

    UNIDENTIFIED says that the graph of views seen together is not connected. A component whose samples all lack a view
    keeps the parameters of that view, and the status is EMPTY_COMPONENT.
    """
    checks.positive("floor", floor)
    samples = to_blocks(init, tuple(views), sample_weights, block_size, present=present)
    every_view_occurs(present, sample_weights)
    return em.fit_blocks(samples, init, num_iters=num_iters, tol=tol, regression=regression, floor=floor)


def latent_posterior(model: Mixture, *views: ArrayLike | None) -> Posterior:
    """(13), (18), (19) of one sample, `[n]` for each view; a view that is None is missing."""
    return posterior_given(model, views)


def conditional(model: Mixture, *views: ArrayLike | None, wanted: tuple[int, ...] | None = None) -> Conditional:
    """The views at the places `wanted` given those that are not None, of one sample; all that are None by default.

    In a component they are `N(mu + W zhat, W Cov[z] W' + Psi)`. Noise belongs to one measurement: a view that is given
    may be wanted, too, and is then another measurement of the same z.
    """
    places = tuple(v for v, view in enumerate(views) if view is None) if wanted is None else tuple(wanted)
    known = range(len(views))
    if not places or len(set(places)) < len(places) or not set(places) <= set(known):
        raise ValueError(
            f"wanted must name different views of 0 to {len(known) - 1}, at least one; got {places}. Without wanted "
            "they are the views that are None."
        )
    posterior = latent_posterior(model, *views)
    chosen = [model.views[v] for v in places]
    mean = jnp.concatenate([view.mean for view in chosen], axis=1)
    loadings = jnp.concatenate([view.loadings for view in chosen], axis=1)
    noise = jax.vmap(block_diagonal)(*(matrices(view.noise) for view in chosen))
    cov = loadings @ posterior.cov @ loadings.mT + noise
    return Conditional(posterior.log_responsibilities, mean + batched_matvec(loadings, posterior.mean), cov)


def matrices(noise: jax.Array) -> jax.Array:
    """Covariances `[k, n, n]` of either kind of noise."""
    return noise if is_full(noise) else jax.vmap(jnp.diag)(noise)


def predict(model: Mixture, *views: ArrayLike | None) -> tuple[jax.Array, ...]:
    """All views `[n]` of one sample: those given, and the expected values of those that are None."""
    posterior = latent_posterior(model, *views)
    share = jnp.exp(posterior.log_responsibilities)
    pairs = zip(views, model.views, strict=True)
    return tuple(
        share @ (view.mean + batched_matvec(view.loadings, posterior.mean)) if given is None else jnp.asarray(given)
        for given, view in pairs
    )


def sample(key: jax.Array, model: Mixture, *, num_samples: int) -> Sample:
    """Independent samples of the model, with every view."""
    return Sample(*draw(key, model, num_samples))
