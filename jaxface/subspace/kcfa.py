"""Kernel class-dependence feature analysis: a kernel correlation filter for each training class.

A filter answers 1 to the images of its class and 0 to all others: `A = (K + r I)^-1 U` with U `[n, c]` one-hot. An
code of an image is its c responses `A'k(train, x)`, also for a person who was not in training, and two images are
compared by the cosine of their codes. The kernel sees images of unit energy, so a gain does not matter.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, fitinfo
from jaxface.core.blocks import each_row
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.pytree import params
from jaxface.linalg import distances, gram, psd
from jaxface.linalg.gram import Kernel
from jaxface.subspace import kernel_map
from jaxface.subspace.kernel_map import KernelMap

__all__ = ["encode", "fit", "median_distance", "score_matrix"]


@params
class UnitEnergyKernel:
    """Another kernel on images of unit energy: `k(x / |x|, y / |y|)`."""

    kernel: Kernel  # a pytree of `linalg.gram`

    def __call__(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """Gram matrix `[n, m]`."""
        return self.kernel(distances.normalize(x), distances.normalize(y))


def fit(
    kernel: Kernel, x: ArrayLike, labels: ArrayLike, *, num_classes: int, ridge: jax.Array | float
) -> tuple[KernelMap, FitInfo]:
    """Filters for x `[n, d]` with labels `[n]`: a map to the c responses.

    The ridge is relative to the mean of `k(x, x)`, which is 1 for a Gaussian. With 1e-6 in float64 the answers to the
    training images are nearly exact. Where it is too small for the precision the status is NOT_PSD.
    """
    checks.samples(x=(x, "n d"), beside={"labels": (labels, "n")})
    checks.at_least("num_classes", num_classes, 2, "one class has no other to be told from")
    labels = checks.dense_labels("labels", labels, num_classes)
    checks.every_label("labels", labels, num_classes)
    checks.positive("ridge", ridge)
    return _fit(
        UnitEnergyKernel(kernel=gram.as_kernel(kernel)),
        jnp.asarray(x),
        jnp.asarray(labels),
        ridge,
        num_classes=num_classes,
    )


@partial(jax.jit, static_argnames="num_classes")
def _fit(
    kernel: Kernel, x: jax.Array, labels: jax.Array, ridge: jax.Array | float, *, num_classes: int
) -> tuple[KernelMap, FitInfo]:
    answers = jax.nn.one_hot(labels, num_classes, dtype=x.dtype)
    k, ridge = kernel(x, x), jnp.asarray(ridge, x.dtype)
    filters = psd.solve_definite(k, answers, ridge=ridge)
    status = fitinfo.diagnose((~fitinfo.all_finite(filters), Status.NOT_PSD))
    fitted = KernelMap(kernel=kernel, train=x, coefficients=filters, offset=jnp.zeros(num_classes, x.dtype))
    jitter = ridge * jnp.trace(k) / len(k)
    return fitted, fitinfo.closed_form(dtype=x.dtype, status=kernel_map.status_of(kernel, x, k, status), jitter=jitter)


def median_distance(x: ArrayLike) -> float:
    """The median distance of different images of x `[n, d]` at unit energy, a bandwidth to begin with; on the host."""
    n = checks.samples(x=(x, "n d"))["n"]
    checks.at_least("number of images", n, 2, "a distance needs two")
    unit = distances.normalize(jnp.asarray(x))
    squared = np.asarray(distances.squared_distance_matrix(unit, unit))
    return float(np.median(np.sqrt(squared[np.triu_indices(n, 1)])))


def encode(filters: KernelMap, x: ArrayLike) -> jax.Array:
    """The code `[c]` of one image `[d]`: its responses at unit length, so that inner products of codes are scores.

    Zero where all responses are zero, and NaN for an image with NaN.
    """
    checks.shapes(train=(filters.train, "n d"), x=(x, "d"))
    checks.floating(x=x)
    return distances.normalize(kernel_map.transform(filters, jnp.asarray(x)))


def score(filters: KernelMap, x: ArrayLike, y: ArrayLike) -> jax.Array:
    """The cosine of the responses to two images `[d]`; 0 where one of them has none."""
    return encode(filters, x) @ encode(filters, y)


def score_matrix(filters: KernelMap, gallery: ArrayLike, probes: ArrayLike) -> jax.Array:
    """Scores `[g, q]` of images gallery `[g, d]` and probes `[q, d]`."""
    checks.shapes(train=(filters.train, "n d"), gallery=(gallery, "g d"), probes=(probes, "q d"))
    checks.floating(gallery=gallery, probes=probes)
    return _score_matrix(filters, jnp.asarray(gallery), jnp.asarray(probes))


@jax.jit
def _score_matrix(filters: KernelMap, gallery: jax.Array, probes: jax.Array) -> jax.Array:
    return each_row(encode, filters, gallery) @ each_row(encode, filters, probes).T
