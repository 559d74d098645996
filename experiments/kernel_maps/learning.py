"""S, G and B of Fastfood as parameters: a few frequencies learn the kernel of some people and meet others."""

import dataclasses
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from jaxface.core import prng
from jaxface.core.fitinfo import raise_if_failed
from jaxface.data import splits
from jaxface.features import fastfood, feature_matrix, forms, median_distance
from jaxface.linalg import gram
from jaxface.losses.minimization import minimize
from jaxface.runtime.log import progress

LEARNED = ("signs", "gaussian", "scale")


def trained(config: ConfigDict, x: jax.Array, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Root mean square error of the kernel, `[draws, sizes]`, before and after, of people seen and not seen.

    The loss `[draws, sizes, steps]` is the mean squared error over the pairs of the people seen. Half of the people
    train; nobody is in both halves.
    """
    settings, rng = config.learning, np.random.default_rng(config.seed)
    half = (int(ids.max()) + 1) // 2
    parts = splits.identity_disjoint(ids, num_people=(half, half), rng=rng, num_splits=settings.num_draws)
    found: dict[str, list[Any]] = {}
    for number, part in enumerate(progress(parts, "learned maps", total=settings.num_draws)):
        key = jax.random.fold_in(jax.random.key(config.seed), number)
        seen, others = x[part == 0], x[part == 1]
        scale = median_distance(prng.stream(key, "median"), seen)
        each = [_trained(settings, key, seen / scale, others / scale, f) for f in settings.sizes]
        for name in each[0]:
            found.setdefault(name, []).append(np.stack([row[name] for row in each]))
    return {name: np.stack(values) for name, values in found.items()}


def _trained(
    settings: ConfigDict, key: jax.Array, seen: jax.Array, others: jax.Array, num_features: int
) -> dict[str, np.ndarray]:
    params = fastfood.init(
        prng.stream(key, "map"), input_dim=seen.shape[1], num_features=num_features, bandwidth=1.0, dtype=seen.dtype
    )
    kernel = gram.gaussian(bandwidth=1.0)
    start = {name: getattr(params, name) for name in LEARNED}
    data, unseen = ((params, rows, kernel(rows, rows)) for rows in (seen, others))
    learned, info = minimize(_loss, start, data, num_iters=settings.num_iters, learning_rate=settings.learning_rate)
    raise_if_failed(info, f"a learned map of {num_features} frequencies")
    return {
        "seen, drawn": np.sqrt(_loss(start, data)),
        "seen, learned": np.sqrt(_loss(learned, data)),
        "others, drawn": np.sqrt(_loss(start, unseen)),
        "others, learned": np.sqrt(_loss(learned, unseen)),
        "loss": np.asarray(info.objective),
    }


@jax.jit
def _loss(learned: dict[str, Any], data: tuple[fastfood.Fastfood, jax.Array, jax.Array]) -> jax.Array:
    """Mean squared error of `Z Z'` against the kernel over pairs of different rows: the diagonal is 1 by itself."""
    params, x, kernel = data
    z = feature_matrix(dataclasses.replace(params, **learned), x, form=forms.cos_sin)
    n = x.shape[0]
    return ((z @ z.T - kernel) ** 2).sum() / (n * (n - 1))
