"""What all feature maps share: a random matrix V of frequencies, known by its products, and a form.

A map is a pytree with two products, one vector at a time; everything else is made of them. V is `[f, d]`, one frequency
a row, and is never formed by the fast maps.
"""

import functools
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks
from jaxface.features import forms
from jaxface.features.forms import Form

__all__ = [
    "FeatureMap",
    "dense_matrix",
    "feature_matrix",
    "gram_matrix",
    "gram_product",
    "inverse",
    "project",
    "transform",
    "transpose",
]

# Rows in flight: the intermediate results of as many images stay in the cache of a core.
BLOCK_SIZE = 64


class FeatureMap(Protocol):
    """Frequencies V `[f, d]`."""

    @property
    def input_dim(self) -> int:
        """d, before any padding."""

    @property
    def num_features(self) -> int:
        """f, the number of frequencies."""

    def project(self, x: jax.Array) -> jax.Array:
        """`V x`: `[d]` to `[f]`."""

    def transpose(self, u: jax.Array) -> jax.Array:
        """`V'u`: `[f]` to `[d]`."""

    def inverse(self, u: jax.Array) -> jax.Array:
        """`V^-1 u`: `[f]` to `[d]`, for a V that is made of one whole block."""


def project(params: FeatureMap, x: ArrayLike) -> jax.Array:
    """`V x` of one vector: `[d]` to `[f]`."""
    return params.project(_checked("x", x, params.input_dim))


def transpose(params: FeatureMap, u: ArrayLike) -> jax.Array:
    """`V'u` of one vector: `[f]` to `[d]`."""
    return params.transpose(_checked("u", u, params.num_features))


def gram_product(params: FeatureMap, x: ArrayLike) -> jax.Array:
    """`V'V x` of one vector: `[d]` to `[d]`."""
    return params.transpose(project(params, x))


def inverse(params: FeatureMap, u: ArrayLike) -> jax.Array:
    """`V^-1 u` of one vector, `[f]` to `[d]`, where V is square (padding counted)."""
    return params.inverse(_checked("u", u, params.num_features))


def transform(params: FeatureMap, x: ArrayLike, *, form: Form) -> jax.Array:
    """Features of one vector `[d]`: `[2 f]` with `forms.cos_sin`, `[f]` with the other forms."""
    return form(project(params, x))


def feature_matrix(params: FeatureMap, x: ArrayLike, *, form: Form, block_size: int = BLOCK_SIZE) -> jax.Array:
    """Features of the rows of x `[n, d]`, `block_size` at a time in the cache; the results do not depend on it.

    A row with NaN has no feature that is known: all of them are NaN.
    """
    checks.shapes(x=(x, f"n {params.input_dim}"))
    checks.floating(x=x)
    checks.at_least("block_size", block_size, 1)
    return _feature_matrix(params, jnp.asarray(x), forms.as_tree(form), block_size=block_size)


@partial(jax.jit, static_argnames="block_size")
def _feature_matrix(params: FeatureMap, x: jax.Array, form: Form, *, block_size: int) -> jax.Array:
    return blocks.map_rows(lambda row: form(params.project(row)), x, block_size=block_size)


def dense_matrix(params: FeatureMap) -> jax.Array:
    """V `[f, d]` itself, for tests and for small d."""
    return jax.vmap(params.project, out_axes=1)(jnp.eye(params.input_dim, dtype=dtype_of(params)))


def gram_matrix(params: FeatureMap) -> jax.Array:
    """`V'V` `[d, d]`, by d fast products; V is not formed."""
    eye = jnp.eye(params.input_dim, dtype=dtype_of(params))
    return blocks.map_rows(lambda row: params.transpose(params.project(row)), eye, block_size=BLOCK_SIZE)


def dtype_of(params: FeatureMap) -> jnp.dtype:
    """The floating type of a map."""
    return jnp.result_type(*[leaf for leaf in jax.tree.leaves(params) if jnp.issubdtype(leaf.dtype, jnp.floating)])


def checked_init(key: jax.Array, *, input_dim: int, num_features: int, bandwidth: ArrayLike, dtype: Any) -> jax.Array:
    """The checks that every `init` makes; returns the bandwidth as a floating array."""
    checks.typed_key(key)
    checks.at_least("input_dim", input_dim, 1)
    checks.at_least("num_features", num_features, 1)
    checks.shapes(bandwidth=(bandwidth, ""))
    checks.positive("bandwidth", bandwidth)
    bandwidth = jnp.asarray(bandwidth, jnp.result_type(bandwidth, float) if dtype is None else dtype)
    checks.positive("bandwidth", bandwidth)  # it may vanish in a narrower type
    return bandwidth


def check_square(num_features: int, size: int) -> None:
    """Checks that V has an inverse: as many frequencies as (padded) dimensions."""
    if num_features != size:
        raise ValueError(
            f"num_features must be {size}, the (padded) dimension, for V to have an inverse; got {num_features}. "
            "Use dekernelize.least_squares."
        )


def sum_of_blocks(u: jax.Array) -> jax.Array:
    """Rows `[c, D]` added term by term: in a batch, XLA's own reduction over c takes three times as long."""
    return functools.reduce(jnp.add, u)


def zero_padded(x: jax.Array, size: int) -> jax.Array:
    """`[d]` to `[size]`, zeros at the end."""
    return jnp.pad(x, (0, size - x.shape[0]))


def _checked(name: str, x: ArrayLike, size: int) -> jax.Array:
    checks.shapes(**{name: (x, str(size))})
    checks.floating(**{name: x})
    return jnp.asarray(x)
