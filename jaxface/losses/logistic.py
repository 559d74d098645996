"""Multinomial logistic regression: a linear classifier of vectors with a ridge on its coefficients."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo
from jaxface.core.fitinfo import FitInfo
from jaxface.core.pytree import params
from jaxface.losses.minimization import minimize

__all__ = ["Logistic", "fit", "predict"]


@params
class Logistic:
    """Linear scores of the classes: `x @ coefficients + offset`."""

    coefficients: jax.Array  # [d, c]
    offset: jax.Array  # [c]


def fit(
    x: ArrayLike, labels: ArrayLike, *, num_classes: int, ridge: float, num_iters: int, tol: float = 0.0
) -> tuple[Logistic, FitInfo]:
    """Minimises the mean cross-entropy of x `[n, d]` and dense labels `[n]` plus `ridge / 2` times `|coefficients|^2`.

    L-BFGS starts at zero. Without a ridge, classes that a plane separates have no minimum. The ridge has the unit of
    1 / x^2: scale x, for example to unit length, before you choose it.
    """
    sizes = checks.samples(x=(x, "n d"), beside={"labels": (labels, "n")})
    labels = checks.dense_labels("labels", labels, num_classes)
    checks.between("ridge", ridge, 0.0, jnp.inf, closed_high=False)
    x = jnp.asarray(x)
    start = Logistic(coefficients=jnp.zeros((sizes["d"], num_classes), x.dtype), offset=jnp.zeros(num_classes, x.dtype))
    data = (x, jnp.asarray(labels), jnp.asarray(ridge, x.dtype))
    model, info = minimize(_loss, start, data, num_iters=num_iters, tol=tol)
    return model, info._replace(status=fitinfo.or_non_finite(info.status, x))


def logits(model: Logistic, x: ArrayLike) -> jax.Array:
    """Scores `[c]` of one vector `[d]`: log probabilities up to a constant."""
    checks.shapes(coefficients=(model.coefficients, "d c"), offset=(model.offset, "c"), x=(x, "d"))
    checks.floating(x=x)
    return jnp.asarray(x) @ model.coefficients + model.offset


def predict(model: Logistic, x: ArrayLike) -> jax.Array:
    """The most probable class of one vector `[d]`; -1 where the vector holds NaN."""
    scores = logits(model, x)
    return jnp.where(jnp.isnan(scores).any(), -1, scores.argmax()).astype(jnp.int32)


def _loss(model: Logistic, data: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
    x, labels, ridge = data
    scores = x @ model.coefficients + model.offset[None, :]
    right = jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], axis=1)
    return ridge / 2 * (model.coefficients**2).sum() - right.mean()
