"""A face from any linear measurement of it: from small or blurred images as well as from a part of the pixels.

With the operator M `[v, d]` a face y is seen as `M y`. The face stands over its measurement, `z = [y, M y]` `[d + v]`,
and a method of the table is fitted to z with the last v entries visible. For ridge regression that is the regression
of y on `M y`. For dictionaries it is (14) or (17) with the measurement in the place of the visible pixels: all atoms
are sums of signals, so the last v rows of an atom are M times the first d, and the measurement counts `1 + beta` times.
"""

from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks
from jaxface.core.pytree import params
from jaxface.hallucination.dictionary import DictionaryHallucinator
from jaxface.hallucination.fastfood import FastfoodDictionaryHallucinator
from jaxface.hallucination.kernel import FastfoodHallucinator, KernelHallucinator
from jaxface.hallucination.linear import AffineHallucinator
from jaxface.hallucination.methods import Fitted, Method, fit
from jaxface.hallucination.network import NetworkHallucinator
from jaxface.hallucination.reconstruction import Reconstruction
from jaxface.linalg.gram import Kernel

__all__ = ["MeasuredHallucinator", "fit_measured", "with_measurement"]

Stacked = (
    AffineHallucinator
    | DictionaryHallucinator
    | FastfoodDictionaryHallucinator
    | FastfoodHallucinator
    | KernelHallucinator
    | NetworkHallucinator
)


@params
class MeasuredHallucinator:
    """An operator, and a model of faces over their measurements."""

    operator: jax.Array  # [v, d], M
    stacked: Stacked  # reconstructs [d + v]

    @property
    def mean(self) -> jax.Array:
        """The mean face `[d]`."""
        return self.stacked.mean[: self.operator.shape[1]]

    @property
    def visible(self) -> jax.Array:
        """Where the measurement is in a face over its measurement, `[v]`."""
        return self.stacked.visible

    def prepare(self) -> Reconstruction:
        """The face of the stacked reconstruction."""
        image = self.stacked.prepare()
        return lambda measured: image(measured)[: self.operator.shape[1]]


def fit_measured(
    method: Method,
    x: ArrayLike,
    operator: ArrayLike,
    *,
    key: jax.Array | None = None,
    kernel: Kernel | None = None,
    **settings: Any,
) -> Fitted:
    """Fits a method of the table to faces x `[n, d]` of which `M y` will be seen, M the operator `[v, d]`.

    The model takes measurements `[v]` where others take visible pixels. The other arguments are those of `fit`.
    """
    sizes = checks.shapes(x=(x, "n d"), operator=(operator, "v d"))
    checks.floating(x=x, operator=operator)
    checks.finite(x=x, operator=operator)
    faces, matrix = jnp.asarray(x), jnp.asarray(operator, jnp.asarray(x).dtype)
    stacked = jnp.concatenate([faces, faces @ matrix.T], axis=1)
    mask = np.arange(sizes["d"] + sizes["v"]) >= sizes["d"]
    found = fit(method, stacked, mask, key=key, kernel=kernel, **settings)
    return found._replace(model=MeasuredHallucinator(operator=matrix, stacked=cast(Stacked, found.model)))


def with_measurement(model: MeasuredHallucinator, image: ArrayLike, measured: ArrayLike) -> jax.Array:
    """The nearest image to the image `[d]` with the measurement `[v]`: `y + M^+ (m - M y)`.

    For an operator that takes single pixels these pixels are put back. The rows of the operator must be independent.
    """
    checks.shapes(operator=(model.operator, "v d"), image=(image, "d"), measured=(measured, "v"))
    checks.floating(image=image, measured=measured)
    image = jnp.asarray(image)
    missing = jnp.asarray(measured) - model.operator @ image
    return image + model.operator.T @ jnp.linalg.solve(model.operator @ model.operator.T, missing)
