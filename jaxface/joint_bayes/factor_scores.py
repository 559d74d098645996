"""Scores of a model with `T_mu = F F'` by its factors: nothing is decomposed but r x r matrices.

Of a set of m images whose differences to the mean sum to s, with `b = F'T_eps^-1 s` and `G = F'T_eps^-1 F`,

    g(s, m) = 1/2 [b'(I + m G)^-1 b - log|I + m G|]        LLR = g(s_a + s_b, m_a + m_b) - g(s_a, m_a) - g(s_b, m_b)

For two images that is the quadratic form (13) with `B = 2 T_eps^-1 F (I + 2 G)^-1 F'T_eps^-1`.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, machine
from jaxface.joint_bayes.model import LowRankJointBayes
from jaxface.joint_bayes.scores import ScoringBasis
from jaxface.linalg import psd, spectral, triangular

__all__ = ["diagonalize_factors", "llr_of_factors"]


def diagonalize_factors(model: LowRankJointBayes) -> ScoringBasis:
    """`diagonalize` of r directions, `V = T_eps^-1 F l^-1/2` with F turned: one Cholesky factor and an r x r problem.

    A direction in which F is zero but for rounding has zeros in V and in the values. Gradients are stopped.
    """
    model = jax.lax.stop_gradient(model)
    lower = psd.cholesky(model.noise_cov)
    white = triangular.solve(lower, model.root)
    values, turn = spectral.eigh(white.T @ white)
    is_kept = values > values.max() * len(values) * machine.eps(values.dtype)
    scale = jnp.where(is_kept, 1 / jnp.sqrt(jnp.where(is_kept, values, 1)), 0)
    vectors = triangular.solve_transposed(lower, (white @ turn) * scale[None, :])
    return ScoringBasis(mean=model.mean, vectors=vectors, values=jnp.where(is_kept, values, 0))


def llr_of_factors(model: LowRankJointBayes, x1: ArrayLike, x2: ArrayLike) -> jax.Array:
    """Log-likelihood ratio of two images `[d]`, differentiable in the factors, the noise and the images."""
    checks.shapes(mean=(model.mean, "d"), root=(model.root, "d r"), x1=(x1, "d"), x2=(x2, "d"))
    checks.floating(x1=x1, x2=x2)
    both = jnp.stack([jnp.asarray(x1), jnp.asarray(x2)]) - model.mean[None, :]
    solved = psd.solve(model.noise_cov, model.root)
    gram, b = model.root.T @ solved, both @ solved
    return _evidence(gram, b[0] + b[1], 2) - _evidence(gram, b[0], 1) - _evidence(gram, b[1], 1)


def _evidence(gram: jax.Array, b: jax.Array, count: int) -> jax.Array:
    """g(s, m), with `b = F'T_eps^-1 s`."""
    precision = jnp.eye(len(b), dtype=gram.dtype) + count * gram
    return (b @ psd.solve(precision, b) - psd.log_det(precision)) / 2
