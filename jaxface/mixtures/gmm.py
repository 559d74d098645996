"""Mixtures of Gaussians with diagonal covariances: one view and no latent.

The model is a `PCCAMixture` with one view and d = 0 and uses the same code: `log_density`, `responsibilities`,
`e_step`, `m_step`, `log_likelihood` and the encoders accept a `GMM` and x.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.core.fitinfo import FitInfo
from jaxface.core.pytree import params, unbounded
from jaxface.mixtures import em, initialization
from jaxface.mixtures.patterns import to_blocks
from jaxface.mixtures.validity import check_weights
from jaxface.mixtures.views import View, typical_variance

__all__ = ["GMM", "fit", "init"]


@params
class GMM:
    """Parameters of the model."""

    log_weights: jax.Array = unbounded()  # [k]
    mean: jax.Array  # [k, n]
    variance: jax.Array  # [k, n]

    def check(self) -> None:
        """Refuses wrong shapes, weights that do not add up to 1 and variances that are not positive; on the host."""
        checks.shapes(
            log_weights=(self.log_weights, "... k"), mean=(self.mean, "... k n"), variance=(self.variance, "... k n")
        )
        check_weights(self.log_weights)
        checks.positive("variance", self.variance)

    @property
    def views(self) -> tuple[View]:
        """x, without loadings."""
        return (View(self.mean, jnp.zeros((*self.mean.shape, 0), self.mean.dtype), self.variance),)

    def with_views(self, log_weights: jax.Array, views: tuple[View, ...]) -> "GMM":
        """The same model with other values."""
        (view,) = views
        return GMM(log_weights=log_weights, mean=view.mean, variance=view.noise)


def init(key: jax.Array, x: ArrayLike, *, num_components: int, ridge: float = 1e-3, num_iters: int = 10) -> GMM:
    """Means and variances of the clusters of x `[s, n]`.

    As in `mixtures.init`, a variance includes that of all data with the weight of one sample and a ridge relative to
    the mean variance. `num_iters` counts the steps of k-means.
    """
    sizes = checks.samples(x=(x, "s n"))
    checks.positive("ridge", ridge)
    initialization.check_components(key, num_components, sizes["s"])
    return _init(key, jnp.asarray(x), ridge, num_components=num_components, num_iters=num_iters)


@partial(jax.jit, static_argnames=("num_components", "num_iters"))
def _init(key: jax.Array, x: jax.Array, ridge: jax.Array | float, *, num_components: int, num_iters: int) -> GMM:
    x = jax.lax.stop_gradient(x)
    clusters = initialization.cluster(key, x, num_components=num_components, num_iters=num_iters)
    overall, mean = x.var(axis=0), x.mean(axis=0)
    within = jax.ops.segment_sum((x - clusters.mean[clusters.labels]) ** 2, clusters.labels, num_components)
    variance = (within + overall[None, :]) / (clusters.size + 1)[:, None] + ridge * typical_variance(overall, mean)
    return GMM(log_weights=clusters.log_weights, mean=clusters.mean, variance=variance)


def fit(
    x: ArrayLike,
    init: GMM,
    *,
    num_iters: int,
    tol: float = 0.0,
    sample_weights: ArrayLike | None = None,
    floor: float = 1e-6,
    block_size: int = 1024,
) -> tuple[GMM, FitInfo]:
    """EM on x `[s, n]` from `init`; the objective, floor, empty components and statuses are those of `mixtures.fit`."""
    checks.positive("floor", floor)
    samples = to_blocks(init, (x,), sample_weights, block_size)
    return em.fit_blocks(samples, init, num_iters=num_iters, tol=tol, regression=em.joint, floor=floor)
