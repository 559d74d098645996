"""Hallucination by kernel ridge regression of the face on the visible pixels, exactly and by Fastfood.

- `fit_kernel_ridge`: `image = mean + Y'(K + r W^-1)^-1 k(train, pixels)`, with all n x n kernel values in memory;
- `fit_fastfood_ridge`: the same with inner products of features (10)-(13), cosine and sine, in place of the kernel.
  Their moments `Z'W Z` and `Z'W Y` are sums over faces: beside the faces, memory holds only `2 f x 2 f` numbers.

W are sample weights with mean 1, and r is relative to the mean of `k(y, y)`, 1 for a Gaussian kernel, so that r means
the same for both fits. The second one needs cosine and sine: the sine alone estimates another kernel.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, fitinfo, prng
from jaxface.core.fitinfo import FitInfo, Status
from jaxface.core.pytree import params, whole
from jaxface.features import fastfood, forms, maps
from jaxface.features.fastfood import Fastfood
from jaxface.hallucination.linear import penalized_solve, report
from jaxface.hallucination.reconstruction import Reconstruction, checked, checked_weights
from jaxface.linalg import distances, gram
from jaxface.linalg.gram import Kernel

__all__ = ["FastfoodHallucinator", "KernelHallucinator", "fit_fastfood_ridge", "fit_kernel_ridge"]

_BLOCK_SIZE = 1024  # faces in flight: wide enough for the products of their features


@params
class KernelHallucinator:
    """A mean face, and a sum of kernel functions for each pixel."""

    mean: jax.Array  # [d]
    visible: jax.Array = whole()  # int32 [v]
    kernel: Kernel  # a pytree of `linalg.gram`
    train: jax.Array  # [n, v], visible pixels about their mean
    coefficients: jax.Array  # [n, d]

    def prepare(self) -> Reconstruction:
        """One row of kernel values, one product."""

        def image(pixels: jax.Array) -> jax.Array:
            seen = pixels - self.mean[self.visible]
            return self.mean + self.kernel(seen[None, :], self.train)[0] @ self.coefficients

        return image


@params
class FastfoodHallucinator:
    """A mean face, and a regression on cosines and sines."""

    mean: jax.Array  # [d]
    visible: jax.Array = whole()  # int32 [v]
    features: Fastfood
    coefficients: jax.Array  # [2 f, d]

    def prepare(self) -> Reconstruction:
        """Features in O(f log v), one product."""

        def image(pixels: jax.Array) -> jax.Array:
            seen = pixels - self.mean[self.visible]
            return self.mean + maps.transform(self.features, seen, form=forms.cos_sin) @ self.coefficients

        return image


def fit_kernel_ridge(
    kernel: Kernel, x: ArrayLike, mask: ArrayLike, *, ridge: jax.Array | float, sample_weights: ArrayLike | None = None
) -> tuple[KernelHallucinator, FitInfo]:
    """The regression of faces x `[n, d]` on the kernel functions of all of them: for thousands of faces, not more."""
    kernel = gram.as_kernel(kernel)
    centered, mean, visible = checked(x, mask)
    checks.shapes(ridge=(ridge, ""))
    checks.positive("ridge", ridge)
    train = centered[:, visible]
    coefficients, info = _kernel_ridge(kernel, train, centered, checked_weights(sample_weights, centered), ridge)
    return KernelHallucinator(mean=mean, visible=visible, kernel=kernel, train=train, coefficients=coefficients), info


@jax.jit
def _kernel_ridge(
    kernel: Kernel, train: jax.Array, centered: jax.Array, weights: jax.Array, ridge: jax.Array | float
) -> tuple[jax.Array, FitInfo]:
    k = kernel(train, train)
    penalty = ridge * jnp.trace(k) / k.shape[0]
    # Weight symmetrically by sqrt(w): W^-1 would divide by zero weights.
    root = distances.safe_sqrt(weights)
    weighted = root[:, None] * k * root[None, :]
    solution, added = penalized_solve(weighted, root[:, None] * centered, penalty)
    info = report(solution, (train, centered), added)
    # Squares of very small numbers underflow: such a kernel is zero for images that differ.
    vanished = (jnp.trace(k) == 0) & (train != 0).any()
    status = fitinfo.diagnose((vanished, Status.RANK_DEFICIENT), otherwise=info.status)
    return root[:, None] * solution, info._replace(status=status)


def fit_fastfood_ridge(
    key: jax.Array,
    x: ArrayLike,
    mask: ArrayLike,
    *,
    num_features: int,
    bandwidth: ArrayLike,
    ridge: jax.Array | float,
    sample_weights: ArrayLike | None = None,
) -> tuple[FastfoodHallucinator, FitInfo]:
    """The regression of faces x `[n, d]` on `num_features` random frequencies of their visible pixels."""
    centered, mean, visible = checked(x, mask)
    checks.shapes(ridge=(ridge, ""))
    checks.positive("ridge", ridge)
    features = fastfood.init(
        prng.stream(key, "features"),
        input_dim=visible.shape[0],
        num_features=num_features,
        bandwidth=bandwidth,
        dtype=centered.dtype,
    )
    coefficients, info = _fastfood_ridge(features, centered, visible, checked_weights(sample_weights, centered), ridge)
    return FastfoodHallucinator(mean=mean, visible=visible, features=features, coefficients=coefficients), info


@jax.jit
def _fastfood_ridge(
    features: Fastfood, centered: jax.Array, visible: jax.Array, weights: jax.Array, ridge: jax.Array | float
) -> tuple[jax.Array, FitInfo]:
    width = 2 * features.num_features
    transform = jax.vmap(partial(maps.transform, features, form=forms.cos_sin))

    def add(
        moments: tuple[jax.Array, jax.Array], rows: tuple[jax.Array, jax.Array], valid: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        faces, counts = rows
        z = transform(faces[:, visible])
        weighted = z * jnp.where(valid, counts, 0)[:, None]
        return moments[0] + weighted.T @ z, moments[1] + weighted.T @ faces

    zero = jnp.zeros((width, width), centered.dtype), jnp.zeros((width, centered.shape[1]), centered.dtype)
    square, cross = blocks.fold_rows(add, zero, (centered, weights), block_size=_BLOCK_SIZE)
    coefficients, added = penalized_solve(square, cross, jnp.asarray(ridge, centered.dtype))
    return coefficients, report(coefficients, centered, added)
