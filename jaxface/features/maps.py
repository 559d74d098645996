"""What all feature maps share: a random matrix V `[f, d]` of frequencies, one a row, and a form.

A map is a pytree with two products for one vector, `V x` and `V'u`. All functions here are made of these products, so
the fast maps never form V.
"""

import functools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, prng
from jaxface.features import forms, spectra
from jaxface.features.forms import Form
from jaxface.features.spectra import Spectrum
from jaxface.linalg import krylov

__all__ = [
    "FeatureMap",
    "dense_matrix",
    "feature_matrix",
    "gram_matrix",
    "project",
    "transform",
    "transpose",
]

BLOCK_SIZE = 64  # rows in flight: the intermediate results of that many images stay in the cache of a core

M_co = TypeVar("M_co", bound="FeatureMap", covariant=True)


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


class Drawing(NamedTuple):
    """The checked arguments of an `init`."""

    key: jax.Array
    input_dim: int
    num_features: int
    bandwidth: jax.Array  # [], in the floating type of the map
    spectrum: Spectrum


class Init(Protocol[M_co]):
    """The `init` of a map, such as `fastfood.init`."""

    def __call__(
        self,
        key: jax.Array,
        *,
        input_dim: int,
        num_features: int,
        bandwidth: ArrayLike,
        spectrum: Spectrum = spectra.gaussian,
        dtype: Any = None,
    ) -> M_co:
        """Draws `num_features` frequencies; the map has type `dtype`, or that of the bandwidth."""


def initializer(draw: Callable[[Drawing], M_co]) -> Init[M_co]:
    """Makes a function of a `Drawing` an `init`: all maps are drawn with the same arguments, checked in one place."""

    def init(
        key: jax.Array,
        *,
        input_dim: int,
        num_features: int,
        bandwidth: ArrayLike,
        spectrum: Spectrum = spectra.gaussian,
        dtype: Any = None,
    ) -> M_co:
        checks.typed_key(key)
        checks.at_least("input_dim", input_dim, 1)
        checks.at_least("num_features", num_features, 1)
        checks.shapes(bandwidth=(bandwidth, ""))
        checks.positive("bandwidth", bandwidth)
        bandwidth = jnp.asarray(bandwidth, jnp.result_type(bandwidth, float) if dtype is None else dtype)
        checks.positive("bandwidth", bandwidth)  # it may underflow in a narrower type
        return draw(Drawing(key, input_dim, num_features, bandwidth, spectrum))

    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(init, name, getattr(draw, name))
    return init


def draw_blocks(draw: Callable[[jax.Array, int, Spectrum, Any], Any], drawing: Drawing, size: int) -> Any:
    """`draw(key, size, spectrum, dtype)` for as many blocks of `size` frequencies as the map needs.

    Every block has a key of its own, so the first blocks are the same whatever the number of frequencies.
    """
    count, dtype = blocks.num_blocks(drawing.num_features, size), drawing.bandwidth.dtype
    return _draw_blocks(drawing.key, draw=draw, count=count, size=size, spectrum=drawing.spectrum, dtype=dtype)


@partial(jax.jit, static_argnames=("draw", "count", "size", "spectrum", "dtype"))
def _draw_blocks(
    key: jax.Array, *, draw: Callable[..., Any], count: int, size: int, spectrum: Spectrum, dtype: Any
) -> Any:
    return jax.vmap(lambda key: draw(key, size, spectrum, dtype))(prng.member_keys(key, count))


def project(params: FeatureMap, x: ArrayLike) -> jax.Array:
    """`V x` of one vector: `[d]` to `[f]`."""
    return params.project(_checked("x", x, params.input_dim))


def transpose(params: FeatureMap, u: ArrayLike) -> jax.Array:
    """`V'u` of one vector: `[f]` to `[d]`."""
    return params.transpose(_checked("u", u, params.num_features))


def inverse(params: FeatureMap, u: ArrayLike) -> jax.Array:
    """`V^-1 u` of one vector, `[f]` to `[d]`, where V is square (padding counted)."""
    return params.inverse(_checked("u", u, params.num_features))


def transform(params: FeatureMap, x: ArrayLike, *, form: Form) -> jax.Array:
    """Features of one vector `[d]`: `[2 f]` with `forms.cos_sin`, `[f]` with the other forms."""
    return form(project(params, x))


def feature_matrix(params: FeatureMap, x: ArrayLike, *, form: Form, block_size: int = BLOCK_SIZE) -> jax.Array:
    """Features of the rows of x `[n, d]`, `block_size` at a time; the block size does not change the results.

    All features of a row with NaN are NaN.
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
    return blocks.map_rows(gram_operator(params), eye, block_size=BLOCK_SIZE)


def gram_operator(params: FeatureMap) -> krylov.Operator:
    """The function `x -> V'V x` of one vector."""
    return lambda x: params.transpose(params.project(x))


def dtype_of(params: FeatureMap) -> jnp.dtype:
    """The floating type of a map."""
    return jnp.result_type(*[leaf for leaf in jax.tree.leaves(params) if jnp.issubdtype(leaf.dtype, jnp.floating)])


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
