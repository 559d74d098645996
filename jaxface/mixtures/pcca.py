"""The model: a mixture of probabilistic CCA; with one component its maximum of the likelihood is CCA, in closed form.

In a component, `x = mean_x + W_x z + eps_x` and `y = mean_y + W_y z + eps_y` with `z ~ N(0, I)`: (7)-(10), (15)-(17).
The views depend on each other through z only. W and z are defined up to a rotation in each component: compare `W W'`
of two fits, never W, and encode all data with one fitted model.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo, machine
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.program import program
from jaxface.core.pytree import params, unbounded
from jaxface.linalg import psd, scaling, spectral, triangular
from jaxface.mixtures.validity import check_noise, check_weights
from jaxface.mixtures.views import (
    Mixture,
    View,
    batched_matvec,
    evaluate,
    factorize,
    in_units,
    is_full,
    is_not_constant,
    latent_cov,
    latent_mean,
    typical_variance,
    woodbury_of_given_views,
)

__all__ = [
    "PCCAMixture",
    "Posterior",
    "canonical_correlations",
    "closed_form",
    "latent_posterior",
    "predict",
    "sample",
]


@params
class PCCAMixture:
    """Parameters of the model; the noise is diagonal in both views, or full in both."""

    log_weights: jax.Array = unbounded()  # [k]
    mean_x: jax.Array  # [k, n]
    mean_y: jax.Array  # [k, m]
    loadings_x: jax.Array  # [k, n, d], W_x
    loadings_y: jax.Array  # [k, m, d], W_y
    noise_x: jax.Array  # [k, n] or [k, n, n], Psi_x
    noise_y: jax.Array  # [k, m] or [k, m, m], Psi_y

    def check(self) -> None:
        """Refuses wrong shapes, weights that do not add up to 1 and noise that is not positive; on the host."""
        checks.shapes(
            log_weights=(self.log_weights, "... k"),
            mean_x=(self.mean_x, "... k n"),
            mean_y=(self.mean_y, "... k m"),
            loadings_x=(self.loadings_x, "... k n d"),
            loadings_y=(self.loadings_y, "... k m d"),
        )
        check_weights(self.log_weights)
        check_noise("noise_x", self.noise_x, self.mean_x)
        check_noise("noise_y", self.noise_y, self.mean_y)

    @property
    def views(self) -> tuple[View, View]:
        """The views x and y."""
        return (
            View(self.mean_x, self.loadings_x, self.noise_x),
            View(self.mean_y, self.loadings_y, self.noise_y),
        )

    def with_views(self, log_weights: jax.Array, views: tuple[View, ...]) -> "PCCAMixture":
        """The same model with other values."""
        return of_views(log_weights, views)


class Posterior(NamedTuple):
    """z of one sample: a mixture of Gaussians, each in the coordinates of its component."""

    log_responsibilities: jax.Array  # [k]
    mean: jax.Array  # [k, d], zhat
    cov: jax.Array  # [k, d, d], Sz, the same for every sample


class Sample(NamedTuple):
    """Pairs drawn from a model, with their components and latents."""

    x: jax.Array  # [s, n]
    y: jax.Array  # [s, m]
    component: jax.Array  # int32 [s]
    z: jax.Array  # [s, d]


class Solution(NamedTuple):
    """One component in closed form."""

    views: tuple[View, View]  # means [n], loadings [n, d], noise [n, n]: without the axis k
    jitter: jax.Array  # [2], the largest variance that was added to each view
    is_singular: jax.Array  # bool [], whether more than the ridge was added


def latent_posterior(model: PCCAMixture, x: ArrayLike | None = None, y: ArrayLike | None = None) -> Posterior:
    """(13), (18), (19) of one sample; a view that is None is missing."""
    return posterior_given(model, (x, y))


def posterior_given(model: Mixture, views: tuple[ArrayLike | None, ...]) -> Posterior:
    """`latent_posterior` for a model with any number of views."""
    woodbury, v = woodbury_of_given_views(model, views)
    log_joint, u = evaluate(woodbury, v)
    return Posterior(jax.nn.log_softmax(log_joint), latent_mean(woodbury, u), latent_cov(woodbury))


def predict(model: PCCAMixture, x: ArrayLike | None = None, y: ArrayLike | None = None) -> jax.Array:
    """The expected value `[n]` of the view that is None given the other one: the estimate of least squared error."""
    if (x is None) == (y is None):
        raise ValueError("exactly one of x and y must be given; the other one is predicted.")
    posterior, missing = latent_posterior(model, x, y), model.views[0 if x is None else 1]
    means = missing.mean + batched_matvec(missing.loadings, posterior.mean)
    return jnp.exp(posterior.log_responsibilities) @ means


@program
def canonical_correlations(model: PCCAMixture) -> jax.Array:
    """The canonical correlations `[k, d]` of x and y that each component implies, descending; gradients are stopped.

    `I - Cov[z | v] = F_v F_v'` is the part of z that view v alone determines; the correlations are the singular values
    of `F_x'F_y`. The canonical correlations of samples are those of their `closed_form`.
    """

    def factor(cov: jax.Array) -> jax.Array:
        values, vectors = spectral.eigh(cov)
        return vectors * jnp.sqrt(jnp.maximum(1 - values, 0))[None, :]

    covs = tuple(latent_cov(factorize(model.log_weights, (view,))) for view in model.views)
    return jax.lax.map(lambda pair: spectral.thin_svd(factor(pair[0]).T @ factor(pair[1])).values, covs)


def closed_form(x: ArrayLike, y: ArrayLike, *, latent_dim: int, ridge: float = 0.0) -> tuple[PCCAMixture, FitInfo]:
    """One component with full noise: the maximum of the likelihood is CCA (Bach and Jordan). Gradients are stopped.

    Rows are pairs x `[s, n]`, y `[s, m]`. `ridge` is added to both covariances, relative to the mean variance of the
    view. Where a covariance is singular or a correlation is 1 the likelihood has no maximum: the status is
    RANK_DEFICIENT, and the jitter is the variance that was added to one of the dimensions, at most.
    """
    sizes = check_pairs(x, y, latent_dim=latent_dim)
    checks.at_least("the number of samples", sizes["s"], 2)
    checks.between("ridge", ridge, 0.0, jnp.inf, closed_high=False)
    return _closed_form(jnp.asarray(x), jnp.asarray(y), ridge, latent_dim=latent_dim)


@partial(jax.jit, static_argnames="latent_dim")
def _closed_form(
    x: jax.Array, y: jax.Array, ridge: jax.Array | float, *, latent_dim: int
) -> tuple[PCCAMixture, FitInfo]:
    powers = jnp.stack([scaling.exponent(x), scaling.exponent(y)])
    v = jnp.concatenate([scaling.shifted(x, -powers[0]), scaling.shifted(y, -powers[1])], axis=1)
    mean = v.mean(axis=0)
    centered = v - mean[None, :]
    solution = from_covariance(
        mean, centered.T @ centered / v.shape[0], dim_x=x.shape[1], latent_dim=latent_dim, ridge=ridge
    )
    views = jax.tree.map(lambda leaf: leaf[None], solution.views)
    views = tuple(in_units(view, -power) for view, power in zip(views, powers, strict=True))
    model, jitter = of_views(jnp.zeros(1, v.dtype), views), scaling.shifted(solution.jitter, 2 * powers).max()
    least = jnp.stack([jnp.diagonal(view.noise, axis1=1, axis2=2).min() for view in views])
    is_in_range = fitinfo.all_finite((v, model, jitter)) & (least >= machine.tiny(v.dtype)).all()
    status = fitinfo.diagnose((~is_in_range, Status.NON_FINITE), (solution.is_singular, Status.RANK_DEFICIENT))
    return model, fitinfo.closed_form(dtype=v.dtype, status=status, jitter=jitter)


def from_covariance(
    mean: jax.Array, cov: jax.Array, *, dim_x: int, latent_dim: int, ridge: jax.Array | float
) -> Solution:
    """One component from the mean `[n + m]` and covariance `[n + m, n + m]` of [x, y].

    With `S_v = L_v L_v'` and `L_x^-1 S_xy L_y^-T = A P B'`, P the canonical correlations: `W_x = L_x A P^1/2`,
    `W_y = L_y B P^1/2`, `Psi_v = S_v - W_v W_v'`. Correlations stop at 1 - sqrt(eps), so Psi is positive definite.
    Gradients are stopped.
    """
    mean, cov, ridge = jax.lax.stop_gradient((mean, cov, ridge))
    cov_x, jitter_x, singular_x = _regular(mean[:dim_x], cov[:dim_x, :dim_x], ridge)
    cov_y, jitter_y, singular_y = _regular(mean[dim_x:], cov[dim_x:, dim_x:], ridge)
    lower_x, lower_y = psd.cholesky(cov_x), psd.cholesky(cov_y)
    half = triangular.solve(lower_x, cov[:dim_x, dim_x:])
    left, values, right = spectral.thin_svd(triangular.solve(lower_y, half.T).T)
    largest = 1 - machine.eps(cov.dtype) ** 0.5
    root = jnp.sqrt(jnp.minimum(values[:latent_dim], largest))[None, :]

    def view(mean: jax.Array, cov: jax.Array, directions: jax.Array) -> View:
        loadings = directions * root
        return View(mean, loadings, psd.symmetrize(cov - loadings @ loadings.T))

    return Solution(
        views=(
            view(mean[:dim_x], cov_x, lower_x @ left[:, :latent_dim]),
            view(mean[dim_x:], cov_y, lower_y @ right[:latent_dim].T),
        ),
        jitter=jnp.stack([jitter_x, jitter_y]),
        is_singular=singular_x | singular_y | (values[0] > largest),
    )


def sample(key: jax.Array, model: PCCAMixture, *, num_samples: int) -> Sample:
    """Independent pairs of the model."""
    (x, y), component, z = draw(key, model, num_samples)
    return Sample(x, y, component, z)


def draw(key: jax.Array, model: Mixture, num_samples: int) -> tuple[tuple[jax.Array, ...], jax.Array, jax.Array]:
    """Samples of a model with any number of views: the views `[s, n]`, the components `[s]` and z `[s, d]`."""
    checks.typed_key(key)
    checks.at_least("num_samples", num_samples, 1)
    checks.between("log_weights", model.log_weights, -math.inf, math.inf, closed_high=False)  # NaN draws nothing
    component_key, z_key, *view_keys = jax.random.split(key, 2 + len(model.views))
    component = jax.random.categorical(component_key, model.log_weights, shape=(num_samples,)).astype(jnp.int32)
    first = model.views[0]
    d, dtype = first.loadings.shape[2], first.mean.dtype
    z = jax.random.normal(z_key, (num_samples, d), dtype)

    def of_view(view_key: jax.Array, view: View) -> jax.Array:
        eps = jax.random.normal(view_key, (num_samples, view.mean.shape[1]), dtype)
        if is_full(view.noise):
            eps = jnp.einsum("snm,sm->sn", jax.lax.map(psd.cholesky, view.noise)[component], eps)
        else:
            eps = jnp.sqrt(view.noise)[component] * eps
        return view.mean[component] + batched_matvec(view.loadings[component], z) + eps

    is_known = ~jnp.isnan(model.log_weights).any()
    pairs = zip(view_keys, model.views, strict=True)
    views = tuple(jnp.where(is_known, of_view(*pair), jnp.nan) for pair in pairs)
    return views, jnp.where(is_known, component, -1), z


def of_views(log_weights: jax.Array, views: tuple[View, ...]) -> PCCAMixture:
    """The model with these two views."""
    x, y = views
    return PCCAMixture(
        log_weights=log_weights,
        mean_x=x.mean,
        mean_y=y.mean,
        loadings_x=x.loadings,
        loadings_y=y.loadings,
        noise_x=x.noise,
        noise_y=y.noise,
    )


def check_pairs(x: ArrayLike, y: ArrayLike, *, latent_dim: int) -> dict[str, int]:
    """Finite pairs, and no more latent dimensions than the smaller view has; returns the sizes s, n, m."""
    sizes = checks.samples(x=(x, "s n"), y=(y, "s m"))
    checks.at_least("latent_dim", latent_dim, 1)
    most = min(sizes["n"], sizes["m"])
    checks.at_most("latent_dim", latent_dim, most, f"the views have {sizes['n']} and {sizes['m']} dimensions")
    return sizes


def _regular(mean: jax.Array, cov: jax.Array, ridge: jax.Array | float) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The covariance with its ridge; the largest variance that was added; whether the ridge was not enough.

    Where the matrix is singular in spite of its ridge, sqrt(eps) of each dimension's variance is added. Eigenvalues are
    judged with these variances scaled to one, so a change of units makes no matrix singular.
    """
    eye = jnp.eye(len(cov), dtype=cov.dtype)
    scale = typical_variance(jnp.diagonal(cov), mean)
    ridged = cov + ridge * scale * eye
    variance = jnp.where(is_not_constant(jnp.diagonal(ridged), mean), jnp.diagonal(ridged), scale)
    singular = ~psd.exceeds_rounding(ridged, variance)
    more = jnp.where(singular, machine.eps(cov.dtype) ** 0.5 * variance, 0)
    return ridged + jnp.diag(more), ridge * scale + more.max(), singular
