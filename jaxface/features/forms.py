"""Forms: functions from the projection `u = V x` `[f]` to features, and their inverses from features to u.

    cos_sin       [cos u, sin u] / sqrt f      2 f wide   k(x - y)
    complex       exp(i u) / sqrt f            f wide     k(x - y)
    RandomPhase   sqrt(2 / f) cos(u + b)       f wide     k(x - y), with more variance
    sin           sin u / sqrt f               f wide     (k(x - y) - k(x + y)) / 2

Each kernel is the mean of the inner product (of `z conj(z')` where complex) over draws of V. The sine alone, which the
paper calls a valid choice for the kernel, is not: for the Gaussian it approximates
`exp(-(|x|^2 + |y|^2) / (2 s^2)) sinh(x'y / s^2)`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxface.core import checks, machine
from jaxface.core.pytree import params
from jaxface.features import trig

__all__ = ["Form", "RandomPhase", "complex", "cos_sin", "identity", "inverse", "random_phase", "sin"]

Form = Callable[[jax.Array], jax.Array]  # a projection u [f] -> features


class Angles(NamedTuple):
    """The projection, as far as features determine it."""

    angles: jax.Array  # [f], u where it is in the form's range
    is_clipped: jax.Array  # bool [f], True where no u gives such a feature


class Inverse(NamedTuple):
    """The inverse of a form, entry by entry."""

    angles: Callable[[jax.Array], Angles]
    half_width: float  # exact for |u| up to this
    width: int  # real features for each frequency


@params
class RandomPhase:
    """`sqrt(2 / f) cos(u + b)`; its phases are drawn once, beside the map."""

    phases: jax.Array  # [f]

    def __call__(self, u: jax.Array) -> jax.Array:
        """Features `[f]`."""
        checks.shapes(phases=(self.phases, "f"), u=(u, "... f"))
        return math.sqrt(2 / u.shape[-1]) * trig.cos(u + self.phases)


def cos_sin(u: jax.Array) -> jax.Array:
    """(10)-(13) `[cos u, sin u] / sqrt f` `[2 f]`: the real map of the kernel, all cosines first."""
    return jnp.concatenate([trig.cos(u), trig.sin(u)], axis=-1) / math.sqrt(u.shape[-1])


def sin(u: jax.Array) -> jax.Array:
    """(16) `sin u / sqrt f` `[f]`: invertible entry by entry, but the map of another kernel."""
    return trig.sin(u) / math.sqrt(u.shape[-1])


def complex(u: jax.Array) -> jax.Array:
    """(9) `exp(i u) / sqrt f` `[f]`."""
    return jax.lax.complex(trig.cos(u), trig.sin(u)) / math.sqrt(u.shape[-1])


def identity(u: jax.Array) -> jax.Array:
    """`u` itself: with it, `feature_matrix` gives the projections of many rows."""
    return u


def random_phase(key: jax.Array, *, num_features: int, dtype: Any = None) -> RandomPhase:
    """The form `sqrt(2 / f) cos(u + b)` with `b ~ U[0, 2 pi)` drawn."""
    checks.typed_key(key)
    checks.at_least("num_features", num_features, 1)
    dtype = jnp.result_type(float) if dtype is None else dtype
    return RandomPhase(phases=jax.random.uniform(key, (num_features,), dtype, maxval=2 * math.pi))


def as_tree(form: Form) -> Form:
    """The form as a pytree, so that a jitted function may take it: a plain function is wrapped."""
    return jax.tree_util.Partial(form) if jax.tree_util.all_leaves([form]) else form


def real(features: jax.Array, form: Form) -> tuple[jax.Array, Form]:
    """Complex features as those of `cos_sin`, others as they are."""
    if form is complex:
        return jnp.concatenate([features.real, features.imag], axis=-1), cos_sin
    return features, form


def inverse(form: Form) -> Inverse:
    """The inverse of a form; the inverse of `complex` takes the real features that `real` makes."""
    if form is sin:
        return Inverse(_angles_of_sin, math.pi / 2, 1)
    if form in (cos_sin, complex):
        return Inverse(_angles_of_cos_sin, math.pi, 2)
    raise ValueError(
        f"form must be sin, cos_sin or complex to be inverted; got {getattr(form, '__name__', type(form).__name__)}. "
        "One cosine does not tell the sign of its angle: keep cos_sin."
    )


def _angles_of_sin(features: jax.Array) -> Angles:
    scaled = math.sqrt(features.shape[-1]) * features
    limit = 1 + 8 * machine.eps(scaled.dtype)  # rounding alone is not an error of the features
    return Angles(trig.clipped_arcsin(scaled), jnp.abs(scaled) > limit)


def _angles_of_cos_sin(features: jax.Array) -> Angles:
    cosine, sine = jnp.split(features, 2, axis=-1)
    return Angles(trig.arctan2(sine, cosine), (sine == 0) & (cosine == 0))
