"""What dictionaries of faces are learnt from: pixels about their mean, or features of them, with weights.

    pixel_signals     of DW-KSVD, (14): the visible pixels times sqrt(1 + beta)
    feature_signals   of Fastfood DW-KSVD, (17): features of the face over sqrt(beta) times those of its visible part

The mean, and of features the bandwidths, come from a sample of faces. `transform` then makes signals of any batch, so
that a dictionary can be learnt from a stream of which nothing is kept:

    signals = feature_signals(key, sample, mask, beta=10.0, expansion=5, quantile=0.999)
    start = ksvd.init(key, signals.transform(sample), num_atoms=4096)
    state, info = online.fit_stream(online.init(start), batches, features=signals.transform, sparsity=6)
    model = feature_hallucinator(signals, state.dictionary, sparsity=6)
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxface.core import blocks, checks, machine, prng
from jaxface.core.pytree import params, static, whole
from jaxface.features import FORMS, bandwidth, fastfood, forms
from jaxface.features.fastfood import Fastfood
from jaxface.features.forms import Form
from jaxface.hallucination.reconstruction import checked
from jaxface.linalg import hadamard

__all__ = ["draw_maps", "feature_signals", "pixel_signals"]

_BLOCK_SIZE = 64  # faces in flight: their intermediate results stay in the cache of a core


@params
class PixelSignals:
    """A mean face, and the weight of every pixel about it."""

    mean: jax.Array  # [d]
    visible: jax.Array = whole()  # int32 [v]
    weights: jax.Array  # [d], sqrt(1 + beta) where visible, 1 elsewhere

    def transform(self, x: ArrayLike) -> jax.Array:
        """Signals `[n, d]` of faces x `[n, d]`."""
        return (_faces(x, self.mean) - self.mean[None, :]) * self.weights[None, :]


class Maps(NamedTuple):
    """Feature maps of the face and of its visible part, with keys of their own."""

    face: Fastfood
    visible: Fastfood


@params
class FeatureSignals:
    """A mean face, and maps of the face and of its visible part about it."""

    mean: jax.Array  # [d]
    visible: jax.Array = whole()  # int32 [v]
    face_map: Fastfood
    visible_map: Fastfood
    visible_weight: jax.Array  # [], sqrt(beta)
    form: str = static(default="sin")  # of features.FORMS

    def transform(self, x: ArrayLike) -> jax.Array:
        """Signals `[n, f + g]` of faces x `[n, d]`."""
        return _stack(self, _faces(x, self.mean))


def pixel_signals(x: ArrayLike, mask: ArrayLike, *, beta: ArrayLike) -> PixelSignals:
    """Signals of DW-KSVD with the mean of x `[n, d]`; beta, 0 or above, weighs the visible pixels, mask `[d]`."""
    _, mean, visible = checked(x, mask)
    checks.shapes(beta=(beta, ""))
    checks.between("beta", beta, 0.0, float("inf"), closed_high=False)
    beta = jnp.asarray(beta, mean.dtype)
    return PixelSignals(mean=mean, visible=visible, weights=jnp.ones_like(mean).at[visible].set(jnp.sqrt(1 + beta)))


def feature_signals(
    key: jax.Array,
    x: ArrayLike,
    mask: ArrayLike,
    *,
    beta: ArrayLike,
    expansion: int,
    quantile: float,
    form: Form = forms.sin,
) -> FeatureSignals:
    """Signals of Fastfood DW-KSVD with the mean of x `[n, d]` and the maps of `draw_maps` for it; on the host.

    beta: weight of the visible part, above 0
    expansion, quantile, form: those of `fit_fastfood_dw_ksvd`
    """
    name = name_of("form", form, FORMS)
    checks.shapes(beta=(beta, ""))
    checks.positive("beta", beta)
    drawn = draw_maps(key, x, mask, expansion=expansion, quantile=quantile, form=form)
    _, mean, visible = checked(x, mask)
    weight = jnp.sqrt(jnp.asarray(beta, mean.dtype))
    return FeatureSignals(
        mean=mean, visible=visible, face_map=drawn.face, visible_map=drawn.visible, visible_weight=weight, form=name
    )


def draw_maps(
    key: jax.Array, x: ArrayLike, mask: ArrayLike, *, expansion: int, quantile: float, form: Form = forms.sin
) -> Maps:
    """The maps that a fit with this key draws for faces x `[n, d]`: `expansion` times the padded dimensions each.

    Their bandwidths are the least that keep the share `quantile` of the data in the range of the form; on the host.
    """
    centered, mean, visible = checked(x, mask)
    checks.typed_key(key)
    checks.at_least("expansion", expansion, 1)
    parts = {"face": centered, "visible": centered[:, visible]}
    for name, part in parts.items():
        _check_variation(name, part, mean)
    return Maps(**{n: _draw_map(prng.stream(key, n), part, expansion, quantile, form) for n, part in parts.items()})


def name_of(name: str, function: Callable[..., object], table: Mapping[str, Callable[..., object]]) -> str:
    """The name of the function in the table: a model that is saved holds the name."""
    for word, known in table.items():
        if function is known:
            return word
    raise ValueError(f"{name} must be one of jaxface.features, {', '.join(table)}; got {function!r}.")


@jax.jit
def _stack(signals: FeatureSignals, x: jax.Array) -> jax.Array:
    """Features of a block of rows at a time, so that no second array of their size is made."""
    form = FORMS[signals.form]

    def row(face: jax.Array) -> jax.Array:
        seen = form(signals.visible_map.project(face[signals.visible]))
        return jnp.concatenate([form(signals.face_map.project(face)), signals.visible_weight * seen])

    return blocks.map_rows(row, x - signals.mean[None, :], block_size=_BLOCK_SIZE)


def _faces(x: ArrayLike, mean: jax.Array) -> jax.Array:
    checks.shapes(mean=(mean, "d"), x=(x, "n d"))
    checks.floating(x=x)
    return jax.lax.stop_gradient(jnp.asarray(x))


def _check_variation(name: str, part: jax.Array, mean: jax.Array) -> None:
    """Differences between equal faces are rounding, which determines no bandwidth."""
    rounding = 32 * machine.eps(part.dtype) * float(jnp.abs(mean).max())
    if float(jnp.abs(part).max()) <= rounding:
        raise ValueError(
            f"x must hold faces that differ; the {name} part is the same in all of them, so its map has no bandwidth. "
            "Leave out duplicates, or use fit_dw_ksvd, which needs none."
        )


def _draw_map(key: jax.Array, x: jax.Array, expansion: int, quantile: float, form: Form) -> Fastfood:
    """A map for x `[n, d]` with the least bandwidth that keeps the share `quantile` in the range of the form."""
    num_features = expansion * hadamard.next_power_of_two(x.shape[1])
    width = bandwidth.choose_bandwidth(
        key, x, init=fastfood.init, num_features=num_features, quantile=quantile, form=form
    )
    return fastfood.init(key, input_dim=x.shape[1], num_features=num_features, bandwidth=width, dtype=x.dtype)
