"""The model: a person's mean and an image's deviation, both Gaussian.

`x_ij = mean + mu_i + eps_ij` with `mu_i ~ N(0, T_mu)` and `eps_ij ~ N(0, T_eps)`. T_eps is positive definite; T_mu may
have any rank.
"""

import jax
import jax.numpy as jnp

from jaxface.core import checks
from jaxface.core.pytree import params
from jaxface.linalg import psd, spectral

__all__ = [
    "FreeJointBayes",
    "JointBayes",
    "LowRankJointBayes",
    "constrained",
    "free",
    "isotropic",
    "sample",
    "to_dense",
]


@params
class JointBayes:
    """Parameters of the model."""

    mean: jax.Array  # [d]
    identity_cov: jax.Array  # [d, d], T_mu, positive semidefinite
    noise_cov: jax.Array  # [d, d], T_eps, positive definite

    def check(self) -> None:
        """Refuses shapes that do not fit together and matrices that are not covariances; on the host."""
        checks.shapes(
            mean=(self.mean, "... d"),
            identity_cov=(self.identity_cov, "... d d"),
            noise_cov=(self.noise_cov, "... d d"),
        )
        psd.check_covariance("identity_cov", self.identity_cov, unit=self.noise_cov)
        psd.check_covariance("noise_cov", self.noise_cov)


@params
class FreeJointBayes:
    """The same model without constraints, for gradient descent: every value of the fields is a valid model."""

    mean: jax.Array  # [d]
    identity_root: jax.Array  # [d, r], T_mu = F F'
    noise_root: jax.Array  # [d, d], T_eps = L L'; below the diagonal L itself, on it the logarithm


@params
class LowRankJointBayes:
    """The model with `T_mu = F F'` of low rank and any T_eps: `x_ij = mean + F h_i + eps_ij`, `h_i ~ N(0, I)`."""

    mean: jax.Array  # [d]
    root: jax.Array  # [d, r], F
    noise_cov: jax.Array  # [d, d], T_eps, positive definite

    def check(self) -> None:
        """Refuses shapes that do not fit together and a noise_cov that is no covariance; on the host."""
        checks.shapes(mean=(self.mean, "... d"), root=(self.root, "... d r"), noise_cov=(self.noise_cov, "... d d"))
        psd.check_covariance("noise_cov", self.noise_cov)


def to_dense(model: LowRankJointBayes) -> JointBayes:
    """The same model with T_mu multiplied out; differentiable."""
    return JointBayes(mean=model.mean, identity_cov=model.root @ model.root.T, noise_cov=model.noise_cov)


def free(model: JointBayes, *, rank: int | None = None) -> FreeJointBayes:
    """Free parameters of a model, with the `rank` leading directions of T_mu (default: all). Gradients are stopped."""
    model = jax.lax.stop_gradient(model)
    values, vectors = spectral.eigh(model.identity_cov)
    width = len(values) if rank is None else rank
    checks.at_least("rank", width, 1)
    checks.at_most("rank", width, len(values), "the dimension")
    lower = psd.cholesky(model.noise_cov)
    return FreeJointBayes(
        mean=model.mean,
        identity_root=(vectors * jnp.sqrt(jnp.maximum(values, 0))[None, :])[:, :width],
        noise_root=jnp.tril(lower, -1) + jnp.diag(jnp.log(jnp.diagonal(lower))),
    )


def constrained(parameters: FreeJointBayes) -> JointBayes:
    """The model of free parameters; differentiable, and positive definite by construction."""
    lower = jnp.tril(parameters.noise_root, -1) + jnp.diag(jnp.exp(jnp.diagonal(parameters.noise_root)))
    return JointBayes(
        mean=parameters.mean,
        identity_cov=parameters.identity_root @ parameters.identity_root.T,
        noise_cov=lower @ lower.T,
    )


def isotropic(model: JointBayes, *, rank: jax.Array | int | None = None) -> JointBayes:
    """The model with covariances that are multiples of I: a prior where images are fewer than dimensions.

    The variances are the means of T_mu and T_eps over `rank` directions, those in which images vary; None means all.
    """
    d, dtype = model.mean.shape[0], model.mean.dtype
    number = d if rank is None else rank
    checks.between("rank", number, 0, jnp.inf, closed_low=False, closed_high=False)
    eye = jnp.eye(d, dtype=dtype)
    identity, noise = (jnp.trace(cov) / number * eye for cov in (model.identity_cov, model.noise_cov))
    return JointBayes(mean=model.mean, identity_cov=identity, noise_cov=noise)


def sample(key: jax.Array, model: JointBayes, *, num_people: int, num_images: int) -> tuple[jax.Array, jax.Array]:
    """Images `[num_people, num_images, d]` of new people and the means `[num_people, d]` of these people.

    Gradients are stopped.
    """
    model = jax.lax.stop_gradient(model)
    checks.typed_key(key)
    checks.at_least("num_people", num_people, 1)
    checks.at_least("num_images", num_images, 1)
    d, dtype = model.mean.shape[0], model.mean.dtype
    identity_key, noise_key = jax.random.split(key)
    values, vectors = spectral.eigh(model.identity_cov)
    root = vectors * jnp.sqrt(jnp.maximum(values, 0))[None, :]
    mu = jax.random.normal(identity_key, (num_people, d), dtype) @ root.T
    eps = jax.random.normal(noise_key, (num_people, num_images, d), dtype) @ psd.cholesky(model.noise_cov).T
    means = model.mean[None, :] + mu
    return means[:, None, :] + eps, means
