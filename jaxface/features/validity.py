"""How far an inverse may be believed: a report beside each vector that `dekernelize` finds."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxface.core import fitinfo, machine
from jaxface.core.fitinfo import Status
from jaxface.features import forms, maps
from jaxface.features.forms import Form
from jaxface.features.maps import FeatureMap
from jaxface.linalg import distances, krylov
from jaxface.linalg.krylov import Solution

__all__ = ["Validity"]

_LANCZOS_STEPS = 48


class Validity(NamedTuple):
    """The report on one inverse, or on many with a leading axis."""

    status: jax.Array  # int32 [], a Status
    num_iters: jax.Array  # int32 [], 0 for a closed form
    share_clipped: jax.Array  # [], share of features that no vector has
    share_out_of_range: jax.Array  # [], share of |V x| beyond the range where the form is one to one
    residual: jax.Array  # [], |form(V x) - features| / |features|
    conditioning: jax.Array  # [], condition number of V'V, estimated from below


def of_solution(
    params: FeatureMap, features: jax.Array, solution: Solution, form: Form, conditioning: jax.Array
) -> Validity:
    """The report on the solution for `features`."""
    inverse = forms.inverse(form)
    u = params.project(solution.x)
    length = distances.norm(features)
    is_known = jnp.isfinite(features).all()
    no_share = jnp.where(is_known, jnp.zeros((), u.dtype), jnp.nan)  # features with NaN have no shares
    # Near the end of the range arcsin is accurate to sqrt(eps) only.
    is_beyond = jnp.abs(u) > inverse.half_width + math.sqrt(machine.eps(u.dtype))
    return Validity(
        status=_status(solution, is_known),
        num_iters=solution.num_iters,
        share_clipped=inverse.angles(features).is_clipped.mean(dtype=u.dtype) + no_share,
        share_out_of_range=is_beyond.mean(dtype=u.dtype) + no_share,
        residual=distances.norm(form(u) - features) / jnp.where(length > 0, length, 1),
        conditioning=conditioning,
    )


def _status(solution: Solution, is_known: jax.Array) -> jax.Array:
    """A closed form that has not converged had no inverse of V'V; other solvers ran out of steps."""
    is_closed_form = solution.num_iters == 0
    return fitinfo.diagnose(
        (~is_known, Status.NON_FINITE),
        (~solution.is_converged & is_closed_form, Status.RANK_DEFICIENT),
        (~jnp.isfinite(solution.x).all(), Status.NON_FINITE),
        (~solution.is_converged, Status.MAX_ITERS),
    )


def conditioning(params: FeatureMap) -> jax.Array:
    """The condition number of V'V, infinite where its least eigenvalue is zero to rounding."""
    least, largest = spectral_range(params)
    # Rounding may leave the least eigenvalue of a singular V'V on either side of zero.
    is_singular = least <= machine.eps(least.dtype) * largest
    return jnp.where(is_singular, jnp.inf, largest / jnp.where(is_singular, 1, least))


def spectral_range(params: FeatureMap) -> tuple[jax.Array, jax.Array]:
    """Least and largest eigenvalue of V'V, by Lanczos steps."""
    start = jnp.ones(params.input_dim, maps.dtype_of(params))
    return krylov.spectral_range(maps.gram_operator(jax.lax.stop_gradient(params)), start, num_steps=_LANCZOS_STEPS)
