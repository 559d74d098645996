"""Bandwidths from data: the median rule for the kernel, the quantile rule for the way back to the input.

The two rules serve different purposes. A kernel for recognising faces needs about the median distance. A map of the
sine alone that can be inverted needs about twice the length of a vector, where its kernel is nearly linear.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxface.core import checks, machine
from jaxface.features import forms, maps
from jaxface.features.forms import Form
from jaxface.features.maps import FeatureMap, Init
from jaxface.linalg import distances

__all__ = ["choose_bandwidth", "median_distance"]


def median_distance(key: jax.Array, x: ArrayLike, *, num_pairs: int = 10_000) -> jax.Array:
    """The median of |x_i - x_j| over random pairs of different rows of x `[n, d]`: a bandwidth for the kernel."""
    checks.typed_key(key)
    sizes = checks.samples(x=(x, "n d"))
    checks.at_least("number of samples", sizes["n"], 2, "a distance needs two")
    checks.at_least("num_pairs", num_pairs, 1)
    x = jnp.asarray(x)
    first_key, step_key = jax.random.split(key)
    first = jax.random.randint(first_key, (num_pairs,), 0, sizes["n"])
    second = (first + jax.random.randint(step_key, (num_pairs,), 1, sizes["n"])) % sizes["n"]
    median = jnp.median(distances.norm(x[first] - x[second]))
    checks.positive("median distance of the rows of x", median)
    return median


def choose_bandwidth(
    key: jax.Array, x: ArrayLike, *, init: Init[FeatureMap], num_features: int, quantile: float, form: Form = forms.sin
) -> np.floating:
    """The least bandwidth with the share `quantile` of all `|V x|` in the range where `form` is one to one.

    `sigma = quantile_q(|V_1 x|) / (pi / 2)` for the sine, with pi for pairs, over the rows of x `[n, d]`; V_1 is the
    map that `init` draws with this key at bandwidth 1, so the same key must draw the map. With quantile 1 all are in
    range. In general V x ~ N(0, |x|^2 / sigma^2): .999 needs about 2.1 |x| for the sine. The bandwidth has the dtype
    of x, so that the map drawn with it has that dtype too: in another dtype a key draws other numbers. On the host.
    """
    sizes = checks.samples(x=(x, "n d"))
    checks.at_least("number of samples", sizes["n"], 1)
    checks.between("quantile", quantile, 0.0, 1.0, closed_low=False)
    dtype = jnp.asarray(x).dtype
    unit = init(key, input_dim=sizes["d"], num_features=num_features, bandwidth=1.0, dtype=dtype)
    projections = np.abs(maps.feature_matrix(unit, x, form=forms.identity))
    limit = float(np.quantile(projections, quantile, method="higher"))
    checks.positive("quantile of |V x|", limit)
    # A margin against rounding: beyond the end of the range, the angle of a pair changes its sign.
    margin = 64 * machine.eps(dtype)
    return np.dtype(dtype).type((1 + margin) * limit / forms.inverse(form).half_width)
